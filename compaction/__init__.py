"""The engine of Compactoscope: transcripts, accounting, requests, diagnosis, compaction strategies. No Qt anywhere."""

from __future__ import annotations

__version__ = "0.1.0"
