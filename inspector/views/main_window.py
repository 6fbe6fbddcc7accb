"""The main window: tabs of sessions, docks and menus built from the registries, status bar, drag and drop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import (
    QMainWindow,
    QMenu,
    QTabBar,
    QToolBar,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from inspector.actions.registry import Action, Menu, a_tab, group_rank
from inspector.context import AppContext
from inspector.documents.document import Document, LoadState
from inspector.plain_text import plain_tip
from inspector.views.dock_area import SIDES, ViewDock
from inspector.views.dock_tabs import DockTabs
from inspector.views.document_page import DocumentPage
from inspector.views.elided_label import ElidedLabel
from inspector.views.job_bar import JobBar
from inspector.views.message_bar import MessageBar
from inspector.views.page_stack import DocumentTabBar, PageStack, PageTabs
from inspector.views.registry import STATUS_VIEWS, VIEWS, view
from inspector.views.start_page import StartPage
from inspector.views.status_area import StatusArea
from inspector.views.view_scroll import ViewScroll

if TYPE_CHECKING:
    from inspector.documents.live_documents import LiveDocuments

LAYOUT_VERSION = 1
"""Raise it when docks or toolbars change so that an old saved layout would hide them."""
_SMALL = QSize(860, 600)
"""Below this, in logical pixels, all docks begin as tabs at the right: under the tree they would leave it no rows."""
_TITLE_BAR = 40
"""Pixels left free for the frame that the window manager draws: it is not known before the window is shown."""
FOLDER_LIMIT = 50
"""Most sessions opened from one dropped folder: more is a slip of the hand."""


class MainWindow(QMainWindow):
    """One window. Implements `inspector.context.Workspace`.

    Signals:
        current_document_changed(Document | None): another tab is in front.
    """

    current_document_changed = Signal(object)
    live: LiveDocuments | None = None
    """Follows the files of the open sessions; None in pictures and in tests of the window alone."""

    def __init__(self, context: AppContext) -> None:
        super().__init__()
        self._context = context
        context.workspace = self
        self.setObjectName("main_window")
        self.setWindowTitle("Compactoscope")
        self.setAcceptDrops(True)
        self.setDockNestingEnabled(True)
        self.setDockOptions(
            QMainWindow.DockOption.AllowNestedDocks
            | QMainWindow.DockOption.AllowTabbedDocks
            | QMainWindow.DockOption.AnimatedDocks
        )
        self._pages: dict[Document, DocumentPage] = {}
        self._size_docks_once = False
        self._docks_shown = True
        self._dock_tabs = DockTabs(self)
        self._session_layout = QByteArray()
        self.message_bar = MessageBar(context)
        self.start_page = StartPage(context)
        self.start_page.path_chosen.connect(self.open_path)
        self.tabs = PageTabs()
        self.tabs.setTabBar(DocumentTabBar())
        self.tabs.setObjectName("document_tabs")
        self.tabs.setAccessibleName("Open sessions")
        self.tabs.setDocumentMode(True)
        self.tabs.setMovable(True)
        self.tabs.setElideMode(Qt.TextElideMode.ElideMiddle)
        self.tabs.currentChanged.connect(self._on_tab_changed)
        self._center = PageStack()
        self._start = ViewScroll(self.start_page)
        self._center.addWidget(self._start)
        self._center.addWidget(self.tabs)
        central = QWidget()
        layout = QVBoxLayout(central)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.message_bar)
        layout.addWidget(self._center)
        self.setCentralWidget(central)
        self.docks: dict[str, ViewDock] = {}
        self._menu_closing = False
        self._build_docks()
        self._build_actions()
        self._build_status_bar()
        context.theme.changed.connect(self._on_theme_changed)
        self._default_layout = self.saveState(LAYOUT_VERSION)
        self._on_tab_changed(-1)
        self.resize(QSize(1280, 800).boundedTo(self.screen().availableSize() - QSize(0, _TITLE_BAR)))

    # ---- documents -------------------------------------------------------------------------------------------------

    @property
    def current_document(self) -> Document | None:
        """The document of the tab in front."""
        page = self.tabs.currentWidget()
        return page.document if isinstance(page, DocumentPage) else None

    @property
    def documents(self) -> list[Document]:
        """The open documents in the order of their tabs."""
        pages = [self.tabs.widget(index) for index in range(self.tabs.count())]
        return [page.document for page in pages if isinstance(page, DocumentPage)]

    def open_path(self, path: str | Path) -> Document:
        """Open a session in a new tab, or show the tab that has it already; "-" reads standard input."""
        path = Path(path)
        absolute = path if str(path) == "-" else path.absolute()
        for document in self.documents:
            if document.path == absolute and document.parent_document is None:
                self.tabs.setCurrentWidget(self._pages[document])
                return document
        document = Document(absolute, parent=self)
        self.add_document(document)
        job = document.load(self._context.runner)
        if str(path) != "-":
            job.success(lambda _session: self._context.settings.add_recent(str(absolute)))
        return document

    def add_document(self, document: Document) -> None:
        """Show a document in a tab of its own and bring it to the front."""
        document.setParent(self)
        page = DocumentPage(self._context, document)
        page.view_changed.connect(self._on_view_changed)
        self._pages[document] = page
        index = self.tabs.addTab(page, document.title)
        self.tabs.setTabToolTip(index, plain_tip(document.main_path or document.title))
        self._add_close_button(index, document)
        document.title_changed.connect(self._on_titles_changed)
        document.state_changed.connect(self._refresh_state)
        document.reloaded.connect(self._refresh_state)
        document.undo_stack.indexChanged.connect(self._refresh_state)
        document.diagnosis.changed.connect(self._refresh_state)
        document.selection_changed.connect(self._refresh_state)
        document.load_failed.connect(
            lambda error, title=document.title: self._context.errors.report(error, f"Reading {title} again")
        )
        self.tabs.setCurrentWidget(page)
        self._center.setCurrentWidget(self.tabs)

    def close_document(self, document: Document) -> None:
        """Close a tab; its jobs are cancelled."""
        page = self._pages.pop(document, None)
        if page is None:
            return
        document.close()
        self.tabs.removeTab(self.tabs.indexOf(page))
        for dock in self.docks.values():
            dock.forget(document)
        self.status_area.forget(document)
        page.deleteLater()
        # Python frees it with its last reference, so that work which still ends does not meet a deleted object.
        document.setParent(None)
        if not self._pages:
            self._center.setCurrentWidget(self._start)
            self.start_page.refresh()
            self.start_page.setFocus()

    # ---- views -----------------------------------------------------------------------------------------------------

    def show_view(self, view_id: str) -> QWidget | None:
        """Show and focus a view of the current document; its widget, None while there is no loaded session."""
        spec = view(view_id)
        if spec.area != "center":
            return self.docks[view_id].reveal()
        page = self.tabs.currentWidget()
        if not isinstance(page, DocumentPage):
            return None
        widget = page.show_view(view_id)
        if widget is not None:
            widget.setFocus(Qt.FocusReason.ShortcutFocusReason)
        return widget

    def view_widget(self, view_id: str) -> QWidget | None:
        """The view's widget for the current document if it was made already."""
        if view_id in self.docks:
            return self.docks[view_id].widget_of(self.current_document)
        page = self.tabs.currentWidget()
        return page.widget_of(view_id) if isinstance(page, DocumentPage) else None

    def current_view(self) -> str:
        """Id of the center view in front, "" on the start page."""
        page = self.tabs.currentWidget()
        return page.current_view if isinstance(page, DocumentPage) else ""

    def tell(self, text: str, milliseconds: int = 5000) -> None:
        """Say one line in the status bar."""
        self.statusBar().showMessage(text, milliseconds)

    def window_widget(self) -> QWidget:
        """This window, as parent of dialogs."""
        return self

    # ---- layout ----------------------------------------------------------------------------------------------------

    def restore_layout(self) -> None:
        """Set geometry and docks as they were left; the default layout when there is none or it does not fit."""
        settings = self._context.settings
        self.restoreGeometry(settings.blob("geometry"))
        self._set_session_layout(settings.blob("layout"))

    def reset_layout(self) -> None:
        """The docks as in a fresh installation."""
        self._set_session_layout(QByteArray())

    def _set_session_layout(self, state: QByteArray) -> None:
        """The layout of docks for when a session is open; without one only the start page is shown."""
        if state.isEmpty() or not self.restoreState(state, LAYOUT_VERSION):
            self.restoreState(self._default_layout, LAYOUT_VERSION)
            for spec in VIEWS:
                if spec.area != "center":
                    self.docks[spec.id].setVisible(spec.shown)
            if self._is_small():
                self._gather_docks()
            self._size_docks_once = True
        self._session_layout = self.saveState(LAYOUT_VERSION)
        self._docks_shown = True
        self._update_docks()
        if self.isVisible():
            self._size_docks()

    def _is_small(self) -> bool:
        return self.width() < _SMALL.width() or self.height() < _SMALL.height()

    def _gather_docks(self) -> None:
        """All docks as tabs of one place at the right, the detail in front."""
        first = self.docks["detail"]
        others = [dock for dock in self.docks.values() if dock is not first]
        self.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, first)
        for dock in others:
            self.tabifyDockWidget(first, dock)
        first.raise_()

    def _update_docks(self) -> None:
        """Put the docks away without a session and beside a view that needs the room; they come back as they were."""
        page = self.tabs.currentWidget()
        shown = isinstance(page, DocumentPage) and not page.current_spec.wide
        if shown == self._docks_shown:
            self._dock_tabs.tend()
            return
        self._docks_shown = shown
        if shown:
            self.restoreState(self._session_layout, LAYOUT_VERSION)
            if self.isVisible():
                self._size_docks()
        else:
            self._session_layout = self.saveState(LAYOUT_VERSION)
            for dock in self.docks.values():
                dock.hide()
        self._dock_tabs.tend()

    def showEvent(self, event: QShowEvent) -> None:
        """Sizes of docks can only be set on a window that is shown."""
        super().showEvent(event)
        self._dock_tabs.tend()
        self._size_docks()

    def _size_docks(self) -> None:
        if not self._size_docks_once or not self._docks_shown:
            return
        self._size_docks_once = False
        if self._is_small():
            first = self.docks["detail"]
            first.raise_()
            self.resizeDocks([first], [self.width() // 2], Qt.Orientation.Horizontal)
            return
        for area, share in (("right", 0.33), ("left", 0.2), ("bottom", 0.36)):
            docks = [dock for dock in self.docks.values() if dock.spec.area == area and not dock.isHidden()]
            if docks:
                docks[0].raise_()
                sideways = area != "bottom"
                length = round((self.width() if sideways else self.height()) * share)
                direction = Qt.Orientation.Horizontal if sideways else Qt.Orientation.Vertical
                self.resizeDocks([docks[0]], [length], direction)

    def save_layout(self) -> None:
        """Remember geometry, docks and which sessions are open."""
        settings = self._context.settings
        settings.set_blob("geometry", self.saveGeometry())
        layout = self.saveState(LAYOUT_VERSION) if self._docks_shown else self._session_layout
        settings.set_blob("layout", layout)
        paths = [document.main_path for document in self.documents if document.path is not None]
        if paths:
            settings.set_strings("last_sessions", [path for path in paths if path != "-"])
        settings.sync()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Remember the layout, stop the work, let the window go."""
        self.save_layout()
        for document in self.documents:
            document.close()
        self._context.runner.close()
        event.accept()

    # ---- drag and drop ---------------------------------------------------------------------------------------------

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take local files and folders."""
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open what was dropped; of a folder its sessions."""
        event.acceptProposedAction()
        self.open_paths([Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()])

    def open_paths(self, paths: list[Path]) -> None:
        """Open files, and of folders the `*.jsonl` files that are sessions (not the subagents' files)."""
        for path in paths:
            if not path.is_dir():
                self.open_path(path)
                continue
            found = sorted(p for p in path.glob("*.jsonl") if not p.name.startswith("agent-"))
            for session in found[:FOLDER_LIMIT]:
                self.open_path(session)
            if not found:
                self.tell(f"There is no session in {path.name}")
            elif len(found) > FOLDER_LIMIT:
                self.tell(f"Opened the first {FOLDER_LIMIT} of {len(found)} sessions in {path.name}")

    # ---- building --------------------------------------------------------------------------------------------------

    def _build_docks(self) -> None:
        last: dict[str, ViewDock] = {}
        for spec in VIEWS:
            if spec.area == "center":
                continue
            dock = ViewDock(self._context, spec, self)
            self.docks[spec.id] = dock
            self._dock_tabs.watch(dock)
            self.addDockWidget(SIDES[spec.area], dock)
            if spec.area in last:
                self.tabifyDockWidget(last[spec.area], dock)
            last.setdefault(spec.area, dock)
            dock.setVisible(spec.shown)
        for dock in last.values():
            dock.raise_()
        self.setCorner(Qt.Corner.BottomRightCorner, Qt.DockWidgetArea.RightDockWidgetArea)

    def _build_actions(self) -> None:
        registry = self._context.actions
        for spec in VIEWS:
            registry.add(
                Action(
                    f"view.show.{spec.id}",
                    spec.title,
                    lambda context, view_id=spec.id: self._toggle_view(view_id),  # type: ignore[misc]
                    icon=spec.icon,
                    shortcut=spec.shortcut,
                    menu=Menu.VIEW,
                    group="views" if spec.area == "center" else "docks",
                    tip=spec.tip,
                    missing=a_tab,
                    checked_when=lambda context, view_id=spec.id: self._view_shown(view_id),  # type: ignore[misc]
                )
            )
        self.menus: dict[Menu, QMenu] = {}
        groups: dict[Menu, str] = {}
        for menu in Menu:
            if menu is Menu.NONE:
                continue
            self.menus[menu] = self.menuBar().addMenu(menu.value)
            self.menus[menu].setToolTipsVisible(True)
            self.menus[menu].aboutToHide.connect(self._on_menu_closing)
            actions = [action for action in registry if action.menu is menu]
            for action in sorted(actions, key=lambda a, known=actions: group_rank(a, known)):  # type: ignore[misc]
                if groups.get(menu, action.group) != action.group:
                    self.menus[menu].addSeparator()
                groups[menu] = action.group
                self.menus[menu].addAction(registry.qaction(action.id, self))
                if action.id == "file.open":
                    self._add_recent_menu(self.menus[menu])
        self.toolbar = QToolBar("Toolbar")
        self.toolbar.setObjectName("toolbar")
        self.toolbar.setMovable(False)
        self.addToolBar(self.toolbar)
        previous = None
        for action in registry:
            if action.menu is Menu.NONE:
                self.addAction(registry.qaction(action.id, self))
            if action.toolbar:
                if previous is not None and previous is not action.menu:
                    self.toolbar.addSeparator()
                previous = action.menu
                self.toolbar.addAction(registry.qaction(action.id, self))
        size = self.fontMetrics().height() + 4
        self.toolbar.setIconSize(QSize(size, size))
        escape = QShortcut(QKeySequence(Qt.Key.Key_Escape), self.message_bar)
        escape.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        escape.activated.connect(self.message_bar.dismiss)

    def _add_recent_menu(self, menu: QMenu) -> None:
        self.recent_menu = menu.addMenu("Open &recent")
        self.recent_menu.setIcon(self._context.theme.icon("recent"))
        self.recent_menu.aboutToShow.connect(self._fill_recent_menu)

    def _fill_recent_menu(self) -> None:
        self.recent_menu.clear()
        for number, path in enumerate(self._context.settings.recent_files, 1):
            name = path.replace("&", "&&")
            entry = self.recent_menu.addAction(f"&{number}  {name}" if number < 10 else name)
            entry.setEnabled(Path(path).exists())
            entry.triggered.connect(lambda _checked=False, chosen=path: self.open_path(chosen))
        self.recent_menu.addSeparator()
        clear = self.recent_menu.addAction("&Clear the list")
        clear.setEnabled(len(self._context.settings.recent_files) > 0)
        clear.triggered.connect(self._context.settings.forget_recent)

    def _build_status_bar(self) -> None:
        bar = self.statusBar()
        self._file_label = ElidedLabel(least=16)
        self._file_label.setAccessibleName("Session")
        bar.addWidget(self._file_label)
        bar.addPermanentWidget(JobBar(self._context))
        self.status_area = StatusArea(self._context, STATUS_VIEWS)
        bar.addPermanentWidget(self.status_area)

    def _add_close_button(self, index: int, document: Document) -> None:
        button = QToolButton()
        button.setAutoRaise(True)
        button.setIcon(self._context.theme.icon("close", "muted"))
        button.setToolTip("Close this session (Ctrl+W)")
        button.setAccessibleName(f"Close {document.title}")
        button.setObjectName("close_tab")
        button.setFixedSize(20, 20)
        button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        button.clicked.connect(lambda _checked=False: self.close_document(document))
        self.tabs.tabBar().setTabButton(index, QTabBar.ButtonPosition.RightSide, button)

    # ---- reactions -------------------------------------------------------------------------------------------------

    def _toggle_view(self, view_id: str) -> None:
        """A dock in front is hidden from the menu, where its entry is ticked; its key gives it the focus first."""
        dock = self.docks.get(view_id)
        in_front = dock is not None and dock.isVisible() and not dock.visibleRegion().isEmpty()
        if dock is not None and in_front and (self._menu_closing or dock.isAncestorOf(self.focusWidget() or self)):
            dock.hide()
        else:
            self.show_view(view_id)

    def _on_menu_closing(self) -> None:
        """A menu hides before it runs the entry that was chosen."""
        self._menu_closing = True
        QTimer.singleShot(0, self, self._on_menu_closed)

    def _on_menu_closed(self) -> None:
        self._menu_closing = False

    def _view_shown(self, view_id: str) -> bool:
        dock = self.docks.get(view_id)
        return not dock.isHidden() if dock is not None else self.current_view() == view_id

    def _on_view_changed(self, _view_id: str) -> None:
        self._update_docks()
        self._refresh_state()

    def _on_tab_changed(self, _index: int) -> None:
        document = self.current_document
        self._update_docks()
        for dock in self.docks.values():
            dock.set_document(document)
        self.status_area.set_document(document)
        self._on_titles_changed()
        self._refresh_state()
        self.current_document_changed.emit(document)

    def _on_titles_changed(self) -> None:
        for document, page in self._pages.items():
            self.tabs.setTabText(self.tabs.indexOf(page), document.title.replace("&", "&&"))
        current = self.current_document
        self.setWindowTitle(f"{current.title} – Compactoscope" if current is not None else "Compactoscope")

    def _refresh_state(self, _argument: object = None) -> None:
        self._file_label.setText(self._status_text())
        self._name_undo()
        self._context.actions.refresh()

    def _name_undo(self) -> None:
        """Undo and redo say what they would undo and redo; the texts come from the engine's changes."""
        document = self.current_document
        for action_id, text in (
            ("edit.undo", document.undo_stack.undoText() if document is not None else ""),
            ("edit.redo", document.undo_stack.redoText() if document is not None else ""),
        ):
            plain = text.replace("&", "&&")
            self._context.actions.qaction(action_id, self).setText(
                f"{self._context.actions[action_id].text} {plain}".strip()
            )

    def _status_text(self) -> str:
        document = self.current_document
        if document is None:
            return ""
        conversation = document.conversation
        if conversation is None:
            return {LoadState.LOADING: "Opening…", LoadState.FAILED: "Could not be opened"}.get(document.state, "")
        transcript = conversation.transcript
        damaged = f" · {len(transcript.damage):,} damaged lines" if transcript.damage else ""
        partial = " · still reading" if document.state is LoadState.LOADING else ""
        return (
            f"{document.title} · {transcript.size / 1e6:,.1f} MB · {len(transcript):,} records"
            f" · {conversation.round_count:,} API rounds{damaged}{partial}"
        )

    def _on_theme_changed(self) -> None:
        self._context.actions.retint()
        for index in range(self.tabs.count()):
            button = self.tabs.tabBar().tabButton(index, QTabBar.ButtonPosition.RightSide)
            if isinstance(button, QToolButton):
                button.setIcon(self._context.theme.icon("close", "muted"))
        if hasattr(self, "recent_menu"):
            self.recent_menu.setIcon(self._context.theme.icon("recent"))
        self._context.actions.refresh()
