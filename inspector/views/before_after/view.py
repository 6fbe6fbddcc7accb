"""What a strategy changes, block by block: both states in one scroll, a map beside them, the text difference below."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QColor, QFocusEvent, QShowEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QPushButton,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from compaction.progress import Progress
from compaction.request.alignment import Change, block_at
from compaction.strategies.finish import measured_blocks
from compaction.strategies.inputs import strategy_input
from inspector.context import AppContext
from inspector.documents.document import Document
from inspector.documents.workbench import Column, Workbench, workbench_of
from inspector.models.before_after import BeforeAfterModel, BlockRow, Comparison, Side, compare, text_of, tokens_of
from inspector.models.flat_tree import FlatRow
from inspector.rendering.ansi import strip
from inspector.rendering.diff import rows_of_texts
from inspector.rendering.parts import Diff, Heading, Note, Part, Prose, Tone
from inspector.theme import mix
from inspector.views.before_after.minimap import Minimap
from inspector.views.detail.pages import plain_label
from inspector.views.detail.rich_view import RichView
from inspector.views.flat_tree_view import FlatTreeView
from inspector.work.jobs import Op

if TYPE_CHECKING:
    from compaction.strategies.plan import Plan, StrategyInput

_MAXIMUM_TEXT = 200_000


class BeforeAfterView(QWidget):
    """The chosen column of the comparison, or another open session, against this session."""

    def __init__(self, context: AppContext, document: Document) -> None:
        super().__init__()
        self._context = context
        self._document = document
        self.workbench: Workbench = workbench_of(context, document)
        self.model = BeforeAfterModel(self)
        self.tree = FlatTreeView(self.model)
        self.tree.setAccessibleName("Before and after")
        self.minimap = Minimap()
        self.difference = RichView()
        self.difference.setAccessibleName("Difference of the selected block")
        self.against = QComboBox()
        self.against.setAccessibleName("Compare with")
        self.only_changes = QCheckBox("Only what changes")
        self.next_change = QPushButton("Next change")
        self.totals = plain_label()
        self._build()
        self._connect()
        self._recolour()
        self._fill_choices()
        self.workbench.start()
        self.refresh()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Pass the focus on; a focus proxy would take the other controls out of the Tab order (Qt 6.11)."""
        self.tree.setFocus(event.reason())

    def _build(self) -> None:
        bar = QHBoxLayout()
        bar.setContentsMargins(8, 6, 8, 4)
        bar.setSpacing(8)
        label = QLabel("Against")
        label.setBuddy(self.against)
        bar.addWidget(label)
        bar.addWidget(self.against, 1)
        bar.addWidget(self.only_changes)
        bar.addWidget(self.next_change)
        header = self.tree.horizontalHeader()
        header.setStretchLastSection(False)
        for column in (0, 3):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Stretch)
        width = self.fontMetrics().averageCharWidth()
        for column, characters in ((1, 10), (2, 4), (4, 10)):
            header.resizeSection(column, width * characters)
        upper = QWidget()
        row = QHBoxLayout(upper)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.tree, 1)
        row.addWidget(self.minimap)
        split = QSplitter(Qt.Orientation.Vertical)
        split.addWidget(upper)
        split.addWidget(self.difference)
        split.setStretchFactor(0, 3)
        split.setStretchFactor(1, 2)
        self.totals.setContentsMargins(9, 0, 9, 4)
        self.totals.setWordWrap(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(bar)
        layout.addWidget(self.totals)
        layout.addWidget(split, 1)

    def _connect(self) -> None:
        w = self.workbench
        w.columns_changed.connect(self._fill_choices)
        w.column_updated.connect(self._on_column)
        w.chosen_changed.connect(self._on_chosen)
        self.against.activated.connect(self._on_against)
        self.only_changes.toggled.connect(self._on_only_changes)
        self.next_change.clicked.connect(lambda: self.minimap.step(1))
        self.minimap.chosen.connect(self._go_to)
        self.tree.row_selected.connect(self._on_row)
        self.tree.row_activated.connect(self._on_activated)
        self._document.reloaded.connect(self.refresh)

    # Which two states ------------------------------------------------------------------------------------------

    def _fill_choices(self) -> None:
        current = self.against.currentData()
        self.against.clear()
        for column in self.workbench.columns:
            self.against.addItem(column.title, column)
        for other in self._others():
            self.against.addItem(f"the open session {other.title}", other)
        wanted = self.workbench.chosen if self.workbench.chosen is not None else current
        for place in range(self.against.count()):
            if self.against.itemData(place) is wanted:
                self.against.setCurrentIndex(place)

    def _others(self) -> list[Document]:
        documents = getattr(self._context.workspace, "documents", [])
        return [d for d in documents if d is not self._document and d.conversation is not None]

    def showEvent(self, event: QShowEvent) -> None:
        """Tabs may have been opened meanwhile."""
        self._fill_choices()
        super().showEvent(event)

    def _on_against(self, place: int) -> None:
        chosen = self.against.itemData(place)
        if isinstance(chosen, Column):
            self.workbench.choose(chosen)
        self.refresh()

    def _on_chosen(self) -> None:
        self._fill_choices()
        self.refresh()

    def _on_column(self, column: Column) -> None:
        if column is self.against.currentData() and not column.stale:
            self.refresh()

    def refresh(self) -> None:
        """Align the two states in the background."""
        chosen = self.against.currentData()
        if isinstance(chosen, Column):
            plan, given = chosen.plan, self.workbench.given
            if plan is None or given is None:
                self.totals.setText(chosen.error or "Computing…")
                return
            self._start(lambda: plan_comparison(given, plan))
        elif isinstance(chosen, Document) and self._document.conversation is not None:
            left, right = self._document, chosen
            self._start(lambda: session_comparison(left, right))

    def _start(self, make: Callable[[], Comparison]) -> None:
        def work(_progress: Progress) -> Comparison:
            return make()

        op = Op("Comparing before and after", work, token=f"before after {id(self)}", quiet=True)
        self._context.runner.start(op).success(self._show).failure(lambda e: self.totals.setText(f"✖ {e}"))

    def _show(self, comparison: Comparison) -> None:
        self.model.set_comparison(comparison)
        self.minimap.set_comparison(comparison)
        self._tell_totals(comparison)
        self.difference.set_parts([Note("Select a block to see what becomes of it.")])
        first = next((n for n, row in enumerate(comparison.rows) if row.change is not Change.KEPT), -1)
        if first >= 0:
            self._go_to(first)

    def _tell_totals(self, comparison: Comparison) -> None:
        rows = comparison.rows
        counts = [f"{sum(r.change is c for r in rows):,} {c.title} {c.value}" for c in Change]
        before = sum(comparison.left.tokens.values())
        after = sum(comparison.right.tokens.values())
        self.totals.setText(
            f"{comparison.left.title} → {comparison.right.title}: {before:,} → {after:,} tokens in messages (estimated "
            f"shares). Blocks: " + ", ".join(counts)
        )

    # Selection ------------------------------------------------------------------------------------------------

    def _on_only_changes(self, on: bool) -> None:
        self.model.only_changes = on
        self.model.set_comparison(self.model.comparison)

    def _go_to(self, number: int) -> None:
        comparison = self.model.comparison
        if comparison is None:
            return
        row = self.model.row_of(comparison.rows[number])
        if row >= 0:
            index = self.model.index(row, 0)
            self.tree.setCurrentIndex(index)
            self.tree.scrollTo(index, FlatTreeView.ScrollHint.PositionAtCenter)

    def _on_row(self, row: FlatRow | None) -> None:
        block = row.data if row is not None else None
        comparison = self.model.comparison
        if not isinstance(block, BlockRow) or comparison is None:
            return
        number = next((n for n, r in enumerate(comparison.rows) if r is block), -1)
        self.minimap.set_current(number)
        self.difference.set_parts(parts_of_change(comparison, block))

    def _on_activated(self, row: FlatRow) -> None:
        if isinstance(row.data, BlockRow) and row.data.record >= 0:
            self._document.select_record(row.data.record)

    # Looks ----------------------------------------------------------------------------------------------------

    def changeEvent(self, event: QEvent) -> None:
        """Follow a change of the theme."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._recolour()

    def _recolour(self) -> None:
        theme = self._context.theme
        c = theme.colours
        cleared = QColor(mix(c.warning, c.base, 0.22))
        tones = {
            Change.REMOVED: theme.named("removed"),
            Change.INSERTED: theme.named("added"),
            Change.REPLACED: theme.named("changed"),
            Change.CLEARED: cleared,
            Change.MOVED: theme.named("partner"),
        }
        self.model.set_colours(tones, theme.named("muted"))
        strong = {
            Change.KEPT: theme.named("border"),
            Change.REMOVED: theme.named("error"),
            Change.INSERTED: theme.named("ok"),
            Change.REPLACED: theme.named("warning"),
            Change.CLEARED: QColor(mix(c.warning, c.base, 0.55)),
            Change.MOVED: theme.named("accent"),
        }
        self.minimap.set_colours(strong)


def plan_comparison(given: StrategyInput, plan: Plan) -> Comparison:
    """A plan's request before and after; both sides are measured as the plan measures them."""
    after = {place: tokens for place, _category, tokens in measured_blocks(given.view, plan.after)}
    left = Side(plan.request, tokens_of(given.view), given.conversation, "now")
    return compare(left, Side(plan.after, after, given.conversation, plan.title))


def session_comparison(left: Document, right: Document) -> Comparison:
    """The next requests of two open sessions."""
    now = time.time_ns() // 1_000_000
    sides = []
    for document in (left, right):
        if document.conversation is None:
            raise ValueError(f"{document.title} is not loaded")
        given = strategy_input(document.conversation, now_ms=now)
        sides.append(Side(given.wire, tokens_of(given.view), document.conversation, document.title))
    return compare(sides[0], sides[1])


def parts_of_change(comparison: Comparison, block: BlockRow) -> list[Part]:
    """What becomes of one block, for reading."""
    aligned = block.aligned
    old = block_at(comparison.left.request, aligned.before) if aligned.before is not None else None
    new = block_at(comparison.right.request, aligned.after) if aligned.after is not None else None
    heading = Heading(
        f"{block.change.value} {block.change.title}",
        f"{block.tokens_before:,} → {block.tokens_after:,} tokens",
        Tone.NEUTRAL if block.change is Change.KEPT else Tone.WARNING,
    )
    before, after = (strip(text_of(b)[:_MAXIMUM_TEXT]) if b is not None else "" for b in (old, new))
    if old is not None and new is not None and before != after:
        return [heading, Diff(tuple(rows_of_texts(before, after)))]
    return [heading, Prose(before or after or "(no text)")]
