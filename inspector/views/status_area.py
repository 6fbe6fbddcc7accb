from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QStackedWidget, QWidget

from inspector.context import AppContext
from inspector.documents.document import Document
from inspector.views.registry import Factory, resolve


class StatusArea(QWidget):
    """The right end of the status bar: the small views of `STATUS_VIEWS`, one set for each document."""

    def __init__(self, context: AppContext, factories: Sequence[Factory | str]) -> None:
        super().__init__()
        self._context = context
        self._factories = factories
        self._document: Document | None = None
        self._made: dict[Document, QWidget] = {}
        self._stack = QStackedWidget()
        self._stack.addWidget(QWidget())
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 4, 0)
        layout.addWidget(self._stack)
        # What the bar has left over belongs between both ends, not behind this one.
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        self.setVisible(bool(factories))

    def set_document(self, document: Document | None) -> None:
        """Show the widgets of this document, made once it is loaded."""
        if self._document is not None:
            self._document.reloaded.disconnect(self._ensure)
        self._document = document
        if document is not None:
            document.reloaded.connect(self._ensure)
        self._ensure()

    def forget(self, document: Document) -> None:
        """Delete the widgets of a closed document."""
        if document is self._document:
            self.set_document(None)
        widget = self._made.pop(document, None)
        if widget is not None:
            self._stack.removeWidget(widget)
            widget.deleteLater()

    def _ensure(self) -> None:
        document = self._document
        if document is None or document.conversation is None:
            self._stack.setCurrentIndex(0)
            return
        if document not in self._made:
            row = QWidget()
            layout = QHBoxLayout(row)
            layout.setContentsMargins(0, 0, 0, 0)
            layout.addStretch(1)
            for factory in self._factories:
                layout.addWidget(resolve(factory)(self._context, document))
            self._made[document] = row
            self._stack.addWidget(row)
        self._stack.setCurrentWidget(self._made[document])
