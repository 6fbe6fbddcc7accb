from __future__ import annotations

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from compaction.accounting.accounts import SessionAccounts
from compaction.accounting.categories import Category
from inspector.theme import Theme
from inspector.views.charts.context_plot import category_colours

_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_SWATCH = 14
_RESIDUAL = "Hidden thinking, computed: recorded output or growth that no visible block explains."
_TIPS = {
    Category.SYSTEM_AND_TOOLS: "What is sent and is not in the transcript: system prompt, tool schemas, memory files.",
    Category.SUMMARY: "The summary that a compaction wrote.",
    Category.USER_TEXT: "What the person wrote.",
    Category.ASSISTANT_TEXT: "What the model wrote.",
    Category.THINKING: "Thinking, shown or hidden; hidden thinking is the residual of recorded output or growth.",
    Category.TOOL_USE: "Calls with their inputs.",
    Category.TOOL_RESULT: "What tools gave back, as the model sees it.",
    Category.ATTACHMENTS: "What the client adds: reminders, skill lists, files, context put back after compaction.",
    Category.IMAGES: "Images and documents, by the 28-pixel formula.",
}


class Legend(QTableWidget):
    """The categories with their colour and what they take in the round at the cursor, in the order of the stack."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(len(Category) + 2, 3, parent)
        self._theme = theme
        self.setAccessibleName("Parts of the context at the cursor")
        self.setHorizontalHeaderLabels(["Part", "Tokens", "Share"])
        self.verticalHeader().hide()
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setTabKeyNavigation(False)
        self.verticalHeader().setDefaultSectionSize(int(self.fontMetrics().height() * 1.4))
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(2, QHeaderView.ResizeMode.Fixed)
        width = self.fontMetrics().averageCharWidth()
        header.resizeSection(1, width * 12)
        header.resizeSection(2, width * 10)
        self.setMinimumWidth(width * 48)
        # Hidden thinking is no part of its own: it stands below the thinking that it is counted in.
        order = [None, *reversed(Category)]
        self._hidden_row = order.index(Category.THINKING) + 1
        order.insert(self._hidden_row, None)
        self._row_of = {category: row for row, category in enumerate(order) if category is not None}
        titles = {0: "Context", self._hidden_row: "of it hidden"}
        titles |= {row: category.title for category, row in self._row_of.items()}
        for row in range(self.rowCount()):
            for column, text in enumerate((titles[row], "", "")):
                item = QTableWidgetItem(text)
                if column:
                    item.setTextAlignment(_RIGHT)
                self.setItem(row, column, item)
        for category, row in self._row_of.items():
            self._cell(row, 0).setToolTip(_TIPS[category])
        self._cell(self._hidden_row, 0).setToolTip(_RESIDUAL)
        for column in range(3):
            title = self.horizontalHeaderItem(column)
            if title is not None:
                title.setTextAlignment(_RIGHT if column else _LEFT)
        self.recolour()

    def recolour(self) -> None:
        """Take the theme's colours."""
        colours = category_colours(self._theme)
        for category, row in self._row_of.items():
            self._cell(row, 0).setIcon(_swatch(colours[category], QColor(self._theme.colours.border)))
        self._cell(self._hidden_row, 0).setIcon(_swatch(colours[Category.THINKING], None))
        font = self.font()
        font.setBold(True)
        for column in range(3):
            self._cell(0, column).setFont(font)

    def show_round(self, accounts: SessionAccounts | None, number: int) -> None:
        """Show a round (1-based), or nothing for 0."""
        if accounts is None or not 1 <= number <= accounts.series.rounds:
            for row in range(self.rowCount()):
                self._cell(row, 1).setText("")
                self._cell(row, 2).setText("")
            return
        series = accounts.series
        parts, total = series.parts[number - 1], int(series.usage.context[number - 1])
        error = series.user_calibration.error
        method = "Estimated share of the recorded context; the shares add up exactly."
        if error is not None:
            method += f" Median error of the estimator on this session's held-out rounds: {error:.0%}."
        for category, row in self._row_of.items():
            self._set(row, int(parts[category]), total, method)
        self._set(0, total, total, "Recorded: input + cache read + cache creation of the response.")
        self._set(self._hidden_row, int(series.hidden_thinking[number - 1]), total, _RESIDUAL)

    def _cell(self, row: int, column: int) -> QTableWidgetItem:
        found = self.item(row, column)
        assert found is not None, "every cell is made in the constructor"
        return found

    def _set(self, row: int, tokens: int, total: int, method: str) -> None:
        self._cell(row, 1).setText(f"{tokens:,}" if total else "unknown")
        self._cell(row, 2).setText(f"{tokens / total:.1%}" if total else "")
        for column in (1, 2):
            self._cell(row, column).setToolTip(method)


def _swatch(colour: QColor, border: QColor | None) -> QIcon:
    """A square in the colour; without a border a small one further in, for what is a part of the row above."""
    pixmap = QPixmap(_SWATCH, _SWATCH)
    pixmap.fill(border if border is not None else Qt.GlobalColor.transparent)
    inside = QRect(1, 1, _SWATCH - 2, _SWATCH - 2) if border is not None else QRect(_SWATCH - 7, 4, 6, 6)
    painter = QPainter(pixmap)
    painter.fillRect(inside, colour)
    painter.end()
    return QIcon(pixmap)
