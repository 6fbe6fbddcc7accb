"""What the session cost: buckets, models, subagents, compactions, cache misses, and how the sum comes about."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from compaction.errors import UsageError
from inspector.context import AppContext
from inspector.documents.accounting import accounting_of
from inspector.documents.document import Document
from inspector.models.cost_rows import CostLine, cost_lines
from inspector.models.cost_tree import CostTree
from inspector.models.flat_tree import FlatRow
from inspector.views.column_sizes import ColumnSizes
from inspector.views.detail.pages import plain_label
from inspector.views.elided_label import ElidedLabel
from inspector.views.flat_tree_view import FlatTreeView


class CostPanel(QWidget):
    """A tree of figures with their basis; Enter or a double click goes to the place of a compaction or cache miss."""

    def __init__(self, context: AppContext, document: Document) -> None:
        super().__init__()
        self._context = context
        self._document = document
        self.accounting = accounting_of(document)
        self.model = CostTree(self)
        self.tree = FlatTreeView(self.model)
        self.tree.setAccessibleName("Cost of the session")
        self.total = ElidedLabel()
        self.note = plain_label()
        self.prices = QComboBox()
        self._build()
        self.tree.row_selected.connect(self._on_row)
        self.tree.row_activated.connect(self._on_activated)
        self.accounting.changed.connect(self.refresh)
        self.accounting.ensure(context.runner)
        self.refresh()

    def _build(self) -> None:
        font = self.total.font()
        font.setPointSizeF(font.pointSizeF() * 1.25)
        font.setBold(True)
        self.total.setFont(font)
        self.prices.setAccessibleName("Price set")
        bar = QHBoxLayout()
        bar.setContentsMargins(9, 6, 8, 4)
        bar.setSpacing(8)
        bar.addWidget(self.total, 1)
        bar.addWidget(QLabel("Prices"))
        bar.addWidget(self.prices)
        try:
            book = self.accounting.prices
            for name in book.names:
                self.prices.addItem(name, name)
                self.prices.setItemData(self.prices.count() - 1, book.set(name).source, Qt.ItemDataRole.ToolTipRole)
            self.prices.setCurrentIndex(max(0, self.prices.findData(self.accounting.price_set or book.default)))
        except UsageError as error:
            # The person's own price file cannot be read: the counting job reports the same.
            self.prices.setEnabled(False)
            self.prices.setToolTip(str(error))
        self.prices.activated.connect(lambda index: self.accounting.choose(price_set=str(self.prices.itemData(index))))
        ColumnSizes(self.tree, self.model.figures, filler=5)
        self.note.setWordWrap(True)
        self.note.setContentsMargins(9, 4, 9, 6)
        self.note.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(bar)
        layout.addWidget(self.tree, 1)
        layout.addWidget(self.note)
        self.setFocusProxy(self.tree)

    def refresh(self) -> None:
        """Show the newest accounts, or what is known while there are none."""
        accounts = self.accounting.shown
        if self.accounting.error is not None:
            self.total.setText(f"✖ The count failed: {self.accounting.error}")
        if accounts is None:
            self.model.set_lines([])
            if self.accounting.error is None:
                self.total.setText("Counting tokens…" if self.accounting.running else "Not counted yet.")
            return
        cost = accounts.cost
        chosen = self.tree.current_row()
        title = chosen.data.title if chosen is not None else ""
        self.model.set_lines(cost_lines(accounts))
        unpriced = f" + {sum(sum(m.unpriced) for m in cost.unpriced):,} tokens unpriced" if cost.unpriced else ""
        if self.accounting.error is None:
            self.total.setText(f"${cost.total_usd:,.4f}{unpriced} · {cost.responses:,} responses")
        rows = self.model.rows
        if rows:
            self.tree.select_row(next((n for n, row in enumerate(rows) if row.data.title == title), 0))

    def _on_row(self, row: FlatRow | None) -> None:
        self.note.setText(_note(row.data) if row is not None else "")

    def _on_activated(self, row: FlatRow) -> None:
        line: CostLine = row.data
        if line.record >= 0:
            self._document.select_record(line.record)
            if self._context.workspace is not None:
                self._context.workspace.show_view("tree")
        elif row.expandable:
            self.tree.toggle(self.model.rows.index(row))


def _note(line: CostLine) -> str:
    """What is to be said of a line below the list."""
    text = line.explanation or line.basis
    return f"{text} Enter goes to it." if line.record >= 0 else text
