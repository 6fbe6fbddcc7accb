from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPen
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

Ints = npt.NDArray[np.int64]


def columns_of(totals: Ints, first: int, last: int, columns: int) -> tuple[Ints, npt.NDArray[np.float64]]:
    """The rounds to draw for rounds `first` up to `last` (exclusive) in at most `columns` columns, and column edges.

    When there are more rounds than columns, each column shows its fullest round, so that no peak is lost; edges are
    in round numbers (round n, 0-based, spans n + 0.5 to n + 1.5).
    """
    count = last - first
    if count <= 0 or columns <= 0:
        return np.zeros(0, np.int64), np.zeros(0)
    width = max(1, math.ceil(count / columns))
    bins = math.ceil(count / width)
    padded = np.full(bins * width, -1, np.int64)
    padded[:count] = totals[first:last]
    chosen = padded.reshape(bins, width).argmax(axis=1) + np.arange(bins) * width + first
    edges = np.minimum(np.arange(bins + 1) * width, count) + first + 0.5
    return chosen, edges


class StackItem(pg.GraphicsObject):  # type: ignore[misc]
    """Stacked columns of a table of tokens by round and category; draws only what the view can show.

    Any number of rounds costs the same to paint: at most one column a pixel.
    """

    def __init__(self) -> None:
        super().__init__()
        self._tops: Ints = np.zeros((0, 1), np.int64)
        self._brushes: list[QBrush] = []
        self._line = QPen(QColor(0, 0, 0, 0))
        self._highest = 0.0

    def set_parts(self, parts: Ints) -> None:
        """Show other tokens, shape (rounds, categories)."""
        self.prepareGeometryChange()
        self._tops = np.cumsum(parts, axis=1)
        self._highest = float(self._tops[:, -1].max()) if len(parts) else 0.0
        self.update()

    def set_colours(self, colours: list[QColor], line: QColor) -> None:
        """Colours of the categories, and of the hair line between wide columns."""
        self._brushes = [QBrush(colour) for colour in colours]
        self._line = QPen(line)
        self._line.setCosmetic(True)
        self.update()

    def boundingRect(self) -> QRectF:
        """All rounds, from 0 to the fullest."""
        return QRectF(0.5, 0.0, max(1, len(self._tops)), max(1.0, self._highest))

    def paint(self, painter: QPainter, _option: QStyleOptionGraphicsItem, _widget: QWidget | None = None) -> None:
        """Draw the visible rounds."""
        box = self.getViewBox()
        if box is None or not len(self._tops) or not self._brushes:
            return
        (left, right), _ = box.viewRange()
        first = max(0, math.floor(left - 0.5) - 1)
        last = min(len(self._tops), math.ceil(right) + 1)
        chosen, edges = columns_of(self._tops[:, -1], first, last, max(64, int(box.width())))
        if not len(chosen):
            return
        tops = self._tops[chosen].astype(float)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        # Rectangles, not one polygon a category: filling a polygon of a thousand steps takes eighty milliseconds.
        painter.setPen(Qt.PenStyle.NoPen)
        lefts, widths = edges[:-1].tolist(), np.diff(edges).tolist()
        below = np.zeros(len(chosen))
        for number, brush in enumerate(self._brushes):
            top = tops[:, number]
            if np.any(top > below):
                painter.setBrush(brush)
                bars = zip(lefts, below.tolist(), widths, (top - below).tolist(), strict=True)
                painter.drawRects([QRectF(*bar) for bar in bars if bar[3] > 0])
            below = top
        if len(chosen) * 5 < box.width():
            painter.setPen(self._line)
            for edge, height in zip(edges[1:-1], np.maximum(tops[:-1, -1], tops[1:, -1]), strict=True):
                painter.drawLine(QPointF(edge, 0), QPointF(edge, float(height)))
        painter.setPen(Qt.PenStyle.NoPen)
