"""The context over the API rounds with every compaction on it, recorded above, simulated below; a cursor to drag."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from inspector.models.timeline import SIGNS, Step
from inspector.theme import Theme

_ROW = 18
_EDGE = 8
"""Pixels left free at both ends."""
_LEAST_GAP = 3.0
"""Pixels that a stretch without a recorded context has at least, so that it is seen."""


class TimelineStrip(QWidget):
    """Round 1 at the left, the last at the right.

    Signals:
        round_chosen(int): the person pointed at an API round (1-based).
    """

    round_chosen = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._context: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._recorded: list[Step] = []
        self._simulated: list[Step] = []
        self._current = 0
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Context over the API rounds")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setToolTip("Recorded compactions above, simulated ones below. Left and Right move by one API round.")

    def set_data(self, context: npt.NDArray[np.int64], recorded: Sequence[Step], simulated: Sequence[Step]) -> None:
        """Recorded context of each round (0 = unknown) and the steps."""
        self._context, self._recorded, self._simulated = context, list(recorded), list(simulated)
        self.update()

    def set_current(self, number: int) -> None:
        """Move the cursor to an API round."""
        self._current = number
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(400, 110)

    def x_of(self, number: float) -> float:
        """Where the middle of an API round (1-based) lies, in pixels."""
        return _EDGE + (self.width() - 2 * _EDGE) * (number - 0.5) / max(1, len(self._context))

    @property
    def has_unknown(self) -> bool:
        """Whether the context of some round is not recorded: those are hatched."""
        return bool(len(self._context)) and not bool(self._context.all())

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.named("base"))
        count = len(self._context)
        if not count:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(_EDGE, _ROW, self.width() - 2 * _EDGE, self.height() - 2 * _ROW)
        self._paint_context(painter, area)
        self._paint_steps(painter, self._recorded, 0, "error")
        self._paint_steps(painter, self._simulated, self.height() - _ROW, "accent")
        if self._current:
            painter.setPen(QPen(self._theme.named("accent"), 2))
            x = self.x_of(self._current)
            # Between the rows of signs: it would cover the sign of the very compaction that is shown.
            painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))

    def _paint_context(self, painter: QPainter, area: QRectF) -> None:
        """One column a pixel, the largest context of the rounds on it: 50,000 rounds cost as much as 500."""
        top = int(self._context.max()) or 1
        columns = max(1, round(area.width()))
        edges = np.linspace(0, len(self._context), columns + 1).astype(int)
        heights = [int(self._context[a : max(a + 1, b)].max()) for a, b in pairwise(edges)]
        fill = QColor(self._theme.group_colour(0))
        fill.setAlpha(150)
        painter.setPen(Qt.PenStyle.NoPen)
        column = 0
        for known, run in groupby(heights, key=bool):
            shown = list(run)
            left, column = area.left() + column, column + len(shown)
            right = area.left() + column
            if known:
                points = [QPointF(left, area.bottom())]
                for place, height in enumerate(shown):
                    points.append(QPointF(left + place, area.bottom() - area.height() * height / top))
                points += [QPointF(right, points[-1].y()), QPointF(right, area.bottom())]
                painter.setBrush(fill)
                painter.drawPolygon(QPolygonF(points))
            else:
                # Over the whole height: an empty place would look like a context of zero.
                painter.setBrush(QBrush(self._theme.named("muted"), Qt.BrushStyle.BDiagPattern))
                painter.drawRect(QRectF(left, area.top(), max(_LEAST_GAP, right - left), area.height()))
        painter.setPen(QPen(self._theme.named("border")))
        painter.drawLine(area.topLeft(), area.topRight())
        # On a ground of its own: the context may be as high below the words as anywhere.
        text, place = f"scale up to {top:,} tokens", int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        painter.setPen(QPen(self._theme.named("muted")))
        painter.fillRect(painter.boundingRect(area, place, text).adjusted(0, 0, 4, 0), self._theme.named("base"))
        painter.drawText(area, place, text)

    def _paint_steps(self, painter: QPainter, steps: Sequence[Step], y: float, colour: str) -> None:
        painter.setPen(QPen(self._theme.named(colour)))
        last = -100.0
        for step in steps:
            x = self.x_of(step.round + 0.5)
            if x - last < 4:
                continue
            last = x
            painter.drawText(QRectF(x - 9, y, 18, _ROW), int(Qt.AlignmentFlag.AlignCenter), SIGNS[step.kind])

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._choose(event.position().x())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons():
            self._choose(event.position().x())

    def _choose(self, x: float) -> None:
        count = len(self._context)
        if count:
            number = int((x - _EDGE) * count / max(1, self.width() - 2 * _EDGE)) + 1
            self.round_chosen.emit(max(1, min(count, number)))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_PageUp: -10, Qt.Key.Key_PageDown: 10}
        step = steps.get(Qt.Key(event.key()), 0)
        if step and len(self._context):
            self.round_chosen.emit(max(1, min(len(self._context), self._current + step)))
        else:
            super().keyPressEvent(event)
