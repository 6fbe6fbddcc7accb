from __future__ import annotations

from typing import cast

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QTableView

from inspector.models.outline import Column, OutlineModel
from inspector.models.outline_cells import JOINT, RowCells, pair_label
from inspector.theme import Theme

Index = QModelIndex | QPersistentModelIndex

# As plain integers: the operators of Python's enumerations would be most of the work of a cell.
_SELECTED = QStyle.StateFlag.State_Selected.value
_ACTIVE = QStyle.StateFlag.State_Active.value
_HOVERED = QStyle.StateFlag.State_MouseOver.value
_LEFT = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
_RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
_MIDDLE = int(Qt.AlignmentFlag.AlignVCenter)
_CENTER = int(Qt.AlignmentFlag.AlignCenter)


class OutlineDelegate(QStyledItemDelegate):
    """Draws the tree's cells: indent, branch arrow, band of the API round, icon, chips, the share's bar."""

    def __init__(self, theme: Theme, view: QTableView) -> None:
        super().__init__(view)
        self._view = view
        self._theme = theme
        self._metrics: dict[bool, QFontMetrics] = {}
        self._unit = 16

    def set_font(self, font: QFont) -> None:
        """Take sizes from the view's font: called at the start and when the font changes."""
        bold = QFont(font)
        bold.setBold(True)
        self._bold = bold
        self._metrics = {False: QFontMetrics(font), True: QFontMetrics(bold)}
        self._unit = max(14, self._metrics[False].height())

    @property
    def indent(self) -> int:
        """Pixels a level is moved to the right."""
        return self._unit

    def row_height(self) -> int:
        """Height of every row."""
        return self._metrics[False].height() + 8

    def arrow_rect(self, rect: QRect, depth: int) -> QRect:
        """Where the branch arrow of a row stands in its first cell."""
        return QRect(rect.left() + 8 + depth * self.indent, rect.top(), self._unit, rect.height())

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Rows are of one height."""
        return QSize(100, self.row_height())

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Draw one cell; texts come from the model's row, not through roles."""
        model = cast(OutlineModel, index.model())
        row = index.row()
        if row >= model.rowCount():
            return
        cells = model.cells(row)
        rect, state = option.rect, option.state.value
        painter.save()
        painter.setClipRect(rect)
        self._background(painter, rect, model, row, cells, state)
        column = index.column()
        if column == Column.WHAT:
            self._what(painter, rect, model, row, cells)
        elif column == Column.SHARE:
            self._share(painter, rect, cells)
        elif column == Column.FLAGS:
            self._flags(painter, rect, cells)
        else:
            right = column == Column.TOKENS
            inner = rect.adjusted(6, 0, -7, 0)
            muted = column != Column.PREVIEW or cells.header
            text = cells.texts[column]
            if column == Column.PREVIEW and cells.header:
                text = cut_facts(text, self._metrics[False], inner.width())
            self._text(painter, inner, text, muted, right=right)
        self._focus(painter, rect, index)
        painter.restore()

    # ---- parts -----------------------------------------------------------------------------------------------------

    def _background(
        self, painter: QPainter, rect: QRect, model: OutlineModel, row: int, cells: RowCells, state: int
    ) -> None:
        theme = self._theme
        if state & _SELECTED:
            active = state & _ACTIVE
            painter.fillRect(rect, theme.named("selected" if active else "selected_idle"))
        elif model.node(row) in model.partner:
            painter.fillRect(rect, theme.named("partner"))
        elif cells.header:
            tint = self._theme.group_tint(cells.band) if cells.band else theme.named("raised")
            painter.fillRect(rect, tint)
        elif state & _HOVERED:
            painter.fillRect(rect, theme.named("hover"))
        else:
            painter.fillRect(rect, theme.named("base"))
        if cells.header:
            painter.setPen(theme.named("border"))
            painter.drawLine(rect.topLeft(), rect.topRight())

    def _what(self, painter: QPainter, rect: QRect, model: OutlineModel, row: int, cells: RowCells) -> None:
        if cells.band:
            painter.fillRect(QRect(rect.left(), rect.top(), 4, rect.height()), self._theme.group_colour(cells.band))
        depth = model.depth(row)
        arrow = self.arrow_rect(rect, depth)
        if model.can_expand(row):
            size = self._unit - 4
            name = "down" if model.is_expanded(row) else "right"
            pixmap = self._theme.pixmap(name, size, "muted", painter.device().devicePixelRatioF())
            painter.drawPixmap(arrow.left() + 2, rect.top() + (rect.height() - size) // 2, pixmap)
        left = arrow.right() + 2
        icon_size = self._unit
        pixmap = self._theme.pixmap(cells.icon, icon_size, cells.role, painter.device().devicePixelRatioF())
        painter.drawPixmap(left, rect.top() + (rect.height() - icon_size) // 2, pixmap)
        left += icon_size + 6
        if cells.header and cells.band:
            painter.setPen(self._theme.group_colour(cells.band) if self._theme.dark else self._theme.named("muted"))
            glyph = self._theme.group_glyph(cells.band)
            width = self._metrics[False].horizontalAdvance(glyph) + 5
            painter.drawText(QRect(left, rect.top(), width, rect.height()), _MIDDLE, glyph)
            left += width
        if cells.header:
            painter.setFont(self._bold)
        box = QRect(left, rect.top(), rect.right() - left - 4, rect.height())
        painter.setPen(self._theme.colour(cells.role))
        text = self._metrics[cells.header].elidedText(cells.texts[0], Qt.TextElideMode.ElideRight, box.width())
        painter.drawText(box, _MIDDLE, text)

    def _share(self, painter: QPainter, rect: QRect, cells: RowCells) -> None:
        """The percentage with a bar below it: the bar takes no width of its own."""
        if cells.share < 0:
            return
        theme = self._theme
        track = QRect(rect.left() + 6, rect.bottom() - 4, rect.width() - 13, 3)
        filled = min(track.width(), round(track.width() * cells.share))
        if filled > 0:
            painter.fillRect(track, theme.named("border"))
            painter.fillRect(QRect(track.left(), track.top(), filled, track.height()), theme.named("accent"))
        self._text(painter, rect.adjusted(6, 0, -7, 0), cells.texts[Column.SHARE], True, right=True)

    def _flags(self, painter: QPainter, rect: QRect, cells: RowCells) -> None:
        """Chips and marks from the left; of what has no room it says how much there is, its tool tip says what."""
        metrics = self._metrics[False]
        left, right = rect.left() + 6, rect.right() - 3
        waiting = len(cells.pairs) + len(cells.marks)
        more = metrics.horizontalAdvance(f"+{waiting}") + 5
        for number, calls in cells.pairs:
            label = pair_label(number, calls)
            width = metrics.horizontalAdvance(label) + 12
            if left + width + (more if waiting > 1 else 0) > right:
                self._rest_of_flags(painter, QRect(left, rect.top(), right - left, rect.height()), waiting)
                return
            chip = QRect(left, rect.top() + 3, width, rect.height() - 6)
            back, text = self._theme.chip(number)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(back)
            painter.drawRoundedRect(chip, 5, 5)
            painter.setPen(text)
            painter.drawText(chip, _CENTER, label)
            left += width + 5
            waiting -= 1
        left += 4 if cells.pairs else 0
        for mark in cells.marks:
            room = right - left
            text_of_mark = f"{mark.glyph} {mark.text}"
            if room < more + (2 * self._unit if waiting > 1 else 0):
                self._rest_of_flags(painter, QRect(left, rect.top(), room, rect.height()), waiting)
                return
            width = metrics.horizontalAdvance(text_of_mark)
            if waiting > 1 and width + 12 + more > room:
                room -= more
            painter.setPen(self._theme.colour(mark.role))
            shown = metrics.elidedText(text_of_mark, Qt.TextElideMode.ElideRight, room)
            painter.drawText(QRect(left, rect.top(), room, rect.height()), _MIDDLE, shown)
            left += min(width + 12, room)
            waiting -= 1

    def _rest_of_flags(self, painter: QPainter, rect: QRect, count: int) -> None:
        painter.setPen(self._theme.named("muted"))
        painter.drawText(rect, _MIDDLE, f"+{count}")

    def _text(self, painter: QPainter, rect: QRect, text: str, muted: bool, *, right: bool = False) -> None:
        """One line of text; figures (at the right) fit their column, other text is cut with an ellipsis."""
        if not text or rect.width() < 4:
            return
        painter.setPen(self._theme.named("muted" if muted else "text"))
        if right:
            painter.drawText(rect, _RIGHT, text)
            return
        # Laying out text that cannot be seen costs most of a cell: no letter is narrower than an eighth of a line.
        text = text[: 8 * rect.width() // self._unit]
        painter.drawText(rect, _LEFT, self._metrics[False].elidedText(text, Qt.TextElideMode.ElideRight, rect.width()))

    def _focus(self, painter: QPainter, rect: QRect, index: Index) -> None:
        """The current row's border in the focused view: the focus must be seen without the selection's colour."""
        if self._view.currentIndex().row() != index.row() or not self._view.hasFocus():
            return
        painter.setPen(self._theme.named("accent"))
        painter.drawLine(rect.left(), rect.top(), rect.right(), rect.top())
        painter.drawLine(rect.left(), rect.bottom(), rect.right(), rect.bottom())


def cut_facts(text: str, metrics: QFontMetrics, room: int) -> str:
    """A row's facts as far as they have room; a figure is left out whole: cut in two it reads as another figure."""
    shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
    if shown == text or not shown[:-1].endswith((*"0123456789,–",)):
        return shown
    kept, joint, _cut = shown.rpartition(JOINT)
    return f"{kept}{joint}…"
