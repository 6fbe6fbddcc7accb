from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from inspector.context import AppContext
from inspector.documents.document import Document, LoadState
from inspector.views.job_bar import describe
from inspector.views.page_stack import PageStack, PageTabs
from inspector.views.registry import VIEWS, ViewSpec
from inspector.views.view_scroll import ViewScroll
from inspector.work.errors import report_of


class DocumentPage(PageStack):
    """The tab of one document: its loading page, then its center views as inner tabs, each made when first shown."""

    view_changed = Signal(str)

    def __init__(self, context: AppContext, document: Document, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self.document = document
        self._specs = [spec for spec in VIEWS if spec.area == "center"]
        self._widgets: dict[str, QWidget] = {}
        self._holders: list[QWidget] = []
        self._layouts: list[QVBoxLayout] = []
        self._waiting = WaitingPage(context, document)
        self.views = PageTabs()
        self.views.setObjectName("view_tabs")
        self.views.setDocumentMode(True)
        self.views.setAccessibleName("Views of the session")
        for spec in self._specs:
            holder = QWidget()
            layout = QVBoxLayout(holder)
            layout.setContentsMargins(0, 0, 0, 0)
            self._holders.append(holder)
            self._layouts.append(layout)
            self.views.addTab(holder, spec.title)
            self.views.setTabToolTip(self.views.count() - 1, spec.tip)
        self.views.tabBar().setVisible(len(self._specs) > 1)
        self.views.currentChanged.connect(self._on_current_changed)
        self._waiting_frame = ViewScroll(self._waiting)
        self.addWidget(self._waiting_frame)
        self.addWidget(self.views)
        document.state_changed.connect(self._on_state_changed)
        document.reloaded.connect(self._on_state_changed)
        context.theme.changed.connect(self._retint)
        self._retint()
        self._on_state_changed()

    @property
    def current_view(self) -> str:
        """Id of the center view in front."""
        return self.current_spec.id

    @property
    def current_spec(self) -> ViewSpec:
        """The center view in front."""
        return self._specs[self.views.currentIndex()]

    def show_view(self, view_id: str) -> QWidget | None:
        """Bring a center view to the front; its widget, None while the session is not loaded."""
        index = next(number for number, spec in enumerate(self._specs) if spec.id == view_id)
        self.views.setCurrentIndex(index)
        return self._ensure(index)

    def widget_of(self, view_id: str) -> QWidget | None:
        """The widget of a center view if it was made."""
        return self._widgets.get(view_id)

    def _on_state_changed(self) -> None:
        if self.document.conversation is not None:
            self.document.diagnosis.ensure(self._context.runner)
            self._ensure(self.views.currentIndex())
            if self.currentWidget() is not self.views:
                self.setCurrentWidget(self.views)
                self._focus_view()
        else:
            self.setCurrentWidget(self._waiting_frame)
            self._waiting.refresh()

    def _focus_view(self) -> None:
        widget = self._widgets.get(self.current_view)
        if widget is not None and self.isVisible():
            widget.setFocus(Qt.FocusReason.OtherFocusReason)

    def _on_current_changed(self, index: int) -> None:
        self._ensure(index)
        self.view_changed.emit(self._specs[index].id)

    def _ensure(self, index: int) -> QWidget | None:
        if self.document.conversation is None or index < 0:
            return None
        spec = self._specs[index]
        if spec.id not in self._widgets:
            self._widgets[spec.id] = make_view(spec, self._context, self.document)
            holder = self._holders[index]
            self._layouts[index].addWidget(ViewScroll(self._widgets[spec.id]))
            holder.setFocusProxy(self._widgets[spec.id])
        return self._widgets[spec.id]

    def _retint(self) -> None:
        for index, spec in enumerate(self._specs):
            self.views.setTabIcon(index, self._context.theme.icon(spec.icon, "muted"))


def make_view(spec: ViewSpec, context: AppContext, document: Document) -> QWidget:
    """Make a view; when its code fails, a card that says so instead (one broken view must not take the window)."""
    try:
        widget = spec.create(context, document)
    except Exception as error:  # noqa: BLE001 - the border to view code: reported, and the window stays usable
        report = context.errors.report(error, f"Showing {spec.title}")
        widget = QLabel(f"{spec.title} cannot be shown.\n{report.sentence()}")
        widget.setTextFormat(Qt.TextFormat.PlainText)
        widget.setWordWrap(True)
        widget.setAlignment(Qt.AlignmentFlag.AlignCenter)
    if not widget.accessibleName():
        widget.setAccessibleName(spec.title)
    if not widget.objectName():
        widget.setObjectName(f"view.{spec.id}")
    return widget


class WaitingPage(QWidget):
    """What a tab shows before its session is there: progress and cancel, or why it could not be opened."""

    def __init__(self, context: AppContext, document: Document) -> None:
        super().__init__()
        self._context = context
        self._document = document
        self._icon = QLabel()
        self._title = QLabel()
        self._text = QLabel()
        for label in (self._title, self._text):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setWordWrap(True)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        font = self._title.font()
        font.setPointSizeF(font.pointSizeF() * 1.35)
        font.setBold(True)
        self._title.setFont(font)
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName("Progress of opening")
        self._cancel = QPushButton("Cancel")
        self._cancel.clicked.connect(document.close)
        self._again = QPushButton("Try again")
        self._again.clicked.connect(self._on_again)
        card = QFrame()
        card.setMaximumWidth(self.fontMetrics().averageCharWidth() * 80)
        layout = QVBoxLayout(card)
        layout.setSpacing(12)
        for widget in (self._icon, self._title, self._text, self._bar):
            layout.addWidget(widget)
        buttons = QHBoxLayout()
        buttons.addWidget(self._cancel)
        buttons.addWidget(self._again)
        buttons.addStretch()
        layout.addLayout(buttons)
        outer = QVBoxLayout(self)
        outer.addStretch(2)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(card, 20)
        row.addStretch(1)
        outer.addLayout(row)
        outer.addStretch(3)
        context.runner.progressed.connect(self._on_progress)
        self.refresh()

    def refresh(self) -> None:
        """Show the document's state."""
        state = self._document.state
        loading = state is LoadState.LOADING
        self._bar.setVisible(loading)
        self._cancel.setVisible(loading)
        self._again.setVisible(not loading and self._document.path is not None)
        icon, role = (
            ("open", "accent") if loading else ("error", "error") if state is LoadState.FAILED else ("info", "muted")
        )
        self._icon.setPixmap(self._context.theme.pixmap(icon, 48, role, self.devicePixelRatioF()))  # type: ignore[arg-type]
        name = self._document.title
        if loading:
            self._title.setText(f"Opening {name}")
            self._text.setText(self._document.main_path)
            self._bar.setRange(0, 0)
        elif state is LoadState.FAILED and self._document.error is not None:
            self._title.setText(f"{name} could not be opened")
            self._text.setText(report_of(self._document.error, "Opening").sentence())
        else:
            self._title.setText(f"Opening {name} was cancelled")
            self._text.setText(self._document.main_path)

    def _on_progress(self, job: object) -> None:
        loading = self._document.loading
        if job is loading and loading is not None:
            progress = loading.progress
            self._bar.setRange(0, 1000 if progress.total else 0)
            self._bar.setValue(min(1000, progress.done * 1000 // progress.total) if progress.total else 0)
            self._text.setText(describe(loading))

    def _on_again(self) -> None:
        self._document.load(self._context.runner)
        self.refresh()
