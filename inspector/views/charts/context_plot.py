from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QHelpEvent, QKeyEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from compaction.accounting.accounts import SessionAccounts
from compaction.accounting.categories import Category
from compaction.accounting.current import CurrentContext
from compaction.conversation import Compaction
from inspector.models.round_table import event_title
from inspector.theme import Theme, mix
from inspector.views.category_colours import category_colour
from inspector.views.charts.axes import DollarAxis, RoundAxis, TokenAxis, short_tokens
from inspector.views.charts.event_ticks import MOST_LINES, EventTicks
from inspector.views.charts.limit_names import LimitNames, LineName
from inspector.views.charts.stack_item import StackItem

COST_MODES = ("Cost so far", "Cost of each round", "No cost")
_FEWEST_ROUNDS = 4
_LABEL_MARGIN = 12
"""Pixels between the names of two compactions."""
_HALO = 2.6
"""Pixels of the chart's ground on both sides of the cost curve together: it crosses every colour of the stack."""
_EVENT_GLYPHS = {"auto": "▼", "manual": "◆", "legacy": "▼", "micro": "▽", "silent": "?"}


def category_colours(theme: Theme) -> list[QColor]:
    """One colour a category, the same in chart and legend."""
    return [category_colour(theme, category) for category in Category]


class ContextPlot(pg.PlotWidget):  # type: ignore[misc]
    """Stacked context over API rounds with limits, compactions, cost, and a cursor; keys and mouse move the cursor.

    Signals:
        round_chosen(int): a round (1-based) was clicked or reached with the keys.
        round_opened(int): a double click or Enter.
    """

    round_chosen = Signal(int)
    round_opened = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        axes = {"left": TokenAxis("left"), "bottom": RoundAxis("bottom"), "right": DollarAxis("right")}
        super().__init__(parent, axisItems=axes)
        self._theme = theme
        self._accounts: SessionAccounts | None = None
        self._current: CurrentContext | None = None
        self._limits: list[pg.InfiniteLine] = []
        self._events: list[pg.GraphicsObject] = []
        self.names = LimitNames(self._height_of, self._room_of_names)
        self._cost = np.zeros(0)
        self.tip_of: Callable[[int], str] | None = None
        self.cost_mode = COST_MODES[0]
        self.show_limits = False
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("Context by API round")
        self.setMenuEnabled(False)
        self.hideButtons()
        self._main = self.getPlotItem()
        self._main.setMouseEnabled(x=True, y=False)
        self._main.showGrid(x=False, y=True, alpha=0.12)
        self.stack = StackItem()
        self.addItem(self.stack)
        # One view for both axes: the cost is drawn in tokens and its axis scaled. A second view box would lie over the
        # first and take its mouse.
        self._main.getAxis("right").linkToView(self._main.vb)
        self.cost_curve = pg.PlotCurveItem(antialias=True)
        self.cost_curve.setZValue(8)
        self.addItem(self.cost_curve, ignoreBounds=True)
        self.cursor_line = pg.InfiniteLine(angle=90, movable=False)
        self.cursor_line.setZValue(20)
        self.addItem(self.cursor_line, ignoreBounds=True)
        self.cursor_line.hide()
        self.cursor_round = 0
        self.names.setParentItem(self._main.vb)
        self.names.setZValue(30)
        self._main.getAxis("left").setLabel("Context, tokens")
        self._main.getAxis("bottom").setLabel("API round")
        self._main.vb.sigResized.connect(self._fit_cost)
        self._main.vb.sigResized.connect(self._draw_lines)
        self._main.vb.sigRangeChanged.connect(self._fit_cost)
        self._main.vb.sigRangeChanged.connect(self._place_names)
        self.scene().sigMouseClicked.connect(self._on_clicked)
        self.recolour()

    # Content --------------------------------------------------------------------------------------------------

    def set_accounts(self, accounts: SessionAccounts | None, current: CurrentContext | None) -> None:
        """Show other accounts; the visible range is kept when the session only grew, unless all of it was shown."""
        before = self._accounts.series.rounds if self._accounts is not None else 0
        same = accounts is not None and self._accounts is not None and accounts.series is self._accounts.series
        (left, right), _ = self._main.vb.viewRange()
        whole = left <= 1 and right >= before
        self._accounts, self._current = accounts, current
        rounds = accounts.series.rounds if accounts is not None else 0
        self.stack.set_parts(accounts.series.parts if accounts is not None else np.zeros((0, len(Category)), np.int64))
        self._main.vb.setLimits(
            xMin=0.5, xMax=max(1.5, rounds + 0.5), minXRange=min(max(1, rounds), _FEWEST_ROUNDS), yMin=0
        )
        self._draw_cost()
        self._draw_lines()
        if not same and (before == 0 or rounds < before or whole):
            self.fit()
        self._fit_height()

    def set_cost_mode(self, mode: str) -> None:
        """One of `COST_MODES`."""
        self.cost_mode = mode
        self._draw_cost()

    def set_show_limits(self, shown: bool) -> None:
        """Make room for every limit even when the context is far below it."""
        self.show_limits = shown
        self._fit_height()

    def fit(self) -> None:
        """Show every round."""
        rounds = self._accounts.series.rounds if self._accounts is not None else 1
        self._main.vb.setXRange(0.5, max(1.5, rounds + 0.5), padding=0)
        self._fit_height()

    def set_cursor_round(self, number: int) -> None:
        """Put the cursor on a round (1-based; 0 hides it) and scroll to it when it is outside."""
        self.cursor_round = number
        self.cursor_line.setVisible(number > 0)
        if number <= 0:
            return
        self.cursor_line.setPos(number)
        (left, right), _ = self._main.vb.viewRange()
        if not left <= number <= right:
            half = (right - left) / 2
            self._main.vb.setXRange(number - half, number + half, padding=0)

    def recolour(self) -> None:
        """Take the theme's colours."""
        colours = self._theme.colours
        self.setBackground(colours.base)
        for name in ("left", "bottom", "right"):
            axis = self._main.getAxis(name)
            axis.setPen(QColor(colours.border))
            axis.setTextPen(QColor(colours.muted))
        self.stack.set_colours(category_colours(self._theme), QColor(mix(colours.base, colours.text, 0.6)))
        self.cost_curve.setPen(self._pen(colours.text, width=1.6))
        self.cost_curve.setShadowPen(self._pen(colours.base, width=1.6 + _HALO))
        self.cursor_line.setPen(self._pen(colours.accent, width=2))
        self._draw_lines()

    def _pen(self, colour: str, style: Qt.PenStyle = Qt.PenStyle.SolidLine, width: float = 1.0) -> QPen:
        """A pen of the same width at every zoom; Qt counts the width of such a pen in pixels of the device.

        Straight lines are drawn without smoothing, where only a whole number of pixels is equally wide everywhere.
        """
        wide = width * self.devicePixelRatioF()
        pen: QPen = pg.mkPen(colour, width=max(1, round(wide)) if float(width).is_integer() else wide, style=style)
        return pen

    def _draw_cost(self) -> None:
        shown = self._accounts is not None and self.cost_mode != COST_MODES[2] and self._accounts.series.rounds > 0
        self._main.showAxis("right", shown)
        self.cost_curve.setVisible(shown)
        if not shown or self._accounts is None:
            return
        self._cost = (
            self._accounts.cumulative_usd
            if self.cost_mode == COST_MODES[0]
            else np.nan_to_num(self._accounts.round_usd)
        )
        self._main.getAxis("right").setLabel(self.cost_mode, color=self._theme.colours.muted)
        self._fit_cost()

    def _fit_cost(self, *_: object) -> None:
        """Hand the curve what is visible, at most two points a pixel (the extremes of each), and fit its axis."""
        if self._accounts is None or not self.cost_curve.isVisible():
            return
        (left, right), (_, height) = self._main.vb.viewRange()
        first = max(0, int(left) - 2)
        last = min(len(self._cost), int(right) + 2)
        if last <= first:
            return
        values = self._cost[first:last]
        x = np.arange(first, last) + 1.0
        width = max(64, int(self._main.vb.width()))
        if len(values) > 2 * width:
            size = -(-len(values) // width)
            starts = np.arange(0, len(values), size)
            low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
            values, x = np.column_stack([low, high]).ravel(), np.repeat(x[starts], 2)
        top = float(self._cost.max()) if self.cost_mode == COST_MODES[0] else float(values.max())
        usd_per_token = max(top, 1e-6) * 1.08 / max(height, 1.0)
        self.cost_curve.setData(x, values / usd_per_token)
        self._main.getAxis("right").setScale(usd_per_token)

    def _draw_lines(self, *_: object) -> None:
        """Compactions and limits; their names keep apart at every width."""
        self._draw_events()
        self._draw_limits()

    def _draw_events(self) -> None:
        for item in self._events:
            self.removeItem(item)
        self._events = []
        if self._accounts is None:
            return
        compactions = self._accounts.series.compactions
        if len(compactions) > MOST_LINES:
            extent = QRectF(0.5, 0, self._accounts.series.rounds, 1e9)
            ticks = EventTicks(
                [c.round + 0.5 for c in compactions], [self._event_pen(c.kind) for c in compactions], extent
            )
            self._events = [ticks]
        else:
            named = self._names_fit(compactions)
            self._events = [self._event_line(c, named) for c in compactions]
        for item in self._events:
            item.setZValue(12)
            self.addItem(item, ignoreBounds=True)

    def _event_pen(self, kind: str) -> QPen:
        colours = self._theme.colours
        style = Qt.PenStyle.DashLine if kind in ("micro", "silent") else Qt.PenStyle.SolidLine
        return self._pen(colours.warning if kind == "silent" else colours.accent, style)

    def _names_fit(self, compactions: Sequence[Compaction]) -> bool:
        """Whether the names of compactions stand side by side when the whole session is shown."""
        if self._accounts is None or not compactions:
            return False
        widest = max(self.fontMetrics().horizontalAdvance(f"▼ {c.kind}") for c in compactions) + _LABEL_MARGIN
        places = sorted(c.round for c in compactions)
        nearest = min((after - before for before, after in pairwise(places)), default=self._accounts.series.rounds)
        return bool(nearest * float(self._main.vb.width()) >= widest * self._accounts.series.rounds)

    def _event_line(self, compaction: Compaction, named: bool) -> pg.InfiniteLine:
        pen = self._event_pen(compaction.kind)
        glyph = _EVENT_GLYPHS.get(compaction.kind, "▼")
        line = pg.InfiniteLine(
            pos=compaction.round + 0.5,
            angle=90,
            pen=pen,
            label=f"{glyph} {compaction.kind}" if named else glyph,
            # At the foot: the limits have their names at the top.
            labelOpts={"position": 0.08, "color": pen.color(), "movable": False, "fill": self._theme.named("base")},
        )
        line.setToolTip(event_title(compaction.kind))
        return line

    def _draw_limits(self) -> None:
        for line in self._limits:
            self.removeItem(line)
        self._limits = []
        if self._current is None:
            self.names.set_names((), self.font(), self._theme.named("base"))
            return
        t = self._current.thresholds
        colours = self._theme.colours
        wanted: list[tuple[int, str, str, Qt.PenStyle]] = [
            (t.blocking_limit, "blocking", colours.error, Qt.PenStyle.SolidLine),
            (t.warning, "warning", colours.warning, Qt.PenStyle.DotLine),
            (t.window, "window", colours.muted, Qt.PenStyle.SolidLine),
        ]
        if t.auto_compact_on:
            wanted.insert(0, (t.auto_compact_threshold, "auto-compact", colours.accent, Qt.PenStyle.DashLine))
        if t.error != t.warning:
            wanted.append((t.error, "error", colours.error, Qt.PenStyle.DotLine))
        for tokens, _name, colour, style in wanted:
            line = pg.InfiniteLine(pos=tokens, angle=0, pen=self._pen(colour, style))
            line.setZValue(10)
            self.addItem(line, ignoreBounds=True)
            self._limits.append(line)
        names = [
            LineName(tokens, f"{name} {short_tokens(tokens)}", QColor(colour))
            for tokens, name, colour, _style in wanted
        ]
        self.names.set_names(names, self.font(), self._theme.named("base"))
        self._place_names()

    def _place_names(self, *_: object) -> None:
        """Let the names of limits stand beside the compactions in view, unless those are only ticks at the top."""
        (left, right), _y = self._main.vb.viewRange()
        compactions = self._accounts.series.compactions if self._accounts is not None else ()
        seen = [c.round + 0.5 for c in compactions if left <= c.round + 0.5 <= right]
        across = self._main.vb.mapFromView
        self.names.set_in_the_way([across(pg.Point(x, 0)).x() for x in seen] if len(seen) <= MOST_LINES else [])

    def _height_of(self, tokens: float) -> float:
        """Where some tokens lie in the view box, in its pixels."""
        return float(self._main.vb.mapFromView(pg.Point(0, tokens)).y())

    def _room_of_names(self) -> QRectF:
        room: QRectF = self._main.vb.rect()
        return room

    def _fit_height(self) -> None:
        """From 0 to the fullest round, and to the limits when they are near or asked for."""
        context = self._accounts.series.usage.context if self._accounts is not None else np.zeros(0, np.int64)
        top = float(context.max()) if len(context) else 1.0
        if self._current is not None:
            t = self._current.thresholds
            for limit in (t.auto_compact_threshold, t.blocking_limit, t.window):
                if self.show_limits or limit <= top * 1.5:
                    top = max(top, float(limit))
        self._main.vb.setYRange(0, max(top, 1.0) * 1.06, padding=0)

    def event(self, event: QEvent) -> bool:
        """Follow the window to a screen with other pixels: pens are counted in them."""
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self.recolour()
        return bool(super().event(event))

    # Mouse and keys -------------------------------------------------------------------------------------------

    def viewportEvent(self, event: QEvent) -> bool:
        """Answer a tool-tip request with what `tip_of` says about the round under the mouse."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent) and self.tip_of is not None:
            number = self.round_at(self.mapToScene(event.pos()).x())
            text = self.tip_of(number) if number else ""
            if text:
                QToolTip.showText(event.globalPos(), text, self)
                return True
        return bool(super().viewportEvent(event))

    def round_at(self, scene_x: float) -> int:
        """The round (1-based) under a horizontal place of the scene, 0 outside."""
        if self._accounts is None:
            return 0
        x = self._main.vb.mapSceneToView(pg.Point(scene_x, 0)).x()
        number = round(x)
        return number if 1 <= number <= self._accounts.series.rounds else 0

    def _on_clicked(self, event: object) -> None:
        inside: QRectF = self._main.vb.sceneBoundingRect()
        place = event.scenePos()  # type: ignore[attr-defined]
        if event.button() != Qt.MouseButton.LeftButton or not inside.contains(place):  # type: ignore[attr-defined]
            return
        number = self.round_at(place.x())
        if number:
            self.setFocus(Qt.FocusReason.MouseFocusReason)
            self.round_chosen.emit(number)
            if event.double():  # type: ignore[attr-defined]
                self.round_opened.emit(number)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows move by one round, with Ctrl to the next compaction; Page by ten; + − 0 zoom; Enter opens."""
        rounds = self._accounts.series.rounds if self._accounts is not None else 0
        here = self.cursor_round
        control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        match event.key():
            case Qt.Key.Key_Left:
                target = self._event_beside(here, -1) if control else here - 1
            case Qt.Key.Key_Right:
                target = self._event_beside(here, 1) if control else here + 1
            case Qt.Key.Key_PageUp:
                target = here - 10
            case Qt.Key.Key_PageDown:
                target = here + 10
            case Qt.Key.Key_Home:
                target = 1
            case Qt.Key.Key_End:
                target = rounds
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                if here:
                    self.round_opened.emit(here)
                return
            case Qt.Key.Key_Plus | Qt.Key.Key_Equal:
                self.zoom(0.6)
                return
            case Qt.Key.Key_Minus:
                self.zoom(1 / 0.6)
                return
            case Qt.Key.Key_0:
                self.fit()
                return
            case _:
                event.ignore()
                return
        if rounds:
            self.round_chosen.emit(min(max(1, target), rounds))

    def _event_beside(self, here: int, direction: int) -> int:
        """The round after the next compaction in a direction; the end when there is none."""
        places: Sequence[int] = [c.round + 1 for c in self._accounts.series.compactions] if self._accounts else []
        beyond = [p for p in places if (p - here) * direction > 0]
        if beyond:
            return min(beyond) if direction > 0 else max(beyond)
        return 1 if direction < 0 else (self._accounts.series.rounds if self._accounts else 1)

    def zoom(self, factor: float) -> None:
        """Show `factor` times as many rounds, around the cursor or the middle."""
        (left, right), _ = self._main.vb.viewRange()
        middle = self.cursor_round if left <= self.cursor_round <= right else (left + right) / 2
        self._main.vb.setXRange(middle + (left - middle) * factor, middle + (right - middle) * factor, padding=0)

    def focusInEvent(self, event: QEvent) -> None:
        """Show where the keys go."""
        super().focusInEvent(event)
        self._main.vb.setBorder(QPen(QColor(self._theme.colours.accent)))

    def focusOutEvent(self, event: QEvent) -> None:
        """Take the mark away."""
        super().focusOutEvent(event)
        self._main.vb.setBorder(None)
