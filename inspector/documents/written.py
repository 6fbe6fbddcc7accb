"""Undo and redo of files that were written for a document: they go through the journal, off the GUI thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtGui import QUndoCommand

from compaction.progress import Progress
from inspector.work.jobs import Op

if TYPE_CHECKING:
    from compaction.export.journal import JournalEntry
    from compaction.export.writer import Written
    from inspector.context import AppContext

Write = Callable[[Progress], "tuple[Written, ...]"]
"""Writes one or more files in a worker; the first is the one that the person asked for."""


class FileWritten(QUndoCommand):
    """New files that were written: undo removes each while its content is what was written, redo writes them again.

    Push it after the first writing: the `redo` that pushing does is not the first one.
    """

    def __init__(self, context: AppContext, text: str, written: tuple[Written, ...], write: Write) -> None:
        super().__init__(text)
        self._context = context
        self._write = write
        self._entries = [one.entry for one in written]
        self._pushed = False

    def undo(self) -> None:
        """Remove the files through the journal; a changed file is kept and the person is told."""
        entries = list(self._entries)

        def work(_progress: Progress) -> list[JournalEntry]:
            from compaction.export.journal import Journal

            return [Journal().undo(entry) for entry in entries]

        job = self._context.runner.start(Op(f"Undoing: {self.text()}", work))
        job.success(lambda done: self._tell(f"Removed {done[0].target}"))

    def redo(self) -> None:
        """Write the file again."""
        if not self._pushed:
            self._pushed = True
            return
        job = self._context.runner.start(Op(self.text(), self._write))
        job.success(self._on_written)

    def _on_written(self, written: tuple[Written, ...]) -> None:
        self._entries = [one.entry for one in written]
        self._tell(f"Wrote {written[0].path}")

    def _tell(self, text: str) -> None:
        if self._context.workspace is not None:
            self._context.workspace.tell(text)
