from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from compaction.conversation import Session
from compaction.export.document import safe_utf8
from compaction.export.journal import Journal
from compaction.export.writer import Written, write_new_file
from compaction.progress import Progress


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How to export.

    Attributes:
        client: client version whose request counts ("" = the newest recorded in the session).
        at: as the session stood before that API round's response; None: all of it.
        overwrite: replace an existing file (never the original).
        journal: where to record it, None: our data folder.
        steps: how a session in memory came about, one line a step, for the journal.
    """

    client: str = ""
    at: int | None = None
    overwrite: bool = False
    journal: Journal | None = None
    steps: tuple[str, ...] = ()


class ExportFormat(Protocol):
    """One form that a session can be written in.

    Attributes:
        name: on the command line.
        title: for people; `suffix` is the usual end of its file names.
    """

    name: str
    title: str
    suffix: str

    def write(
        self, session: Session, target: str | Path, options: ExportOptions, progress: Progress | None = None
    ) -> Written:
        """Write the session to `target`.

        Raises:
            UsageError, NothingWritten, Cancelled: as `write_new_file`; UsageError for an unknown round or client.
        """


def write_text(
    name: str,
    pieces: Iterable[str],
    session: Session,
    target: str | Path,
    options: ExportOptions,
    progress: Progress | None,
) -> Written:
    """Write a readable form of a session, piece by piece, as a new file.

    Raises:
        UsageError, NothingWritten, Cancelled: as `write_new_file`.
    """
    return write_new_file(
        target,
        (safe_utf8(piece) for piece in pieces),
        operation="export",
        journal=options.journal,
        source=session.transcript.path,
        lineage={"format": name, "at": options.at},
        overwrite=options.overwrite,
        progress=progress,
    )
