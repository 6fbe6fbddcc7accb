"""The overview: a session on one page, every line of which leads into the tree."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from inspector.context import AppContext
from inspector.documents.accounting import accounting_of
from inspector.documents.document import Document
from inspector.models.columns import alignment, is_figure
from inspector.models.overview import Fact, Overview, Table, overview_of
from inspector.plain_text import plain_tip
from inspector.views.column_sizes import ColumnSizes
from inspector.views.context_gauge import GaugeBar, left_text
from inspector.work.jobs import Op

RECORD = Qt.ItemDataRole.UserRole
ROW_ROOM, HEADER_ROOM = 7, 13
"""Pixels of a row and of the header beyond their line of text."""
_CELL_PADDING = 5
TWO_COLUMNS = 155
"""Width in characters from which the tables stand in two columns."""


class OverviewView(QScrollArea):
    """Figures, context, and short tables of one document; made anew when the document is read again."""

    def __init__(self, context: AppContext, document: Document) -> None:
        super().__init__()
        self._context = context
        self.document = document
        self.overview: Overview | None = None
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self._page = QWidget()
        self._page.setObjectName("page")
        self.setWidget(self._page)
        self._layout = QVBoxLayout(self._page)
        self._layout.setContentsMargins(16, 14, 16, 16)
        self._layout.setSpacing(12)
        self._figures = QGridLayout()
        self._figures.setSpacing(10)
        self._layout.addLayout(self._figures)
        self._context_card = ContextCard(context, document)
        self._layout.addWidget(self._context_card)
        self._tables = QGridLayout()
        self._tables.setSpacing(12)
        self._layout.addLayout(self._tables)
        self._layout.addStretch(1)
        self._cards: list[QWidget] = []
        document.reloaded.connect(self._on_reloaded)
        context.theme.changed.connect(self._restyle)
        self._restyle()
        self._on_reloaded()

    def show_overview(self, overview: Overview) -> None:
        """Replace the page's content."""
        self.overview = overview
        for layout in (self._figures, self._tables):
            while (item := layout.takeAt(0)) is not None:
                widget = item.widget()
                if widget is not None:
                    widget.deleteLater()
        for number, fact in enumerate(overview.figures):
            self._figures.addWidget(_figure(fact), number // 4, number % 4)
        self._cards = [TableCard(self._context, table, self._go) for table in overview.tables]
        self._cards.append(FactsCard(self._context, "File", "document", overview.file))
        self._arrange()
        self._restyle()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """One column of tables in a narrow window, two in a wide one."""
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        columns = 2 if self.viewport().width() > self.fontMetrics().averageCharWidth() * TWO_COLUMNS else 1
        for number, card in enumerate(self._cards):
            self._tables.addWidget(card, number // columns, number % columns)
        for column in range(2):
            self._tables.setColumnStretch(column, 1 if column < columns else 0)

    def _on_reloaded(self) -> None:
        session = self.document.session
        if session is None:
            return
        op = Op("Surveying the session", lambda progress: overview_of(session, progress), f"overview {id(self)}", True)
        self._context.runner.start(op).success(
            lambda overview: self.show_overview(overview) if self.document.session is session else None
        )

    def _go(self, record: int) -> None:
        if record >= 0 and self._context.workspace is not None:
            self._context.workspace.show_view("tree")
            self.document.select_record(record)

    def _restyle(self) -> None:
        colours = self._context.theme.colours
        self.setStyleSheet(
            f"QScrollArea, #page {{ background: {colours.window}; }}"
            f"QFrame#card {{ background: {colours.base}; border: 1px solid {colours.border}; border-radius: 7px; }}"
            f"QLabel#muted {{ color: {colours.muted}; }}"
            f"QLabel#error {{ color: {colours.error}; }}"
            f"QTreeWidget {{ background: {colours.base}; border: 0; }}"
            f"QTreeWidget::item {{ padding: 0 {_CELL_PADDING}px; }}"
        )


def _figure(fact: Fact) -> QFrame:
    card = QFrame()
    card.setObjectName("card")
    card.setToolTip(fact.tip)
    value = QLabel(fact.value)
    font = value.font()
    font.setPointSizeF(font.pointSizeF() * 1.5)
    font.setBold(True)
    value.setFont(font)
    value.setObjectName(fact.role if fact.role == "error" else "value")
    name = QLabel(fact.name)
    name.setObjectName("muted")
    for label in (value, name):
        label.setTextFormat(Qt.TextFormat.PlainText)
    value.setAccessibleName(f"{fact.name}: {fact.value}")
    layout = QVBoxLayout(card)
    layout.setContentsMargins(12, 8, 12, 8)
    layout.setSpacing(1)
    layout.addWidget(value)
    layout.addWidget(name)
    return card


class Card(QFrame):
    """A titled box."""

    def __init__(self, context: AppContext, title: str, icon: str) -> None:
        super().__init__()
        self.setObjectName("card")
        self._context = context
        self._icon_name = icon
        self._icon = QLabel()
        heading = QLabel(title)
        font = heading.font()
        font.setBold(True)
        heading.setFont(font)
        row = QHBoxLayout()
        row.addWidget(self._icon)
        row.addWidget(heading, 1)
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(12, 10, 12, 10)
        self.body.addLayout(row)
        context.theme.changed.connect(self._retint)
        self._retint()

    def _retint(self) -> None:
        self._icon.setPixmap(self._context.theme.pixmap(self._icon_name, 16, "muted", self.devicePixelRatioF()))


class FactsCard(Card):
    """Names and values, one pair a line; values can be selected and copied."""

    def __init__(self, context: AppContext, title: str, icon: str, facts: tuple[Fact, ...]) -> None:
        super().__init__(context, title, icon)
        grid = QGridLayout()
        grid.setHorizontalSpacing(14)
        for number, fact in enumerate(facts):
            name, value = QLabel(fact.name), QLabel(fact.value)
            name.setObjectName("muted")
            for label in (name, value):
                label.setTextFormat(Qt.TextFormat.PlainText)
                label.setAlignment(Qt.AlignmentFlag.AlignTop)
            value.setWordWrap(True)
            value.setToolTip(fact.tip)
            value.setMinimumWidth(1)
            value.setTextInteractionFlags(
                Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
            )
            value.setAccessibleName(f"{fact.name}: {fact.value}")
            grid.addWidget(name, number, 0)
            grid.addWidget(value, number, 1)
        grid.setColumnStretch(1, 1)
        self.body.addLayout(grid)
        self.body.addStretch(1)


class TableCard(Card):
    """A short table whose lines lead to a record: by Enter, click or double click."""

    def __init__(self, context: AppContext, table: Table, go: object) -> None:
        super().__init__(context, table.title, table.icon)
        self.tree = QTreeWidget()
        if not table.lines:
            nothing = QLabel(table.empty)
            nothing.setObjectName("muted")
            nothing.setWordWrap(True)
            self.body.addWidget(nothing)
            self.body.addStretch(1)
            self.tree.deleteLater()
            return
        self.tree.setAccessibleName(table.title)
        self.tree.setRootIsDecorated(False)
        self.tree.setUniformRowHeights(True)
        self.tree.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.tree.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.tree.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.tree.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.tree.setHeaderLabels(list(table.headers))
        right = [all(is_figure(line.cells[column]) for line in table.lines) for column in range(len(table.headers))]
        for line in table.lines:
            item = QTreeWidgetItem(list(line.cells))
            item.setData(0, RECORD, line.record)
            item.setSizeHint(len(right) - 1, QSize(0, self.fontMetrics().height() + ROW_ROOM))
            for column, text in enumerate(line.cells):
                item.setToolTip(column, plain_tip(text) if len(text) > 24 else "")
                item.setTextAlignment(column, Qt.AlignmentFlag(alignment(right[column])))
            self.tree.addTopLevelItem(item)
        self._size_columns(right)
        if callable(go):
            self.tree.itemActivated.connect(lambda item, _column: go(item.data(0, RECORD)))
            self.tree.itemClicked.connect(lambda item, _column: go(item.data(0, RECORD)))
        self.body.addWidget(self.tree)
        if table.more:
            more = QLabel(f"and {table.more:,} more")
            more.setObjectName("muted")
            self.body.addWidget(more)
        self.body.addStretch(1)

    def _size_columns(self, right: list[bool]) -> None:
        header = self.tree.header()
        header.setSectionsMovable(False)
        for column, figure in enumerate(right):
            self.tree.headerItem().setTextAlignment(column, Qt.AlignmentFlag(alignment(figure)))
        # A figure at the end stands beside its row, not at the far edge of the card.
        last = len(right) - 1
        figures = [column for column, figure in enumerate(right) if figure]
        ColumnSizes(self.tree, figures, filler=None if right[last] else last, padding=_CELL_PADDING)
        # Sizes of our own: hints are asked before the style sheet of the page holds.
        header.setFixedHeight(self.fontMetrics().height() + HEADER_ROOM)
        rows = self.tree.topLevelItemCount()
        self.tree.setFixedHeight((self.fontMetrics().height() + ROW_ROOM) * rows + header.height() + 2)


class ContextCard(Card):
    """How full the context is now, with the lines of the client's window."""

    def __init__(self, context: AppContext, document: Document) -> None:
        super().__init__(context, "Context of the next request", "gauge")
        self._accounting = accounting_of(document)
        self._bar = GaugeBar(context.theme)
        self._bar.setMinimumWidth(220)
        self._text = QLabel()
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setWordWrap(True)
        row = QHBoxLayout()
        row.addWidget(self._bar)
        row.addWidget(self._text, 1)
        self.body.addLayout(row)
        self._accounting.changed.connect(self._refresh)
        self._accounting.ensure(context.runner)
        self._refresh()

    def sizeHint(self) -> QSize:
        """As high as its content, as wide as the page."""
        return QSize(300, super().sizeHint().height())

    def _refresh(self) -> None:
        current = self._accounting.current
        self._bar.set_current(current)
        if current is None:
            self._text.setText("Counting…" if self._accounting.running else "Not known yet.")
            return
        lines = current.thresholds
        parts = [
            f"{current.tokens.text('tokens')} of a window of {lines.window:,}",
            left_text(current),
            f"warning from {lines.warning:,}",
        ]
        if lines.auto_compact_on:
            parts.append(f"auto-compact from {lines.auto_compact_threshold:,}")
        parts.append(f"blocked from {lines.blocking_limit:,}")
        self._text.setText(" · ".join(parts))
