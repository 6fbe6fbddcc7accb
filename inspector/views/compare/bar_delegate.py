"""Stacked bars of context tokens on one scale, with the thresholds drawn through all of them."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, Qt
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from compaction.accounting.categories import Category
from inspector.documents.workbench import Workbench
from inspector.models.comparison import COLUMN_ROLE
from inspector.theme import Theme
from inspector.views.compare.stack import paint_stack, short_tokens, y_of


class BarDelegate(QStyledItemDelegate):
    """Paints the cells of row `BAR_ROW` of a `ComparisonModel`."""

    def __init__(self, workbench: Workbench, theme: Theme) -> None:
        super().__init__()
        self._workbench = workbench
        self._theme = theme

    def scale_top(self) -> int:
        """The tokens at the top of the scale: the largest bar or the blocking limit, whichever is higher."""
        given = self._workbench.given
        if given is None:
            return 0
        after = [c.plan.tokens_after for c in self._workbench.columns if c.plan is not None]
        largest = max([given.view.tokens, *after])
        limit = given.thresholds.blocking_limit
        # On a 1M window a small session would be a line at the bottom: then only thresholds in reach are drawn.
        return max(largest, limit) if largest * 4 > limit else round(largest * 1.15)

    def lines(self) -> list[tuple[str, int, str]]:
        """The thresholds inside the scale: name, tokens, theme colour."""
        given = self._workbench.given
        if given is None:
            return []
        t = given.thresholds
        found = [("blocking", t.blocking_limit, "error"), ("warning", t.warning, "warning")]
        if t.auto_compact_on:
            found.append(("auto-compact", t.auto_compact_threshold, "accent"))
        return [line for line in found if 0 < line[1] <= self.scale_top()]

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        rect: QRect = option.rect
        painter.save()
        painter.fillRect(rect, self._theme.named("base"))
        column = index.data(COLUMN_ROLE)
        given = self._workbench.given
        top = self.scale_top()
        if given is not None and top > 0:
            if column is None:
                amounts = {c: self._workbench.categories.get(c, 0) for c in Category}
                paint_stack(painter, rect, amounts, given.view.tokens, top, self._theme)
            elif column.plan is not None:
                amounts = {c: column.plan.after_categories.get(c.key, 0) for c in Category}
                painter.setOpacity(0.45 if column.stale else 1.0)
                paint_stack(painter, rect, amounts, column.plan.tokens_after, top, self._theme)
                painter.setOpacity(1.0)
            self._thresholds(painter, rect, top, named=column is None)
        painter.restore()

    def _thresholds(self, painter: QPainter, rect: QRect, top: int, *, named: bool) -> None:
        styles = {
            "blocking": Qt.PenStyle.SolidLine,
            "warning": Qt.PenStyle.DotLine,
            "auto-compact": Qt.PenStyle.DashLine,
        }
        small = painter.font()
        small.setPointSizeF(max(7.0, small.pointSizeF() * 0.82))
        painter.setFont(small)
        height = painter.fontMetrics().height()
        last = rect.top() - 2 * height
        lines = sorted(self.lines(), key=lambda line: -line[1])
        for name, tokens, colour in lines:
            y = y_of(rect, tokens, top)
            pen = QPen(QColor(self._theme.named(colour)))
            pen.setStyle(styles[name])
            painter.setPen(pen)
            painter.drawLine(rect.left(), y, rect.right(), y)
        if named:
            for name, tokens, colour in lines:
                y = y_of(rect, tokens, top)
                painter.setPen(QPen(QColor(self._theme.named(colour))))
                # The highest is named above its line, the others below theirs, or below one another where lines
                # are close: on a large window they are a few pixels apart.
                text_top = y - height - 1 if name == "blocking" else max(y + 1, last + height)
                last = text_top
                text = f"{name} {short_tokens(tokens)}"
                width = painter.fontMetrics().horizontalAdvance(text) + 4
                left = rect.right() - 4 - width if name == "warning" else rect.left() + 2
                plate = QRect(left, text_top, width, height)
                # Other lines and a high bar lie below it.
                painter.fillRect(plate, self._theme.named("base"))
                painter.drawText(plate, int(Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextDontClip), text)
