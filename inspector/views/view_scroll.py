"""Room for a view in a window that is smaller than the view needs: it scrolls instead of being cut."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

from inspector.views.page_stack import least_size

LEAST_WIDTH, LEAST_HEIGHT = 24, 6
"""What the frame itself claims, in characters and lines: enough to see that there is something to scroll to."""


class ViewScroll(QScrollArea):
    """Shows a view as large as the frame is, never smaller than the view needs; bars appear only where room lacks.

    Without it the window could not be made smaller than its widest view, and would be cut off by a small screen (or
    by an ordinary one at 200 %).
    """

    def __init__(self, view: QWidget) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        # The view takes the focus; a frame around it would only be one more stop of Tab.
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidget(view)
        view.installEventFilter(self)

    def minimumSizeHint(self) -> QSize:
        """A few lines, or the view's own least size where that is less, in logical pixels."""
        metrics = self.fontMetrics()
        least = QSize(metrics.averageCharWidth() * LEAST_WIDTH, metrics.height() * LEAST_HEIGHT)
        view = self.widget()
        return least.boundedTo(view.minimumSizeHint().expandedTo(view.minimumSize())) if view is not None else least

    def sizeHint(self) -> QSize:
        """The view's own wish: Qt's scroll area would ask for less."""
        view = self.widget()
        return view.sizeHint() if view is not None else super().sizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the view the room there is."""
        super().resizeEvent(event)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A view whose needs change gets another size, and changes what this frame asks for."""
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
            self._fit()
        return super().eventFilter(watched, event)

    def _fit(self) -> None:
        """The size of the view. Qt's own `widgetResizable` would give the height that the view likes, not needs."""
        view = self.widget()
        if view is None:
            return
        room = self.maximumViewportSize()
        bars = QSize(self.verticalScrollBar().sizeHint().width(), self.horizontalScrollBar().sizeHint().height())
        wide = tall = False
        for _ in range(2):  # one bar takes room, so that the other may be needed too
            inside = room - QSize(bars.width() if tall else 0, bars.height() if wide else 0)
            least = least_size(view, inside.width())
            tall, wide = tall or least.height() > inside.height(), wide or least.width() > inside.width()
        inside = room - QSize(bars.width() if tall else 0, bars.height() if wide else 0)
        view.resize(inside.expandedTo(least_size(view, inside.width())))
