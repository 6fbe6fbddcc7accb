"""A compaction's recorded summary beside a fresh one, and what of the source each of them holds."""

from __future__ import annotations

import time
from dataclasses import dataclass

from PySide6.QtCore import QMargins, Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QPushButton,
    QSplitter,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from compaction.conversation import Conversation
from compaction.progress import Progress
from compaction.strategies.inputs import strategy_input
from compaction.strategies.prompts import summary_prompt
from compaction.strategies.summariser import OfflineSummariser, Summary, SummaryTask
from compaction.summaries.audit import SummaryAudit, audit_recorded, conversation_before, recorded_summary
from inspector.context import AppContext
from inspector.documents.document import Document
from inspector.models.audit import AuditModel
from inspector.views.column_sizes import ColumnSizes
from inspector.views.detail.long_text import LongTextView
from inspector.views.detail.pages import plain_label
from inspector.views.flat_tree_view import CELL_PADDING
from inspector.views.flow_layout import FlowLayout, together
from inspector.views.summaries.model_run import ModelRun
from inspector.views.summaries.prompt_dialog import PromptDialog
from inspector.views.whole_rows_table import WholeRowsTable
from inspector.work.jobs import Op

_WHAT = 1
"""The column of the table with the item itself."""
_WITH_SUMMARY = ("auto", "manual", "legacy")
"""Kinds of compactions that write a summary."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A recorded summary with its audit, and the audit of the fresh one when there is one."""

    summary: str
    recorded: SummaryAudit
    fresh: SummaryAudit | None


