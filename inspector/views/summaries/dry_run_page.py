"""The API's own count of a context edit beside ours: the exact request is shown, and sent only when agreed to."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from compaction.progress import Progress
from compaction.strategies.inputs import strategy_input
from compaction.strategies.plan import Plan
from compaction.strategies.registry import STRATEGIES, preview
from compaction.summaries.api_client import build_client
from compaction.summaries.consent import request_text
from compaction.summaries.dry_run import CountedTokens, count_request, count_tokens
from inspector.context import AppContext
from inspector.documents.document import Document
from inspector.views.detail.long_text import LongTextView
from inspector.views.detail.pages import plain_label
from inspector.views.summaries.api_dialog import api_settings
from inspector.views.summaries.consent_dialog import ask_consent
from inspector.work.jobs import Op


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A strategy's plan, the edits it declares, and the request that asks the API about them."""

    plan: Plan
    edits: list[dict[str, Any]]
    request: dict[str, Any]


class DryRunPage(QWidget):
    """Tokens before and after an API-level strategy as the API counts them (`count_tokens`, free of charge)."""

    def __init__(self, context: AppContext, document: Document) -> None:
        super().__init__()
        self._context = context
        self._document = document
        self._prepared: _Prepared | None = None
        self.strategy = QComboBox()
        self.strategy.setAccessibleName("Strategy")
        for found in STRATEGIES.values():
            if found.name.startswith("api-"):
                self.strategy.addItem(found.title, found.name)
        self.ask = QPushButton("Ask the API …")
        self.ask.setToolTip("Sends the request below to count_tokens, after you agree to it.")
        self.ours, self.theirs = plain_label(), plain_label("The API has not been asked.")
        self.request = LongTextView()
        self.request.setAccessibleName("The exact request")
        bar = QHBoxLayout()
        bar.addWidget(QLabel("Strategy"))
        bar.addWidget(self.strategy, 1)
        bar.addWidget(self.ask)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 6, 8, 4)
        layout.addLayout(bar)
        for label in (self.ours, self.theirs):
            label.setWordWrap(True)
            layout.addWidget(label)
        layout.addWidget(self.request, 1)
        self.strategy.currentIndexChanged.connect(lambda _index: self.refresh())
        self.ask.clicked.connect(self._on_ask)
        document.reloaded.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Compute our side and the request for the chosen strategy."""
        conversation, name = self._document.conversation, self.strategy.currentData()
        self.ask.setEnabled(False)
        if conversation is None or not isinstance(name, str):
            return

        def work(_progress: Progress) -> _Prepared:
            chosen = STRATEGIES[name]
            given = strategy_input(conversation, now_ms=time.time_ns() // 1_000_000)
            plan = preview(chosen, given, chosen.settings_type())
            edits = edits_of(plan)
            return _Prepared(plan, edits, count_request(plan.request, edits))

        op = Op("Preparing the request", work, token=f"dry run {id(self)}", quiet=True)
        self._context.runner.start(op).success(self._show)

    def _show(self, prepared: _Prepared) -> None:
        self._prepared = prepared
        plan = prepared.plan
        verdict = "applies" if plan.applies else f"does not apply: {plan.reason}"
        self.ours.setText(
            f"Computed here: {plan.tokens_before:,} → {plan.tokens_after:,} tokens ({plan.method}); {verdict}"
        )
        self.theirs.setText("The API has not been asked.")
        self.request.set_text(request_text(prepared.request))
        self.ask.setEnabled(True)

    def _on_ask(self) -> None:
        prepared = self._prepared
        if prepared is None:
            return
        api = api_settings(self._context.settings)
        purpose = "count the tokens of this request before and after the edit (no charge)"
        if not ask_consent(self, purpose, prepared.request, api):
            return

        def work(progress: Progress) -> CountedTokens:
            with build_client(api) as client:
                return count_tokens(client, prepared.plan.request, prepared.edits, progress)

        self.theirs.setText("Asking…")
        op = Op("Asking the API to count", work, token=f"count {id(self)}")
        self._context.runner.start(op).success(self._on_counted).failure(lambda e: self.theirs.setText(f"✖ {e}"))

    def _on_counted(self, counted: CountedTokens) -> None:
        before = f"{counted.before:,}" if counted.before is not None else "unknown"
        self.theirs.setText(f"The API counts: {before} → {counted.after:,} tokens (its own estimate)")


def edits_of(plan: Plan) -> list[dict[str, Any]]:
    """The context-management edits that a plan declares, [] for those without."""
    declared = plan.server_edit or {}
    management = declared.get("context_management", declared)
    edits = management.get("edits") if isinstance(management, dict) else None
    return [dict(edit) for edit in edits] if isinstance(edits, list) else []
