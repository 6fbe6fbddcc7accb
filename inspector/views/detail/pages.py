"""The sections of the detail pane: rendered content, JSON, raw text, links, usage."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QEvent, QPoint, Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPushButton,
    QStackedWidget,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from inspector.models.columns import alignment, is_figure
from inspector.models.flat_tree import FlatRow
from inspector.models.json_tree import JsonNode, JsonTreeModel
from inspector.rendering.parts import Part
from inspector.rendering.relations import Relation
from inspector.rendering.tones import colours_for
from inspector.rendering.usage_rows import UsageRow
from inspector.rendering.visible_text import bytes_text, for_qt, visible
from inspector.views.column_sizes import ColumnSizes
from inspector.views.detail.long_text import LongTextView
from inspector.views.detail.rich_view import RichView
from inspector.views.flat_tree_view import FlatTreeView


def plain_label(text: str = "") -> QLabel:
    """A label that shows session text as it is, never as HTML."""
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    return label


class RenderedPage(QStackedWidget):
    """The rich view, and the whole of a folded text when the person asks for it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rich = RichView()
        self.whole = LongTextView()
        self._title = plain_label()
        back = QPushButton("Back")
        back.setToolTip("Back to the rendered record (Esc)")
        back.clicked.connect(self.show_rich)
        bar = QHBoxLayout()
        bar.setContentsMargins(6, 4, 6, 4)
        bar.addWidget(back)
        bar.addWidget(self._title, 1)
        page = QWidget()
        layout = QVBoxLayout(page)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(bar)
        layout.addWidget(self.whole, 1)
        self.addWidget(self.rich)
        self.addWidget(page)
        self.rich.show_all.connect(self._on_show_all)
        escape = QAction(self)
        escape.setShortcut(QKeySequence(Qt.Key.Key_Escape))
        escape.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        escape.triggered.connect(self.show_rich)
        page.addAction(escape)

    def set_parts(self, parts: Sequence[Part]) -> None:
        """Show parts in the rich view."""
        self.rich.set_parts(parts)
        self.whole.set_text("")
        self.setCurrentIndex(0)

    def show_text(self, name: str, text: str) -> None:
        """Show one text whole."""
        lines = text.count("\n") + 1
        self._title.setText(f"{name}, whole: {bytes_text(len(text))}, {lines:,} {'line' if lines == 1 else 'lines'}")
        self.whole.set_text(text, line_numbers=lines > 1)
        self.setCurrentIndex(1)
        self.whole.setFocus()

    def show_rich(self) -> None:
        """Back to the rich view."""
        self.setCurrentIndex(0)
        self.rich.setFocus()

    def _on_show_all(self, folded: tuple[str, str]) -> None:
        self.show_text(*folded)


class JsonPage(QStackedWidget):
    """The decoded value as a tree; Enter on a long text shows it whole."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = JsonTreeModel(self)
        self.tree = FlatTreeView(self.model)
        self.tree.setAccessibleName("JSON of the selection")
        self.tree.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.tree.customContextMenuRequested.connect(self._on_menu)
        self.tree.row_activated.connect(self._on_activated)
        self.tree.horizontalHeader().resizeSection(0, self.fontMetrics().averageCharWidth() * 32)
        self.addWidget(self.tree)
        page = QWidget()
        self._path = plain_label()
        back = QPushButton("Back")
        back.clicked.connect(self._show_tree)
        bar = QHBoxLayout()
        bar.setContentsMargins(6, 4, 6, 4)
        bar.addWidget(back)
        bar.addWidget(self._path, 1)
        self.whole = LongTextView()
        layout = QVBoxLayout(page)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(bar)
        layout.addWidget(self.whole, 1)
        self.addWidget(page)
        escape = QAction(self)
        escape.setShortcut(QKeySequence(Qt.Key.Key_Escape))
        escape.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        escape.triggered.connect(self._show_tree)
        page.addAction(escape)
        self._recolour()

    def set_value(self, value: Any, name: str) -> None:
        """Show a decoded value."""
        self._show_tree()
        self.whole.set_text("")
        self.model.set_value(value, name)
        message = next((n for n, row in enumerate(self.model.rows) if row.level == 1 and row.data.name == "message"), 0)
        if message:
            self.model.set_expanded(message, True)
        if self.model.rows:
            self.tree.setCurrentIndex(self.model.index(0, 0))

    def find_text(self, needle: str, backward: bool = False) -> bool:
        """Go to the next open row whose name or value holds the text, wrapping; whether there is one."""
        wanted, rows = needle.casefold(), self.model.rows
        start = self.tree.currentIndex().row()
        step = -1 if backward else 1
        for distance in range(1, len(rows) + 1):
            number = (start + step * distance) % len(rows)
            if any(wanted in self.model.text(rows[number], column).casefold() for column in (0, 1)):
                self.tree.select_row(number)
                return True
        return False

    def changeEvent(self, event: QEvent) -> None:
        """Follow the palette."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._recolour()

    def _recolour(self) -> None:
        colours = colours_for(self.palette())
        self.model.set_colours(colours.syntax, colours.muted)

    def _show_tree(self) -> None:
        self.setCurrentIndex(0)

    def _on_activated(self, row: FlatRow) -> None:
        node: JsonNode = row.data
        if isinstance(node.value, str):
            self._path.setText(f"{visible(node.path) or node.name}: {len(node.value):,} characters")
            self.whole.set_text(node.value, line_numbers="\n" in node.value)
            self.setCurrentIndex(1)
            self.whole.setFocus()
        elif row.expandable:
            self.model.set_expanded(self.model.rows.index(row), not row.expanded)

    def _on_menu(self, point: QPoint) -> None:
        row = self.tree.current_row()
        if row is None:
            return
        node: JsonNode = row.data
        menu = QMenu(self)
        menu.addAction("Copy value", lambda: self._copy(self.model.copied(row)))
        menu.addAction("Copy as JSON", lambda: self._copy(json.dumps(node.value, ensure_ascii=False, indent=2)))
        menu.addAction("Copy path", lambda: self._copy(node.path))
        if isinstance(node.value, str):
            menu.addAction("Show the whole text", lambda: self._on_activated(row))
        if row.expandable:
            number = self.model.rows.index(row)
            menu.addAction("Open all below", lambda: self.model.expand_below(number))
        menu.exec(self.tree.viewport().mapToGlobal(point))
        menu.deleteLater()

    @staticmethod
    def _copy(text: str) -> None:
        QGuiApplication.clipboard().setText(for_qt(text))


