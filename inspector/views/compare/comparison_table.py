"""The table of the comparison: sentences are shown whole, and the bars take the height that the rows leave over."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QRect, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHeaderView, QStyle, QTableView

from inspector.models.comparison import BAR_ROW, FIGURES, TEXT_ROWS

_LEAST_BAR_HEIGHT, _MOST_BAR_HEIGHT = 170, 320


class ComparisonTable(QTableView):
    """Rows as high as their texts need at the width of the columns."""

    def __init__(self) -> None:
        super().__init__()
        self.setHorizontalScrollMode(QTableView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollMode(QTableView.ScrollMode.ScrollPerPixel)
        self.setWordWrap(True)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        # Titles and bars at least, also where the window is so small that the view scrolls as a whole.
        self.setMinimumHeight(_LEAST_BAR_HEIGHT + 5 * self.fontMetrics().height())

    def choose_unseen(self, index: QModelIndex) -> None:
        """Make a cell the current one without scrolling to it, also not when the table is shown for the first time."""
        self.setAutoScroll(False)
        self.setCurrentIndex(index)
        self.setAutoScroll(True)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Share the height anew."""
        super().resizeEvent(event)
        self._fit_bars()

    def fit_rows(self) -> None:
        """Give each row of sentences the height of its longest one, the other rows one line."""
        line = self.fontMetrics().height()
        for row, figure in enumerate(FIGURES):
            if row != BAR_ROW:
                text = self._text_height(row) if figure.title in TEXT_ROWS else line
                self._set_height(row, max(line, text) + 8)
        self._fit_bars()

    def _text_height(self, row: int) -> int:
        model = self.model()
        margin = 2 * (self.style().pixelMetric(QStyle.PixelMetric.PM_FocusFrameHMargin, None, self) + 1) + 1
        heights = [0]
        for column in range(model.columnCount()):
            text = str(model.index(row, column).data() or "")
            room = QRect(0, 0, max(1, self.columnWidth(column) - margin), 1)
            heights.append(self.fontMetrics().boundingRect(room, int(Qt.TextFlag.TextWordWrap), text).height())
        return max(heights)

    def _fit_bars(self) -> None:
        """Let the bars be as high as makes the last row in view a whole one."""
        rows = [self.rowHeight(row) for row in range(len(FIGURES)) if row != BAR_ROW]
        self._set_height(BAR_ROW, bar_height(rows, self.viewport().height()))

    def _set_height(self, row: int, height: int) -> None:
        if self.rowHeight(row) != height:
            self.setRowHeight(row, height)


def bar_height(rows: Sequence[int], room: int) -> int:
    """The height of the bars above rows of some heights, so that a room ends with a whole row."""
    left = room - _LEAST_BAR_HEIGHT
    for height in rows:
        if left < height:
            break
        left -= height
    return min(_MOST_BAR_HEIGHT, _LEAST_BAR_HEIGHT + max(0, left))
