"""A tree as a flat list of its visible rows, for a table view (qt.md 2a): rows expand by splicing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from inspector.models.columns import alignment

Index = QModelIndex | QPersistentModelIndex

_ROOT = QModelIndex()

LEVEL_ROLE = Qt.ItemDataRole.UserRole + 101
"""Depth of the row, 0 for the top."""

EXPANDED_ROLE = Qt.ItemDataRole.UserRole + 102
"""True or False for a row with children, None for a leaf."""

EXPAND_LIMIT = 20_000
"""Most rows that "expand all" makes; more would be of no use to a person and slow to list."""


@dataclass(slots=True, eq=False)
class FlatRow:
    """One visible row.

    Attributes:
        data: what the row shows; the model knows its type.
        level: depth.
        expandable: whether it has children.
        expanded: whether they are listed below it.
    """

    data: Any
    level: int = 0
    expandable: bool = False
    expanded: bool = False


class FlatTreeModel(QAbstractTableModel):
    """Base of the small trees: subclasses give `children_of`, `text` and what else `data` needs.

    Signals:
        toggled(data): a row was expanded or collapsed by its `data`.
    """

    toggled = Signal(object)

    columns: tuple[str, ...] = ("",)
    figures: frozenset[int] = frozenset()
    """Columns of figures: they and their titles stand at the right."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[FlatRow] = []

    # For subclasses -------------------------------------------------------------------------------------------

    def children_of(self, row: FlatRow) -> list[FlatRow]:
        """The rows below an expandable row; their level is set by the caller."""
        raise NotImplementedError

    def text(self, row: FlatRow, column: int) -> str:
        """What a cell shows."""
        raise NotImplementedError

    def decoration(self, row: FlatRow, column: int, role: int) -> object:
        """Any other role of a cell; None for nothing special."""
        return None

    def copied(self, row: FlatRow) -> str:
        """What Ctrl+C puts on the clipboard for a row: its cells, tabs between them."""
        return "\t".join(self.text(row, column) for column in range(len(self.columns)))

    # Structure ------------------------------------------------------------------------------------------------

    def set_rows(self, rows: list[FlatRow]) -> None:
        """Replace everything."""
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    @property
    def rows(self) -> list[FlatRow]:
        """The visible rows, top first; do not change it."""
        return self._rows

    def row_at(self, index: Index) -> FlatRow | None:
        """The row of an index."""
        number = index.row()
        return self._rows[number] if index.isValid() and number < len(self._rows) else None

    def set_expanded(self, number: int, expanded: bool) -> None:
        """List or hide the children of a row; nothing happens for a leaf."""
        row = self._rows[number]
        if not row.expandable or row.expanded == expanded:
            return
        if expanded:
            children = self._listed(row)
            row.expanded = True
            if children:
                self.beginInsertRows(QModelIndex(), number + 1, number + len(children))
                self._rows[number + 1 : number + 1] = children
                self.endInsertRows()
        else:
            end = self.end_of(number)
            row.expanded = False
            if end > number + 1:
                self.beginRemoveRows(QModelIndex(), number + 1, end - 1)
                del self._rows[number + 1 : end]
                self.endRemoveRows()
        cell = self.index(number, 0)
        self.dataChanged.emit(cell, cell)
        self.toggled.emit(row.data)

    def end_of(self, number: int) -> int:
        """The number after the last visible row below a row."""
        level = self._rows[number].level
        end = number + 1
        while end < len(self._rows) and self._rows[end].level > level:
            end += 1
        return end

    def parent_of(self, number: int) -> int:
        """The number of the row above in the tree, -1 for a top row."""
        level = self._rows[number].level
        for above in range(number - 1, -1, -1):
            if self._rows[above].level < level:
                return above
        return -1

    def expand_below(self, number: int, limit: int = EXPAND_LIMIT) -> bool:
        """Expand a row and everything below it, at most `limit` rows; whether all of it was listed."""
        row = self._rows[number]
        if not row.expandable:
            return True
        self.set_expanded(number, False)
        row.expanded = True
        listed: list[FlatRow] = []
        waiting = list(reversed(self._listed(row)))
        while waiting and len(listed) < limit:
            child = waiting.pop()
            listed.append(child)
            if child.expandable and len(listed) + len(waiting) < limit:
                child.expanded = True
                waiting += reversed(self._listed(child))
        complete = not waiting and all(child.expanded or not child.expandable for child in listed)
        listed += reversed(waiting)
        if listed:
            self.beginInsertRows(QModelIndex(), number + 1, number + len(listed))
            self._rows[number + 1 : number + 1] = listed
            self.endInsertRows()
        cell = self.index(number, 0)
        self.dataChanged.emit(cell, cell)
        return complete

    def _listed(self, row: FlatRow) -> list[FlatRow]:
        children = self.children_of(row)
        for child in children:
            child.level = row.level + 1
        return children

    # Qt -------------------------------------------------------------------------------------------------------

    def rowCount(self, parent: Index = _ROOT) -> int:
        """Visible rows; a row has no children for Qt."""
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = _ROOT) -> int:
        """Columns of the table."""
        return 0 if parent.isValid() else len(self.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Cell contents; the first column speaks its level and state to a screen reader."""
        row = self.row_at(index)
        if row is None:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self.text(row, index.column())
        if role == LEVEL_ROLE:
            return row.level
        if role == EXPANDED_ROLE:
            return row.expanded if row.expandable else None
        if role == Qt.ItemDataRole.TextAlignmentRole and index.column() in self.figures:
            return alignment(figure=True)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return self._spoken(row, index.column())
        return self.decoration(row, index.column(), role)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Column titles, each above its cells."""
        if orientation != Qt.Orientation.Horizontal or section >= len(self.columns):
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(section in self.figures)
        return self.columns[section] if role == Qt.ItemDataRole.DisplayRole else None

    def _spoken(self, row: FlatRow, column: int) -> str:
        text = self.text(row, column)
        if column:
            return text
        state = "" if not row.expandable else ", expanded" if row.expanded else ", collapsed"
        return f"level {row.level + 1}{state}, {text}"