class RawPage(QWidget):
    """The bytes of the selection as text, exactly as in the file."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.view = LongTextView()
        self._note = plain_label()
        self._note.setWordWrap(True)
        self._note.setContentsMargins(8, 4, 8, 4)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._note)
        layout.addWidget(self.view, 1)

    def set_text(self, text: str, invalid: int, left_out: int) -> None:
        """Show the text and say what in it is not as in the file."""
        notes = []
        if invalid:
            notes.append(f"▲ {invalid:,} places are not valid UTF-8 and shown as \ufffd; the file keeps its bytes.")
        if left_out:
            notes.append(f"▲ {left_out:,} more records are not shown here.")
        self._note.setText(" ".join(notes))
        self._note.setVisible(bool(notes))
        self.view.set_text(text, line_numbers="\n" in text)


_CELL_PADDING = 6


class TablePage(QTableWidget):
    """A small read-only table of texts."""

    def __init__(self, titles: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(0, len(titles), parent)
        self.setHorizontalHeaderLabels(list(titles))
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(int(self.fontMetrics().height() * 1.55))
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        # As far from the edge as the header's titles.
        self.setStyleSheet(f"QTableView::item {{ padding: 0 {_CELL_PADDING}px; }}")
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self._sizes = ColumnSizes(self, filler=len(titles) - 1, padding=_CELL_PADDING)

    def set_texts(self, rows: Sequence[Sequence[str]]) -> None:
        """Show rows of texts, columns as wide as their content where there is room, figures at the right."""
        self.setRowCount(len(rows))
        sides = [
            Qt.AlignmentFlag(alignment(bool(rows) and all(is_figure(row[column]) for row in rows)))
            for column in range(self.columnCount())
        ]
        for column, side in enumerate(sides):
            title = self.horizontalHeaderItem(column)
            if title is not None:
                title.setTextAlignment(side)
        for number, row in enumerate(rows):
            for column, text in enumerate(row):
                item = QTableWidgetItem(visible(text))
                item.setTextAlignment(sides[column])
                self.setItem(number, column, item)
        self._sizes.measure()


class LinksPage(TablePage):
    """Where one can go from the selection; Enter or a double click goes there.

    Signals:
        chosen(Relation): the person wants to go there.
    """

    chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(("Relation", "Where"), parent)
        self._relations: list[Relation] = []
        self.setAccessibleName("Links of the selection")
        self.activated.connect(lambda index, page=self: page._on_activated(index.row()))

    def set_relations(self, relations: Sequence[Relation]) -> None:
        """Show relations; those without a target are greyed."""
        self._relations = list(relations)
        self.set_texts([(relation.name, relation.text) for relation in relations])
        muted = colours_for(self.palette()).muted
        for number, relation in enumerate(relations):
            goes = relation.record >= 0 or relation.round > 0
            for column in range(2):
                item = self.item(number, column)
                if item is None:
                    continue
                if not goes:
                    item.setForeground(muted)
                elif column == 1:
                    item.setToolTip("Press Enter to go there")

    def _on_activated(self, row: int) -> None:
        relation = self._relations[row]
        if relation.record >= 0 or relation.round > 0:
            self.chosen.emit(relation)


class UsagePage(QStackedWidget):
    """Recorded figures of the response, each with its method."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.table = TablePage(("Figure", "Value", "Method", "Where it stands"))
        self.table.setAccessibleName("Usage of the response")
        empty = plain_label("No usage is recorded here: only API responses carry it.")
        empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        empty.setWordWrap(True)
        self.addWidget(self.table)
        self.addWidget(empty)

    def set_rows(self, rows: Sequence[UsageRow]) -> None:
        """Show the figures, or a sentence that there are none."""
        self.table.set_texts([(row.name, row.value, row.method, row.source) for row in rows])
        self.setCurrentIndex(0 if rows else 1)
