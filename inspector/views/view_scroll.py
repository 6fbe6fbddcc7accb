"""Room for a view in a window that is smaller than the view needs: it scrolls instead of being cut."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

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
        self.setWidgetResizable(True)
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

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A view whose needs change can change what this frame asks for."""
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)
