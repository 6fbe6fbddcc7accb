"""Stacks and tabs that need the room of the page in front only.

Qt's own need that of their largest page, seen or not: a window would outgrow a small screen by a view that was opened
once, or by the start page behind the session.
"""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QStackedWidget, QTabBar, QTabWidget, QWidget


def _least(page: QWidget | None) -> QSize:
    return page.minimumSizeHint().expandedTo(page.minimumSize()) if page is not None else QSize(0, 0)


def least_size(view: QWidget, width: int) -> QSize:
    """What a view needs when it gets that width: rows that wrap need more height in less width."""
    least = _least(view)
    layout = view.layout()
    if layout is not None and layout.hasHeightForWidth():
        height = layout.minimumHeightForWidth(max(width, least.width()))
        least.setHeight(max(view.minimumHeight(), height))
    return least


class DocumentTabBar(QTabBar):
    """A tab bar that scrolls before its titles become unreadable: Qt's own shortens them to three letters a side."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Tabs of the open sessions")

    def minimumTabSizeHint(self, index: int) -> QSize:
        """Room for some twenty characters and the close button, in logical pixels."""
        whole = self.tabSizeHint(index)
        return QSize(min(whole.width(), self.fontMetrics().averageCharWidth() * 20 + 60), whole.height())


class PageStack(QStackedWidget):
    """A QStackedWidget as small as its page in front allows."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.currentChanged.connect(lambda _index: self.updateGeometry())

    def minimumSizeHint(self) -> QSize:
        """The least size of the page in front, in logical pixels."""
        return _least(self.currentWidget())


class PageTabs(QTabWidget):
    """A QTabWidget, tabs at the top, as small as its page in front allows."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.currentChanged.connect(lambda _index: self.updateGeometry())

    def minimumSizeHint(self) -> QSize:
        """The least size of the page in front and the tab bar, in logical pixels."""
        page, bar = _least(self.currentWidget()), self.tabBar()
        tabs = bar.minimumSizeHint() if not bar.isHidden() else QSize(0, 0)
        return QSize(max(page.width(), tabs.width()), page.height() + tabs.height())

    def heightForWidth(self, width: int) -> int:
        """The least height of the page in front at that width; Qt's own is what the largest page would like."""
        page, bar = self.currentWidget(), self.tabBar()
        tabs = bar.minimumSizeHint().height() if not bar.isHidden() else 0
        return tabs + (least_size(page, width).height() if page is not None else 0)
