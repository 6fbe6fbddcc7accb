from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from inspector.plain_text import plain_tip


class ElidedLabel(QLabel):
    """One line of plain text that ends in "…" where the room does; its tool tip then has the whole."""

    def __init__(self, text: str = "", parent: QWidget | None = None, *, least: int = 0) -> None:
        """Args:
        least: characters down to which it gives way, asking for room for its whole text; 0: it takes what is given.
        """
        super().__init__(text, parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        across = QSizePolicy.Policy.Preferred if least else QSizePolicy.Policy.Ignored
        self.setSizePolicy(across, QSizePolicy.Policy.Preferred)
        self.setMinimumWidth(self.fontMetrics().averageCharWidth() * least)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw what fits."""
        room = self.contentsRect()
        shown = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, room.width())
        tip = plain_tip(self.text()) if shown != self.text() else ""
        if self.toolTip() != tip:
            self.setToolTip(tip)
        painter = QPainter(self)
        self.style().drawItemText(
            painter, room, int(self.alignment().value), self.palette(), self.isEnabled(), shown, self.foregroundRole()
        )
