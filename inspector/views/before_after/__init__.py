"""Before and after a strategy, or two open sessions, side by side."""
