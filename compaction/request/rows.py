"""The records a client loads from a transcript, as links it can walk and relink without touching the file."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from compaction.conversation import DANGLING, Conversation
from compaction.request.profiles import ResumeProfile
from compaction.transcript import BlockType, Flag, RecordKind, key_of

MISSING = -2
"""Parent of a row whose parent the client does not have."""
NONE = -1
"""Parent of a row that has none."""

# Plain numbers: enum members cost a look-up in every test of every row.
USER, ASSISTANT = int(RecordKind.USER), int(RecordKind.ASSISTANT)
SYSTEM, ATTACHMENT = int(RecordKind.SYSTEM), int(RecordKind.ATTACHMENT)
SIDECHAIN, META, BOUNDARY = int(Flag.SIDECHAIN), int(Flag.META), int(Flag.COMPACT_BOUNDARY)
HAS_CALL, HAS_RESULT = int(Flag.TOOL_USE), int(Flag.TOOL_RESULT)

_LOADED = (RecordKind.USER, RecordKind.ASSISTANT, RecordKind.SYSTEM, RecordKind.ATTACHMENT)
_LOST_LINES = ("nul_padding", "spliced_record", "invalid_escape")
"""Damage that makes a client skip the whole line, although the record in it can be recovered."""

Bools = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


def _unreadable(conversation: Conversation, profile: ResumeProfile) -> list[int]:
    """Records that this reader recovered from damaged lines and the client does not see (measured, case 18)."""
    t = conversation.transcript
    found: list[int] = []
    for damage in t.damage:
        glued = damage.kind == "two_records_one_line"
        if not glued and damage.kind not in _LOST_LINES:
            continue
        start = int(np.searchsorted(t.line, damage.line, "left"))
        end = int(np.searchsorted(t.line, damage.line, "right"))
        found += range(start + 1 if glued and profile.reads_glued_lines else start, end)
    return found


class RowTable:
    """All rows of one transcript as a client generation reads them; shared by every request made of it.

    A row is named by its *slot*: the first record with its uuid. Where a uuid stands twice (a replay after resume),
    the later record's content is used at the earlier one's place, as all clients do.

    Attributes (Python lists over all records):
        loaded: the client reads this record and it is a slot.
        kind, flags, time: the transcript's columns (`time` in milliseconds, 0 = none).
        parent: per slot the slot of the parent, NONE or MISSING.
        copies: for a slot whose uuid stands more than once, its records in file order.
    """

    def __init__(self, conversation: Conversation, profile: ResumeProfile, *, with_recovered: bool = False) -> None:
        """`with_recovered`: also what this reader recovered from damaged lines and the client does not see."""
        self.conversation = conversation
        self.profile = profile
        self.transcript = t = conversation.transcript
        loaded = np.isin(t.kind, _LOADED) & conversation.chained
        if not with_recovered:
            loaded[_unreadable(conversation, profile)] = False
        self.slot_of, self.copies = self._slots(loaded)
        self.loaded: list[bool] = (loaded & (self.slot_of == np.arange(len(t)))).tolist()
        self.parents: Numbers = self._parents(loaded)
        self.parent: list[int] = self.parents.tolist()
        self.kind: list[int] = t.kind.tolist()
        self.flags: list[int] = t.flags.tolist()
        self.time: list[int] = t.timestamp_ms.tolist()
        self.message_key: list[int] = t.message_key.tolist()

    def _slots(self, loaded: Bools) -> tuple[Numbers, dict[int, list[int]]]:
        """For every record the first loaded record with its uuid, and the records of each uuid that repeats."""
        t = self.transcript
        slot = np.arange(len(t), dtype=np.int64)
        copies: dict[int, list[int]] = {}
        members = np.flatnonzero(loaded)
        if len(members):
            _, first, inverse = np.unique(t.uuid_key[members], return_index=True, return_inverse=True)
            slot[members] = members[first][inverse]
            for record in members[slot[members] != members].tolist():
                copies.setdefault(int(slot[record]), [int(slot[record])]).append(record)
        return slot, copies

    def _parents(self, loaded: Bools) -> Numbers:
        """The parent's slot of every record (of the record's own link, before copies are put together)."""
        t, chained = self.transcript, self.conversation.chained
        raw = self.conversation.parent
        progress = (t.kind == RecordKind.PROGRESS) & chained
        inside = loaded | progress if self.profile.bridges_progress else loaded
        parent = np.where(raw == DANGLING, MISSING, raw).astype(np.int64)
        named = parent >= 0
        parent[named] = np.where(inside[parent[named]], self.slot_of[parent[named]], MISSING)
        if self.profile.bridges_progress:
            parent = _bridged(parent, progress)
        return parent

    @cached_property
    def children(self) -> dict[int, list[int]]:
        """The slots whose link names each slot, by file position."""
        found: dict[int, list[int]] = {}
        for row, parent in enumerate(self.parent):
            if parent >= 0 and self.loaded[row]:
                found.setdefault(parent, []).append(row)
        return found

    @cached_property
    def by_key(self) -> dict[int, int]:
        """The slot of each uuid's key."""
        keys = self.transcript.uuid_key.tolist()
        return {keys[row]: row for row, loaded in enumerate(self.loaded) if loaded}

    @cached_property
    def call_keys(self) -> dict[int, list[int]]:
        """Keys of the tool_use ids in each record."""
        return self._block_keys(BlockType.TOOL_USE)

    @cached_property
    def answer_keys(self) -> dict[int, list[int]]:
        """Keys of the tool_use ids that each record's tool_results answer."""
        return self._block_keys(BlockType.TOOL_RESULT)

    def _block_keys(self, kind: BlockType) -> dict[int, list[int]]:
        t = self.transcript
        chosen = np.flatnonzero(t.block_type == kind)
        found: dict[int, list[int]] = {}
        for record, key in zip(t.block_record[chosen].tolist(), t.block_key[chosen].tolist(), strict=True):
            found.setdefault(record, []).append(key)
        return found

    @cached_property
    def by_time(self) -> dict[bool, tuple[list[int], list[int]]]:
        """Per side (sidechain or not) the rows by time and their times; of equal times the earlier record stands last,
        so that it is met first when walking back."""
        sides: dict[bool, list[int]] = {False: [], True: []}
        for row, loaded in enumerate(self.loaded):
            if loaded and self.time[row] and self.transcript.type_name(row) != "system/file_snapshot":
                sides[bool(self.flags[row] & SIDECHAIN)].append(row)
        found = {}
        for side, rows in sides.items():
            rows.sort(key=lambda row: (self.time[row], -row))
            found[side] = (rows, [self.time[row] for row in rows])
        return found


