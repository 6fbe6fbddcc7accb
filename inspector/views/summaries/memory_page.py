"""The session's memory: shown, brought up to date offline or by a model, kept in our own data folder."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from compaction.conversation import Conversation
from compaction.progress import Progress
from compaction.strategies.inputs import strategy_input
from compaction.strategies.summariser import OfflineSummariser, Summariser
from compaction.summaries.session_memory import (
    SessionMemory,
    extract_memory,
    find_memory,
    session_id_of,
    wait_for_extraction,
)
from inspector.context import AppContext
from inspector.documents.document import Document
from inspector.views.detail.long_text import LongTextView
from inspector.views.detail.pages import plain_label
from inspector.work.jobs import Op


class MemoryPage(QWidget):
    """What a session-memory compaction would use as its summary (compaction.md §8)."""

    def __init__(self, context: AppContext, document: Document) -> None:
        super().__init__()
        self._context = context
        self._document = document
        self.update_button = QPushButton("Bring up to date")
        self.update_button.setToolTip("Extracts what is new since the last time; offline, nothing leaves the machine.")
        self.state = plain_label()
        self.state.setWordWrap(True)
        self.text = LongTextView()
        self.text.setAccessibleName("Session memory")
        bar = QHBoxLayout()
        bar.setContentsMargins(8, 6, 8, 4)
        bar.addWidget(self.state, 1)
        bar.addWidget(self.update_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(bar)
        layout.addWidget(self.text, 1)
        self.update_button.clicked.connect(self._on_update)
        document.reloaded.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Read the kept memory again."""
        self._start("Reading the session memory", lambda c, _s: find_memory(c), OfflineSummariser())

    def _on_update(self) -> None:
        def work(conversation: Conversation, summariser: Summariser) -> SessionMemory | None:
            wait_for_extraction(session_id_of(conversation))
            given = strategy_input(conversation, now_ms=time.time_ns() // 1_000_000, summariser=summariser)
            return extract_memory(given.view, summariser)

        self._start("Extracting the session memory", work, OfflineSummariser())

    def _start(
        self, title: str, work: Callable[[Conversation, Summariser], SessionMemory | None], summariser: Summariser
    ) -> None:
        conversation = self._document.conversation
        if conversation is None:
            return

        def body(_progress: Progress) -> SessionMemory | None:
            return work(conversation, summariser)

        self._context.runner.start(Op(title, body, token=f"memory {id(self)}", quiet=True)).success(self._show)

    def _show(self, memory: SessionMemory | None) -> None:
        if memory is None:
            self.state.setText("This session has no memory yet. It is the summary that session-memory compaction uses.")
            self.text.set_text("")
            return
        covered = f", covers up to record {memory.last_summarised_uuid[:8]}…" if memory.last_summarised_uuid else ""
        self.state.setText(f"{memory.source}{covered}: {memory.path}")
        self.text.set_text(memory.text)
