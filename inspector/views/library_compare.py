"""Some sessions of the library side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QHeaderView,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from inspector.models.library import COLUMNS, TITLE

if TYPE_CHECKING:
    from compaction.catalogue.entries import SessionEntry

MOST = 12
"""Columns at most: more cannot be compared by eye."""


class CompareSessions(QDialog):
    """One column a session, one row a fact; the largest number of a row is bold."""

    def __init__(self, entries: Sequence[SessionEntry], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Compare sessions")
        chosen = list(entries[:MOST])
        facts = [column for number, column in enumerate(COLUMNS) if number != TITLE]
        self.table = QTableWidget(len(facts), len(chosen))
        self.table.setAccessibleName("Sessions side by side")
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setVerticalHeaderLabels([column.title for column in facts])
        self.table.setHorizontalHeaderLabels([(entry.title or entry.session_id)[:40] for entry in chosen])
        for row, column in enumerate(facts):
            keys = [column.key(entry) for entry in chosen]
            numbers = [key for key in keys if isinstance(key, (int, float))]
            largest = max(numbers) if column.number and len(set(numbers)) > 1 else None
            for number, (entry, key) in enumerate(zip(chosen, keys, strict=True)):
                item = QTableWidgetItem(column.text(entry)[:200])
                if column.number:
                    item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                if largest is not None and key == largest:
                    font = item.font()
                    font.setBold(True)
                    item.setFont(font)
                self.table.setItem(row, number, item)
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        self.table.horizontalHeader().setDefaultSectionSize(self.fontMetrics().averageCharWidth() * 26)
        layout = QVBoxLayout(self)
        layout.addWidget(self.table)
        self.resize(900, 560)
