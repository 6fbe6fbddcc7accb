"""One run of a model for a window: described, agreed to, sent off the GUI thread, streamed, cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QDialog, QWidget

from compaction.accounting.prices import load_price_book
from compaction.progress import Progress
from compaction.strategies.summariser import Summary, SummaryTask
from compaction.summaries.consent import Outgoing, outgoing_for
from compaction.summaries.model_summariser import AnthropicSummariser
from compaction.summaries.run import Listener
from inspector.context import AppContext
from inspector.views.summaries.api_dialog import api_settings, request_options
from inspector.views.summaries.consent_dialog import ConsentDialog
from inspector.work.jobs import Job, Op

_POLL_MILLISECONDS = 50


@dataclass(slots=True)
class _Stream:
    """Text from the worker's thread to the window's: the worker adds, the poll takes."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    pieces: list[str] = field(default_factory=list)
    status: str = ""

    def add(self, piece: str) -> None:
        with self.lock:
            self.pieces.append(piece)

    def tell(self, line: str) -> None:
        with self.lock:
            self.status = line

    def take(self) -> tuple[str, str]:
        with self.lock:
            text, self.pieces = "".join(self.pieces), []
            status, self.status = self.status, ""
            return text, status


class ModelRun(QObject):
    """Asks a model for a summary of a task, with the person's consent.

    Callbacks run on the GUI thread: `text(piece)`, `status(line)`, `done(summary)`, `failed(error)`, `ended()`.
    """

    def __init__(self, context: AppContext, parent: QWidget) -> None:
        super().__init__(parent)
        self._context = context
        self._widget = parent
        self._stream = _Stream()
        self._timer = QTimer(self)
        self._timer.setInterval(_POLL_MILLISECONDS)
        self._timer.timeout.connect(self._poll)
        self._job: Job[Summary] | None = None
        self.text: Callable[[str], object] = lambda _piece: None
        self.status: Callable[[str], object] = lambda _line: None
        self.done: Callable[[Summary], object] = lambda _summary: None
        self.failed: Callable[[Exception], object] = lambda _error: None
        self.ended: Callable[[], object] = lambda: None
        self.summariser: AnthropicSummariser | None = None

    def start(self, make_task: Callable[[], SummaryTask], prompt: str = "") -> None:
        """Describe what `make_task()` (off the GUI thread) would send, ask, and only then send it."""
        settings = self._context.settings
        options, api = request_options(settings), api_settings(settings)

        def describe(_progress: Progress) -> tuple[SummaryTask, Outgoing]:
            task = make_task()
            return task, outgoing_for(task, options, api, load_price_book().set(), prompt)

        def ask(found: tuple[SummaryTask, Outgoing]) -> None:
            task, outgoing = found
            dialog = ConsentDialog(outgoing.facts(), outgoing.request.body, self._widget)
            if dialog.exec() != QDialog.DialogCode.Accepted:
                self.ended()
                return
            self.summariser = AnthropicSummariser(
                options, api, prompt=prompt, listener=Listener(text=self._stream.add, status=self._stream.tell)
            )
            self._send(task)

        job = self._context.runner.start(Op("Describing what would be sent", describe, token=f"describe {id(self)}"))
        job.success(ask).failure(self._on_failure)

    def _send(self, task: SummaryTask) -> None:
        summariser = self.summariser
        if summariser is None:
            return

        def work(progress: Progress) -> Summary:
            summariser.progress = progress
            return summariser.summarise(task)

        self._job = self._context.runner.start(Op("Asking the model for a summary", work, token=f"summary {id(self)}"))
        self._job.success(self.done).failure(self._on_failure).finished(self._on_finished)
        self._timer.start()

    def cancel(self) -> None:
        """Stop a running call; what has arrived is not kept."""
        if self._job is not None:
            self._job.cancel()

    def _poll(self) -> None:
        text, status = self._stream.take()
        if text:
            self.text(text)
        if status:
            self.status(status)

    def _on_failure(self, error: Exception) -> None:
        self.failed(error)
        if self._job is None:
            self.ended()

    def _on_finished(self) -> None:
        self._timer.stop()
        # What came last is in the summary or no longer wanted; a late status must not hide the result.
        self._stream.take()
        self._job = None
        self.ended()
