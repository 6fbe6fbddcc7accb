"""A row of controls that goes on in a second row where the window is narrow."""

from __future__ import annotations

from PySide6.QtCore import QMargins, QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QHBoxLayout, QLayout, QLayoutItem, QSizePolicy, QWidget


class FlowLayout(QLayout):
    """Places its widgets from left to right and wraps; what is left of a row goes to its expanding widgets.

    Widgets that belong together (a label and its field) are added as one widget: see `together`.
    """

    def __init__(self, margins: QMargins, spacing: int = 8) -> None:
        super().__init__()
        self._items: list[QLayoutItem] = []
        self.setContentsMargins(margins)
        self.setSpacing(spacing)

    def addItem(self, item: QLayoutItem) -> None:
        """Take one more item at the end."""
        self._items.append(item)

    def count(self) -> int:
        """How many items there are."""
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        """The item of that place."""
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        """Remove and return the item of that place."""
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        """Only as high as its rows."""
        return Qt.Orientation.Horizontal

    def hasHeightForWidth(self) -> bool:
        """A narrow row becomes two."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Height of all rows at that width, in logical pixels."""
        return self._place(QRect(0, 0, width, 0), move=False)

    def setGeometry(self, rect: QRect) -> None:
        """Place the widgets."""
        super().setGeometry(rect)
        self._place(rect, move=True)

    def sizeHint(self) -> QSize:
        """All in one row."""
        shown = self._shown()
        width = sum(item.sizeHint().width() for item in shown) + self.spacing() * max(0, len(shown) - 1)
        height = max((item.sizeHint().height() for item in shown), default=0)
        return QSize(width, height).grownBy(self.contentsMargins())

    def minimumSize(self) -> QSize:
        """The largest widget, alone in its row."""
        least = QSize(0, 0)
        for item in self._shown():
            least = least.expandedTo(item.minimumSize())
        return least.grownBy(self.contentsMargins())

    def _shown(self) -> list[QLayoutItem]:
        return [item for item in self._items if not item.isEmpty()]

    def _place(self, rect: QRect, move: bool) -> int:
        """Fill the rows; the height of all of them."""
        margins = self.contentsMargins()
        inside = rect.marginsRemoved(margins)
        top, rows = inside.top(), self._rows(inside.width())
        for row in rows:
            height = max(item.sizeHint().height() for item in row)
            if move:
                self._place_row(row, QRect(inside.left(), top, inside.width(), height))
            top += height + self.spacing()
        return top - (self.spacing() if rows else 0) - rect.top() + margins.bottom()

    def _rows(self, width: int) -> list[list[QLayoutItem]]:
        rows: list[list[QLayoutItem]] = []
        used = 0
        for item in self._shown():
            wanted = item.sizeHint().width()
            if not rows or used + self.spacing() + wanted > width:
                rows.append([item])
                used = wanted
            else:
                rows[-1].append(item)
                used += self.spacing() + wanted
        return rows

    def _place_row(self, row: list[QLayoutItem], room: QRect) -> None:
        left_over = room.width() - sum(item.sizeHint().width() for item in row) - self.spacing() * (len(row) - 1)
        takers = sum(bool(item.expandingDirections() & Qt.Orientation.Horizontal) for item in row)
        mirrored = (widget := self.parentWidget()) is not None and widget.isRightToLeft()
        left = room.left()
        for item in row:
            size = item.sizeHint()
            width = min(size.width(), room.width())
            if left_over > 0 and item.expandingDirections() & Qt.Orientation.Horizontal:
                width += left_over // takers
            x = room.left() + room.right() - left - width + 1 if mirrored else left
            item.setGeometry(QRect(QPoint(x, room.top()), QSize(width, room.height())))
            left += width + self.spacing()


def together(*widgets: QWidget, grows: bool = False) -> QWidget:
    """Widgets of a flow that stay side by side, the last one taking the room there is if `grows`."""
    box = QWidget()
    row = QHBoxLayout(box)
    row.setContentsMargins(0, 0, 0, 0)
    row.setSpacing(8)
    for widget in widgets:
        row.addWidget(widget, 1 if grows and widget is widgets[-1] else 0)
    if grows:
        box.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
    return box