class AuditPage(QWidget):
    """Choose a compaction; read its summary beside its sources' audit; ask for a fresh summary."""

    def __init__(self, context: AppContext, document: Document) -> None:
        super().__init__()
        self._context = context
        self._document = document
        self._fresh: dict[int, str] = {}
        self._found: _Found | None = None
        self.compaction = QComboBox()
        self.compaction.setAccessibleName("Compaction")
        self.offline = QPushButton("Fresh summary offline")
        self.offline.setToolTip("A deterministic extract; nothing leaves the machine.")
        self.model_button = QPushButton("Fresh summary by a model…")
        self.model_button.setToolTip("Shows what would be sent and what it should cost before anything is sent.")
        self.prompt_button = QPushButton("Prompt…")
        self.prompt_button.setToolTip("Read the prompt, or change it for the next runs of this view.")
        self.prompt = ""
        self.stop = QPushButton("Stop")
        self.stop.setEnabled(False)
        self.missing = QCheckBox("Only what a summary left out")
        self.state = plain_label()
        self.state.setWordWrap(True)
        self.recorded_text, self.fresh_text = LongTextView(), LongTextView()
        self.recorded_text.setAccessibleName("Recorded summary")
        self.fresh_text.setAccessibleName("Fresh summary")
        self.model = AuditModel(self)
        self.table = WholeRowsTable()
        self.table.setTabKeyNavigation(False)
        self.table.setModel(self.model)
        self.table.setAccessibleName("What of the source is in the summaries")
        self.run = ModelRun(context, self)
        self._streamed = ""
        self._build()
        self._connect()
        self._fill()

    def _build(self) -> None:
        # The titles of compactions are long: the list of them may be narrower than the longest.
        self.compaction.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.compaction.setMinimumContentsLength(46)
        bar = FlowLayout(QMargins(8, 6, 8, 4))
        bar.addWidget(together(QLabel("Compaction"), self.compaction, grows=True))
        for widget in (self.offline, self.model_button, self.prompt_button, self.stop):
            bar.addWidget(widget)
        second = QHBoxLayout()
        second.setContentsMargins(8, 0, 8, 4)
        second.addWidget(self.state, 1)
        second.addWidget(self.missing)
        texts = QSplitter(Qt.Orientation.Horizontal)
        for title, view in (("Recorded", self.recorded_text), ("Fresh", self.fresh_text)):
            box = QWidget()
            layout = QVBoxLayout(box)
            layout.setContentsMargins(8, 0, 8, 0)
            label = QLabel(title)
            label.setBuddy(view)
            layout.addWidget(label)
            layout.addWidget(view, 1)
            texts.addWidget(box)
        self.table.verticalHeader().setVisible(False)
        self.table.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.table.setAlternatingRowColors(True)
        self.table.setShowGrid(False)
        self.table.setWordWrap(False)
        # As far from the edge and as close to each other as the rows of the other tables.
        self.table.setStyleSheet(f"QTableView::item {{ padding: 0 {CELL_PADDING}px; }}")
        self.table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.table.verticalHeader().setDefaultSectionSize(int(self.fontMetrics().height() * 1.45))
        ColumnSizes(self.table, self.model.figures, main=_WHAT, filler=_WHAT)
        split = QSplitter(Qt.Orientation.Vertical)
        split.addWidget(texts)
        split.addWidget(self.table)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(bar)
        layout.addLayout(second)
        layout.addWidget(split, 1)

    def _connect(self) -> None:
        self.compaction.currentIndexChanged.connect(lambda _index: self._show())
        self.offline.clicked.connect(self._on_offline)
        self.model_button.clicked.connect(self._on_model)
        self.stop.clicked.connect(self.run.cancel)
        self.prompt_button.clicked.connect(self._on_prompt)
        self.missing.toggled.connect(lambda _on: self._show_audits())
        self.table.activated.connect(lambda index: self._go_to(index.row()))
        self._document.reloaded.connect(self._fill)
        self.run.text = self._on_text
        self.run.status = self.state.setText
        self.run.done = self._on_summary
        self.run.failed = lambda error: self.state.setText(f"✖ {error}")
        self.run.ended = self._on_ended

    def _fill(self) -> None:
        conversation = self._document.conversation
        chosen = self.compaction.currentData()
        self.compaction.blockSignals(True)
        self.compaction.clear()
        # Numbered among all compactions, as in the timeline: those that only clear results have no summary.
        for number, compaction in enumerate(conversation.compactions if conversation else (), 1):
            if compaction.kind not in _WITH_SUMMARY:
                continue
            tokens = f", at {compaction.pre_tokens:,} tokens by the client" if compaction.pre_tokens else ""
            title = (
                f"{number}: line {compaction.line:,}, {compaction.kind}, after API round {compaction.round:,}{tokens}"
            )
            self.compaction.addItem(title, compaction.record)
        place = self.compaction.findData(chosen)
        self.compaction.setCurrentIndex(place if place >= 0 else self.compaction.count() - 1)
        self.compaction.blockSignals(False)
        for widget in (self.compaction, self.offline, self.model_button):
            widget.setEnabled(self.compaction.count() > 0)
        self._show()

    def _record(self) -> int:
        record = self.compaction.currentData()
        return record if isinstance(record, int) else -1

    def _show(self) -> None:
        conversation, record = self._document.conversation, self._record()
        if conversation is None or record < 0:
            self.state.setText(
                "This session holds no compaction with a summary. The session memory is on the next tab."
            )
            self.recorded_text.set_text("")
            self.fresh_text.set_text("")
            self.model.set_audits(None, None)
            return
        fresh = self._fresh.get(record, "")

        def work(_progress: Progress) -> _Found:
            summary = recorded_summary(conversation, record)
            other = audit_recorded(conversation, record, fresh) if fresh else None
            return _Found(summary, audit_recorded(conversation, record), other)

        def show(found: _Found) -> None:
            self._found = found
            self.recorded_text.set_text(found.summary or "The summary is not in this file.")
            self.fresh_text.set_text(fresh or "None yet: press one of the buttons above.")
            self._show_audits()

        op = Op("Comparing the summary with its sources", work, token=f"audit {id(self)}", quiet=True)
        self._context.runner.start(op).success(show)

    def _show_audits(self) -> None:
        found = self._found
        if found is None:
            return
        self.model.set_audits(found.recorded, found.fresh, self.missing.isChecked())
        parts = []
        for name, audit in (("Recorded", found.recorded), ("Fresh", found.fresh)):
            if audit is not None:
                held = sum(item.present for item in audit.items)
                missed = len(audit.missed_and_needed)
                parts.append(
                    f"{name}: {held} of {len(audit.items)} items are in it, {missed} left out and needed again"
                )
        self.state.setText(". ".join(parts) + ". Computed from words, no model asked.")

    def _task(self, conversation: Conversation, record: int) -> SummaryTask:
        before = conversation_before(conversation, record)
        view = strategy_input(before, now_ms=time.time_ns() // 1_000_000).view
        return SummaryTask(view, view.parts)

    def _on_offline(self) -> None:
        conversation, record = self._document.conversation, self._record()
        if conversation is None or record < 0:
            return
        op = Op(
            "Writing an offline summary",
            lambda _progress: OfflineSummariser().summarise(self._task(conversation, record)),
            token=f"fresh {id(self)}",
        )
        self._context.runner.start(op).success(lambda summary: self._keep(record, summary))

    def _on_model(self) -> None:
        conversation, record = self._document.conversation, self._record()
        if conversation is None or record < 0:
            return
        self._streamed = ""
        self._running = record
        self._set_running(True)
        self.run.start(lambda: self._task(conversation, record), self.prompt)

    def _on_prompt(self) -> None:
        dialog = PromptDialog(summary_prompt(), self.prompt, self)
        if dialog.exec() == QDialog.DialogCode.Accepted:
            self.prompt = dialog.prompt()
            self.prompt_button.setText("Prompt (changed)…" if self.prompt else "Prompt…")

    def _on_text(self, piece: str) -> None:
        self._streamed += piece
        self.fresh_text.set_text(self._streamed)

    def _on_summary(self, summary: Summary) -> None:
        self._keep(self._running, summary)
        usage = summary.usage
        if usage is not None:
            self._context_tell(
                f"{summary.label}: {usage[0]:,} input, {usage[1]:,} output, {usage[2]:,} cache read, "
                f"{usage[3]:,} cache creation tokens (recorded)"
            )

    def _context_tell(self, text: str) -> None:
        if self._context.workspace is not None:
            self._context.workspace.tell(text, 15_000)

    def _keep(self, record: int, summary: Summary) -> None:
        self._fresh[record] = summary.text
        self._show()

    def _on_ended(self) -> None:
        self._set_running(False)
        if self._record() >= 0 and not self._fresh.get(self._record()):
            self.fresh_text.set_text("None yet: press one of the buttons above.")

    def _set_running(self, on: bool) -> None:
        self.stop.setEnabled(on)
        self.offline.setEnabled(not on)
        self.model_button.setEnabled(not on)

    def _go_to(self, row: int) -> None:
        conversation = self._document.conversation
        if conversation is None or not 0 <= row < len(self.model.rows):
            return
        lines = conversation.transcript.line
        self._document.select_record(int(lines.searchsorted(self.model.rows[row].line)))
