"""The tree's Qt model: flat visible rows under a table view (qt.md §2a), texts made only for rows that are painted."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np
from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QModelRoleDataSpan,
    QObject,
    QPersistentModelIndex,
    Qt,
    Signal,
)

from compaction.conversation import Conversation, Session
from inspector.documents.document import Scope, Selection
from inspector.models.outline_cells import RowCells, describe_row, moment_of
from inspector.models.outline_rows import Depths, Kind, Rows, index_of, kind_of, node_of, source_of
from inspector.models.outline_structure import Ints, OutlineStructure, Shown
from inspector.plain_text import plain_tip

Index = QModelIndex | QPersistentModelIndex
CACHED_ROWS = 4096
AT_ONCE = 150_000
"""Records up to which rows are made on the GUI thread: some 30 ms."""


class Column(IntEnum):
    """The tree's columns."""

    WHAT = 0
    PREVIEW = 1
    TOKENS = 2
    SHARE = 3
    TIME = 4
    FLAGS = 5


TITLES = ("Record", "Preview", "Tokens", "Share", "Time", "Flags")
TIPS = (
    "Epoch, API round, message or block",
    "The beginning of its text, or what it holds",
    "Tokens of its content; ≈ means estimated from characters (compaction.md §2)",
    "Share of the context recorded last in its epoch",
    "Local time of its first record",
    "Pair mark, errors, orphans, damage, compactions, branches",
)


