"""The stepper: previous and next compaction, recorded or simulated, what each did, and the context at any round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QFocusEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QSlider,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from compaction.progress import Progress
from compaction.strategies.what_if import Simulation, WhatIf, simulate
from inspector.context import AppContext
from inspector.documents.accounting import accounting_of
from inspector.documents.document import Document, Selection
from inspector.models.comparison import dollars
from inspector.models.timeline import (
    Step,
    StepDetail,
    category_amounts,
    detail_of,
    recorded_steps,
    simulated_steps,
)
from inspector.views.compare.stack import paint_stack
from inspector.views.detail.long_text import LongTextView
from inspector.views.detail.pages import TablePage, plain_label
from inspector.views.timeline.strip import TimelineStrip
from inspector.views.timeline.what_if_form import WhatIfForm
from inspector.views.turning_splitter import TurningSplitter
from inspector.work.jobs import Op

if TYPE_CHECKING:
    from compaction.accounting.accounts import SessionAccounts

PLAY_MILLISECONDS = 1_500
_DEBOUNCE_MILLISECONDS = 120


@dataclass(frozen=True, slots=True)
class _Bars:
    """What the two bars show: before and after, tokens by category index."""

    before: tuple[int, ...] | None
    after: tuple[int, ...] | None
    names: tuple[str, str]


class TimelineView(QWidget):
    """Compactions of one document, step by step."""

    def __init__(self, context: AppContext, document: Document) -> None:
        super().__init__()
        self._context = context
        self._document = document
        self._accounting = accounting_of(document)
        self.steps: list[Step] = []
        self.current = -1
        self._simulation: Simulation | None = None
        self.strip = TimelineStrip(context.theme)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName("API round")
        self.previous, self.play, self.next = QPushButton("◀ Previous"), QPushButton("Play"), QPushButton("Next ▶")
        self.play.setCheckable(True)
        self.simulate = QCheckBox("What if…")
        self.form = WhatIfForm()
        self.title, self.state = plain_label(), plain_label()
        self.bars = _BarPair(context)
        self.facts = TablePage(("Figure", "Value", "Method"))
        self.facts.setAccessibleName("The compaction")
        self.summary = LongTextView()
        self.summary.setAccessibleName("Summary")
        self.replaced, self.preserved, self.attached = (TablePage(("Line", "Record")) for _ in range(3))
        self.texts = QTabWidget()
        self._playing, self._again = QTimer(self), QTimer(self)
        self._build()
        self._connect()
        self._accounting.ensure(context.runner)
        self._on_accounts()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Pass the focus on; a focus proxy would take the other controls out of the Tab order (Qt 6.11)."""
        self.strip.setFocus(event.reason())

    def _build(self) -> None:
        bar = QHBoxLayout()
        bar.setContentsMargins(8, 6, 8, 2)
        bar.setSpacing(8)
        for widget in (self.previous, self.play, self.next):
            bar.addWidget(widget)
        bar.addWidget(self.title, 1)
        bar.addWidget(self.simulate)
        for page, title in ((self.replaced, "Replaced"), (self.preserved, "Kept"), (self.attached, "Attached again")):
            page.setAccessibleName(title)
        self.texts.addTab(self.summary, "Summary")
        self.texts.addTab(self.replaced, "What it replaced")
        self.texts.addTab(self.preserved, "Kept verbatim")
        self.texts.addTab(self.attached, "Attached again")
        scroll = QScrollArea()
        scroll.setWidget(self.form)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        scroll.setVisible(False)
        self._form_area = scroll
        split = TurningSplitter(130)
        for pane in (self.bars, self.facts, self.texts, scroll):
            split.addWidget(pane)
        split.setSizes([170, 480, 400, 240])
        split.setStretchFactor(2, 1)
        # As wide as the strip, so that its handle stands below the strip's mark.
        slider = QHBoxLayout()
        slider.setContentsMargins(2, 2, 2, 2)
        slider.addWidget(self.slider)
        self.slider.setToolTip("The API round whose context is shown")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(bar)
        layout.addWidget(self.strip)
        layout.addLayout(slider)
        self.state.setContentsMargins(9, 0, 9, 4)
        self.state.setWordWrap(True)
        layout.addWidget(self.state)
        layout.addWidget(split, 1)
        self._playing.setInterval(PLAY_MILLISECONDS)
        self._again.setSingleShot(True)
        self._again.setInterval(_DEBOUNCE_MILLISECONDS)

    def _connect(self) -> None:
        self.previous.clicked.connect(lambda: self.step(-1))
        self.next.clicked.connect(lambda: self.step(1))
        self.play.toggled.connect(self._on_play)
        self._playing.timeout.connect(self._on_tick)
        self._again.timeout.connect(self._run_simulation)
        self.strip.round_chosen.connect(self.go_to_round)
        self.slider.valueChanged.connect(self._on_slider)
        self.simulate.toggled.connect(self._on_simulate)
        self.form.changed.connect(lambda _value: self._again.start())
        self._accounting.changed.connect(self._on_accounts)
        self._document.selection_changed.connect(self._on_selection)
        for page in (self.replaced, self.preserved, self.attached):
            page.activated.connect(lambda index, page=page: self._go_to_line(page, index.row()))

    # Data -----------------------------------------------------------------------------------------------------

    @property
    def _accounts(self) -> SessionAccounts | None:
        return self._accounting.accounts

    def _on_accounts(self) -> None:
        accounts = self._accounts
        if accounts is None:
            error = self._accounting.error
            self.state.setText(f"✖ {error}" if error is not None else "Counting tokens…")
            return
        self._accounting.ensure(self._context.runner)
        rounds = accounts.series.rounds
        self.slider.blockSignals(True)
        self.slider.setRange(1 if rounds else 0, rounds)
        self.slider.blockSignals(False)
        self._collect()

    def _collect(self) -> None:
        """Recorded and simulated steps on one timeline."""
        accounts = self._accounts
        if accounts is None:
            return
        recorded = recorded_steps(accounts.series.conversation)
        shown = self._simulation if self.simulate.isChecked() else None
        simulated = simulated_steps(shown.events) if shown is not None else []
        kept = self.steps[self.current] if 0 <= self.current < len(self.steps) else None
        self.steps = sorted([*recorded, *simulated], key=lambda s: s.round)
        self.strip.set_data(accounts.series.usage.context, recorded, simulated)
        self.current = next((n for n, s in enumerate(self.steps) if s == kept), -1)
        for button in (self.previous, self.next, self.play):
            button.setEnabled(bool(self.steps))
        self._tell()
        if self.current < 0 and self.steps:
            self.select(next((n for n, s in enumerate(self.steps) if s.compaction is not None), 0))
        elif not self.steps:
            self.title.setText("No compaction in this session: move over its API rounds.")
            self.go_to_round(accounts.series.rounds)

    def _tell(self) -> None:
        accounts = self._accounts
        if accounts is None:
            return
        count = sum(step.compaction is not None for step in self.steps)
        total = dollars(accounts.cost.total_usd)
        text = f"{accounts.series.rounds:,} API rounds, {count} recorded compactions, {total}"
        found = self._simulation if self.simulate.isChecked() else None
        if found is not None:
            text += (
                f". What if: {found.compactions} compactions, {found.context_tokens:,} prompt tokens in all, largest "
                f"{found.largest_context:,}, {dollars(found.cost_usd)} (estimated)"
            )
        self.state.setText(text + ".")

    # Steps ----------------------------------------------------------------------------------------------------

    def step(self, by: int) -> None:
        """Go to the next (+1) or previous (−1) compaction."""
        if self.steps:
            self.select(max(0, min(len(self.steps) - 1, self.current + by)))

    def select(self, number: int) -> None:
        """Show a step: its figures are read in the background."""
        self.current = number
        step = self.steps[number]
        self.title.setText(f"{number + 1} of {len(self.steps)}: {step.title}")
        self.strip.set_current(step.round)
        self._set_slider(step.round)
        accounts = self._accounts
        if accounts is None:
            return
        op = Op(
            "Reading the compaction", lambda _progress: detail_of(accounts, step), token=f"step {id(self)}", quiet=True
        )
        self._context.runner.start(op).success(self._show_detail)
        if step.compaction is not None:
            self._document.select_record(step.compaction.record)

    def _show_detail(self, detail: StepDetail) -> None:
        self.bars.show_bars(_Bars(detail.before, detail.after, ("just before", "just after")))
        self.facts.set_texts(detail.facts)
        self.summary.set_text(detail.summary or "No summary belongs to this step.")
        for page, rows in (
            (self.replaced, detail.replaced),
            (self.preserved, detail.preserved),
            (self.attached, detail.attached),
        ):
            page.set_texts([(str(line), text) for line, text in rows])
        self.texts.setTabText(1, f"What it replaced ({detail.replaced_count:,})")
        self.texts.setTabText(2, f"Kept verbatim ({len(detail.preserved):,})")
        self.texts.setTabText(3, f"Attached again ({len(detail.attached):,})")

    def _on_play(self, on: bool) -> None:
        self.play.setText("Stop" if on else "Play")
        if on:
            if self.current >= len(self.steps) - 1:
                self.select(0)
            self._playing.start()
        else:
            self._playing.stop()

    def _on_tick(self) -> None:
        if self.current >= len(self.steps) - 1:
            self.play.setChecked(False)
        else:
            self.step(1)

    # Rounds ---------------------------------------------------------------------------------------------------

    def go_to_round(self, number: int) -> None:
        """Show the context as it was at an API round; the tree and "as sent" follow."""
        accounts = self._accounts
        if accounts is None or not 1 <= number <= accounts.series.rounds:
            return
        self.strip.set_current(number)
        self._set_slider(number)
        row = accounts.series.parts[number - 1]
        parts = tuple(int(n) for n in row) if row.any() else None
        self.bars.show_bars(_Bars(parts, None, (f"API round {number}", "")))
        conversation = accounts.series.conversation
        self._document.select_record(conversation.round(number).first_record)

    def _set_slider(self, number: int) -> None:
        self.slider.blockSignals(True)
        self.slider.setValue(number)
        self.slider.blockSignals(False)

    def _on_slider(self, number: int) -> None:
        self.go_to_round(number)

    def _on_selection(self, selection: Selection) -> None:
        if selection.round > 0 and selection.conversation is self._document.conversation:
            self.strip.set_current(selection.round)
            self._set_slider(selection.round)

    def _go_to_line(self, page: TablePage, row: int) -> None:
        conversation, item = self._document.conversation, page.item(row, 0)
        if conversation is not None and item is not None:
            self._document.select_record(int(conversation.transcript.line.searchsorted(int(item.text()))))

    # What if --------------------------------------------------------------------------------------------------

    def _on_simulate(self, on: bool) -> None:
        self._form_area.setVisible(on)
        if on and self._simulation is None:
            self._run_simulation()
        else:
            self._collect()

    def _run_simulation(self) -> None:
        conversation = self._document.conversation
        if conversation is None:
            return
        settings: WhatIf = self.form.value()
        prices = self._accounting.prices.set(self._accounting.price_set)

        def work(progress: Progress) -> Simulation:
            return simulate(conversation, settings, prices, progress)

        op = Op("Simulating the session", work, token=f"what if {id(self)}")
        self._context.runner.start(op).success(self._on_simulated).failure(lambda e: self.state.setText(f"✖ {e}"))

    def _on_simulated(self, found: Simulation) -> None:
        self._simulation = found
        self._collect()


