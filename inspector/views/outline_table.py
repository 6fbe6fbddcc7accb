from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QByteArray, QEvent, QItemSelectionModel, QModelIndex, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QKeyEvent, QKeySequence, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QMenu, QTableView, QWidget

from inspector.models.outline import TITLES, Column, OutlineModel
from inspector.theme import Theme
from inspector.views.outline_delegate import OutlineDelegate

PREVIEW_CHARACTERS = 16
"""Room of the preview below which other columns step aside."""
COMFORTABLE_CHARACTERS = 52
"""Room of the preview from which names and flags get more than they have at least."""


class OutlineTable(QTableView):
    """The table under the tree: a tree's keys and mouse on flat rows.

    Signals:
        row_chosen(int): the current row changed (−1 none).
        typed(str): a letter was typed: the find bar takes it.
        menu_wanted(QPoint): global position for the context menu.
        columns_chosen(): a person resized, moved, hid or showed a column.
        copy_wanted(): Ctrl+C.
        columns_ready(): the columns exist and have their default widths.
    """

    row_chosen = Signal(int)
    typed = Signal(str)
    menu_wanted = Signal(object)
    columns_ready = Signal()
    columns_chosen = Signal()
    copy_wanted = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Tree of the session")
        self._fits_columns = True
        self._fitting = False
        self._widths: dict[Column, int] = {}
        self.setObjectName("outline")
        self.delegate = OutlineDelegate(theme, self)
        self.delegate.set_font(self.font())
        self.setItemDelegate(self.delegate)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setMouseTracking(True)
        self.setTabKeyNavigation(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setCornerButtonEnabled(False)
        vertical = self.verticalHeader()
        vertical.setVisible(False)
        vertical.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        vertical.setMinimumSectionSize(4)
        vertical.setDefaultSectionSize(self.delegate.row_height())
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionsMovable(True)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setAccessibleName("Columns")
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header.sectionResized.connect(self._on_section_resized)
        header.sectionMoved.connect(self._on_columns_chosen)
        header.customContextMenuRequested.connect(
            lambda place: self.columns_menu().popup(self.horizontalHeader().mapToGlobal(place))
        )
        self.setWhatsThis(
            "One row for each epoch, API round, message and block. Right opens a row, Left closes it or goes to the "
            "row above, * opens all below. → and ← with the same number are a tool_use and its tool_result."
        )

    def outline(self) -> OutlineModel | None:
        """The model, when there is one."""
        model = self.model()
        return model if isinstance(model, OutlineModel) else None

    def set_outline(self, model: OutlineModel) -> None:
        """Show a model; the current row is told through `row_chosen`."""
        first = self.model() is None
        self.setModel(model)
        self.selectionModel().currentRowChanged.connect(self._on_current)
        if first:
            self._size_columns()
            self._fit_columns()
            self.columns_ready.emit()

    def select_row(self, row: int, *, center: bool = True) -> None:
        """Make a row the only selected and current one and bring it into view."""
        model = self.outline()
        if model is None or not 0 <= row < model.rowCount():
            return
        index = model.index(row, 0)
        top, bottom = self.rowAt(0), self.rowAt(self.viewport().height() - 1)
        inside = top <= row and (bottom < 0 or row < bottom)
        # Column 0 is kept in view: QTableView would scroll sideways to show the whole cell.
        left = self.horizontalScrollBar().value()
        # Not setCurrentIndex: while Ctrl is held for a shortcut it would add to the selection.
        flags = QItemSelectionModel.SelectionFlag
        self.selectionModel().setCurrentIndex(index, flags.ClearAndSelect | flags.Rows)
        if not inside and center:
            self.scrollTo(index, QAbstractItemView.ScrollHint.PositionAtCenter)
        self.horizontalScrollBar().setValue(left)

    def restore_columns(self, state: QByteArray) -> None:
        """Set the columns as a person left them; state of another version changes nothing."""
        self._fits_columns = not self.horizontalHeader().restoreState(state)

    def _choose_column(self, column: Column, shown: bool) -> None:
        self.setColumnHidden(column, not shown)
        self._on_columns_chosen()

    def _on_section_resized(self, column: int, _old: int, _new: int) -> None:
        # The preview stretches with the window, and columns step aside by themselves: neither is a choice.
        dragged = QGuiApplication.mouseButtons() & Qt.MouseButton.LeftButton
        if dragged and column != Column.PREVIEW and not self._fitting:
            self._on_columns_chosen()

    def _on_columns_chosen(self) -> None:
        self._fits_columns = False
        self.columns_chosen.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The preview keeps its room in a narrow window, names get more in a wide one, until a person chose columns."""
        super().resizeEvent(event)
        if self._fits_columns and self.model() is not None:
            self._fit_columns()

    def _fit_columns(self) -> None:
        header = self.horizontalHeader()
        needed = sum(self._widths.get(column, 0) for column in (Column.WHAT, Column.TOKENS, Column.FLAGS))
        room = self.viewport().width() - needed - header.fontMetrics().horizontalAdvance("0") * PREVIEW_CHARACTERS
        for column in (Column.TIME, Column.SHARE):
            fits = room >= self._widths.get(column, 0)
            if self.isColumnHidden(column) == fits:
                self._fitting = True
                self.setColumnHidden(column, not fits)
                self._fitting = False
            room -= self._widths.get(column, 0) if fits else 0
        # A quarter of what is left over goes to the names and one to the flags, up to twice what they have at least.
        room -= header.fontMetrics().horizontalAdvance("0") * (COMFORTABLE_CHARACTERS - PREVIEW_CHARACTERS)
        self._fitting = True
        for column in (Column.WHAT, Column.FLAGS):
            least = self._widths.get(column, 0)
            header.resizeSection(column, least + max(0, min(least, room // 4)))
        self._fitting = False

    def columns_menu(self) -> QMenu:
        """Which columns are shown; the first one always is."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for column in list(Column)[1:]:
            entry = menu.addAction(TITLES[column])
            entry.setCheckable(True)
            entry.setChecked(not self.isColumnHidden(column))
            entry.toggled.connect(lambda shown, column=column: self._choose_column(column, shown))
        return menu

    def selected_rows(self) -> npt.NDArray[np.int64]:
        """The selected rows from top to bottom, read from ranges (never `selectedRows`: quadratic)."""
        areas = self.selectionModel().selection().toList() if self.selectionModel() is not None else []
        spans = [np.arange(area.top(), area.bottom() + 1) for area in areas]
        return np.unique(np.concatenate(spans)) if spans else np.zeros(0, np.int64)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows as in a tree, Home and End over all rows, Space and Enter toggle, letters go to the find bar."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy_wanted.emit()
            event.accept()
            return
        model = self.outline()
        row = self.currentIndex().row()
        plain = not event.modifiers() & ~(Qt.KeyboardModifier.KeypadModifier | Qt.KeyboardModifier.ShiftModifier)
        if model is None or not plain or not model.rowCount():
            super().keyPressEvent(event)
            return
        if self._tree_key(model, row, event):
            event.accept()
            return
        text = event.text()
        if text and text.isprintable() and not text.isspace():
            self.typed.emit(text)
            event.accept()
            return
        super().keyPressEvent(event)

    def _tree_key(self, model: OutlineModel, row: int, event: QKeyEvent) -> bool:
        key = event.key()
        if key == Qt.Key.Key_Home:
            self.select_row(0, center=False)
            self.scrollToTop()
        elif key == Qt.Key.Key_End:
            self.select_row(model.rowCount() - 1, center=False)
            self.scrollToBottom()
        elif row < 0:
            return False
        elif key in (Qt.Key.Key_Right, Qt.Key.Key_Plus):
            self._go_right(model, row, key == Qt.Key.Key_Right)
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Minus):
            self._go_left(model, row, key == Qt.Key.Key_Left)
        elif key == Qt.Key.Key_Asterisk:
            model.expand_below(row)
        elif key in (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            model.toggle(row)
        elif key == Qt.Key.Key_Backspace:
            self.select_row(model.parent_row(row))
        else:
            return False
        return True

    def _go_right(self, model: OutlineModel, row: int, moves: bool) -> None:
        if model.can_expand(row) and not model.is_expanded(row):
            model.expand(row)
        elif moves and model.is_expanded(row) and model.end_of(row) > row + 1:
            self.select_row(row + 1)

    def _go_left(self, model: OutlineModel, row: int, moves: bool) -> None:
        if model.is_expanded(row):
            model.collapse(row)
        elif moves:
            self.select_row(model.parent_row(row))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A click on the branch arrow opens or closes; a click elsewhere selects."""
        model = self.outline()
        index = self.indexAt(event.position().toPoint())
        if model is not None and index.isValid() and event.button() is Qt.MouseButton.LeftButton:
            cell = self.visualRect(index)
            if index.column() == Column.WHAT and model.can_expand(index.row()):
                arrow = self.delegate.arrow_rect(cell, model.depth(index.row()))
                if arrow.contains(event.position().toPoint()):
                    model.toggle(index.row())
                    event.accept()
                    return
        super().mousePressEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Opens or closes the row."""
        model = self.outline()
        index = self.indexAt(event.position().toPoint())
        if model is not None and index.isValid():
            model.toggle(index.row())

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """By mouse at the pointer, by key at the current row."""
        position = event.globalPos()
        if event.reason() is QContextMenuEvent.Reason.Keyboard:
            cell = self.visualRect(self.currentIndex())
            position = self.viewport().mapToGlobal(cell.bottomLeft())
        self.menu_wanted.emit(position)

    def changeEvent(self, event: QEvent) -> None:
        """Rows follow the font."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.delegate.set_font(self.font())
            self.verticalHeader().setDefaultSectionSize(self.delegate.row_height())

    def _on_current(self, current: QModelIndex, _previous: QModelIndex) -> None:
        self.viewport().update()
        self.row_chosen.emit(current.row() if current.isValid() else -1)

    def _size_columns(self) -> None:
        unit = self.fontMetrics().horizontalAdvance("0")
        header = self.horizontalHeader()
        widths = {Column.WHAT: 27, Column.TOKENS: 10, Column.SHARE: 8, Column.TIME: 9, Column.FLAGS: 17}
        for column, characters in widths.items():
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Interactive)
            header.resizeSection(column, unit * characters)
            self._widths[column] = unit * characters
        header.setSectionResizeMode(Column.PREVIEW, QHeaderView.ResizeMode.Stretch)
        header.setMinimumSectionSize(unit * 6)
