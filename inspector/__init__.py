"""The window of Compactoscope: presentation over the engine in `compaction`."""
