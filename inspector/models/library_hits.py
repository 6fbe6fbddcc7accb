"""Search results as flat rows: one for each session, its hits below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QFont

if TYPE_CHECKING:
    from compaction.catalogue.search import Hit, SessionHits

Index = QModelIndex | QPersistentModelIndex
_NO_INDEX = QModelIndex()


class HitsModel(QAbstractListModel):
    """Rows are (session, hit); a session's head row has no hit."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[tuple[SessionHits, Hit | None]] = []

    def set_results(self, results: Sequence[SessionHits]) -> None:
        """Show other results."""
        self.beginResetModel()
        self._rows = [
            row for session in results for row in ((session, None), *((session, hit) for hit in session.hits))
        ]
        self.endResetModel()

    def place(self, row: int) -> tuple[str, int]:
        """The file and 1-based line that a row opens; line 0 for a session's head row."""
        session, hit = self._rows[row]
        return (hit.path, hit.line) if hit is not None else (session.path, 0)

    def rowCount(self, parent: Index = _NO_INDEX) -> int:
        """Sessions and hits."""
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Title and project of a session; line, kind and snippet of a hit."""
        if not index.isValid() or index.row() >= len(self._rows):
            return None
        session, hit = self._rows[index.row()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            if hit is None:
                return f"{session.title[:120] or '(no prompt)'}   {session.project}   ({len(session.hits)})"
            what = f"{hit.kind} {hit.tool}".rstrip()
            return f"      {hit.line:>6}   {what}   {hit.snippet}"
        if role == Qt.ItemDataRole.FontRole and hit is None:
            font = QFont()
            font.setBold(True)
            return font
        return None
