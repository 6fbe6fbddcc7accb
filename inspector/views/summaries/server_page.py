"""On-demand compaction by the API: its request first, its block kept as it came, saved as a request to go on from."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from compaction.accounting.prices import Usage
from compaction.export.writer import Written, write_new_file
from compaction.progress import Progress
from compaction.request.wire import WireRequest
from compaction.strategies.inputs import strategy_input
from compaction.summaries.api_client import build_client
from compaction.summaries.consent import request_text
from compaction.summaries.dry_run import ServerCompaction, compact_on_server, compaction_request, continued_request
from inspector.context import AppContext
from inspector.documents.derived import folder_of, suggested_name
from inspector.documents.document import Document
from inspector.models.comparison import dollars, tokens
from inspector.views.detail.long_text import LongTextView
from inspector.views.detail.pages import plain_label
from inspector.views.summaries.api_dialog import api_settings
from inspector.views.summaries.consent_dialog import ask_consent
from inspector.work.jobs import Job, Op


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What would be sent, how many tokens it holds, and what reading them cold costs (None: unpriced)."""

    wire: WireRequest
    body: dict[str, Any]
    tokens: int
    cost: float | None


class ServerPage(QWidget):
    """Lets the API compact the session (beta compact-2026-09-04): the block is opaque and never changed here."""

    def __init__(self, context: AppContext, document: Document) -> None:
        super().__init__()
        self._context = context
        self._document = document
        self._prepared: _Prepared | None = None
        self._job: Job[ServerCompaction] | None = None
        self.result: ServerCompaction | None = None
        self.state = plain_label()
        self.state.setWordWrap(True)
        self.ask = QPushButton("Let the API compact…")
        self.ask.setToolTip("Sends the request below after you agree to it.")
        self.stop, self.save = QPushButton("Stop"), QPushButton("Save as an API request…")
        self.save.setToolTip("A new request document that begins with the API's block, unchanged.")
        self.text = LongTextView()
        self.text.setAccessibleName("Request, then the API's summary")
        bar = QHBoxLayout()
        bar.addWidget(self.state, 1)
        for button in (self.ask, self.stop, self.save):
            bar.addWidget(button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 6, 8, 4)
        layout.addLayout(bar)
        layout.addWidget(self.text, 1)
        self.ask.clicked.connect(self._on_ask)
        self.stop.clicked.connect(self._on_stop)
        self.save.clicked.connect(self._on_save)
        document.reloaded.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Make the request of the present session."""
        conversation = self._document.conversation
        for button in (self.ask, self.stop, self.save):
            button.setEnabled(False)
        self.result = None
        if conversation is None:
            return

        def work(_progress: Progress) -> _Prepared:
            given = strategy_input(conversation, now_ms=time.time_ns() // 1_000_000)
            price = given.prices.price(given.wire.model, Usage(input=given.view.tokens))
            cost = price.total if price is not None else None
            return _Prepared(given.wire, compaction_request(given.wire), given.view.tokens, cost)

        op = Op("Preparing the compaction request", work, token=f"server {id(self)}", quiet=True)
        self._context.runner.start(op).success(self._show)

    def _show(self, prepared: _Prepared) -> None:
        self._prepared = prepared
        self.state.setText(
            f"Would send {tokens(prepared.tokens)} tokens to {prepared.body['model']}. Nothing was sent."
        )
        self.text.set_text(request_text(prepared.body))
        self.ask.setEnabled(True)

    def _on_ask(self) -> None:
        prepared = self._prepared
        if prepared is None:
            return
        api = api_settings(self._context.settings)
        extra = [
            ("tokens in", f"{tokens(prepared.tokens)} (estimated)"),
            ("reading them, cache cold", f"{dollars(prepared.cost)} (estimated), and the summary's output"),
        ]
        if not ask_consent(self, "let the API compact this session into one signed block", prepared.body, api, extra):
            return

        def work(progress: Progress) -> ServerCompaction:
            with build_client(api) as client:
                return compact_on_server(client, prepared.wire, progress=progress)

        self.state.setText("The API is compacting…")
        self.ask.setEnabled(False)
        self.stop.setEnabled(True)
        self._job = self._context.runner.start(Op("The API is compacting", work, token=f"compact {id(self)}"))
        self._job.success(self._on_done).failure(self._on_failure).finished(self._on_finished)

    def _on_stop(self) -> None:
        if self._job is not None:
            self._job.cancel()
            self.state.setText("Stopped; nothing was kept.")

    def _on_failure(self, error: Exception) -> None:
        self.state.setText(f"✖ {error}")

    def _on_finished(self) -> None:
        self._job = None
        self.stop.setEnabled(False)
        self.ask.setEnabled(self._prepared is not None)

    def _on_done(self, found: ServerCompaction) -> None:
        self.result = found
        u = found.usage
        self.state.setText(
            f"Compacted: {tokens(u.input)} input, {tokens(u.output)} output, {tokens(u.cache_read)} cache read tokens "
            "(recorded). The block is opaque; what can be read of it stands below."
        )
        self.text.set_text(found.summary or "The API gives no readable text for this block.")
        self.save.setEnabled(True)

    def _on_save(self) -> None:
        suggested = folder_of(self._document) / suggested_name(self._document, ".json", new_id=False)
        chosen, _ = QFileDialog.getSaveFileName(self, "New request document", str(suggested), "JSON (*.json)")
        if chosen:
            self.write(Path(chosen))

    def write(self, target: Path) -> None:
        """Write the continued request as a new file."""
        prepared, result = self._prepared, self.result
        if prepared is None or result is None:
            return
        data = json.dumps(continued_request(prepared.wire, result), ensure_ascii=False, indent=1).encode() + b"\n"

        def work(progress: Progress) -> Written:
            return write_new_file(
                target, [data], operation="export", lineage={"format": "compaction block"}, progress=progress
            )

        job = self._context.runner.start(Op(f"Writing {target.name}", work))
        job.success(lambda written: self.state.setText(f"Written {written.path}")).failure(self._on_failure)