class OutlineModel(QAbstractTableModel):
    """Rows of a session: epoch → API round → message → block, subagents below the call that started them.

    Signals:
        rebuild_wanted(int): many rows are to be made; answer from a worker with `finish_rebuild`. Until then `busy` is
            set, the old rows stay, and nothing can be expanded.
        subagent_wanted(int): the person opened subagent number k and it is not read yet; answer with `add_subagent`.
    """

    subagent_wanted = Signal(int)
    rebuild_wanted = Signal(int)

    def __init__(self, session: Session, rows: Rows, parent: QObject | None = None) -> None:
        """Args:
        session: whose subagent files the rows name.
        rows: from `arrange(session, …)`, with its visible rows built.
        """
        super().__init__(parent)
        self.session = session
        self.rows = rows
        self.partner: frozenset[int] = frozenset()
        self.busy = False
        self._generation = 0
        self._cells: OrderedDict[int, RowCells] = OrderedDict()
        self.described = 0

    # ---- Qt --------------------------------------------------------------------------------------------------------

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        """Visible rows."""
        return 0 if parent.isValid() else len(self.rows.nodes)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        """Always the same six."""
        return 0 if parent.isValid() else len(Column)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Text, accessible text and tool tip of a cell; everything else is drawn by the delegate."""
        if not index.isValid() or index.row() >= len(self.rows.nodes):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self.cells(index.row()).texts[index.column()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            right = index.column() in (Column.TOKENS, Column.SHARE)
            side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
            return int(side | Qt.AlignmentFlag.AlignVCenter)
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(self._tip(index.row(), index.column()))
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return self.accessible_text(index.row(), index.column())
        return None

    def _tip(self, row: int, column: int) -> str:
        node = self.node(row)
        if column == Column.TIME and kind_of(node) in (Kind.GROUP, Kind.MESSAGE, Kind.BLOCK, Kind.THREAD):
            selection = self.selection_of(row)
            return moment_of(self.conversation(node), selection.record)
        cells = self.cells(row)
        if column == Column.PREVIEW and cells.header:
            # In a narrow window its last facts have no room.
            return f"{cells.texts[column]}\n{cells.tips[column]}".strip()
        return cells.tips[column]

    def multiData(self, index: Index, span: QModelRoleDataSpan) -> None:  # type: ignore[override]
        """One Python call for all roles of a cell: keeps painting smooth beside a busy worker (qt.md §2a)."""
        for item in span:  # type: ignore[attr-defined]
            item.setData(self.data(index, item.role()))

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Column titles with their explanation."""
        if orientation is Qt.Orientation.Horizontal and 0 <= section < len(Column):
            if role == Qt.ItemDataRole.DisplayRole:
                return TITLES[section]
            if role == Qt.ItemDataRole.ToolTipRole:
                return TIPS[section]
            if role == Qt.ItemDataRole.TextAlignmentRole:
                right = section in (Column.TOKENS, Column.SHARE)
                return int(
                    (Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft)
                    | Qt.AlignmentFlag.AlignVCenter
                )
        return None

    # ---- rows ------------------------------------------------------------------------------------------------------

    def node(self, row: int) -> int:
        """The node of a row."""
        return int(self.rows.nodes[row])

    def depth(self, row: int) -> int:
        """How deep a row lies, 0 at the top."""
        return int(self.rows.depth[row])

    def row_of(self, node: int) -> int:
        """The row of a node, −1 when it is not a row now."""
        found = np.flatnonzero(self.rows.nodes == node)
        return int(found[0]) if len(found) else -1

    def cells(self, row: int) -> RowCells:
        """Texts and marks of a row, made when first asked for."""
        node = int(self.rows.nodes[row])
        found = self._cells.get(node)
        if found is None:
            found = describe_row(self, node)
            self.described += 1
            self._cells[node] = found
            if len(self._cells) > CACHED_ROWS:
                self._cells.popitem(last=False)
        return found

    def forget_texts(self) -> None:
        """Make texts again: the theme or a source of figures changed."""
        self._cells.clear()
        if len(self.rows.nodes):
            self.dataChanged.emit(self.index(0, 0), self.index(len(self.rows.nodes) - 1, len(Column) - 1))

    def structure(self, node: int) -> OutlineStructure:
        """The structure a node belongs to."""
        return self.rows.structures[source_of(node)]

    def conversation(self, node: int) -> Conversation:
        """The conversation a node belongs to."""
        return self.structure(node).conversation

    def accessible_text(self, row: int, column: int) -> str:
        """What a screen reader says: the first cell tells the whole row."""
        cells = self.cells(row)
        if column:
            return cells.texts[column]
        node = self.node(row)
        state = ("expanded, " if self.rows.is_open(node) else "collapsed, ") if self.rows.can_open(node) else ""
        flags = f", {cells.texts[Column.FLAGS]}" if cells.texts[Column.FLAGS] else ""
        tokens = f", {cells.texts[Column.TOKENS]} tokens" if cells.texts[Column.TOKENS] else ""
        return f"level {self.depth(row) + 1}, {state}{cells.texts[0]}{tokens}{flags}"

    # ---- expansion -------------------------------------------------------------------------------------------------

    def can_expand(self, row: int) -> bool:
        """Whether the row has rows below it."""
        return self.rows.can_open(self.node(row))

    def is_expanded(self, row: int) -> bool:
        """Whether its rows are shown."""
        node = self.node(row)
        return self.rows.can_open(node) and self.rows.is_open(node)

    def expand(self, row: int) -> None:
        """Show the rows below: one splice of the visible rows."""
        node = self.node(row)
        if self.busy or not self.rows.can_open(node) or self.rows.is_open(node):
            return
        self.rows.set_open(node, True)
        if kind_of(node) is Kind.SUBAGENT and index_of(node) not in self.rows.structures:
            self.subagent_wanted.emit(index_of(node))
        nodes, depth = self.rows.children(node, self.depth(row))
        if len(nodes):
            self.beginInsertRows(QModelIndex(), row + 1, row + len(nodes))
            self._splice(row + 1, row + 1, nodes, depth)
            self.endInsertRows()
        self._row_changed(row)

    def collapse(self, row: int) -> None:
        """Hide the rows below."""
        node = self.node(row)
        if self.busy or not self.rows.can_open(node) or not self.rows.is_open(node):
            return
        end = self.end_of(row)
        self.rows.set_open(node, False)
        if end > row + 1:
            self.beginRemoveRows(QModelIndex(), row + 1, end - 1)
            nothing = np.zeros(0, np.int64)
            self._splice(row + 1, end, nothing, nothing.astype(np.int8))
            self.endRemoveRows()
        self._row_changed(row)

    def toggle(self, row: int) -> None:
        """Expand or collapse."""
        if self.is_expanded(row):
            self.collapse(row)
        else:
            self.expand(row)

    def expand_below(self, row: int) -> None:
        """Expand a row and everything below it that is read (the * key)."""
        self.expand(row)
        level = self.depth(row)
        below = row + 1
        while below < len(self.rows.nodes) and self.depth(below) > level:
            if kind_of(self.node(below)) is not Kind.SUBAGENT:
                self.expand(below)
            below += 1

    def end_of(self, row: int) -> int:
        """One past the last row that lies below `row`."""
        after = self.rows.depth[row + 1 :] <= self.rows.depth[row]
        found = int(np.argmax(after)) if len(after) else 0
        return row + 1 + found if len(after) and after[found] else len(self.rows.nodes)

    def parent_row(self, row: int) -> int:
        """The row above it in the hierarchy, −1 at the top."""
        above = np.flatnonzero(self.rows.depth[:row] < self.rows.depth[row])
        return int(above[-1]) if len(above) else -1

    def set_all(self, *, epochs: bool = True, groups: bool = True, messages: bool = True) -> None:
        """Expand or collapse whole levels."""
        self.rows.set_all(epochs, groups, messages)
        self._rebuild()

    def set_shown(self, shown: Shown) -> None:
        """Change which records are shown; current row and selection follow their nodes."""
        self.rows.set_shown(shown)
        self._rebuild()

    def reveal(self, node: int) -> int:
        """Expand what is above a node, show it if it is hidden, and return its row (−1: it cannot be a row)."""
        row = self.row_of(node)
        if row >= 0:
            return row
        forced = self._force(node)
        if not self._open_above(node) or forced:
            self._rebuild(at_once=True)
        return self.row_of(node)

    def _open_above(self, node: int) -> bool:
        """Open what is above a node, by splices where that is a row; False when all rows have to be made anew."""
        spliced = True
        for above in self.rows.ancestors(node):
            row = self.row_of(above) if spliced and not self.busy else -1
            if row >= 0:
                self.expand(row)
            else:
                self.rows.set_open(above, True)
                spliced = False
        return spliced

    def _force(self, node: int) -> bool:
        """Show the record of a node although it is hidden; whether that was necessary."""
        if kind_of(node) not in (Kind.MESSAGE, Kind.BLOCK):
            return False
        structure, record = self.structure(node), self._record_of(node)
        if self.rows.visible(source_of(node))[structure.head_of[record]]:
            return False
        self.rows.force(source_of(node), record)
        return True

    def add_subagent(self, number: int, structure: OutlineStructure) -> None:
        """Show the rows of a subagent that was read."""
        self.rows.add_source(number, structure)
        self._rebuild()

    def fail_subagent(self, number: int, reason: str) -> None:
        """Say in its place why a subagent cannot be shown."""
        self.rows.failed[number] = reason
        self.forget_texts()

    def set_partner(self, nodes: frozenset[int]) -> None:
        """Highlight the rows of the selected block's partner."""
        if nodes != self.partner:
            old, self.partner = self.partner, nodes
            for node in old | nodes:
                row = self.row_of(node)
                if row >= 0:
                    self._row_changed(row)

    def _splice(self, start: int, end: int, nodes: Any, depth: Any) -> None:
        self.rows.nodes = np.concatenate([self.rows.nodes[:start], nodes, self.rows.nodes[end:]])
        self.rows.depth = np.concatenate([self.rows.depth[:start], depth, self.rows.depth[end:]])

    def _row_changed(self, row: int) -> None:
        self.dataChanged.emit(self.index(row, 0), self.index(row, len(Column) - 1))

    def _rebuild(self, *, at_once: bool = False) -> None:
        """New rows from the expansion state: at once, or by a worker when there are many (`rebuild_wanted`)."""
        self._generation += 1
        if not at_once and self.rows.structures[0].count > AT_ONCE:
            self.busy = True
            self.rebuild_wanted.emit(self._generation)
            return
        self.busy = False
        self._replace(*self.rows.rebuild())

    def finish_rebuild(self, generation: int, nodes: Ints, depth: Depths) -> None:
        """Take the rows that a worker made; those of an earlier state are dropped."""
        if generation == self._generation:
            self.busy = False
            self._replace(nodes, depth)

    def _replace(self, nodes: Ints, depth: Depths) -> None:
        """Exchange the rows; persistent indexes follow their nodes (qt.md §2a: no reset)."""
        self.layoutAboutToBeChanged.emit()
        old = self.persistentIndexList()
        kept = [(int(self.rows.nodes[index.row()]), index.column()) for index in old]
        self.rows.nodes, self.rows.depth = nodes, depth
        places = self._places({node for node, _ in kept})
        new = [self.index(places[node], column) if node in places else QModelIndex() for node, column in kept]
        if old:
            self.changePersistentIndexList(old, new)
        self.layoutChanged.emit()

    def _places(self, nodes: set[int]) -> dict[int, int]:
        """Row of each node that is a row now."""
        if not nodes:
            return {}
        found = np.flatnonzero(np.isin(self.rows.nodes, np.fromiter(nodes, np.int64, len(nodes))))
        return {int(self.rows.nodes[row]): int(row) for row in found}

    # ---- selection -------------------------------------------------------------------------------------------------

    def selection_of(self, row: int) -> Selection:
        """What a selected row means to the other views."""
        return self.selection_of_node(self.node(row))

    def selection_of_node(self, node: int) -> Selection:
        """What a node means to the other views; reads only, so a worker may ask for many."""
        kind, index, source = kind_of(node), index_of(node), source_of(node)
        if kind in (Kind.SUBAGENT, Kind.NOTE):
            structure = self.rows.structures.get(index)
            conversation = structure.conversation if structure is not None else None
            agent = self.session.subagents[index - 1].agent_id
            records: Sequence[int] = range(len(conversation.transcript)) if conversation is not None else ()
            return Selection(Scope.SUBAGENT, conversation, 0 if records else -1, records=records, agent_id=agent)
        structure = self.rows.structures[source]
        conversation = structure.conversation
        agent = self.session.subagents[source - 1].agent_id if source else ""
        if kind is Kind.EPOCH:
            epoch = conversation.epochs[index]
            span = range(epoch.first_record, epoch.end_record)
            return Selection(Scope.EPOCH, conversation, epoch.first_record, records=span, epoch=index, agent_id=agent)
        if kind is Kind.GROUP:
            first = int(structure.heads[structure.group_first[index]])
            group_end = int(np.searchsorted(structure.record_group, index, side="right"))
            number = int(structure.group_round[index])
            response = conversation.round(number).response if number else -1
            return Selection(
                Scope.ROUND,
                conversation,
                first,
                records=range(first, group_end),
                response=response,
                round=number,
                epoch=int(structure.group_epoch[index]),
                agent_id=agent,
            )
        block = index if kind is Kind.BLOCK else -1
        record = self._record_of(node)
        if kind is Kind.THREAD:
            heads = structure.threads[index]
            records = [int(r) for head in heads for r in structure.members(head)]
            scope = Scope.SUBAGENT
        else:
            records = [int(r) for r in structure.members(int(structure.head_of[record]))] if block < 0 else [record]
            scope = (
                Scope.BLOCK if block >= 0 else Scope.RESPONSE if conversation.response_of[record] >= 0 else Scope.RECORD
            )
        return Selection(
            scope,
            conversation,
            record,
            block,
            tuple(records),
            int(conversation.response_of[record]),
            int(conversation.round_of[record]),
            int(conversation.epoch_of[record]),
            agent,
        )

    def node_of_selection(self, selection: Selection) -> int | None:
        """The node another view's selection means, None when it is not of this session."""
        source = next((s for s, st in self.rows.structures.items() if st.conversation is selection.conversation), None)
        if source is None:
            return None
        structure = self.rows.structures[source]
        if selection.scope is Scope.SUBAGENT and source:
            return node_of(Kind.SUBAGENT, source)
        if selection.scope is Scope.EPOCH and selection.epoch >= 0:
            return node_of(Kind.EPOCH, selection.epoch, source)
        if selection.record < 0 or selection.record >= structure.count:
            return None
        if selection.scope is Scope.ROUND:
            return node_of(Kind.GROUP, int(structure.record_group[selection.record]), source)
        if selection.block >= 0:
            return node_of(Kind.BLOCK, selection.block, source)
        head = int(structure.heads[structure.head_of[selection.record]])
        return node_of(Kind.MESSAGE, head, source)

    def _record_of(self, node: int) -> int:
        """The record a message, block or thread row begins with."""
        structure = self.structure(node)
        kind, index = kind_of(node), index_of(node)
        if kind is Kind.BLOCK:
            return int(structure.conversation.transcript.block_record[index])
        if kind is Kind.THREAD:
            return int(structure.heads[structure.threads[index][0]])
        return index