def _bridged(parent: Numbers, progress: Bools) -> Numbers:
    """Parents that are progress records replaced by those records' own, transitively (pointer doubling)."""
    for _ in range(len(parent).bit_length() + 1):
        through = (parent >= 0) & progress[np.maximum(parent, 0)]
        if not through.any():
            break
        parent = parent.copy()
        parent[through] = parent[parent[through]]
    parent[(parent >= 0) & progress[np.maximum(parent, 0)]] = MISSING
    return parent


class LoadedRows:
    """The rows before `limit` as a client holds them: a view of the table with the relinking of one moment on top."""

    def __init__(self, table: RowTable, limit: int | None = None) -> None:
        self.table = table
        self.profile = table.profile
        self.conversation = table.conversation
        self.transcript = table.transcript
        self.limit = len(table.loaded) if limit is None else limit
        self.boundary = 0
        """Rows before it are gone, except `kept`."""
        self.kept: list[int] = []
        self._kept: set[int] = set()
        self._relinked: dict[int, int] = {}

    def alive(self, row: int) -> bool:
        """Whether the client has this row."""
        if not self.table.loaded[row] or row >= self.limit:
            return False
        return row >= self.boundary or row in self._kept

    def content(self, row: int) -> int:
        """The record that holds the row's content."""
        copies = self.table.copies.get(row)
        return row if copies is None else max(record for record in copies if record < self.limit)

    def parent(self, row: int) -> int:
        """The row's parent after relinking: a slot, NONE or MISSING (also when the client does not have it)."""
        moved = self._relinked.get(row)
        if moved is not None:
            return moved
        table = self.table
        parent = table.parent[row] if row not in table.copies else int(table.parents[self.content(row)])
        if parent < 0:
            return parent
        if self.alive(parent):
            return parent
        # What followed dropped history follows the preserved messages now.
        return self.kept[-1] if self.kept and parent < self.boundary <= row and self.speaks(row) else MISSING

    def children(self, row: int) -> list[int]:
        """The rows below `row`, by file position."""
        return [child for child in self.table.children.get(row, []) if self.alive(child) and self.parent(child) == row]

    def flag(self, row: int, flag: int) -> bool:
        """Whether the row's content record has `flag` (one of this module's numbers)."""
        return bool(self.table.flags[self.content(row)] & flag)

    def is_kind(self, row: int, kind: int) -> bool:
        """Whether the row is of this kind (one of this module's numbers)."""
        return self.table.kind[self.content(row)] == kind

    def time(self, row: int) -> int:
        """The row's timestamp in milliseconds, 0 = none."""
        return self.table.time[self.content(row)]

    def speaks(self, row: int) -> bool:
        """A user or assistant row."""
        return self.table.kind[self.content(row)] in (USER, ASSISTANT)

    def is_result(self, row: int) -> bool:
        """A user row that holds a tool_result."""
        record = self.content(row)
        return self.table.kind[record] == USER and bool(self.table.flags[record] & HAS_RESULT)

    def rides(self, row: int) -> bool:
        """A row that hangs beside the conversation: attachment, system record, injected user text."""
        record = self.content(row)
        kind, flags = self.table.kind[record], self.table.flags[record]
        if kind == ATTACHMENT:
            return True
        if kind == SYSTEM:
            return not flags & BOUNDARY
        return kind == USER and bool(flags & META) and not flags & HAS_RESULT

    def message_key(self, row: int) -> int:
        """xxh3 of `message.id` of an assistant row, 0 when it has none."""
        return self.table.message_key[self.content(row)]

    def calls(self, row: int) -> list[int]:
        """Keys of the tool_use ids of an assistant row."""
        record = self.content(row)
        return self.table.call_keys.get(record, []) if self.table.kind[record] == ASSISTANT else []

    def answers(self, row: int) -> list[int]:
        """Keys of the tool_use ids that a user row's tool_results answer."""
        record = self.content(row)
        return self.table.answer_keys.get(record, []) if self.table.kind[record] == USER else []

    def slot_of_uuid(self, uuid: object) -> int:
        """The slot of a uuid, MISSING when the client does not have it."""
        return self.slot_of_key(key_of(uuid)) if isinstance(uuid, str) else MISSING

    def slot_of_key(self, key: int) -> int:
        """The slot of a uuid by its xxh3 key, MISSING when the client does not have it."""
        found = self.table.by_key.get(int(key), MISSING)
        return found if found >= 0 and self.alive(found) else MISSING

    def boundaries(self) -> list[int]:
        """Slots of the compact boundaries, by file position."""
        found = [b.record for b in self.transcript.boundaries if not b.micro and b.record < self.limit]
        return [record for record in found if self.alive(record)]

    def hide_before(self, boundary: int, keeping: set[int]) -> None:
        """Treat the rows before `boundary` as gone, except `keeping`."""
        self.boundary = max(self.boundary, boundary)
        self._kept = set(keeping)

    def relink(self) -> bool:
        """Put preserved messages behind the summary and drop what lies before the last boundary.

        transcript-format.md §7: cut at the last boundary by file position, then summary, preserved, later records.
        Where no compaction preserved anything the links stay as they are (a boundary has no parent anyway).
        Returns whether messages were preserved.
        """
        boundaries = self.boundaries()
        keeping = [b for b in boundaries if self._preserved_field(b)]
        if not keeping:
            return False
        last = boundaries[-1]
        found = self._preserved(last) if keeping[-1] == last else (MISSING, [])
        if found is None:
            return False
        anchor, rows = found
        if any(row < 0 for row in rows):
            return False
        if rows:
            self._splice(anchor, rows)
        self.boundary, self.kept, self._kept = last, rows, set(rows)
        return bool(rows)

    def _preserved_field(self, boundary: int) -> dict[str, object]:
        details = self.transcript.payload(self.content(boundary)).get("compactMetadata")
        if not isinstance(details, dict):
            return {}
        return {k: details[k] for k in ("preservedMessages", "preservedSegment") if isinstance(details.get(k), dict)}

    def _preserved(self, boundary: int) -> tuple[int, list[int]] | None:
        """Anchor and preserved slots (MISSING for a uuid that is not there); None when the segment is broken."""
        found = self._preserved_field(boundary)
        listed = found.get("preservedMessages")
        if isinstance(listed, dict):
            uuids = listed.get("uuids")
            rows = [self.slot_of_uuid(u) for u in uuids] if isinstance(uuids, list) else []
            return self.slot_of_uuid(listed.get("anchorUuid")), rows
        segment = found.get("preservedSegment")
        if not isinstance(segment, dict):
            return MISSING, []
        head, row = self.slot_of_uuid(segment.get("headUuid")), self.slot_of_uuid(segment.get("tailUuid"))
        walked: list[int] = []
        seen: set[int] = set()
        while row >= 0 and row not in seen:
            seen.add(row)
            walked.append(row)
            if row == head:
                return self.slot_of_uuid(segment.get("anchorUuid")), walked[::-1]
            row = self.parent(row)
        return None

    def _splice(self, anchor: int, rows: list[int]) -> None:
        """anchor → rows in order → what hung on the anchor."""
        kept = set(rows)
        followers = [row for row in self.children(anchor) if row not in kept] if anchor >= 0 else []
        previous = anchor
        for row in rows:
            self._relinked[row] = previous
            previous = row
        for row in followers:
            self._relinked[row] = rows[-1]
