"""The cost panel's lines as a flat tree."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QFont

from inspector.models.cost_rows import CLIENT_TOTAL, CostLine
from inspector.models.flat_tree import FlatRow, FlatTreeModel
from inspector.rendering.visible_text import visible

_OPEN_AT_FIRST = frozenset({"Total", "Buckets", "Models", "Reconciliation"})


class CostTree(FlatTreeModel):
    """Sections, lines, lines below lines; which sections are open is kept when the figures change."""

    columns = ("Item", "Tokens", "USD", "Calls", "Share of USD", "Method and source")
    figures = frozenset({1, 2, 3, 4})

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._open = set(_OPEN_AT_FIRST)
        self._total = 0.0
        self._bold = QFont()
        self._bold.setBold(True)
        self.toggled.connect(self._on_toggled)

    def set_lines(self, lines: list[CostLine]) -> None:
        """Show other sections."""
        self._total = next((line.usd or 0.0 for line in lines if line.title == "Total"), 0.0)
        rows: list[FlatRow] = []
        for line in lines:
            row = FlatRow(line, 0, bool(line.lines), bool(line.lines) and line.title in self._open)
            rows.append(row)
            if row.expanded:
                rows += [FlatRow(below, 1, bool(below.lines)) for below in line.lines]
        self.set_rows(rows)

    def children_of(self, row: FlatRow) -> list[FlatRow]:
        """The lines below a line."""
        return [FlatRow(line, 0, bool(line.lines)) for line in row.data.lines]

    def text(self, row: FlatRow, column: int) -> str:
        """Title, figures, basis; what does not apply is empty, what is not known says so."""
        line: CostLine = row.data
        match column:
            case 0:
                return visible(line.title)
            case 1:
                return f"{line.tokens:,}" if line.tokens is not None else ""
            case 2:
                return line.usd_text or (f"${line.usd:,.4f}" if line.usd is not None else "")
            case 3:
                return f"{line.calls:,}" if line.calls is not None else ""
            case 4:
                part = line.usd is not None and self._total > 0 and not line.usd_text and line.title != CLIENT_TOTAL
                if not part or line.usd is None:
                    return ""
                share = line.usd / self._total
                return "<0.1%" if 0 < share < 0.0005 else f"{share:.1%}"
        return visible(line.basis)

    def decoration(self, row: FlatRow, column: int, role: int) -> object:
        """Sections in bold, the basis as a tool tip of the figures."""
        if role == Qt.ItemDataRole.FontRole:
            return self._bold if row.data.bold and row.level == 0 else None
        if role == Qt.ItemDataRole.ToolTipRole and row.data.basis:
            return visible(row.data.basis).replace("<", "‹").replace(">", "›")
        return None

    def _on_toggled(self, line: object) -> None:
        if isinstance(line, CostLine) and line.bold:
            self._open ^= {line.title}
