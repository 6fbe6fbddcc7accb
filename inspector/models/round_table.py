"""The context chart as a table: one row an API round. The text alternative of the chart, and its CSV."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from compaction.accounting.categories import Category
from inspector.rendering.visible_text import visible

if TYPE_CHECKING:
    from compaction.accounting.accounts import SessionAccounts

Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()

_LEADING = ("Round", "Line", "Model", "Context", "Output")
_TRAILING = ("Hidden thinking", "Cache read", "Cache written", "USD", "Event")
COLUMNS = (*_LEADING, *(category.title for category in Category), *_TRAILING)
WIDEST = {"Output": "1 (placeholder, about 1,000)", "Model": "claude-sonnet-4-5-20250929", "Event": "m" * 30}
"""What a column should have room for, where it is more than seven digits."""
_RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)


class RoundTable(QAbstractTableModel):
    """Rows are read from the accounts when they are shown; nothing is copied."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._accounts: SessionAccounts | None = None
        self._events: dict[int, str] = {}

    def set_accounts(self, accounts: SessionAccounts | None) -> None:
        """Show other accounts."""
        self.beginResetModel()
        self._accounts = accounts
        self._events = events_by_round(accounts) if accounts is not None else {}
        self.endResetModel()

    def rowCount(self, parent: Index = _ROOT) -> int:
        """API rounds."""
        return 0 if parent.isValid() or self._accounts is None else self._accounts.series.rounds

    def columnCount(self, parent: Index = _ROOT) -> int:
        """Columns of `COLUMNS`."""
        return 0 if parent.isValid() else len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Column titles; what a figure rests on as tool tip."""
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(COLUMNS):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section]
        return _tip(COLUMNS[section]) if role == Qt.ItemDataRole.ToolTipRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Cell texts; figures are right-aligned."""
        if self._accounts is None or not index.isValid():
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _RIGHT if COLUMNS[index.column()] not in ("Model", "Event") else None
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            value = self.value(index.row(), index.column())
            if isinstance(value, int):
                return f"{value:,}"
            if isinstance(value, float):
                return "unknown" if math.isnan(value) else f"{value:,.4f}"
            text = visible(value)
            # Qt takes a tool tip that looks like HTML for HTML; a model's name comes from the file.
            return text.replace("<", "‹").replace(">", "›") if role == Qt.ItemDataRole.ToolTipRole else text
        return None

    def value(self, row: int, column: int) -> int | float | str:
        """One figure as it is; an unknown cost is NaN, an unknown context ""."""
        accounts = self._accounts
        assert accounts is not None
        series = accounts.series
        usage = series.usage
        name = COLUMNS[column]
        first = int(series.conversation.round_first_records[row])
        transcript = series.conversation.transcript
        known = bool(usage.context[row])
        match name:
            case "Round":
                return row + 1
            case "Line":
                return int(transcript.line[first])
            case "Model":
                return transcript.model(first)
            case "Context":
                return int(usage.context[row]) if known else ""
            case "Output":
                return self._output(row) if known and not usage.final[row] else int(usage.output[row])
            case "Hidden thinking":
                return int(series.hidden_thinking[row])
            case "Cache read":
                return int(usage.cache_read[row])
            case "Cache written":
                return int(usage.written[row])
            case "USD":
                return float(accounts.round_usd[row])
            case "Event":
                return self._events.get(row + 1, "")
        return int(series.parts[row, column - len(_LEADING)])

    def _output(self, row: int) -> str:
        """A placeholder with what the growth of the context says beside it."""
        assert self._accounts is not None
        recorded, recovered = int(self._accounts.series.usage.output[row]), int(self._accounts.recovered[row])
        return f"{recorded:,} (placeholder)" if recovered < 0 else f"{recorded:,} (placeholder, about {recovered:,})"

    def as_csv(self) -> str:
        """The whole table with plain numbers; unknown cells are empty."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in range(self.rowCount()):
            values = [self.value(row, column) for column in range(len(COLUMNS))]
            writer.writerow(["" if isinstance(v, float) and math.isnan(v) else _safe(v) for v in values])
        return out.getvalue()


def _safe(value: float | str) -> float | str:
    """A text that a spreadsheet would take for a formula gets an apostrophe: transcripts are not to be trusted."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t") else value


def events_by_round(accounts: SessionAccounts) -> dict[int, str]:
    """What happened before the request of a round (1-based): compactions and lost cache."""
    found: dict[int, list[str]] = {}
    for compaction in accounts.series.compactions:
        found.setdefault(compaction.round + 1, []).append(event_title(compaction.kind))
    for miss in accounts.misses:
        found.setdefault(miss.round, []).append(f"cache miss, {miss.lost:,} tokens: {miss.reason}")
    return {number: "; ".join(texts) for number, texts in found.items()}


def event_title(kind: str) -> str:
    """A compaction's kind for people."""
    return {
        "auto": "automatic compaction",
        "manual": "manual compaction",
        "micro": "microcompaction",
        "legacy": "compaction (no boundary recorded)",
        "silent": "cleared by the client, items unknown",
    }.get(kind, kind)


def _tip(column: str) -> str:
    tips = {
        "Context": "Recorded: input + cache read + cache creation of the response.",
        "Output": "Recorded output tokens; where no record has a stop reason a placeholder, and beside it the growth.",
        "System and tools": "Computed: what is sent and is not in the transcript (system prompt, tools, memory).",
        "Hidden thinking": "Residual of the recorded output or growth: thinking that is recorded without its text.",
        "USD": "Computed from the recorded tokens and the dated prices; unknown where the model has no price.",
        "Cache read": "Recorded.",
        "Cache written": "Recorded: 5-minute and 1-hour writes together.",
    }
    return tips.get(column, "Estimated share; the shares add up to the recorded context exactly.")