class _BarPair(QWidget):
    """Two stacked bars on one scale: just before and just after, or one for a round."""

    def __init__(self, context: AppContext) -> None:
        super().__init__()
        self._theme = context.theme
        self._bars = _Bars(None, None, ("", ""))
        self.setMinimumWidth(150)
        self.setAccessibleName("Context before and after")

    def show_bars(self, bars: _Bars) -> None:
        self._bars = bars
        totals = [f"{name}: {sum(parts):,} tokens" for name, parts in self._named() if parts is not None]
        self.setAccessibleDescription("; ".join(totals))
        self.setToolTip("\n".join(totals))
        self.update()

    def _named(self) -> list[tuple[str, tuple[int, ...] | None]]:
        return [(self._bars.names[0], self._bars.before), (self._bars.names[1], self._bars.after)]

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.named("base"))
        shown = [(name, parts) for name, parts in self._named() if name]
        top = max((sum(parts) for _name, parts in shown if parts is not None), default=0)
        width = self.width() // max(1, len(shown))
        for number, (name, parts) in enumerate(shown):
            cell = self.rect().adjusted(number * width, 0, 0, -20)
            cell.setWidth(width)
            painter.setPen(self._theme.named("text"))
            if parts is None:
                painter.drawText(cell, int(Qt.AlignmentFlag.AlignCenter), "unknown")
            else:
                paint_stack(painter, cell, category_amounts(parts), sum(parts), max(1, top), self._theme)
            foot = self.rect().adjusted(number * width, self.height() - 20, 0, 0)
            foot.setWidth(width)
            painter.setPen(self._theme.named("muted"))
            painter.drawText(foot, int(Qt.AlignmentFlag.AlignCenter), name)
