"""Stacked bars of context tokens on one scale, with the thresholds drawn through all of them."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, Qt
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from compaction.accounting.categories import Category
from inspector.documents.workbench import Workbench
from inspector.models.comparison import BAR_ROW, COLUMN_ROLE
from inspector.theme import Theme
from inspector.views.compare.colours import category_colour

_MARGIN = 10
_TOP = 22


class BarDelegate(QStyledItemDelegate):
    """Paints row `BAR_ROW` of a `ComparisonModel`; the other rows are text."""

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
        if index.row() != BAR_ROW:
            super().paint(painter, option, index)
            return
        rect: QRect = option.rect
        painter.save()
        painter.fillRect(rect, self._theme.named("base"))
        column = index.data(COLUMN_ROLE)
        given = self._workbench.given
        top = self.scale_top()
        if given is not None and top > 0:
            if column is None:
                amounts = {c: self._workbench.categories.get(c, 0) for c in Category}
                self._bar(painter, rect, amounts, given.view.tokens, top)
            elif column.plan is not None:
                amounts = {c: column.plan.after_categories.get(c.key, 0) for c in Category}
                self._bar(painter, rect, amounts, column.plan.tokens_after, top, faded=column.stale)
            self._thresholds(painter, rect, top, named=column is None)
        painter.restore()

    def _y(self, rect: QRect, tokens: float, top: int) -> int:
        height = rect.height() - _TOP - 4
        return rect.bottom() - 3 - round(height * tokens / top)

    def _bar(
        self, painter: QPainter, rect: QRect, amounts: Mapping[Category, int], total: int, top: int, faded: bool = False
    ) -> None:
        painter.setOpacity(0.45 if faded else 1.0)
        width = min(64, rect.width() - 2 * _MARGIN)
        left = rect.center().x() - width // 2
        sum_below = 0
        for category in Category:
            amount = amounts[category]
            if amount <= 0:
                continue
            bottom, upper = self._y(rect, sum_below, top), self._y(rect, sum_below + amount, top)
            sum_below += amount
            if bottom > upper:
                painter.fillRect(left, upper, width, bottom - upper, category_colour(self._theme, category))
                painter.setPen(QPen(self._theme.named("base")))
                painter.drawLine(left, upper, left + width - 1, upper)
        painter.setPen(QPen(self._theme.named("text")))
        label = QRect(rect.left(), max(rect.top(), self._y(rect, total, top) - 18), rect.width(), 16)
        painter.drawText(label, int(Qt.AlignmentFlag.AlignCenter), short_tokens(total))
        painter.setOpacity(1.0)

    def _thresholds(self, painter: QPainter, rect: QRect, top: int, *, named: bool) -> None:
        styles = {
            "blocking": Qt.PenStyle.SolidLine,
            "warning": Qt.PenStyle.DotLine,
            "auto-compact": Qt.PenStyle.DashLine,
        }
        small = painter.font()
        small.setPointSizeF(max(7.0, small.pointSizeF() * 0.82))
        painter.setFont(small)
        for name, tokens, colour in self.lines():
            y = self._y(rect, tokens, top)
            pen = QPen(QColor(self._theme.named(colour)))
            pen.setStyle(styles[name])
            painter.setPen(pen)
            painter.drawLine(rect.left(), y, rect.right(), y)
            if named:
                # Neighbouring lines are named on opposite sides so that their names never overlap.
                place = QRect(rect.left() + 4, y - 14 if name == "blocking" else y + 1, rect.width() - 8, 13)
                side = Qt.AlignmentFlag.AlignRight if name == "warning" else Qt.AlignmentFlag.AlignLeft
                painter.drawText(place, int(side), f"{name} {short_tokens(tokens)}")


def short_tokens(value: int) -> str:
    """Tokens in few characters: 980, 12.3K, 167K, 1.2M."""
    if value < 1000:
        return str(value)
    if value < 1_000_000:
        return f"{value / 1000:.1f}K" if value < 100_000 else f"{value / 1000:.0f}K"
    return f"{value / 1_000_000:.2f}M"
