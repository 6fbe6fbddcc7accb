"""The ways to mend each kind of finding, one module per family."""
