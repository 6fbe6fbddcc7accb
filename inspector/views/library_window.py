"""The library's own window: all sessions, search over them, usage over days and projects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QHideEvent, QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import QFileDialog, QLabel, QMainWindow, QTabWidget, QToolBar, QVBoxLayout, QWidget

from inspector.context import AppContext
from inspector.documents.library import Library, Listing
from inspector.views.job_bar import JobBar
from inspector.views.library_search import LibrarySearch
from inspector.views.library_sessions import LibrarySessions
from inspector.views.library_settings import LibrarySettingsDialog

if TYPE_CHECKING:
    from compaction.catalogue.indexer import IndexReport
    from inspector.documents.document import Document


class LibraryWindow(QMainWindow):
    """Sessions, search and usage in tabs; looks at the folders while it is open."""

    def __init__(self, context: AppContext) -> None:
        # A window of its own that goes when the main window goes.
        super().__init__(context.workspace.window_widget() if context.workspace is not None else None)
        self.setWindowFlag(Qt.WindowType.Window)
        self._context = context
        self.setObjectName("library_window")
        self.setWindowTitle("Library – Compactoscope")
        self.library = Library(context.runner, self)
        self.sessions = LibrarySessions(context, self.library)
        self.search = LibrarySearch(context, self.library)
        self.usage: QWidget | None = None
        self._usage_place = QWidget()
        QVBoxLayout(self._usage_place).setContentsMargins(0, 0, 0, 0)
        self.tabs = QTabWidget()
        self.tabs.setAccessibleName("Library")
        self.tabs.setDocumentMode(True)
        self.tabs.addTab(self.sessions, context.theme.icon("library"), "Sessions")
        self.tabs.addTab(self.search, context.theme.icon("find"), "Search")
        self.tabs.addTab(self._usage_place, context.theme.icon("usage"), "Usage")
        self.tabs.currentChanged.connect(self._on_tab)
        self.setCentralWidget(self.tabs)
        self._build_bars()
        self.sessions.open_wanted.connect(self.open_at)
        self.search.open_wanted.connect(self.open_at)
        self.library.listed.connect(self._on_listed)
        self.library.refreshed.connect(self._on_refreshed)
        self.library.failed.connect(self._on_failed)
        application = QCoreApplication.instance()
        if application is not None:
            application.aboutToQuit.connect(self.library.close)
        self.resize(1180, 720)
        self.restoreGeometry(context.settings.blob("library_geometry"))

    def _build_bars(self) -> None:
        bar = QToolBar("Library")
        bar.setObjectName("library_toolbar")
        bar.setMovable(False)
        bar.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        refresh = bar.addAction(self._context.theme.icon("reload"), "Refresh")
        refresh.setShortcut(QKeySequence(QKeySequence.StandardKey.Refresh))
        refresh.setToolTip("Look at the folders now (F5)")
        refresh.triggered.connect(self.library.refresh)
        folder = bar.addAction(self._context.theme.icon("folder"), "Add a folder…")
        folder.setToolTip("Index a folder besides the client's own")
        folder.triggered.connect(self._choose_folder)
        settings = bar.addAction(self._context.theme.icon("settings"), "Settings…")
        settings.setToolTip("Where the catalogue is, and which folders it looks at")
        settings.triggered.connect(self._ask_settings)
        self.addToolBar(bar)
        self.notice = QLabel()
        self.notice.setTextFormat(Qt.TextFormat.PlainText)
        self.notice.setWordWrap(True)
        self.statusBar().addWidget(self.notice, 1)
        self.statusBar().addPermanentWidget(JobBar(self._context, self))
        QShortcut(QKeySequence(QKeySequence.StandardKey.Close), self).activated.connect(self.close)
        QShortcut(QKeySequence(QKeySequence.StandardKey.HelpContents), self).activated.connect(self._help)
        QShortcut(QKeySequence(QKeySequence.StandardKey.Find), self).activated.connect(self.focus_filter)

    def _help(self) -> None:
        from inspector.views.help_window import HelpWindow

        HelpWindow.open(self._context, "library")

    def focus_filter(self) -> None:
        """Put the cursor into the filter of the tab in front."""
        (self.search.query if self.tabs.currentWidget() is self.search else self.sessions.filter).setFocus()

    def show_search(self) -> None:
        """Bring the search to the front, ready to type."""
        self.tabs.setCurrentWidget(self.search)
        self.search.query.setFocus()
        self.search.query.selectAll()

    def open_at(self, path: str, line: int) -> None:
        """Open a session in the main window; with a line (1-based), select the record there once it is read."""
        workspace = self._context.workspace
        if workspace is None:
            return
        document = workspace.open_path(path)
        if line:
            _select_line(document, line)
        window = workspace.window_widget()
        window.raise_()
        window.activateWindow()

    def _choose_folder(self) -> None:
        name = QFileDialog.getExistingDirectory(self, "Index a folder")
        if name:
            self.add_folder(name)

    def _ask_settings(self) -> None:
        dialog = LibrarySettingsDialog(self.library.stored_settings, self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.accepted.connect(lambda: self.library.change_settings(dialog.settings()))
        dialog.open()

    def add_folder(self, name: str | Path) -> None:
        """Index a folder from now on."""
        self.library.add_folder(Path(name))

    def _on_tab(self, number: int) -> None:
        if self.tabs.widget(number) is self._usage_place and self.usage is None:
            # Here, since pyqtgraph takes a third of a second.
            from inspector.views.charts.usage_chart import UsageChart

            self.usage = UsageChart(self._context, self.library)
            layout = self._usage_place.layout()
            if layout is not None:
                layout.addWidget(self.usage)

    def _on_listed(self, listing: Listing) -> None:
        self.notice.setText(listing.notice)

    def _on_refreshed(self, report: IndexReport) -> None:
        changes = [(report.indexed, "indexed"), (report.removed, "removed"), (report.renamed, "renamed")]
        parts = [f"{count:,} {what}" for count, what in changes if count]
        if parts:
            self.statusBar().showMessage(", ".join(parts), 6000)
        if report.problems:
            rest = f" (and {len(report.problems) - 1:,} more)" if len(report.problems) > 1 else ""
            self.notice.setText(report.problems[0] + rest)

    def _on_failed(self, error: Exception) -> None:
        # Repeated looks would repeat the message; "Refresh" tries again.
        self.library.stop()
        self.notice.setText(str(error))

    def showEvent(self, event: QShowEvent) -> None:
        """Look at the folders while somebody looks at the window."""
        super().showEvent(event)
        self.library.start()

    def hideEvent(self, event: QHideEvent) -> None:
        """Keep the layout and stop looking; what an unfinished index stored stays."""
        self._context.settings.set_blob("library_geometry", self.saveGeometry())
        self.sessions.save_layout()
        self.library.stop()
        super().hideEvent(event)


def _select_line(document: Document, line: int) -> None:
    """Select the record on a line, now or when the session is read."""

    def select() -> None:
        conversation = document.conversation
        if conversation is None:
            return
        lines = conversation.transcript.line
        record = int(lines.searchsorted(line))
        if record < len(lines) and lines[record] == line:
            document.reloaded.disconnect(select)
            document.select_record(record)

    document.reloaded.connect(select)
    select()


def show_library(context: AppContext) -> LibraryWindow:
    """The library's window of a main window, made on first use and brought to the front."""
    owner = context.workspace.window_widget() if context.workspace is not None else None
    window = owner.findChild(LibraryWindow) if owner is not None else None
    if window is None:
        window = LibraryWindow(context)
    window.show()
    window.raise_()
    window.activateWindow()
    return window
