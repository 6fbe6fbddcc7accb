"""One colour for each kind of context token, the same in bars, charts and legends."""

from __future__ import annotations

from PySide6.QtGui import QColor

from compaction.accounting.categories import Category
from inspector.theme import TOL_LIGHT, Theme, mix

_PLACE = (8, 3, 0, 4, 7, 1, 5, 6, 2)
"""The category's place in the colour-blind-safe scheme, in the order of `Category`."""


def category_colour(theme: Theme, category: Category) -> QColor:
    """The category's colour, dimmed on dark ground."""
    return QColor(mix(TOL_LIGHT[_PLACE[category]], theme.colours.base, 0.82 if theme.dark else 1.0))
