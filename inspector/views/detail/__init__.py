"""The detail pane: shows one record or block as the model saw it, as JSON, as bytes, with its links and usage."""
