"""The sessions of the library as a flat table: rows are positions in a list, sorted and filtered by our own code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

if TYPE_CHECKING:
    from compaction.catalogue.entries import SessionEntry

Index = QModelIndex | QPersistentModelIndex
_NO_INDEX = QModelIndex()


class Role(IntEnum):
    """What the delegates ask for beside Qt's own roles."""

    SERIES = Qt.ItemDataRole.UserRole + 1
    FINDINGS = Qt.ItemDataRole.UserRole + 2
    LIVE = Qt.ItemDataRole.UserRole + 3


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the table.

    Attributes:
        title, tip: header text and its explanation.
        text: what a cell shows, plain text of at most a line; key: what it is sorted by (None sorts last).
        number: aligned to the right.
        shown: visible until the person chooses.
    """

    title: str
    tip: str
    text: Callable[[SessionEntry], str]
    key: Callable[[SessionEntry], Any]
    number: bool = False
    shown: bool = True


def _when(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000).strftime("%Y-%m-%d %H:%M") if milliseconds else ""


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _money(entry: SessionEntry) -> str:
    mark = "+" if entry.total.unpriced else ""
    return f"${entry.total.cost_usd:,.2f}{mark}"


def _findings(entry: SessionEntry) -> str:
    if entry.findings is None:
        return "?"
    names = ("error", "warning", "info")
    parts = [
        f"{n} {name}{'s' if n > 1 and name != 'info' else ''}"
        for n, name in zip(entry.findings, names, strict=True)
        if n
    ]
    return ", ".join(parts) or "none"


def _duration(entry: SessionEntry) -> str:
    minutes = (entry.last_ms - entry.first_ms) // 60_000 if entry.first_ms else 0
    return f"{minutes // 1440} d {minutes // 60 % 24} h" if minutes >= 1440 else f"{minutes // 60}:{minutes % 60:02}"


COLUMNS: tuple[Column, ...] = (
    Column("Last", "When the newest record was written", lambda e: _when(e.last_ms), lambda e: e.last_ms),
    Column(
        "Title",
        "Given by hand, by the client, or the first prompt",
        lambda e: e.title or "(no prompt)",
        lambda e: e.title.casefold(),
    ),
    Column(
        "Project",
        "The folder the client worked in, as the records say",
        lambda e: e.project,
        lambda e: e.project.casefold(),
    ),
    Column("Branch", "Git branch at the end", lambda e: e.branch, lambda e: e.branch.casefold(), shown=False),
    Column(
        "Models",
        "Models that answered",
        lambda e: ", ".join(m.removeprefix("claude-") for m in e.models),
        lambda e: e.models,
    ),
    Column(
        "Context",
        "Context now, tokens; the line shows it over the session",
        lambda e: _count(e.context_tokens),
        lambda e: e.context_tokens,
        number=True,
    ),
    Column(
        "Cost",
        "USD with its subagents; + means that some responses have no known price",
        _money,
        lambda e: e.total.cost_usd,
        number=True,
    ),
    Column(
        "Tokens",
        "All billed tokens, subagents included",
        lambda e: _count(e.total.tokens),
        lambda e: e.total.tokens,
        number=True,
    ),
    Column(
        "Responses",
        "API responses, subagents included",
        lambda e: _count(e.total.responses),
        lambda e: e.total.responses,
        number=True,
    ),
    Column(
        "Compactions",
        "How many times the context was compacted",
        lambda e: _count(e.compactions),
        lambda e: e.compactions,
        number=True,
    ),
    Column(
        "Findings",
        "What the doctor found: errors, warnings, infos; ? before it looked",
        _findings,
        lambda e: e.findings,
    ),
    Column(
        "Errors",
        "API errors and failed tool calls",
        lambda e: f"{e.api_errors} / {e.tool_errors}",
        lambda e: (e.api_errors, e.tool_errors),
        number=True,
        shown=False,
    ),
    Column(
        "Subagents",
        "Files of subagents",
        lambda e: _count(e.subagents),
        lambda e: e.subagents,
        number=True,
        shown=False,
    ),
    Column(
        "Size", "Bytes of the session's file", lambda e: _count(e.bytes), lambda e: e.bytes, number=True, shown=False
    ),
    Column(
        "Started", "When the first record was written", lambda e: _when(e.first_ms), lambda e: e.first_ms, shown=False
    ),
    Column(
        "Duration",
        "From the first record to the last",
        _duration,
        lambda e: e.last_ms - e.first_ms,
        number=True,
        shown=False,
    ),
    Column(
        "Versions", "Client versions that wrote it", lambda e: ", ".join(e.versions), lambda e: e.versions, shown=False
    ),
    Column(
        "Forked from",
        "The session it was resumed or forked from",
        lambda e: e.forked_from,
        lambda e: e.forked_from,
        shown=False,
    ),
    Column("Owner", "Whose it is, in a shared library", lambda e: e.owner, lambda e: e.owner, shown=False),
    Column("File", "Where it is", lambda e: e.path, lambda e: e.path, shown=False),
)
TITLE, CONTEXT, FINDINGS, LAST, COST = 1, 5, 10, 0, 6
"""Positions of the columns that delegates and the first sorting need."""


class LibraryModel(QAbstractTableModel):
    """Sessions by visible row. Filter and sort rebuild a list of positions; selection follows the sessions."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._entries: tuple[SessionEntry, ...] = ()
        self._rows: list[int] = []
        self._shown: Callable[[SessionEntry], bool] = _everything
        self._column, self._order = LAST, Qt.SortOrder.DescendingOrder
        self._now = 0.0

    @property
    def entries(self) -> tuple[SessionEntry, ...]:
        """Every session, shown or not."""
        return self._entries

    def entry(self, row: int) -> SessionEntry:
        """The session of a visible row."""
        return self._entries[self._rows[row]]

    def row_of(self, session_row: int) -> int:
        """The visible row of a session by its row id in the catalogue, −1 when it is not shown."""
        return next((r for r, place in enumerate(self._rows) if self._entries[place].id == session_row), -1)

    def set_entries(self, entries: Sequence[SessionEntry], now: float) -> None:
        """Show other sessions; `now` (seconds since 1970) tells which are being written."""
        self._rebuild(tuple(entries), now)

    def set_now(self, now: float) -> None:
        """Mark the sessions that are being written at another moment (seconds since 1970)."""
        self._now = now
        if self._rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self._rows) - 1, len(COLUMNS) - 1))

    def set_filter(self, shown: Callable[[SessionEntry], bool]) -> None:
        """Show only the sessions that pass."""
        self._shown = shown
        self._rebuild(self._entries, self._now)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; what has no value comes last in both orders."""
        self._column, self._order = column, order
        self._rebuild(self._entries, self._now)

    def _rebuild(self, entries: tuple[SessionEntry, ...], now: float) -> None:
        self.layoutAboutToBeChanged.emit()
        old = self.persistentIndexList()
        ids = [self._entries[self._rows[index.row()]].id for index in old]
        self._entries, self._now = entries, now
        self._rows = self._sorted([place for place, entry in enumerate(entries) if self._shown(entry)])
        row_of = {entries[place].id: row for row, place in enumerate(self._rows)}
        new = [
            self.index(row_of[number], index.column()) if number in row_of else QModelIndex()
            for number, index in zip(ids, old, strict=True)
        ]
        self.changePersistentIndexList(old, new)
        self.layoutChanged.emit()

    def _sorted(self, places: list[int]) -> list[int]:
        key = COLUMNS[self._column].key
        known = [(key(self._entries[p]), p) for p in places]
        descending = self._order == Qt.SortOrder.DescendingOrder
        with_value = sorted(
            (pair for pair in known if pair[0] is not None), key=lambda pair: pair[0], reverse=descending
        )
        return [p for _, p in with_value] + [p for value, p in known if value is None]

    def rowCount(self, parent: Index = _NO_INDEX) -> int:
        """Visible sessions."""
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = _NO_INDEX) -> int:
        """All columns, the hidden ones too."""
        return 0 if parent.isValid() else len(COLUMNS)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The cell's text, alignment, tip and what the delegates draw."""
        if not index.isValid() or index.row() >= len(self._rows):
            return None
        entry, column = self._entries[self._rows[index.row()]], COLUMNS[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return column.text(entry)[:200]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if column.number else Qt.AlignmentFlag.AlignLeft
            return side | Qt.AlignmentFlag.AlignVCenter
        if role == Role.SERIES:
            return entry.series
        if role == Role.FINDINGS:
            return entry.findings
        if role == Role.LIVE:
            return entry.is_live(self._now)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return (
                f"{column.title}: {column.text(entry)[:200]}{', being written now' if entry.is_live(self._now) else ''}"
            )
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Titles and tips of the columns."""
        if orientation == Qt.Orientation.Horizontal and 0 <= section < len(COLUMNS):
            if role == Qt.ItemDataRole.DisplayRole:
                return COLUMNS[section].title
            if role == Qt.ItemDataRole.ToolTipRole:
                return COLUMNS[section].tip
            if role == Qt.ItemDataRole.TextAlignmentRole and COLUMNS[section].number:
                return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return None


def _everything(_entry: SessionEntry) -> bool:
    return True
