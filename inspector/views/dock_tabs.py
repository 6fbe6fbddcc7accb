"""The tab bars of docks that share a place: Qt leaves those of earlier layouts in the window."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import QDockWidget, QMainWindow, QTabBar

_CHANGES = (QEvent.Type.Resize, QEvent.Type.Move, QEvent.Type.Show, QEvent.Type.Hide)


class DockTabs(QObject):
    """Sees to it that only the tab bar below a dock in view can be seen and reached by Tab.

    Every restored layout gets bars of its own; the ones before stay where they were, above the page and in the order
    of the Tab key. They cannot be deleted, because Qt takes some of them again: then it gives them their place.
    """

    def __init__(self, window: QMainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self.tend)

    def watch(self, dock: QDockWidget) -> None:
        """Look after the bars when this dock is moved, shown or hidden."""
        dock.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Wait until the whole layout is set."""
        if event.type() in _CHANGES:
            self._soon.start()
        return super().eventFilter(watched, event)

    def tend(self) -> None:
        """Disable and put away the bars that belong to no dock in view."""
        own = Qt.FindChildOption.FindDirectChildrenOnly
        docks = [dock for dock in self._window.findChildren(QDockWidget, options=own) if not dock.isHidden()]
        for bar in self._window.findChildren(QTabBar, options=own):
            live = any(self._belongs(bar, dock) for dock in docks)
            bar.setAccessibleName("Tabs of the docks")
            bar.setEnabled(live)
            if not live:
                # Where Qt itself puts the bars that it does not use.
                bar.move(-bar.width() - 500, -bar.height() - 500)

    def _belongs(self, bar: QTabBar, dock: QDockWidget) -> bool:
        """Whether the bar stands below the dock and has a tab for each dock of that place."""
        place, box = bar.geometry(), dock.geometry()
        beside = place.left() == box.left() and place.width() == box.width()
        if dock.isFloating() or not beside or place.top() != box.bottom() + 1:
            return False
        others = self._window.tabifiedDockWidgets(dock)
        return bar.count() == 1 + sum(not other.isHidden() and not other.isFloating() for other in others)
