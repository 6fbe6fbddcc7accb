"""Column widths by content: figures get what they need, texts share the rest, until the person sets the widths."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from PySide6.QtCore import QAbstractItemModel, QEvent, QModelIndex, QObject, Qt, QTimer
from PySide6.QtGui import QFont, QFontMetrics, QGuiApplication
from PySide6.QtWidgets import QHeaderView, QStyle, QTableView, QTableWidget, QTreeView, QTreeWidget

from inspector.models.flat_tree import LEVEL_ROLE
from inspector.views.flat_tree_view import CELL_PADDING

_MEASURED_ROWS = 200
"""Rows that are looked at: more would be felt in long tables, and these are what the person sees first."""
_MEASURED_CHARACTERS = 400
_READABLE_CHARACTERS = 34
"""Of a column with text that needs so much: with less room, the table scrolls sideways."""
_COMFORTABLE_CHARACTERS = 60
"""Of the main column: with less, optional columns step aside for it."""


class ColumnSizes(QObject):
    """Keeps the widths of a table's columns by their content and the room there is.

    Short texts are not cut. A column with longer ones that needs less than its part leaves the rest to the others;
    what nobody needs goes to the filler. Optional columns are hidden where they are empty, and where the main column
    would get little.
    """

    def __init__(
        self,
        view: QTableView | QTreeView,
        figures: Collection[int] = (),
        *,
        main: int = 0,
        filler: int | None = 0,
        optional: Sequence[int] = (),
        padding: int = CELL_PADDING,
    ) -> None:
        """Args:
        view: with its model set.
        figures: columns that are never cut.
        main: the column that the rows are read by.
        filler: the column that gets what is left over; None: it stays empty at the right.
        optional: columns that may be hidden, the least important last.
        padding: pixels on each side of a cell's content beyond the style's own.
        """
        super().__init__(view)
        self._view = view
        self._figures = frozenset(figures)
        self._main = main
        self._filler = filler
        self._optional = tuple(optional)
        margin = view.style().pixelMetric(QStyle.PixelMetric.PM_FocusFrameHMargin, None, view) + 1
        self._room = 2 * (margin + padding) + 2
        self._needs: list[int] = []
        self._filled: list[bool] = []
        self._fits = True
        self._fitting = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self.fit)
        header = self._header
        header.setStretchLastSection(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.sectionResized.connect(self._on_resized)
        if not isinstance(view, QTableWidget | QTreeWidget):
            # A view with items of its own empties its model while it is destroyed: it calls `measure` itself.
            self._model.modelReset.connect(self.measure)
            self._model.rowsInserted.connect(self._on_inserted)
        view.viewport().installEventFilter(self)
        self.measure()

    @property
    def _header(self) -> QHeaderView:
        view = self._view
        return view.horizontalHeader() if isinstance(view, QTableView) else view.header()

    @property
    def _model(self) -> QAbstractItemModel:
        return self._view.model()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Share the room anew with every size of the table."""
        if event.type() == QEvent.Type.Resize:
            self.fit()
        return super().eventFilter(watched, event)

    def fit(self) -> None:
        """Give every column its width."""
        if not self._fits or not self._needs:
            return
        header = self._header
        hidden = {column for column in self._optional if not self._filled[column]}
        sizes = self._sizes(hidden)
        comfortable = min(self._needs[self._main], self._characters(_COMFORTABLE_CHARACTERS))
        for column in reversed(self._optional):
            if sizes[self._main] < comfortable and column not in hidden:
                hidden.add(column)
                sizes = self._sizes(hidden)
        self._fitting = True
        for column in self._optional:
            self._view.setColumnHidden(column, column in hidden)
        for column, size in sizes.items():
            header.resizeSection(column, size)
        self._fitting = False

    def _sizes(self, hidden: Collection[int]) -> dict[int, int]:
        shown = [column for column in range(len(self._needs)) if column not in hidden]
        sizes = {column: self._needs[column] for column in shown}
        texts = [column for column in shown if column not in self._figures]
        room = self._view.viewport().width() - sum(sizes[column] for column in shown if column in self._figures)
        readable = self._characters(_READABLE_CHARACTERS)
        least = [min(sizes[column], readable) for column in texts]
        more = shared([sizes[column] - short for column, short in zip(texts, least, strict=True)], room - sum(least))
        sizes.update({column: short + further for column, short, further in zip(texts, least, more, strict=True)})
        if not any(self._filled) and self._main in sizes:
            sizes[self._main] = max(sizes[self._main], readable)
        left = self._view.viewport().width() - sum(sizes.values())
        if self._filler is not None and left > 0:
            sizes[self._filler] += left
        return sizes

    def _characters(self, count: int) -> int:
        return self._view.fontMetrics().averageCharWidth() * count

    def _on_resized(self, _column: int, _old: int, _new: int) -> None:
        # A dragged splitter resizes columns as well: through `fit`.
        if not self._fitting and QGuiApplication.mouseButtons() & Qt.MouseButton.LeftButton:
            self._fits = False

    def measure(self) -> None:
        """Measure every column anew; to be called where cells change without the model being reset."""
        header, count = self._header, self._model.columnCount()
        self._needs = [header.sectionSizeHint(column) for column in range(count)]
        self._filled = [False] * count
        self._measure(0, self._model.rowCount())

    def _on_inserted(self, parent: QModelIndex, first: int, last: int) -> None:
        if not parent.isValid():
            self._measure(first, last + 1)

    def _measure(self, first: int, end: int) -> None:
        """Take the needs of some rows into account; columns only grow while rows are added."""
        model, font = self._model, self._view.font()
        bold = QFont(font)
        bold.setBold(True)
        plain, strong = QFontMetrics(font), QFontMetrics(bold)
        step = int(plain.height() * 1.1)
        for row in range(first, min(end, first + _MEASURED_ROWS)):
            for column in range(len(self._needs)):
                index = model.index(row, column)
                text = str(index.data() or "")
                if not text:
                    continue
                self._filled[column] = True
                metrics = strong if index.data(Qt.ItemDataRole.FontRole) is not None else plain
                need = metrics.horizontalAdvance(text[:_MEASURED_CHARACTERS]) + self._room
                level = index.data(LEVEL_ROLE) if column == 0 else None
                need += (level + 1) * step if isinstance(level, int) else 0
                self._needs[column] = max(self._needs[column], need)
        # Not at once: the view has not taken over the new rows yet.
        self._timer.start()


def shared(needs: Sequence[int], room: int) -> list[int]:
    """Parts of a room: each its need, and where that is too much, equal parts for those that need more."""
    parts = [0] * len(needs)
    waiting = sorted(range(len(needs)), key=lambda place: needs[place])
    while waiting:
        place = waiting.pop(0)
        parts[place] = max(0, min(needs[place], room // (len(waiting) + 1)))
        room -= parts[place]
    return parts
