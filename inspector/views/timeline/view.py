"""The stepper: previous and next compaction, recorded or simulated, what each did, and the context at any round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtGui import QFocusEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSlider,
    QStyle,
    QStyleOptionSlider,
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
    counted,
    detail_of,
    legend_of,
    reasons_of,
    recorded_steps,
    simulated_steps,
)
from inspector.plain_text import plain_tip
from inspector.views.compare.stack import legend_text, paint_stack
from inspector.views.detail.long_text import LongTextView
from inspector.views.detail.pages import TablePage, plain_label
from inspector.views.timeline.content_page import ContentPage
from inspector.views.timeline.strip import TimelineStrip
from inspector.views.timeline.what_if_form import WhatIfForm
from inspector.views.turning_splitter import TurningSplitter
from inspector.work.jobs import Op

if TYPE_CHECKING:
    from compaction.accounting.accounts import SessionAccounts

PLAY_MILLISECONDS = 1_500
_DEBOUNCE_MILLISECONDS = 120
_LEAST_TEXT = 40
"""Characters of the summary beside the figures that these leave in view."""


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
        self.title, self.state, self.signs = plain_label(), plain_label(), plain_label()
        self.legend = QLabel()
        self.bars = _BarPair(context)
        self.facts = TablePage(("Figure", "Value", "Method"))
        self.facts.setAccessibleName("The compaction")
        self.summary = LongTextView()
        self.summary.setAccessibleName("Summary")
        self.replaced, self.preserved, self.attached = (TablePage(("Line", "Record")) for _ in range(3))
        self.texts = QTabWidget()
        self.pages = [ContentPage(page) for page in (self.summary, self.replaced, self.preserved, self.attached)]
        self._wanted_page = 0
        self._facts_moved = False
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
        titles = ("Summary", "What it replaced", "Kept verbatim", "Attached again")
        for content, title in zip(self.pages, titles, strict=True):
            self.texts.addTab(content, title)
        scroll = QScrollArea()
        scroll.setWidget(self.form)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        scroll.setVisible(False)
        self._form_area = scroll
        self._split = split = TurningSplitter(130)
        for pane in (self.bars, self.facts, self.texts, scroll):
            split.addWidget(pane)
        split.setSizes([170, 480, 400, 240])
        split.setStretchFactor(2, 1)
        self._slider_row = QHBoxLayout()
        self._slider_row.addWidget(self.slider)
        self.slider.setToolTip("The API round whose context is shown")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(bar)
        layout.addWidget(self.strip)
        layout.addLayout(self._slider_row)
        self.state.setWordWrap(True)
        self.signs.setAccessibleName("Signs of the timeline")
        said = QHBoxLayout()
        said.setContentsMargins(9, 0, 9, 4)
        said.setSpacing(16)
        said.addWidget(self.state, 1)
        said.addWidget(self.signs)
        layout.addLayout(said)
        self.legend.setContentsMargins(9, 0, 9, 4)
        self.legend.setWordWrap(True)
        self.legend.setTextFormat(Qt.TextFormat.RichText)  # our own words and colours only
        self.legend.setAccessibleName("Parts of the bars")
        self._recolour()
        layout.addWidget(self.legend)
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
        self.texts.tabBarClicked.connect(self._on_page_wanted)
        self._split.splitterMoved.connect(self._on_split_moved)
        self._accounting.changed.connect(self._on_accounts)
        self._document.selection_changed.connect(self._on_selection)
        for page in (self.replaced, self.preserved, self.attached):
            page.activated.connect(lambda index, page=page: self._go_to_line(page, index.row()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the slider's handle below the strip's cursor."""
        super().resizeEvent(event)
        self._align_slider()

    def _align_slider(self) -> None:
        """As far in as the middle of the first and the last round, which the ends of the slider stand for."""
        option = QStyleOptionSlider()
        self.slider.initStyleOption(option)
        handle = self.slider.style().subControlRect(
            QStyle.ComplexControl.CC_Slider, option, QStyle.SubControl.SC_SliderHandle, self.slider
        )
        margin = max(0, round(self.strip.x_of(1) - handle.width() / 2))
        self._slider_row.setContentsMargins(margin, 2, margin, 2)

    def changeEvent(self, event: QEvent) -> None:
        """Follow a change of the theme."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._recolour()

    def _recolour(self) -> None:
        self.legend.setText(legend_text(self._context.theme))

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
        unknown = "   ▨ context not recorded" if self.strip.has_unknown else ""
        self.signs.setText((legend_of(self.steps) + unknown).strip())
        self._align_slider()
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
        total = dollars(accounts.cost.total_usd)
        text = f"{accounts.series.rounds:,} API rounds, {counted(self.steps)}, {total}"
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
        self._context.runner.start(op).success(lambda detail: self._show_detail(detail, step.kind))
        if step.compaction is not None:
            self._document.select_record(step.compaction.record)

    def _show_detail(self, detail: StepDetail, kind: str) -> None:
        self.bars.show_bars(_Bars(detail.before, detail.after, ("just before", "just after")))
        self.facts.set_texts([(fact.name, fact.value, fact.method) for fact in detail.facts])
        for row, fact in enumerate(detail.facts):
            for column in range(self.facts.columnCount()):
                item = self.facts.item(row, column)
                if item is not None:
                    item.setToolTip(plain_tip(fact.tip))
        self._fit_facts()
        self.summary.set_text(detail.summary)
        for page, rows in (
            (self.replaced, detail.replaced),
            (self.preserved, detail.preserved),
            (self.attached, detail.attached),
        ):
            page.set_texts([(str(line), text) for line, text in rows])
        self.texts.setTabText(1, f"What it replaced ({detail.replaced_count:,})")
        self.texts.setTabText(2, f"Kept verbatim ({len(detail.preserved):,})")
        self.texts.setTabText(3, f"Attached again ({len(detail.attached):,})")
        reasons = reasons_of(kind)
        self.pages[0].show_content(bool(detail.summary), reasons.summary)
        self.pages[1].show_content(bool(detail.replaced), reasons.replaced)
        self.pages[2].show_content(bool(detail.preserved), reasons.preserved)
        self.pages[3].show_content(bool(detail.attached), reasons.attached)
        self._choose_page()

    def _on_page_wanted(self, place: int) -> None:
        if place >= 0:
            self._wanted_page = place

    def _choose_page(self) -> None:
        """The page that was asked for last; the first with content where that one has none."""
        wanted = [self._wanted_page, *range(len(self.pages))]
        self.texts.setCurrentIndex(next((n for n in wanted if self.pages[n].has_content), self._wanted_page))

    def _on_split_moved(self, _place: int, _handle: int) -> None:
        self._facts_moved = True

    def _fit_facts(self) -> None:
        """As much width for the figures as they need, until the person divides the panes."""
        sizes = self._split.sizes()
        if self._facts_moved or self._split.orientation() is not Qt.Orientation.Horizontal or not sizes[1]:
            return
        header, spare = self.facts.horizontalHeader(), 2 * self.fontMetrics().averageCharWidth()
        width = spare + sum(
            max(self.facts.sizeHintForColumn(column), header.sectionSizeHint(column)) + spare
            for column in range(self.facts.columnCount())
        )
        least = self.fontMetrics().averageCharWidth() * _LEAST_TEXT
        width = min(width, sizes[1] + max(0, sizes[2] - least))
        sizes[1], sizes[2] = width, sizes[2] + sizes[1] - width
        self._split.setSizes(sizes)

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
