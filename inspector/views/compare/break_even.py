"""The money over further requests: with the plan and without it, a slider for how many there will be."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QLabel, QSlider, QVBoxLayout, QWidget

from compaction.strategies.cost import PlanCost
from inspector.models.comparison import dollars
from inspector.theme import Theme
from inspector.views.detail.pages import plain_label

_MAXIMUM_REQUESTS = 200


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
        self.chart = _Chart(theme)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(1, _MAXIMUM_REQUESTS)
        self.slider.setValue(20)
        self.slider.setAccessibleName("Further requests")
        self.label = plain_label()
        self.label.setWordWrap(True)
        title = QLabel("Cost over further requests")
        title.setBuddy(self.slider)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 4, 8, 4)
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
            self.label.setText(
                f"After {requests} further requests: {dollars(found[0])} with it, {dollars(found[1])} without: "
                f"{verdict}."
            )


class _Chart(QWidget):
    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._cost: PlanCost | None = None
        self._requests = 1
        self.setMinimumHeight(110)

    def show_cost(self, cost: PlanCost | None, requests: int) -> None:
        self._cost, self._requests = cost, requests
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(self.rect()).adjusted(2, 6, -2, -18)
        painter.fillRect(self.rect(), self._theme.named("base"))
        if self._cost is None:
            return
        span = max(10, min(_MAXIMUM_REQUESTS, self._requests * 2))
        lines = [spent(self._cost, n) or (0.0, 0.0) for n in range(span + 1)]
        top = max(max(pair) for pair in lines) or 1.0
        for which, colour, style in ((0, "accent", Qt.PenStyle.SolidLine), (1, "muted", Qt.PenStyle.DashLine)):
            pen = QPen(self._theme.named(colour), 2)
            pen.setStyle(style)
            painter.setPen(pen)
            points = [
                QPointF(area.left() + area.width() * n / span, area.bottom() - area.height() * pair[which] / top)
                for n, pair in enumerate(lines)
            ]
            painter.drawPolyline(QPolygonF(points))
        painter.setPen(QPen(self._theme.named("warning")))
        x = area.left() + area.width() * self._requests / span
        painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
        painter.setPen(QPen(self._theme.named("muted")))
        foot = QRectF(area.left(), area.bottom() + 1, area.width(), 16)
        painter.drawText(foot, int(Qt.AlignmentFlag.AlignLeft), "— with  – – without")
        painter.drawText(foot, int(Qt.AlignmentFlag.AlignRight), f"{span} requests")
        painter.drawText(area, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop), dollars(top))
