"""Panes side by side where there is room, one below the other in a narrow window."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QWidget

_LEAST_LINES = 9
"""How many lines of each pane are kept in view when they stand below each other."""


class TurningSplitter(QSplitter):
    """A splitter that turns: horizontal from `characters` of width on, vertical below it."""

    def __init__(self, characters: int, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._turn_at = self.fontMetrics().averageCharWidth() * characters
        self._least: dict[QWidget, int] = {}
        self._sizes: list[int] = []

    def minimumSizeHint(self) -> QSize:
        """Its panes beside each other must not keep it from becoming narrow enough to turn."""
        least = super().minimumSizeHint()
        return least.boundedTo(QSize(self._turn_at - 1, least.height()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Turn when the width asks for it."""
        super().resizeEvent(event)
        wanted = Qt.Orientation.Vertical if self.width() < self._turn_at else Qt.Orientation.Horizontal
        if wanted is not self.orientation():
            self._turn(wanted)

    def _turn(self, orientation: Qt.Orientation) -> None:
        below = orientation is Qt.Orientation.Vertical
        if below:
            self._sizes = self.sizes()
        self._give_heights(below)
        self.setOrientation(orientation)
        if not below and any(self._sizes):
            self.setSizes(self._sizes)
        self.updateGeometry()

    def event(self, event: QEvent) -> bool:
        """A pane that needs another height than before gets it."""
        if event.type() is QEvent.Type.LayoutRequest and self._least:
            self._give_heights(True)
        return super().event(event)

    def _give_heights(self, below: bool) -> None:
        """Below each other every pane keeps some lines in view, and all that it says it needs; beside each other only
        what was set before."""
        lines = self.fontMetrics().height() * _LEAST_LINES
        for pane in (self.widget(place) for place in range(self.count())):
            if pane is None:
                continue
            if below:
                least = self._least.setdefault(pane, pane.minimumHeight())
                # A height that is set counts instead of the pane's own, not besides it.
                pane.setMinimumHeight(max(lines, least, pane.minimumSizeHint().height()))
            else:
                pane.setMinimumHeight(self._least.pop(pane, 0))
