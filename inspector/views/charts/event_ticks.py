from __future__ import annotations

from collections.abc import Sequence

import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

MOST_LINES = 40
"""Events in view up to which each is a line over the whole height; more are ticks at the top, or they hide the data."""
_TICK = 0.04


class EventTicks(pg.GraphicsObject):  # type: ignore[misc]
    """Marks many events at once: `places` are horizontal positions, each with its pen."""

    def __init__(self, places: Sequence[float], pens: Sequence[QPen], extent: QRectF) -> None:
        super().__init__()
        self._places = list(places)
        self._pens = list(pens)
        self._extent = extent

    def boundingRect(self) -> QRectF:
        """As wide as the rounds and as high as any view of them."""
        return self._extent

    def paint(self, painter: QPainter, _option: QStyleOptionGraphicsItem, _widget: QWidget | None = None) -> None:
        """Draw the events in view."""
        box = self.getViewBox()
        if box is None:
            return
        (left, right), (bottom, top) = box.viewRange()
        seen = [(x, pen) for x, pen in zip(self._places, self._pens, strict=True) if left <= x <= right]
        end = bottom if len(seen) <= MOST_LINES else top - (top - bottom) * _TICK
        for x, pen in seen:
            painter.setPen(pen)
            painter.drawLine(QPointF(x, top), QPointF(x, end))
