"""The "Summaries" view: recorded and fresh summaries with their audit, the session memory, the API's own count."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from inspector.context import AppContext
from inspector.documents.document import Document
from inspector.views.page_stack import PageTabs
from inspector.views.summaries.api_dialog import ApiDialog
from inspector.views.summaries.audit_page import AuditPage
from inspector.views.summaries.dry_run_page import DryRunPage
from inspector.views.summaries.memory_page import MemoryPage
from inspector.views.summaries.server_page import ServerPage


class SummariesView(QWidget):
    """Four pages about one document's summaries."""

    def __init__(self, context: AppContext, document: Document) -> None:
        super().__init__()
        self._context = context
        self.pages = PageTabs()
        self.pages.setAccessibleName("Summaries")
        self.audit = AuditPage(context, document)
        self.memory = MemoryPage(context, document)
        self.dry_run = DryRunPage(context, document)
        self.pages.addTab(self.audit, "Summary and &sources")
        self.pages.addTab(self.memory, "Session &memory")
        self.pages.addTab(self.dry_run, "What the &API counts")
        self.server = ServerPage(context, document)
        self.pages.addTab(self.server, "Compaction &by the API")
        settings = QPushButton("API settings…")
        settings.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        settings.clicked.connect(self._on_settings)
        corner = QWidget()
        row = QHBoxLayout(corner)
        # The bar is no higher than a tab: the button gets less height, and the gap at the right of those below.
        settings.setStyleSheet("QPushButton { padding: 1px 14px; }")
        row.setContentsMargins(0, 2, 8, 3)
        row.addWidget(settings)
        self.pages.setCornerWidget(corner)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.pages)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Pass the focus on; a focus proxy would take the other controls out of the Tab order (Qt 6.11)."""
        self.pages.setFocus(event.reason())

    def _on_settings(self) -> None:
        ApiDialog(self._context.settings, self._context.runner, self).exec()
