"""One colour for each kind of context token, the same in bars, trees and charts."""

from __future__ import annotations

from PySide6.QtGui import QColor

from compaction.accounting.categories import Category
from inspector.theme import Theme

_GROUP = {
    Category.SYSTEM_AND_TOOLS: 8,
    Category.SUMMARY: 2,
    Category.USER_TEXT: 0,
    Category.ASSISTANT_TEXT: 5,
    Category.THINKING: 3,
    Category.TOOL_USE: 4,
    Category.TOOL_RESULT: 1,
    Category.ATTACHMENTS: 6,
    Category.IMAGES: 7,
}


def category_colour(theme: Theme, category: Category) -> QColor:
    """The category's colour of the colour-blind-safe scheme."""
    return theme.group_colour(_GROUP[category])
