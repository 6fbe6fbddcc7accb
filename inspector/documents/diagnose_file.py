"""The doctor in a process of its own, for sessions whose diagnosis would starve the painting. No Qt in here."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compaction.diagnosis.model import Report


def diagnose_file(path: str, client: str) -> Report:
    """Open a session again and diagnose it; called in a fresh process.

    Raises:
        InputUnreadable: the file cannot be read any more.
    """
    from compaction.conversation import open_session
    from compaction.diagnosis.doctor import diagnose

    return diagnose(open_session(path), client)
