"""The chosen column's summary written by a model: what would be sent is shown first, then agreed to, then previewed."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from compaction.strategies.summariser import Summary, SummaryTask
from inspector.context import AppContext
from inspector.documents.model_column import MODEL_STRATEGIES, WrittenSummary, task_of
from inspector.documents.workbench import Column, Workbench
from inspector.views.detail.pages import plain_label
from inspector.views.summaries.model_run import ModelRun


class ModelSummary(QWidget):
    """Shown for columns of strategies that need a summary; nothing is sent before the person agrees to it."""

    def __init__(self, context: AppContext, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        self._column: Column | None = None
        self._asked: Column | None = None
        self._task: SummaryTask | None = None
        self._characters = 0
        self.button = QPushButton("Write the summary with a model…")
        self.button.setToolTip("Shows what would be sent and what it should cost before anything is sent.")
        self.stop = QPushButton("Stop")
        self.stop.setToolTip("Stops the call; nothing of it is kept.")
        self.stop.hide()
        self.state = plain_label()
        self.state.setWordWrap(True)
        self.state.setAccessibleName("Summary of this column")
        row = QHBoxLayout()
        row.addWidget(self.button, 1)
        row.addWidget(self.stop)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 4, 8, 4)
        layout.setSpacing(4)
        layout.addLayout(row)
        layout.addWidget(self.state)
        self.run = ModelRun(context, self)
        self.run.text = self._on_text
        self.run.status = self.state.setText
        self.run.done = self._on_summary
        self.run.failed = lambda error: self._tell(f"✖ {error}")
        self.run.ended = self._on_ended
        self.button.clicked.connect(self._on_pressed)
        self.stop.clicked.connect(self.run.cancel)
        self.show_column(None)

    def show_column(self, column: Column | None) -> None:
        """Follow the chosen column."""
        self._column = column
        self.setVisible(column is not None and column.strategy.name in MODEL_STRATEGIES)
        if column is not None and self._asked is None:
            written = column.summariser
            self.state.setText(
                f"This column's summary was {written.summary.label}; other settings show the offline one."
                if isinstance(written, WrittenSummary)
                else "This column shows the offline extract; no model was asked."
            )

    def _tell(self, text: str) -> None:
        self.state.setText(text)

    def _on_pressed(self) -> None:
        column, given = self._column, self._workbench.given
        if column is None or given is None:
            self._tell("Wait until the column is computed.")
            return
        strategy, settings = column.strategy, column.settings
        self._asked, self._characters = column, 0
        self._set_running(True)
        self._tell("Describing what would be sent…")

        def make_task() -> SummaryTask:
            self._task = task_of(strategy, given, settings)
            return self._task

        self.run.start(make_task)

    def _on_text(self, piece: str) -> None:
        self._characters += len(piece)
        self._tell(f"The model is writing: {self._characters:,} characters…")

    def _on_summary(self, summary: Summary) -> None:
        column, task = self._asked, self._task
        if column is None or task is None or column not in self._workbench.columns:
            return
        self._workbench.set_summariser(column, WrittenSummary(task, summary))

    def _on_ended(self) -> None:
        said = self.state.text()
        self._asked = None
        self._set_running(False)
        self.show_column(self._column)
        if said.startswith("✖"):
            self._tell(said)

    def _set_running(self, on: bool) -> None:
        self.stop.setVisible(on)
        self.button.setEnabled(not on)
