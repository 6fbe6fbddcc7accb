from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QLabel, QToolButton, QWidget

from inspector.context import AppContext
from inspector.documents.document import Document
from inspector.views.document_page import make_view
from inspector.views.page_stack import PageStack
from inspector.views.registry import ViewSpec
from inspector.views.view_scroll import ViewScroll

SIDES = {
    "left": Qt.DockWidgetArea.LeftDockWidgetArea,
    "right": Qt.DockWidgetArea.RightDockWidgetArea,
    "bottom": Qt.DockWidgetArea.BottomDockWidgetArea,
}


class DockTitle(QWidget):
    """A dock's title with its float and close buttons, drawn with our icons in both themes."""

    def __init__(self, context: AppContext, dock: QDockWidget) -> None:
        super().__init__(dock)
        self._context = context
        self._label = QLabel(dock.windowTitle())
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._float = self._button("Undock or dock again", lambda: dock.setFloating(not dock.isFloating()))
        self._close = self._button("Hide (the View menu shows it again)", dock.close)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(10, 3, 4, 3)
        layout.setSpacing(0)
        layout.addWidget(self._label, 1)
        layout.addWidget(self._float)
        layout.addWidget(self._close)
        dock.windowTitleChanged.connect(self._label.setText)
        context.theme.changed.connect(self._retint)
        self._retint()

    def _button(self, tip: str, slot: Callable[[], object]) -> QToolButton:
        button = QToolButton()
        button.setToolTip(tip)
        button.setAccessibleName(tip)
        button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        button.setIconSize(QSize(14, 14))
        button.clicked.connect(lambda _checked=False: slot())
        return button

    def _retint(self) -> None:
        self._float.setIcon(self._context.theme.icon("float", "muted"))
        self._close.setIcon(self._context.theme.icon("close", "muted"))
        colours = self._context.theme.colours
        self.setStyleSheet(f"QLabel {{ color: {colours.text}; font-weight: 600; }} QToolButton {{ padding: 3px; }}")


class ViewDock(QDockWidget):
    """A dock that shows one view for whichever document is current; each document keeps its own widget."""

    def __init__(self, context: AppContext, spec: ViewSpec, parent: QWidget) -> None:
        super().__init__(spec.title, parent)
        self.spec = spec
        self._context = context
        self._document: Document | None = None
        self._widgets: dict[Document, QWidget] = {}
        self._frames: dict[Document, ViewScroll] = {}
        self.setObjectName(f"dock.{spec.id}")
        # Each dock makes its view in an event of its own: the tree is painted first, and no two views at once.
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self._ensure)
        self.setAccessibleName(spec.title)
        self._stack = PageStack()
        self._empty = QLabel("Open a session to see this here.")
        self._empty.setWordWrap(True)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._empty.setEnabled(False)
        self._stack.addWidget(self._empty)
        self.setWidget(self._stack)
        self._title_bar = DockTitle(context, self)
        self.setTitleBarWidget(self._title_bar)
        self.visibilityChanged.connect(self._on_visibility_changed)

    def set_document(self, document: Document | None) -> None:
        """Show the view of this document; it is made now only if the dock can be seen."""
        if self._document is not None:
            self._document.reloaded.disconnect(self._soon.start)
            self._document.diagnosis.changed.disconnect(self._retitle)
        self._document = document
        if document is not None:
            document.reloaded.connect(self._soon.start)
            document.diagnosis.changed.connect(self._retitle)
        self._retitle()
        self._ensure()

    def widget_of(self, document: Document | None) -> QWidget | None:
        """The view's widget for a document if it was made."""
        return self._widgets.get(document) if document is not None else None

    def reveal(self) -> QWidget | None:
        """Show the dock, make its view if there is a session, and give it the focus."""
        self.show()
        self.raise_()
        self._ensure(True)
        widget = self.widget_of(self._document)
        if widget is not None:
            widget.setFocus(Qt.FocusReason.ShortcutFocusReason)
        return widget

    def forget(self, document: Document) -> None:
        """Delete what was made for a closed document."""
        if document is self._document:
            self.set_document(None)
        self._widgets.pop(document, None)
        frame = self._frames.pop(document, None)
        if frame is not None:
            self._stack.removeWidget(frame)
            frame.deleteLater()

    def _retitle(self) -> None:
        badge = self.spec.badge(self._document) if self.spec.badge is not None and self._document is not None else ""
        self.setWindowTitle(f"{self.spec.title}  {badge}" if badge else self.spec.title)

    def _on_visibility_changed(self, visible: bool) -> None:
        if visible:
            self._ensure()

    def _ensure(self, force: bool = False) -> None:
        document = self._document
        if document is None or document.conversation is None:
            self._stack.setCurrentWidget(self._empty)
            return
        if document not in self._widgets:
            # Behind another tabbed dock or hidden: wait until it is looked at.
            if not force and (not self.isVisible() or self.visibleRegion().isEmpty()):
                self._stack.setCurrentWidget(self._empty)
                return
            widget = make_view(self.spec, self._context, document)
            self._widgets[document] = widget
            self._frames[document] = ViewScroll(widget)
            self._stack.addWidget(self._frames[document])
        self._stack.setCurrentWidget(self._frames[document])
