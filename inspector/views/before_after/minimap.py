"""The whole conversation as a strip: where things are kept, cleared, replaced, removed, inserted."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from compaction.request.alignment import Change
from inspector.models.before_after import Comparison

_LEAST_TOKENS = 20
"""What a block counts for at least, so that small ones can be seen."""
_RANK = (Change.KEPT, Change.MOVED, Change.CLEARED, Change.REPLACED, Change.INSERTED, Change.REMOVED)
"""Which change shows where several fall on one line of the strip: the last wins."""


class Minimap(QWidget):
    """A vertical strip, as tall as the view; the height of a block is its share of the tokens.

    Signals:
        chosen(int): the person pointed at the block of that number in `Comparison.rows`.
    """

    chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._changes: list[Change] = []
        self._tops: list[int] = [0]
        self._colours: dict[Change, QColor] = {}
        self._current = -1
        self.setMinimumWidth(18)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Map of the conversation")
        self.setToolTip("The whole conversation: click to go to a place; PageUp and PageDown to the next change.")

    def set_colours(self, colours: dict[Change, QColor]) -> None:
        """One colour a change."""
        self._colours = colours
        self.update()

    def set_comparison(self, comparison: Comparison | None) -> None:
        """Show a comparison."""
        rows = comparison.rows if comparison is not None else []
        self._changes = [row.change for row in rows]
        self._tops = [0]
        for row in rows:
            self._tops.append(self._tops[-1] + max(row.tokens_before, row.tokens_after, _LEAST_TOKENS))
        self._current = -1
        self.update()

    def set_current(self, number: int) -> None:
        """Mark the place of a block."""
        self._current = number
        self.update()

    def sizeHint(self) -> QSize:
        """Narrow and tall."""
        return QSize(18, 200)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self.palette().base())
        height, total = self.height(), self._tops[-1]
        if not total:
            return
        lines: list[Change | None] = [None] * height
        for number, change in enumerate(self._changes):
            top = self._tops[number] * height // total
            bottom = max(top + 1, self._tops[number + 1] * height // total)
            for y in range(top, min(bottom, height)):
                known = lines[y]
                if known is None or _RANK.index(change) > _RANK.index(known):
                    lines[y] = change
        for y, found in enumerate(lines):
            if found is not None:
                painter.fillRect(QRect(2, y, self.width() - 4, 1), self._colours.get(found, QColor("gray")))
        if 0 <= self._current < len(self._changes):
            y = self._tops[self._current] * height // total
            painter.setPen(QPen(self.palette().text().color(), 2))
            painter.drawLine(0, y, self.width(), y)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._choose_at(round(event.position().y()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons():
            self._choose_at(round(event.position().y()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_PageDown: 1, Qt.Key.Key_Down: 1, Qt.Key.Key_PageUp: -1, Qt.Key.Key_Up: -1}
        step = steps.get(Qt.Key(event.key()), 0)
        if step:
            self.step(step)
        else:
            super().keyPressEvent(event)

    def step(self, by: int) -> None:
        """Go to the next (+1) or previous (−1) change."""
        number = self._current + by
        while 0 <= number < len(self._changes):
            if self._changes[number] is not Change.KEPT:
                self.chosen.emit(number)
                return
            number += by

    def _choose_at(self, y: int) -> None:
        total = self._tops[-1]
        if total and self._changes:
            wanted = max(0, min(total - 1, y * total // max(1, self.height())))
            number = next((n for n in range(len(self._changes)) if self._tops[n + 1] > wanted), 0)
            self.chosen.emit(number)
