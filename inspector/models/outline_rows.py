"""The visible rows of the tree and its expansion state: numpy arrays, no Qt.

A *node* is one int64: source (0 the main conversation, k > 0 the k-th opened subagent) << 40 | kind << 36 | index.
Nodes, not row numbers, name rows everywhere outside the model: they survive expansion and filtering.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from compaction.conversation import Session
from inspector.models.outline_structure import Ints, Mask, OutlineStructure, Shown


class Kind(IntEnum):
    """What a row is. Index of the node: epoch, group, head record, block, subagent file, thread, subagent file."""

    EPOCH = 0
    GROUP = 1
    MESSAGE = 2
    BLOCK = 3
    SUBAGENT = 4
    THREAD = 5
    NOTE = 6


_KIND_SHIFT, _SOURCE_SHIFT = 36, 40
_INDEX_MASK = (1 << _KIND_SHIFT) - 1

Depths = npt.NDArray[np.int8]


def node_of(kind: Kind, index: int, source: int = 0) -> int:
    """The node of a row."""
    return (source << _SOURCE_SHIFT) | (int(kind) << _KIND_SHIFT) | int(index)


def kind_of(node: int) -> Kind:
    """What the node is."""
    return Kind((node >> _KIND_SHIFT) & 15)


def index_of(node: int) -> int:
    """Its index (see `Kind`)."""
    return node & _INDEX_MASK


def source_of(node: int) -> int:
    """0 for the main conversation, else the number of the subagent."""
    return node >> _SOURCE_SHIFT


@dataclass(frozen=True, slots=True)
class ExpansionState:
    """What differs from the default expansion, by record key (see `record_keys`)."""

    closed_epochs: npt.NDArray[np.uint64]
    closed_groups: npt.NDArray[np.uint64]
    open_messages: npt.NDArray[np.uint64]
    open_blocks: set[tuple[int, int]]


def record_keys(structure: OutlineStructure) -> npt.NDArray[np.uint64]:
    """Per record, a key that is the same after reading the file again: of its uuid, else of its line."""
    t = structure.conversation.transcript
    return np.where(t.uuid_key != 0, t.uuid_key, t.line.astype(np.uint64))


def arrange(session: Session, shown: Shown, state: ExpansionState | None = None) -> Rows:
    """Everything the tree needs of a session, ready to be shown; for a worker thread."""
    structure = OutlineStructure(session.conversation)
    links: dict[int, list[int]] = {}
    for number, file in enumerate(session.subagents, 1):
        links.setdefault(file.tool_use_block, []).append(number)
    rows = Rows(structure, links)
    rows.shown = shown
    if state is not None:
        rows.restore(state)
    structure.prepare()
    rows.nodes, rows.depth = rows.rebuild()
    return rows


class Rows:
    """Expansion state and the rows that follow from it.

    Attributes:
        nodes, depth: the visible rows, one entry each.
        open: nodes of kinds BLOCK, SUBAGENT and THREAD that are expanded (few); epochs, groups and messages are masks.
    """

    def __init__(self, main: OutlineStructure, subagents: dict[int, list[int]]) -> None:
        """Args:
        main: structure of the main conversation.
        subagents: block of the main conversation → source numbers of the subagents it started; −1: no known call.
        """
        self._subagents = subagents
        self.structures: dict[int, OutlineStructure] = {0: main}
        self.failed: dict[int, str] = {}
        self.shown = Shown()
        self.open: set[int] = set()
        self.forced: dict[int, set[int]] = {}
        self._epoch_open: dict[int, Mask] = {}
        self._group_open: dict[int, Mask] = {}
        self._head_open: dict[int, Mask] = {}
        self._visible: dict[int, Mask] = {}
        self.nodes: Ints = np.zeros(0, np.int64)
        self.depth: Depths = np.zeros(0, np.int8)
        self._add_state(0)

    def _add_state(self, source: int) -> None:
        structure = self.structures[source]
        self._epoch_open[source] = np.ones(len(structure.epoch_first), bool)
        self._group_open[source] = np.ones(len(structure.group_first), bool)
        self._head_open[source] = np.zeros(len(structure.heads), bool)
        self._visible.pop(source, None)

    def add_source(self, source: int, structure: OutlineStructure) -> None:
        """A subagent was read: its rows can be shown now."""
        self.structures[source] = structure
        self.failed.pop(source, None)
        self._add_state(source)

    def set_shown(self, shown: Shown) -> None:
        """Change what is shown (call `rebuild` after); masks of a filter belong to the main conversation."""
        self.shown = shown
        self._visible.clear()

    def force(self, source: int, record: int) -> None:
        """Show a record although the switches or the filter hide it: somebody jumped to it."""
        self.forced.setdefault(source, set()).add(record)
        self._visible.pop(source, None)

    def visible(self, source: int) -> Mask:
        """Per head of a source, whether its row passes the switches and the filter."""
        if source not in self._visible:
            shown = self.shown
            if source and shown.matches is not None:
                shown = Shown(shown.sidechain, shown.meta, shown.bookkeeping)
            self._visible[source] = self.structures[source].visible_heads(shown, self.forced.get(source, frozenset()))
        return self._visible[source]

    # ---- expansion -------------------------------------------------------------------------------------------------

    def is_open(self, node: int) -> bool:
        """Whether the node is expanded."""
        kind, index, source = kind_of(node), index_of(node), source_of(node)
        if kind is Kind.EPOCH:
            return bool(self._epoch_open[source][index])
        if kind is Kind.GROUP:
            return bool(self._group_open[source][index])
        if kind is Kind.MESSAGE:
            return bool(self._head_open[source][self.structures[source].head_of[index]])
        return node in self.open

    def set_open(self, node: int, is_open: bool) -> None:
        """Change the state only; the rows follow by `children` or `rebuild`."""
        kind, index, source = kind_of(node), index_of(node), source_of(node)
        if kind is Kind.EPOCH:
            self._epoch_open[source][index] = is_open
        elif kind is Kind.GROUP:
            self._group_open[source][index] = is_open
        elif kind is Kind.MESSAGE:
            self._head_open[source][self.structures[source].head_of[index]] = is_open
        elif is_open:
            self.open.add(node)
        else:
            self.open.discard(node)

    def set_all(self, epochs: bool, groups: bool, messages: bool) -> None:
        """Expand or collapse whole levels of every source that is read."""
        for source in self.structures:
            self._epoch_open[source][:] = epochs
            self._group_open[source][:] = groups
            self._head_open[source][:] = messages
        if not messages:
            self.open.clear()

    def can_open(self, node: int) -> bool:
        """Whether the node has rows below it."""
        kind, index, source = kind_of(node), index_of(node), source_of(node)
        structure = self.structures.get(source)
        if kind in (Kind.SUBAGENT, Kind.THREAD):
            return True
        if kind is Kind.BLOCK:
            return bool(self._below_block(index, source))
        if structure is None or kind is Kind.NOTE:
            return False
        if kind is Kind.MESSAGE:
            return bool(structure.head_blocks[structure.head_of[index]])
        return True

    def _below_block(self, block: int, source: int) -> list[int]:
        """Nodes of the subagents and inline sidechains that a block started."""
        found = [node_of(Kind.THREAD, t, source) for t in self._threads(block, source)]
        if source == 0:
            found += [node_of(Kind.SUBAGENT, number) for number in self._subagents.get(block, ())]
        return found

    def _threads(self, block: int, source: int) -> list[int]:
        return self.structures[source].thread_starters.get(block, []) if self.shown.sidechain else []

    # ---- state that survives a reload ------------------------------------------------------------------------------

    def state(self) -> ExpansionState:
        """What is expanded in the main conversation, by keys that survive reading the file again."""
        structure = self.structures[0]
        keys = record_keys(structure)
        closed_groups = structure.heads[structure.group_first[~self._group_open[0]]] if structure.count else _empty()[0]
        closed_epochs = [e.first_record for e in structure.conversation.epochs if structure.count]
        closed = np.array(closed_epochs, np.int64)[~self._epoch_open[0][: len(closed_epochs)]]
        opened = [node for node in self.open if source_of(node) == 0]
        return ExpansionState(
            keys[closed],
            keys[closed_groups],
            keys[structure.heads[self._head_open[0]]],
            {self._block_key(index_of(node)) for node in opened if kind_of(node) is Kind.BLOCK},
        )

    def restore(self, state: ExpansionState) -> None:
        """Set the expansion as it was; what is new keeps the default."""
        structure = self.structures[0]
        if not structure.count:
            return
        keys = record_keys(structure)
        firsts = np.array([e.first_record for e in structure.conversation.epochs], np.int64)
        self._epoch_open[0][:] = ~np.isin(keys[firsts], state.closed_epochs)
        self._group_open[0][:] = ~np.isin(keys[structure.heads[structure.group_first]], state.closed_groups)
        self._head_open[0][:] = np.isin(keys[structure.heads], state.open_messages)
        if state.open_blocks:
            t = structure.conversation.transcript
            wanted = np.array([record for record, _ in state.open_blocks], np.uint64)
            for record in np.flatnonzero(np.isin(keys, wanted)):
                for block in t.blocks_of(int(record)):
                    if self._block_key(block) in state.open_blocks:
                        self.open.add(node_of(Kind.BLOCK, block))

    def _block_key(self, block: int) -> tuple[int, int]:
        t = self.structures[0].conversation.transcript
        record = int(t.block_record[block])
        return int(record_keys(self.structures[0])[record]), int(t.block_position[block])

    # ---- rows ------------------------------------------------------------------------------------------------------

    def rebuild(self) -> tuple[Ints, Depths]:
        """All visible rows from the expansion state, in vector steps over the heads."""
        structure = self.structures[0]
        nodes, depth = self._levels(0, 0, len(structure.heads), 0, with_epochs=True)
        loose = [node_of(Kind.SUBAGENT, number) for number in self._subagents.get(-1, ())]
        return self._with_nested(*_append(nodes, depth, loose, 0))

    def children(self, node: int, depth: int) -> tuple[Ints, Depths]:
        """The visible rows below an expanded node at that depth, without the node itself."""
        kind, index, source = kind_of(node), index_of(node), source_of(node)
        structure = self.structures.get(source)
        below = depth + 1
        if kind is Kind.SUBAGENT:
            return self._with_nested(*self._subagent_rows(index, below))
        if structure is None:
            return _empty()
        if kind is Kind.EPOCH:
            first, end = int(structure.epoch_first[index]), int(structure.epoch_end[index])
            rows = self._groups(source, first, end, below)
        elif kind is Kind.GROUP:
            rows = self._messages(source, int(structure.group_first[index]), int(structure.group_end[index]), below)
        elif kind is Kind.MESSAGE:
            blocks = structure.blocks(int(structure.head_of[index]))
            base = node_of(Kind.BLOCK, 0, source)
            rows = np.array(blocks, np.int64) + base, np.full(len(blocks), below, np.int8)
        elif kind is Kind.THREAD:
            rows = self._thread_rows(source, index, below)
        elif kind is Kind.BLOCK:
            nested = self._below_block(index, source)
            rows = np.array(nested, np.int64), np.full(len(nested), below, np.int8)
        else:
            rows = _empty()
        return self._with_nested(*rows)

    def _subagent_rows(self, number: int, depth: int) -> tuple[Ints, Depths]:
        structure = self.structures.get(number)
        if structure is None:
            return np.array([node_of(Kind.NOTE, number)], np.int64), np.array([depth], np.int8)
        several = len(structure.epoch_first) > 1
        return self._levels(number, 0, len(structure.heads), depth, with_epochs=several)

    def _thread_rows(self, source: int, thread: int, depth: int) -> tuple[Ints, Depths]:
        heads = np.array(self.structures[source].threads[thread], np.int64)
        return self._message_rows(source, heads[self.visible(source)[heads]], depth, in_place=False)

    def _groups(self, source: int, first: int, end: int, depth: int) -> tuple[Ints, Depths]:
        structure = self.structures[source]
        if end <= first:
            return _empty()
        heads = int(structure.group_first[first]), int(structure.group_end[end - 1])
        return self._levels(source, *heads, depth, with_epochs=False)

    def _messages(self, source: int, first_head: int, end_head: int, depth: int) -> tuple[Ints, Depths]:
        heads = np.arange(first_head, end_head)
        return self._message_rows(source, heads[self._in_place(source)[first_head:end_head]], depth, in_place=True)

    def _in_place(self, source: int) -> Mask:
        """Heads that stand in file order: the main thread, and the first of a sidechain whose call is not known."""
        structure = self.structures[source]
        mask: Mask = self.visible(source) & (structure.head_thread == 0)
        for thread in self._threads(-1, source):
            heads = structure.threads[thread]
            mask[heads[0]] = bool(self.visible(source)[heads].any())
        return mask

    def _message_rows(self, source: int, heads: Ints, depth: int, *, in_place: bool) -> tuple[Ints, Depths]:
        """Message rows with the blocks of the open ones; `in_place`: a sidechain without a known call is one row."""
        structure = self.structures[source]
        nodes = structure.heads[heads].astype(np.int64) + node_of(Kind.MESSAGE, 0, source)
        opens = self._head_open[source][heads] & (structure.head_blocks[heads] > 0)
        loose = {structure.threads[t][0]: t for t in self._threads(-1, source)} if in_place else {}
        for position in np.flatnonzero(np.isin(heads, list(loose))) if loose else ():
            nodes[position] = node_of(Kind.THREAD, loose[int(heads[position])], source)
            opens[position] = False
        depths = np.full(len(nodes), depth, np.int8)
        opened = heads[opens]
        if not len(opened):
            return nodes, depths
        blocks, owner = structure.blocks_of_heads(opened)
        return _merge(
            (heads * 2, nodes, depths),
            (owner * 2 + 1, blocks + node_of(Kind.BLOCK, 0, source), np.full(len(blocks), depth + 1, np.int8)),
        )

    def _levels(
        self, source: int, first_head: int, end_head: int, depth: int, *, with_epochs: bool
    ) -> tuple[Ints, Depths]:
        """Epochs (when asked for), groups, messages and blocks of a range of heads that ends with whole groups."""
        structure = self.structures[source]
        seen = np.zeros(len(structure.heads), bool)
        seen[first_head:end_head] = self._in_place(source)[first_head:end_head]
        counts = np.concatenate(([0], np.cumsum(seen)))
        groups = np.flatnonzero(counts[structure.group_end] > counts[structure.group_first])
        epoch_of_group = structure.group_epoch[groups]
        parts: list[tuple[Ints, Ints, Depths]] = []
        group_depth = depth
        if with_epochs:
            group_depth += 1
            epochs = np.unique(epoch_of_group)
            key = structure.group_first[structure.epoch_first[epochs]] * 8
            parts.append((key, epochs + node_of(Kind.EPOCH, 0, source), np.full(len(epochs), depth, np.int8)))
            groups = groups[self._epoch_open[source][epoch_of_group]]
        parts.append(
            (
                structure.group_first[groups] * 8 + 1,
                groups + node_of(Kind.GROUP, 0, source),
                np.full(len(groups), group_depth, np.int8),
            )
        )
        open_groups = groups[self._group_open[source][groups]]
        inside = np.zeros(len(structure.heads) + 1, np.int64)
        np.add.at(inside, structure.group_first[open_groups], 1)
        np.add.at(inside, structure.group_end[open_groups], -1)
        heads = np.flatnonzero(seen & (np.cumsum(inside)[:-1] > 0))
        nodes, depths = self._message_rows(source, heads, group_depth + 1, in_place=True)
        # Blocks follow their message: give both the message's key and merge stably.
        is_message = depths == group_depth + 1
        owner = heads[np.cumsum(is_message) - 1] if len(nodes) else heads
        parts.append((owner * 8 + 2, nodes, depths))
        return _merge(*parts)

    def _with_nested(self, nodes: Ints, depth: Depths) -> tuple[Ints, Depths]:
        """Insert what is open below blocks, subagents and threads (few) into rows that were built in vector steps."""
        if not self.open:
            return nodes, depth
        positions = np.flatnonzero(np.isin(nodes, np.fromiter(self.open, np.int64, len(self.open))))
        if not len(positions):
            return nodes, depth
        pieces: list[tuple[Ints, Depths]] = []
        start = 0
        for position in map(int, positions):
            pieces.append((nodes[start : position + 1], depth[start : position + 1]))
            pieces.append(self.children(int(nodes[position]), int(depth[position])))
            start = position + 1
        pieces.append((nodes[start:], depth[start:]))
        return np.concatenate([p[0] for p in pieces]), np.concatenate([p[1] for p in pieces])

    # ---- ancestors -------------------------------------------------------------------------------------------------

    def ancestors(self, node: int) -> list[int]:
        """The nodes above, outermost first; they have to be open for the node to be a row."""
        kind, index, source = kind_of(node), index_of(node), source_of(node)
        if kind is Kind.EPOCH:
            return self._above_source(source)
        if kind in (Kind.SUBAGENT, Kind.NOTE):
            return self._above_subagent(index) if kind is Kind.SUBAGENT else self._path(node_of(Kind.SUBAGENT, index))
        structure = self.structures[source]
        if kind is Kind.GROUP:
            if source and len(structure.epoch_first) < 2:
                return self._above_source(source)
            return self._path(node_of(Kind.EPOCH, int(structure.group_epoch[index]), source))
        if kind is Kind.BLOCK:
            record = int(structure.conversation.transcript.block_record[index])
            head = int(structure.heads[structure.head_of[record]])
            return self._path(node_of(Kind.MESSAGE, head, source))
        if kind is Kind.THREAD:
            starter = structure.conversation.inline_starter(index)
            if starter >= 0:
                return self._path(node_of(Kind.BLOCK, starter, source))
            first = int(structure.heads[structure.threads[index][0]])
            return self._path(node_of(Kind.GROUP, int(structure.record_group[first]), source))
        thread = int(structure.head_thread[structure.head_of[index]])
        if thread:
            return self._path(node_of(Kind.THREAD, thread, source))
        return self._path(node_of(Kind.GROUP, int(structure.record_group[index]), source))

    def _path(self, parent: int) -> list[int]:
        return [*self.ancestors(parent), parent]

    def _above_source(self, source: int) -> list[int]:
        return self._path(node_of(Kind.SUBAGENT, source)) if source else []

    def _above_subagent(self, number: int) -> list[int]:
        for block, numbers in self._subagents.items():
            if number in numbers and block >= 0:
                return self._path(node_of(Kind.BLOCK, block))
        return []


def _empty() -> tuple[Ints, Depths]:
    return np.zeros(0, np.int64), np.zeros(0, np.int8)


def _append(nodes: Ints, depth: Depths, more: list[int], level: int) -> tuple[Ints, Depths]:
    if not more:
        return nodes, depth
    return (
        np.concatenate([nodes, np.array(more, np.int64)]),
        np.concatenate([depth, np.full(len(more), level, np.int8)]),
    )


def _merge(*parts: tuple[Ints, Ints, Depths]) -> tuple[Ints, Depths]:
    """Rows of several levels in the order of their keys; equal keys keep the order given."""
    key = np.concatenate([part[0] for part in parts])
    order = np.argsort(key, kind="stable")
    return np.concatenate([part[1] for part in parts])[order], np.concatenate([part[2] for part in parts])[order]
