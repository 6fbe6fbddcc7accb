"""How full the context is, in the status bar: a bar with the lines of the client, and the level in words."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from compaction.accounting.current import CurrentContext
from compaction.accounting.thresholds import State
from inspector.context import AppContext
from inspector.documents.accounting import accounting_of
from inspector.documents.document import Document
from inspector.theme import Colours, Theme
from inspector.views.elided_label import ElidedLabel

_WORDS: dict[State, str] = {
    "ok": "",
    "warning": "▲ context low",
    "error": "▲ context low",
    "auto_compact": "▼ auto-compact due",
    "blocking": "✖ blocked",
}


def level_colour(state: State, colours: Colours) -> str:
    """The colour of a level; the words beside it say the same."""
    return {
        "ok": colours.ok,
        "warning": colours.warning,
        "error": colours.warning,
        "auto_compact": colours.accent,
        "blocking": colours.error,
    }[state]


class GaugeBar(QWidget):
    """A bar from 0 to the window, filled to the context, with a tick at each line."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._current: CurrentContext | None = None
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)

    def set_current(self, current: CurrentContext | None) -> None:
        """Show another context."""
        self._current = current
        self.update()

    def sizeHint(self) -> QSize:
        """A bar about sixteen characters wide."""
        return QSize(self.fontMetrics().averageCharWidth() * 18, self.fontMetrics().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw ground, filling and ticks."""
        colours = self._theme.colours
        height = max(6.0, self.fontMetrics().height() * 0.5)
        ground = QRectF(0.5, (self.height() - height) / 2, self.width() - 1.0, height)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QColor(colours.border))
        painter.setBrush(QColor(colours.base))
        painter.drawRoundedRect(ground, 3, 3)
        if self._current is None:
            return
        t, now = self._current.thresholds, self._current.state
        window = max(1, t.window)
        filled = QRectF(ground)
        filled.setWidth(ground.width() * min(1.0, now.tokens / window))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(level_colour(now.state, colours)))
        painter.drawRoundedRect(filled, 3, 3)
        lines = [(t.warning, colours.warning), (t.blocking_limit, colours.error)]
        if t.auto_compact_on:
            lines.insert(1, (t.auto_compact_threshold, colours.accent))
        for tokens, colour in lines:
            x = ground.left() + ground.width() * min(1.0, max(0.0, tokens / window))
            painter.fillRect(QRectF(x - 0.75, ground.top() - 3, 1.5, height + 6), QColor(colour))


class ContextGauge(QWidget):
    """The gauge of a document; a click or Enter opens the context chart.

    Signals:
        opened(): the person wants the chart.
    """

    opened = Signal()

    def __init__(self, context: AppContext, document: Document) -> None:
        super().__init__()
        self._context = context
        self._document = document
        self.accounting = accounting_of(document)
        self.bar = GaugeBar(context.theme)
        self.label = ElidedLabel(least=16)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        layout.addWidget(self.bar)
        layout.addWidget(self.label)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.opened.connect(self._open)
        self.accounting.changed.connect(self.refresh)
        context.theme.changed.connect(self.refresh)
        self.accounting.ensure(context.runner, full=False)
        self.refresh()

    def refresh(self) -> None:
        """Show the newest count."""
        current = self.accounting.current
        self.bar.set_current(current)
        if current is None:
            text = "counting…" if self.accounting.running else "✖ not counted" if self.accounting.error else ""
            self.label.setText(text)
            self.setToolTip(str(self.accounting.error or "How full the context is."))
        else:
            # Right after a compaction no accurate count exists: the client hides its warning (compaction.md 1).
            hidden = self.accounting.suppression.suppressed
            words = "just compacted" if hidden else _WORDS[current.state.state]
            mark = "" if current.tokens.method == "recorded" else "≈" if current.tokens.method == "estimated" else "?"
            text = f"{mark}{current.state.tokens:,} tokens · {left_text(current)}"
            self.label.setText(f"{text} · {words}" if words else text)
            self.setToolTip(gauge_tip(current))
        self.setAccessibleName(f"Context: {self.label.text()}")
        self.setAccessibleDescription(self.toolTip())

    def _open(self) -> None:
        if self._context.workspace is not None:
            self._context.workspace.show_view("context")

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Open the chart."""
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.opened.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter and Space open the chart."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.opened.emit()
        else:
            super().keyPressEvent(event)


def left_text(current: CurrentContext) -> str:
    """How much is left until auto-compact, or until the effective window ends where that is off."""
    end = "auto-compact" if current.thresholds.auto_compact_on else "the window's end"
    return f"{current.state.percent_left} % left until {end}"


def gauge_tip(current: CurrentContext) -> str:
    """Method and source of every figure of the gauge."""
    t, now = current.thresholds, current.state
    formulas = t.formulas()
    auto = f"{t.auto_compact_threshold:,} = {formulas['auto_compact_threshold']}" if t.auto_compact_on else "off"
    bands = {"none": "below 60 %", "microcompact": "MicroCompact", "autocompact": "AutoCompact",
             "blocking_compact": "blocking compact"}  # fmt: skip
    return "\n".join(
        [
            f"Context {current.tokens.text('tokens')}",
            current.tokens.source,
            "",
            f"Window {t.window:,} ({t.window_source})",
            f"Effective window {t.effective_window:,} = {formulas['effective_window']}",
            f"Warning and error {t.warning:,} = {formulas['warning']}",
            f"Auto-compact {auto}",
            f"Blocking {t.blocking_limit:,} = {formulas['blocking_limit']}",
            f"{left_text(current)} at {t.reference:,}",
            f"Token budget: {now.budget_percent:.1f} % of the window, {bands[now.budget_band]}",
            f"{t.profile.title}: {t.profile.source}",
        ]
    )
