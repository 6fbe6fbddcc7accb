"""The library's table of sessions beside its tree of projects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QItemSelection, QModelIndex, QPoint, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLineEdit,
    QListView,
    QMenu,
    QPushButton,
    QSplitter,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from inspector.context import AppContext
from inspector.documents.library import Library, Listing
from inspector.models.library import COLUMNS, CONTEXT, FINDINGS, LAST, TITLE, LibraryModel
from inspector.models.library_projects import ProjectModel, in_project
from inspector.views.library_cells import FindingsDelegate, SparkDelegate, TitleDelegate, soften_selection
from inspector.views.library_compare import CompareSessions

if TYPE_CHECKING:
    from compaction.catalogue.entries import SessionEntry, Totals

KINDS = ("All", "Being written now", "With findings", "With findings of severity error", "Compacted", "With errors")
"""The choices beside the filter."""

_FILTER_MILLISECONDS = 120
_HEADER = "library_columns_1"
"""Settings name of the columns' state; another number when the columns change."""
_WIDTHS = {
    "Last": 21,
    "Title": 44,
    "Project": 28,
    "Models": 22,
    "Context": 26,
    "Cost": 11,
    "Tokens": 14,
    "Findings": 18,
}
"""Column widths in average characters; 15 for the others."""


class LibrarySessions(QWidget):
    """Signals: open_wanted(path, line) when a session is to be opened (line 0: at its usual place)."""

    open_wanted = Signal(str, int)

    def __init__(self, context: AppContext, library: Library) -> None:
        super().__init__()
        self._context = context
        self._library = library
        self._now = 0.0
        self.model = LibraryModel(self)
        self.projects = ProjectModel()
        self.table = self._make_table()
        self.tree = QListView()
        self.tree.setModel(self.projects)
        self.tree.setUniformItemSizes(True)
        self.tree.setSpacing(2)
        self.tree.setAccessibleName("Projects")
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Filter by title, prompt, project, branch, model, tool or session id")
        self.filter.setClearButtonEnabled(True)
        self.filter.setAccessibleName("Filter sessions")
        self.kind = QComboBox()
        self.kind.addItems(KINDS)
        self.kind.setAccessibleName("Which sessions")
        self.summary = QLabel()
        self.summary.setTextFormat(Qt.TextFormat.PlainText)
        self.open_button = QPushButton("Open")
        self.compare_button = QPushButton("Compare")
        self._lay_out()
        self._connect()
        self._on_selected()

    def _make_table(self) -> QTableView:
        table = QTableView()
        table.setModel(self.model)
        table.setAccessibleName("Sessions")
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setShowGrid(False)
        table.setWordWrap(False)
        table.setTabKeyNavigation(False)
        table.setAlternatingRowColors(True)
        table.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        table.verticalHeader().setVisible(False)
        table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        table.verticalHeader().setDefaultSectionSize(table.fontMetrics().height() + 10)
        theme = self._context.theme
        table.setItemDelegateForColumn(TITLE, TitleDelegate(theme, table))
        table.setItemDelegateForColumn(CONTEXT, SparkDelegate(theme, table))
        table.setItemDelegateForColumn(FINDINGS, FindingsDelegate(theme, table))
        table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header = table.horizontalHeader()
        header.setSectionsMovable(True)
        header.setHighlightSections(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        character = table.fontMetrics().averageCharWidth()
        for number, column in enumerate(COLUMNS):
            table.setColumnWidth(number, character * _WIDTHS.get(column.title, 15))
            table.setColumnHidden(number, not column.shown)
        header.restoreState(self._context.settings.blob(_HEADER))
        table.setSortingEnabled(True)
        if self._context.settings.blob(_HEADER).isEmpty():
            table.sortByColumn(LAST, Qt.SortOrder.DescendingOrder)
        return table

    def _lay_out(self) -> None:
        above = QHBoxLayout()
        above.addWidget(self.filter, 1)
        above.addWidget(self.kind)
        below = QHBoxLayout()
        below.addWidget(self.summary, 1)
        below.addWidget(self.compare_button)
        below.addWidget(self.open_button)
        splitter = QSplitter()
        splitter.setChildrenCollapsible(False)
        splitter.addWidget(self.tree)
        splitter.addWidget(self.table)
        splitter.setStretchFactor(1, 1)
        splitter.setSizes([220, 960])
        layout = QVBoxLayout(self)
        layout.addLayout(above)
        layout.addWidget(splitter, 1)
        layout.addLayout(below)

    def _connect(self) -> None:
        self._filter_soon = QTimer(self)
        self._filter_soon.setSingleShot(True)
        self._filter_soon.setInterval(_FILTER_MILLISECONDS)
        self._filter_soon.timeout.connect(self.apply_filter)
        self.filter.textChanged.connect(self._filter_soon.start)
        self.kind.currentIndexChanged.connect(self.apply_filter)
        self.tree.selectionModel().currentChanged.connect(self.apply_filter)
        self.table.doubleClicked.connect(self._on_activated)
        self.table.selectionModel().selectionChanged.connect(self._on_selected)
        self.table.customContextMenuRequested.connect(self._show_menu)
        self.table.horizontalHeader().customContextMenuRequested.connect(self._show_columns)
        for key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            shortcut = QShortcut(QKeySequence(key), self.table)
            shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
            shortcut.activated.connect(self.open_selected)
        self.open_button.clicked.connect(self.open_selected)
        self.compare_button.clicked.connect(self.compare_selected)
        self._library.listed.connect(self._on_listed)
        self._context.theme.changed.connect(self._recolour)
        self._recolour()

    def _recolour(self) -> None:
        for view in (self.table, self.tree):
            soften_selection(view, self._context.theme)
        self.open_button.setIcon(self._context.theme.icon("open"))
        self.compare_button.setIcon(self._context.theme.icon("compare"))

    # ---- content ---------------------------------------------------------------------------------------------------

    def _on_listed(self, listing: Listing) -> None:
        self._now = listing.now
        if listing.entries is self.model.entries:
            self.model.set_now(listing.now)
            return
        path = self.project
        self.projects.set_entries(listing.entries)
        self.tree.setCurrentIndex(self.projects.index(self.projects.row_of(path), 0))
        self.model.set_entries(listing.entries, listing.now)
        self._on_selected()

    @property
    def project(self) -> str:
        """The chosen project's path, "" for all."""
        row = self.tree.currentIndex().row()
        return self.projects.rows[row].path if 0 <= row < len(self.projects.rows) else ""

    def apply_filter(self) -> None:
        """Show the sessions that pass the filter, the choice beside it, and the chosen project."""
        words = self.filter.text().casefold().split()
        project, kind, now = self.project, self.kind.currentIndex(), self._now
        self.model.set_filter(
            lambda entry: in_project(entry, project) and _is_of_kind(entry, kind, now) and _has_words(entry, words)
        )
        self._on_selected()

    # ---- selection -------------------------------------------------------------------------------------------------

    def selected(self) -> list[SessionEntry]:
        """The selected sessions, from the top."""
        rows = sorted({index.row() for index in self.table.selectionModel().selectedRows()})
        return [self.model.entry(row) for row in rows]

    def _on_selected(self, _new: QItemSelection | None = None, _old: QItemSelection | None = None) -> None:
        chosen = self.selected()
        self.open_button.setEnabled(bool(chosen))
        self.compare_button.setEnabled(len(chosen) > 1)
        shown = chosen or [self.model.entry(row) for row in range(self.model.rowCount())]
        what = "selected" if chosen else "shown"
        self.summary.setText(f"{len(shown):,} {what}")
        if shown:
            job = self._library.totals([entry.id for entry in shown])
            job.success(lambda totals: self._show_totals(len(shown), what, totals)).failure(self._library.failed.emit)

    def _show_totals(self, count: int, what: str, totals: Totals) -> None:
        unpriced = f", {totals.unpriced:,} responses without a known price" if totals.unpriced else ""
        self.summary.setText(
            f"{count:,} {what}: ${totals.cost_usd:,.2f}, {totals.tokens:,} tokens in {totals.responses:,} responses, "
            f"each counted once{unpriced}"
        )

    def _on_activated(self, index: QModelIndex) -> None:
        self.open_wanted.emit(self.model.entry(index.row()).path, 0)

    def open_selected(self) -> None:
        """Open every selected session in a tab."""
        for entry in self.selected():
            self.open_wanted.emit(entry.path, 0)

    def compare_selected(self) -> None:
        """Show the selected sessions side by side."""
        chosen = self.selected()
        if len(chosen) > 1:
            dialog = CompareSessions(chosen, self)
            dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            dialog.show()

    # ---- menus -----------------------------------------------------------------------------------------------------

    def _show_menu(self, point: QPoint) -> None:
        chosen = self.selected()
        if not chosen:
            return
        menu = QMenu(self)
        menu.addAction("Open", self.open_selected)
        if len(chosen) > 1:
            menu.addAction("Compare", self.compare_selected)
        menu.addSeparator()
        menu.addAction("Copy Path", lambda: _copy([entry.path for entry in chosen]))
        menu.addAction("Copy Session Id", lambda: _copy([entry.session_id for entry in chosen]))
        menu.addAction("Open Folder", lambda: _open_folder(chosen[0].path))
        menu.popup(self.table.viewport().mapToGlobal(point))
        menu.aboutToHide.connect(menu.deleteLater)

    def _show_columns(self, point: QPoint) -> None:
        menu = QMenu(self)
        for number, column in enumerate(COLUMNS):
            action = menu.addAction(column.title)
            action.setCheckable(True)
            action.setChecked(not self.table.isColumnHidden(number))
            action.setEnabled(number != TITLE)
            action.setData(number)
        menu.triggered.connect(lambda action: self.show_column(action.data(), action.isChecked()))
        menu.popup(self.table.horizontalHeader().mapToGlobal(point))
        menu.aboutToHide.connect(menu.deleteLater)

    def show_column(self, number: int, shown: bool) -> None:
        """Show or hide a column; the choice is kept."""
        self.table.setColumnHidden(number, not shown)
        self.save_layout()

    def save_layout(self) -> None:
        """Keep the columns' order, widths, visibility and the sorting."""
        self._context.settings.set_blob(_HEADER, self.table.horizontalHeader().saveState())


def _is_of_kind(entry: SessionEntry, kind: int, now: float) -> bool:
    tests = (
        True,
        entry.is_live(now),
        bool(entry.finding_count),
        bool(entry.findings and entry.findings[0]),
        entry.compactions > 0,
        entry.api_errors + entry.tool_errors > 0,
    )
    return tests[kind]


def _has_words(entry: SessionEntry, words: Sequence[str]) -> bool:
    if not words:
        return True
    places = (entry.title, entry.project, entry.branch, entry.session_id)
    text = "\n".join((*places, *entry.models, *entry.tools, *entry.finding_codes)).casefold()
    return all(word in text for word in words)


def _copy(texts: Sequence[str]) -> None:
    QGuiApplication.clipboard().setText("\n".join(texts))


def _open_folder(path: str) -> None:
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(Path(path).parent)))
