"""The money over further requests: with the plan and without it, a slider for how many there will be."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QLabel, QSlider, QStyle, QStyleOptionSlider, QVBoxLayout, QWidget

from compaction.strategies.cost import PlanCost
from inspector.models.comparison import dollars
from inspector.theme import Theme
from inspector.views.detail.pages import plain_label

_MAXIMUM_REQUESTS = 100
_HEIGHT = 96


def spent(cost: PlanCost, requests: int) -> tuple[float, float] | None:
    """USD after that many further requests, with the plan and without; None when the model has no price."""
    figures = (cost.one_off, cost.next_request, cost.next_request_without, cost.per_request, cost.per_request_without)
    if any(f is None for f in figures):
        return None
    one_off, first, first_without, each, each_without = (float(f or 0.0) for f in figures)
    later = max(0, requests - 1)
    begun = 1 if requests > 0 else 0
    return one_off + begun * first + later * each, begun * first_without + later * each_without


class BreakEven(QWidget):
    """A small chart of both lines with the slider below it."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(1, _MAXIMUM_REQUESTS)
        self.slider.setValue(20)
        self.slider.setAccessibleName("Further requests")
        self.chart = _Chart(theme, self.slider)
        self.label = plain_label()
        self.label.setWordWrap(True)
        title = QLabel("Cost over further requests:  — with it   – – without")
        title.setBuddy(self.slider)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 4, 8, 4)
        layout.setSpacing(2)
        for widget in (title, self.chart, self.slider, self.label):
            layout.addWidget(widget)
        self.slider.valueChanged.connect(lambda _value: self._refresh())
        self._cost: PlanCost | None = None

    def set_cost(self, cost: PlanCost | None) -> None:
        """Show a plan's money."""
        if cost is self._cost and self.label.text():
            return
        self._cost = cost
        self._refresh()

    def _refresh(self) -> None:
        requests = self.slider.value()
        found = spent(self._cost, requests) if self._cost is not None else None
        self.chart.show_cost(self._cost if found is not None else None, requests)
        if self._cost is None:
            self.label.setText("Choose a column.")
        elif found is None:
            self.label.setText("This model has no price: nothing can be said about the money.")
        else:
            difference = found[1] - found[0]
            verdict = f"saves {dollars(difference)}" if difference >= 0 else f"costs {dollars(-difference)} more"
            if dollars(found[0]) == dollars(found[1]):
                verdict = "the same"
            after = f"After {requests} further request{'' if requests == 1 else 's'}"
            self.label.setText(f"{after}: {dollars(found[0])} with it, {dollars(found[1])} without: {verdict}.")


class _Chart(QWidget):
    """Both lines from the first request to the last of the slider, whose handle stands below the upright line."""

    def __init__(self, theme: Theme, slider: QSlider) -> None:
        super().__init__()
        self._theme = theme
        self._slider = slider
        self._cost: PlanCost | None = None
        self._requests = 1
        self.setMinimumHeight(_HEIGHT)

    def show_cost(self, cost: PlanCost | None, requests: int) -> None:
        """Draw some money, with a line at a number of requests."""
        self._cost, self._requests = cost, requests
        self.update()

    def _area(self) -> QRectF:
        """Where the lines are drawn: between the places that the middle of the slider's handle can have."""
        option = QStyleOptionSlider()
        self._slider.initStyleOption(option)
        handle = self._slider.style().subControlRect(
            QStyle.ComplexControl.CC_Slider, option, QStyle.SubControl.SC_SliderHandle, self._slider
        )
        edge, line = handle.width() / 2, self.fontMetrics().height() + 2
        return QRectF(self.rect()).adjusted(edge, line, -edge, -line)

    def x_of(self, requests: int) -> float:
        """Where a number of requests lies, in pixels."""
        area, first, last = self._area(), self._slider.minimum(), self._slider.maximum()
        return area.left() + area.width() * (requests - first) / (last - first)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the lines, and what the edges stand for."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(self.rect(), self._theme.named("base"))
        if self._cost is None:
            return
        area, first, last = self._area(), self._slider.minimum(), self._slider.maximum()
        ends = [(n, spent(self._cost, n) or (0.0, 0.0)) for n in (first, last)]
        top = max(max(pair) for _n, pair in ends) or 1.0
        painter.setPen(QPen(self._theme.named("border")))
        painter.drawLine(area.topLeft(), area.topRight())
        for which, colour, style in ((0, "accent", Qt.PenStyle.SolidLine), (1, "muted", Qt.PenStyle.DashLine)):
            pen = QPen(self._theme.named(colour), 2)
            pen.setStyle(style)
            painter.setPen(pen)
            # From the first request on each costs the same: two points are the whole line.
            points = [QPointF(self.x_of(n), area.bottom() - area.height() * pair[which] / top) for n, pair in ends]
            painter.drawPolyline(QPolygonF(points))
        painter.setPen(QPen(self._theme.named("warning")))
        x = self.x_of(self._requests)
        painter.drawLine(QPointF(x, area.top()), QPointF(x, self.height()))
        self._paint_words(painter, area, dollars(top), x)

    def _paint_words(self, painter: QPainter, area: QRectF, top: str, x: float) -> None:
        """The scale's top above the lines; below them the ends, and between those what the upright line stands for."""
        line, all_width = area.top(), QRectF(self.rect()).adjusted(2, 0, -2, 0)
        metrics, last = painter.fontMetrics(), self._slider.maximum()
        painter.setPen(QPen(self._theme.named("muted")))
        head = QRectF(all_width.left(), 0, all_width.width(), line)
        painter.drawText(head, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), f"scale up to {top}")
        foot = QRectF(all_width.left(), area.bottom() + 1, all_width.width(), line)
        here = f"{self._requests} request{'' if self._requests == 1 else 's'}"
        width = metrics.horizontalAdvance(here) + 8
        left = min(max(x - width / 2, foot.left()), foot.right() - width)
        place = QRectF(left, foot.top(), width, foot.height())
        for text, side in (("1", Qt.AlignmentFlag.AlignLeft), (f"{last} requests", Qt.AlignmentFlag.AlignRight)):
            taken = metrics.horizontalAdvance(text) + 8
            begin = foot.left() if side is Qt.AlignmentFlag.AlignLeft else foot.right() - taken
            if not place.intersects(QRectF(begin, foot.top(), taken, foot.height())):
                painter.drawText(foot, int(side | Qt.AlignmentFlag.AlignVCenter), text)
        painter.fillRect(place, self._theme.named("base"))
        painter.setPen(QPen(self._theme.named("warning")))
        painter.drawText(place, int(Qt.AlignmentFlag.AlignCenter), here)
