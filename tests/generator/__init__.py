"""Invented Claude Code sessions: any size, any version, any fault; the same seed gives the same bytes.

`SessionBuilder` writes one record after another and keeps the usage figures consistent; `Session` drives it with a
seeded random plot; `faults` damages the bytes; `python -m tests.generator --help` does all of it from a shell.
"""

from __future__ import annotations

from tests.generator.builder import Response, Result, SessionBuilder, Tool
from tests.generator.faults import FAULTS, apply_faults
from tests.generator.session import Session

__all__ = ["FAULTS", "Response", "Result", "Session", "SessionBuilder", "Tool", "apply_faults"]
