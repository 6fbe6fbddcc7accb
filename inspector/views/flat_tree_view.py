"""A table view that shows a `FlatTreeModel` as a tree: arrows, indentation, keys."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QGuiApplication,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPalette,
    QPolygonF,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolTip,
    QWidget,
)

from inspector.models.flat_tree import EXPANDED_ROLE, LEVEL_ROLE, FlatRow, FlatTreeModel, Index
from inspector.plain_text import plain_tip
from inspector.rendering.tones import is_dark
from inspector.rendering.visible_text import for_qt
from inspector.theme import DARK, LIGHT
from inspector.views.whole_rows_table import WholeRowsTable

CELL_PADDING = 4
"""Pixels between a cell's edge and its content beyond the style's own: as far from it as the header's titles."""


def _step(option: QStyleOptionViewItem) -> int:
    """Width of one level of indentation."""
    return int(option.fontMetrics.height() * 1.1)


def _left(option: QStyleOptionViewItem, index: Index) -> int:
    """Where a cell's content begins: behind indentation and arrow, in the other columns behind a gap."""
    return (int(index.data(LEVEL_ROLE) or 0) + 1) * _step(option) if index.column() == 0 else CELL_PADDING


def _draw_arrow(painter: QPainter, rect: QRectF, expanded: bool, colour: QColor) -> None:
    """A triangle to the right, or down when the row is open; style sheets take Fusion's own branch arrow away."""
    size = rect.width() * 0.22
    middle = rect.center()
    if expanded:
        corners = [QPointF(-size, -size / 2), QPointF(size, -size / 2), QPointF(0, size * 0.8)]
    else:
        corners = [QPointF(-size / 2, -size), QPointF(-size / 2, size), QPointF(size * 0.8, 0)]
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawPolygon(QPolygonF([middle + corner for corner in corners]))
    painter.restore()


class BranchDelegate(QStyledItemDelegate):
    """Indents the first column and draws the arrow of a row that can be opened."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:
        """Cut texts at the end; rows are one line high."""
        super().initStyleOption(option, index)
        option.textElideMode = Qt.TextElideMode.ElideRight

    def helpEvent(self, event: QHelpEvent, view: QAbstractItemView, option: QStyleOptionViewItem, index: Index) -> bool:
        """The whole text of a cell that is cut, where the model has no tool tip of its own."""
        text = str(index.data() or "")
        if event.type() != QEvent.Type.ToolTip or not text or index.data(Qt.ItemDataRole.ToolTipRole) is not None:
            return super().helpEvent(event, view, option, index)
        self.initStyleOption(option, index)
        margin = view.style().pixelMetric(QStyle.PixelMetric.PM_FocusFrameHMargin, None, view) + 1
        room = option.rect.width() - _left(option, index) - CELL_PADDING - 2 * margin
        cut = option.fontMetrics.horizontalAdvance(text) > room
        QToolTip.showText(event.globalPos(), plain_tip(text) if cut else "", view)
        return True

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw the background over the whole cell, then arrow and text."""
        step = _step(option)
        level = int(index.data(LEVEL_ROLE) or 0)
        background = QStyleOptionViewItem(option)
        self.initStyleOption(background, index)
        widget = option.widget
        style = widget.style()
        style.drawPrimitive(QStyle.PrimitiveElement.PE_PanelItemViewItem, background, painter, widget)
        expanded = index.data(EXPANDED_ROLE)
        if expanded is not None and index.column() == 0:
            left = option.rect.left() + level * step
            selected = bool(option.state & QStyle.StateFlag.State_Selected)
            role = QPalette.ColorRole.HighlightedText if selected else QPalette.ColorRole.Text
            _draw_arrow(
                painter,
                QRectF(left, option.rect.top(), step, option.rect.height()),
                bool(expanded),
                option.palette.color(role),
            )
        inner = QStyleOptionViewItem(option)
        inner.rect = option.rect.adjusted(_left(option, index), 0, -CELL_PADDING, 0)
        # Fusion's own frame of the current cell lies over the text and washes it out.
        focused = bool(inner.state & QStyle.StateFlag.State_HasFocus)
        inner.state &= ~QStyle.StateFlag.State_HasFocus
        super().paint(painter, inner, index)
        if focused:
            painter.setPen(QColor((DARK if is_dark(option.palette) else LIGHT).accent))
            painter.drawRect(option.rect.adjusted(0, 0, -1, -1))


