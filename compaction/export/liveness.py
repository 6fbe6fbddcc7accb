from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass
from pathlib import Path

QUIET_SECONDS = 30.0
"""A session that grew, or whose newest record was made, within this many seconds counts as being written."""
_MAY_WAIT = 0x00100000
"""Windows' `SYNCHRONIZE` right."""
_STILL_RUNNING = 0x102
"""Windows' `WAIT_TIMEOUT`: the process did not end within the (zero) wait."""


@dataclass(frozen=True, slots=True)
class Liveness:
    """Whether a session file is being written right now, and the observation that says so ("" when it is quiet)."""

    live: bool
    reason: str = ""


def liveness(
    path: Path, now: float, *, newest_record: float = 0.0, known_size: int | None = None, quiet: float = QUIET_SECONDS
) -> Liveness:
    """Judge whether a client is writing `path` (api-rules.md G1).

    Args:
        now: the time, in seconds since the epoch.
        newest_record: time of the session's newest record in seconds since the epoch, 0 when unknown.
        known_size: the size in bytes when the session was opened, to notice growth since.
        quiet: seconds without a sign of life after which a session counts as closed.
    """
    try:
        status = path.stat()
    except OSError:
        return Liveness(False)
    if known_size is not None and status.st_size != known_size:
        return Liveness(True, f"it changed from {known_size:,} to {status.st_size:,} bytes since it was opened")
    age = now - status.st_mtime
    if 0 <= age < quiet:
        return Liveness(True, f"it was written {age:.0f} seconds ago")
    age = now - newest_record
    if newest_record and 0 <= age < quiet:
        return Liveness(True, f"its newest record is {age:.0f} seconds old")
    return Liveness(False)


def process_lives(process: int) -> bool:
    """Whether a process of that id runs on this machine."""
    if sys.platform == "win32":
        # os.kill would end the process there, whatever the signal.
        kernel = ctypes.windll.kernel32
        handle = kernel.OpenProcess(_MAY_WAIT, False, process)
        if not handle:
            return False
        running: bool = kernel.WaitForSingleObject(handle, 0) == _STILL_RUNNING
        kernel.CloseHandle(handle)
        return running
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
