"""A table that draws whole rows only."""

from __future__ import annotations

from PySide6.QtGui import QPaintEvent, QRegion
from PySide6.QtWidgets import QTableView


class WholeRowsTable(QTableView):
    """Leaves out a row that has no room at the lower edge: half a line of text reads as a fault.

    The table scrolls by rows, so the last row comes into view whole.
    """

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the rows that fit."""
        height = self.viewport().height()
        last = self.rowAt(height - 1)
        top = self.rowViewportPosition(last) if last >= 0 else 0
        if top > 0 and top + self.rowHeight(last) > height:
            event = QPaintEvent(event.region() & QRegion(0, 0, self.viewport().width(), top))
        super().paintEvent(event)
