"""Usage over days, by project or model, as stacked bars."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyqtgraph as pg
from PySide6.QtGui import QIcon, QPixmap
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from compaction.catalogue.entries import SessionFilter, Totals
from inspector.context import AppContext
from inspector.documents.library import Library
from inspector.views.charts.axes import DollarAxis, TokenAxis

if TYPE_CHECKING:
    from compaction.catalogue.entries import UsagePoint
    from compaction.catalogue.indexer import IndexReport

MEASURES = ("Cost (USD)", "Tokens", "Responses")
GROUPS = (("By project", "project"), ("By model", "model"))
_MOST_GROUPS = 8
"""Groups with a colour of their own; the smallest ones share "others"."""
_OTHERS = "others"


class _DayAxis(pg.AxisItem):  # type: ignore[misc]
    """Days since 1970 as dates."""

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """The dates of whole days."""
        return [_date(int(value)) if float(value).is_integer() and value >= 0 else "" for value in values]


def _date(day: int) -> str:
    return datetime.fromtimestamp(day * 86400, UTC).strftime("%Y-%m-%d")


class UsageChart(QWidget):
    """Bars a day, stacked by project or model; every API response is counted once across all files.

    Under it the totals by group, the largest first.
    """

    def __init__(self, context: AppContext, library: Library) -> None:
        super().__init__()
        self._context = context
        self._library = library
        self._points: Sequence[UsagePoint] = ()
        self.measure = QComboBox()
        self.measure.addItems(MEASURES)
        self.measure.setAccessibleName("What is shown")
        self.group = QComboBox()
        self.group.addItems([title for title, _ in GROUPS])
        self.group.setAccessibleName("How the bars are divided")
        self.summary = QListWidget()
        self.summary.setFlow(QListWidget.Flow.LeftToRight)
        self.summary.setWrapping(True)
        self.summary.setResizeMode(QListWidget.ResizeMode.Adjust)
        self.summary.setSpacing(2)
        self.summary.setFixedHeight(self.fontMetrics().height() * 5)
        self.summary.setAccessibleName("Totals by group")
        self.plot = pg.PlotWidget(axisItems={"bottom": _DayAxis("bottom"), "left": DollarAxis("left")})
        self.plot.setMenuEnabled(False)
        self.plot.hideButtons()
        self.plot.setMouseEnabled(x=True, y=False)
        self.plot.showGrid(x=False, y=True, alpha=0.15)
        self.plot.setAccessibleName("Usage by day")
        above = QHBoxLayout()
        above.addWidget(self.measure)
        above.addWidget(self.group)
        above.addStretch(1)
        layout = QVBoxLayout(self)
        layout.addLayout(above)
        layout.addWidget(self.plot, 1)
        layout.addWidget(self.summary)
        self.measure.currentIndexChanged.connect(self._draw)
        self.group.currentIndexChanged.connect(self.ask)
        library.refreshed.connect(self._on_refreshed)
        context.theme.changed.connect(self._draw)
        self.ask()

    def _on_refreshed(self, report: IndexReport) -> None:
        if report.indexed or report.removed:
            self.ask()

    def ask(self) -> None:
        """Add the usage up again, in the background."""
        job = self._library.usage(["day", GROUPS[self.group.currentIndex()][1]], SessionFilter())
        job.success(self.show_points).failure(self._library.failed.emit)

    def show_points(self, points: Sequence[UsagePoint]) -> None:
        """Draw some usage."""
        self._points = points
        self._draw()

    def _value(self, totals: Totals) -> float:
        return (totals.cost_usd, float(totals.tokens), float(totals.responses))[self.measure.currentIndex()]

    def _draw(self) -> None:
        theme = self._context.theme
        self.plot.clear()
        self.plot.setBackground(theme.colours.base)
        axis = {0: DollarAxis("left"), 1: TokenAxis("left")}.get(self.measure.currentIndex(), pg.AxisItem("left"))
        self.plot.setAxisItems({"left": axis})
        for name in ("left", "bottom"):
            self.plot.getAxis(name).setPen(theme.colours.border)
            self.plot.getAxis(name).setTextPen(theme.colours.text)
        by_group: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for point in self._points:
            if point.day > 0:
                by_group[(point.project or point.model) or "(unknown)"][point.day] += self._value(point.totals)
        order = sorted(by_group, key=lambda name: -sum(by_group[name].values()))
        base: dict[int, float] = defaultdict(float)
        names = _joined(order, by_group)
        for number, name in enumerate(names):
            days = sorted(by_group[name])
            self.plot.addItem(
                pg.BarGraphItem(
                    x=days, width=0.8, y0=[base[day] for day in days], height=[by_group[name][day] for day in days],
                    brush=theme.group_colour(number), pen=None,
                )
            )  # fmt: skip
            for day in days:
                base[day] += by_group[name][day]
        self.plot.getViewBox().setLimits(yMin=0)
        self.plot.autoRange()
        self._tell(names, by_group)

    def _tell(self, names: Sequence[str], by_group: dict[str, dict[int, float]]) -> None:
        """The totals by group with the colour of their bars, the largest first."""
        unit = "${:,.2f}" if self.measure.currentIndex() == 0 else "{:,.0f}"
        self.summary.clear()
        total = sum(sum(days.values()) for days in by_group.values())
        self.summary.addItem(f"Total {unit.format(total)}" if names else "No usage yet")
        for number, name in enumerate(names):
            item = QListWidgetItem(f"{name}  {unit.format(sum(by_group[name].values()))}")
            swatch = QPixmap(12, 12)
            swatch.fill(self._context.theme.group_colour(number))
            item.setIcon(QIcon(swatch))
            self.summary.addItem(item)


def _joined(order: list[str], by_group: dict[str, dict[int, float]]) -> list[str]:
    """The groups to draw: the largest ones, the rest added up as "others"."""
    if len(order) <= _MOST_GROUPS + 1:
        return order
    for name in order[_MOST_GROUPS:]:
        for day, value in by_group.pop(name).items():
            by_group[_OTHERS][day] += value
    return [*order[:_MOST_GROUPS], _OTHERS]
