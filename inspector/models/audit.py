"""The audit of summaries as a table: one row an item of the summarised part, one column a summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from compaction.summaries.audit import SummaryAudit
from inspector.models.as_sent_rows import lines_text
from inspector.models.columns import alignment

Index = QModelIndex | QPersistentModelIndex
_HEADERS = ("Kind", "What", "Line", "Recorded summary", "Fresh summary", "Needed again at")
_ROOT = QModelIndex()


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One item with its state in both summaries (None: there is no such summary)."""

    kind: str
    text: str
    line: int
    recorded: float | None
    recorded_present: bool
    fresh: float | None
    fresh_present: bool
    needed: tuple[int, ...]


class AuditModel(QAbstractTableModel):
    """Rows of one or two audits of the same sources."""

    figures = frozenset({2})
    """Columns of figures: they and their titles stand at the right."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.rows: list[AuditRow] = []

    def set_audits(self, recorded: SummaryAudit | None, fresh: SummaryAudit | None, only_missing: bool = False) -> None:
        """Show the audits; both list the same items in the same order."""
        self.beginResetModel()
        base = recorded or fresh
        rows = []
        for number, item in enumerate(base.items if base is not None else ()):
            one = recorded.items[number] if recorded is not None else None
            other = fresh.items[number] if fresh is not None else None
            row = AuditRow(
                item.kind,
                " ".join(item.text.split())[:300],
                item.line,
                one.share if one is not None else None,
                one is not None and one.present,
                other.share if other is not None else None,
                other is not None and other.present,
                item.needed_later,
            )
            missing = (one is not None and not one.present) or (other is not None and not other.present)
            if missing or not only_missing:
                rows.append(row)
        self.rows = rows
        self.endResetModel()

    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(_HEADERS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(_HEADERS):
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(section in self.figures)
        return _HEADERS[section] if role == Qt.ItemDataRole.DisplayRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row, column = self.rows[index.row()], index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(row, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(column in self.figures)
        return None

    @staticmethod
    def _text(row: AuditRow, column: int) -> str:
        if column == 3:
            return _presence(row.recorded, row.recorded_present)
        if column == 4:
            return _presence(row.fresh, row.fresh_present)
        return (row.kind, row.text, f"{row.line:,}", "", "", lines_text(list(row.needed)) if row.needed else "")[column]


def _presence(share: float | None, present: bool) -> str:
    if share is None:
        return "–"
    return f"✔ in it ({share:.0%} of its words)" if present else f"✖ not in it ({share:.0%} of its words)"
