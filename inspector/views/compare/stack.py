"""A stacked bar of context tokens: the one drawing that comparison and stepper share."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QPainter, QPen

from compaction.accounting.categories import Category
from inspector.theme import Theme
from inspector.views.category_colours import category_colour

TOP_MARGIN = 22
WIDEST = 64


def y_of(rect: QRect, tokens: float, top: int) -> int:
    """The height of a token count in a bar's cell whose scale ends at `top` tokens."""
    return rect.bottom() - 3 - round((rect.height() - TOP_MARGIN - 4) * tokens / max(1, top))


def paint_stack(
    painter: QPainter, rect: QRect, amounts: Mapping[Category, int], total: int, top: int, theme: Theme
) -> None:
    """Paint the categories from the bottom up, with the total above them."""
    width = min(WIDEST, rect.width() - 20)
    left = rect.center().x() - width // 2
    below = 0
    for category in Category:
        amount = amounts.get(category, 0)
        if amount <= 0:
            continue
        bottom, upper = y_of(rect, below, top), y_of(rect, below + amount, top)
        below += amount
        if bottom > upper:
            painter.fillRect(left, upper, width, bottom - upper, category_colour(theme, category))
            painter.setPen(QPen(theme.named("base")))
            painter.drawLine(left, upper, left + width - 1, upper)
    painter.setPen(QPen(theme.named("text")))
    label = QRect(rect.left(), max(rect.top(), y_of(rect, total, top) - 18), rect.width(), 16)
    painter.drawText(label, int(Qt.AlignmentFlag.AlignCenter), short_tokens(total))


def legend_text(theme: Theme) -> str:
    """The categories with their colours as rich text, made of our own words and colours only."""
    return " &nbsp; ".join(
        f'<span style="color:{category_colour(theme, c).name()}">■</span>&nbsp;{c.title.replace(" ", "&nbsp;")}'
        for c in Category
    )


def short_tokens(value: int) -> str:
    """Tokens in few characters: 980, 12.3K, 167K, 1.20M."""
    if value < 1000:
        return str(value)
    if value < 1_000_000:
        return f"{value / 1000:.1f}K" if value < 100_000 else f"{value / 1000:.0f}K"
    return f"{value / 1_000_000:.2f}M"