class FlatTreeView(WholeRowsTable):
    """Rows of a `FlatTreeModel`; Left and Right close and open, `*` opens all below, Enter activates.

    Signals:
        row_activated(FlatRow): Enter or a double click on a row.
        row_selected(FlatRow or None): the current row changed.
    """

    row_activated = Signal(object)
    row_selected = Signal(object)

    def __init__(self, model: FlatTreeModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self.setModel(model)
        self._delegate = BranchDelegate(self)
        self.setItemDelegate(self._delegate)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultSectionSize(int(self.fontMetrics().height() * 1.45))
        header = self.horizontalHeader()
        header.setStretchLastSection(True)
        header.setHighlightSections(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self._tint_selection()
        self.selectionModel().currentRowChanged.connect(self._on_current)
        model.modelReset.connect(self._on_reset)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the current row in view: what stands below may need a line more for it."""
        current, before = self.visualRect(self.currentIndex()), event.oldSize().height()
        super().resizeEvent(event)
        if self.currentIndex().isValid() and event.size().height() < current.bottom() < before:
            self.scrollTo(self.currentIndex(), QAbstractItemView.ScrollHint.EnsureVisible)

    def changeEvent(self, event: QEvent) -> None:
        """Keep the selection's colours with the palette."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._tint_selection()

    def _tint_selection(self) -> None:
        """Selected rows keep their text colours on a light tint, as in the session's tree."""
        palette = self.palette()
        colours = DARK if is_dark(palette) else LIGHT
        wanted = (
            (QPalette.ColorGroup.Active, colours.selected),
            (QPalette.ColorGroup.Inactive, colours.selected_idle),
        )
        if palette.color(wanted[0][0], QPalette.ColorRole.Highlight) == QColor(wanted[0][1]):
            return
        for group, background in wanted:
            palette.setColor(group, QPalette.ColorRole.Highlight, QColor(background))
            palette.setColor(group, QPalette.ColorRole.HighlightedText, palette.color(QPalette.ColorRole.Text))
        self.setPalette(palette)

    @property
    def tree_model(self) -> FlatTreeModel:
        """The model given."""
        return self._model

    def current_row(self) -> FlatRow | None:
        """The row with the focus."""
        return self._model.row_at(self.currentIndex())

    def select_row(self, number: int) -> None:
        """Make a row the current one and scroll to it."""
        index = self._model.index(number, 0)
        self.setCurrentIndex(index)
        self.scrollTo(index, QAbstractItemView.ScrollHint.EnsureVisible)

    def toggle(self, number: int) -> None:
        """Open a closed row, close an open one."""
        self._model.set_expanded(number, not self._model.rows[number].expanded)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """The keys of a tree."""
        number = self.currentIndex().row()
        row = self.current_row()
        if row is None:
            super().keyPressEvent(event)
            return
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(for_qt(self._model.copied(row)))
            event.accept()
            return
        match event.key():
            case Qt.Key.Key_Right if row.expandable and not row.expanded:
                self._model.set_expanded(number, True)
            case Qt.Key.Key_Right if row.expandable and number + 1 < len(self._model.rows):
                self.select_row(number + 1)
            case Qt.Key.Key_Left if row.expanded:
                self._model.set_expanded(number, False)
            case Qt.Key.Key_Left if row.level:
                self.select_row(self._model.parent_of(number))
            case Qt.Key.Key_Asterisk:
                self._model.expand_below(number)
            case Qt.Key.Key_Return | Qt.Key.Key_Enter | Qt.Key.Key_Space:
                self.row_activated.emit(row)
            case _:
                super().keyPressEvent(event)
                return
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A click on the arrow opens or closes the row."""
        index = self.indexAt(event.position().toPoint())
        super().mousePressEvent(event)
        if (
            index.isValid()
            and event.button() == Qt.MouseButton.LeftButton
            and self._on_arrow(index, event.position().toPoint())
        ):
            self.toggle(index.row())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """A double click activates the row."""
        index = self.indexAt(event.position().toPoint())
        row = self._model.row_at(index)
        if row is not None and not self._on_arrow(index, event.position().toPoint()):
            self.row_activated.emit(row)

    def _on_arrow(self, index: Index, point: QPoint) -> bool:
        if index.column() or index.data(EXPANDED_ROLE) is None:
            return False
        option = QStyleOptionViewItem()
        self.initViewItemOption(option)
        left = self.columnViewportPosition(0) + int(index.data(LEVEL_ROLE)) * _step(option)
        return left <= point.x() < left + _step(option)

    def _on_current(self, current: Index, _previous: Index) -> None:
        self.row_selected.emit(self._model.row_at(current))

    def _on_reset(self) -> None:
        self.row_selected.emit(None)
