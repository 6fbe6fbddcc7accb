"""Charts: the only place that imports pyqtgraph; the registry names them as strings so that it loads when one shows."""
