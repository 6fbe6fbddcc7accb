"""The workbench's comparison: strategies side by side at one point of a session."""
