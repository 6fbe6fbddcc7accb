"""The records a client loads from a transcript, as links it can walk and relink without touching the file."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from compaction.conversation import DANGLING, Conversation
from compaction.request.profiles import ResumeProfile
from compaction.transcript import BlockType, Flag, RecordKind, key_of

MISSING = -2
"""`parent` of a row whose parent the client does not have."""
NONE = -1
"""`parent` of a row that has none."""

# Plain numbers: enum members cost a look-up in every test of every row.
USER, ASSISTANT = int(RecordKind.USER), int(RecordKind.ASSISTANT)
SYSTEM, ATTACHMENT = int(RecordKind.SYSTEM), int(RecordKind.ATTACHMENT)
SIDECHAIN, META, BOUNDARY = int(Flag.SIDECHAIN), int(Flag.META), int(Flag.COMPACT_BOUNDARY)
HAS_CALL, HAS_RESULT = int(Flag.TOOL_USE), int(Flag.TOOL_RESULT)

_LOADED = (RecordKind.USER, RecordKind.ASSISTANT, RecordKind.SYSTEM, RecordKind.ATTACHMENT)


_LOST_LINES = ("nul_padding", "spliced_record", "invalid_escape")
"""Damage that makes a client skip the whole line, although the record in it can be recovered."""


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


class LoadedRows:
    """The rows of one transcript as a client generation loads them.

    A row is named by its *slot*: the first record with its uuid. Where a uuid stands twice (a replay after resume),
    the later record's content is used at the earlier one's place, as all clients do.

    Attributes (Python lists over all records, indexed by slot):
        parent: slot of the parent, NONE or MISSING; changed by `relink`.
        alive: the client has this row.
        content: the record that holds the row's content.
    """

    def __init__(
        self,
        conversation: Conversation,
        profile: ResumeProfile,
        limit: int | None = None,
        *,
        with_recovered: bool = False,
    ) -> None:
        """`limit`: only the records before it. `with_recovered`: also what this reader recovered from damaged lines."""
        self.conversation = conversation
        self.profile = profile
        self.transcript = t = conversation.transcript
        self.limit = len(t) if limit is None else limit
        loaded = np.isin(t.kind, _LOADED) & conversation.chained
        loaded[self.limit :] = False
        if not with_recovered:
            loaded[_unreadable(conversation, profile)] = False
        links = loaded | ((t.kind == RecordKind.PROGRESS) & conversation.chained)
        links[self.limit :] = False
        slot, content = self._slots(loaded)
        self.slot_of = slot
        self.content: list[int] = content.tolist()
        self.alive: list[bool] = (loaded & (slot == np.arange(len(slot)))).tolist()
        self.parent: list[int] = self._parents(loaded, links, slot, content)
        self.kind: list[int] = t.kind.tolist()
        self.flags: list[int] = t.flags.tolist()
        self.time: list[int] = t.timestamp_ms.tolist()
        self._children: dict[int, list[int]] | None = None

    def _slots(self, loaded: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """For every record the first loaded record with its uuid, and for that slot the last one."""
        t = self.transcript
        slot = np.arange(len(t), dtype=np.int64)
        content = slot.copy()
        members = np.flatnonzero(loaded)
        if len(members):
            _, first, inverse = np.unique(t.uuid_key[members], return_index=True, return_inverse=True)
            slot[members] = members[first][inverse]
            content[slot[members]] = members  # later records overwrite earlier ones
        return slot, content

    def _parents(
        self,
        loaded: npt.NDArray[np.bool_],
        links: npt.NDArray[np.bool_],
        slot: npt.NDArray[np.int64],
        content: npt.NDArray[np.int64],
    ) -> list[int]:
        raw = self.conversation.parent
        inside = links if self.profile.bridges_progress else loaded
        parent = np.where(raw == DANGLING, MISSING, raw).astype(np.int64)
        named = parent >= 0
        parent[named] = np.where(inside[parent[named]], slot[parent[named]], MISSING)
        if self.profile.bridges_progress:
            parent = self._bridged(parent)
        own = np.full(len(parent), NONE, np.int64)
        own[slot[loaded]] = parent[content[slot[loaded]]]
        return [int(p) for p in own]

    def _bridged(self, parent: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Parents that are progress records replaced by those records' own, transitively (pointer doubling)."""
        progress = self.transcript.kind == RecordKind.PROGRESS
        for _ in range(len(parent).bit_length() + 1):
            through = (parent >= 0) & progress[np.maximum(parent, 0)]
            if not through.any():
                break
            parent = parent.copy()
            parent[through] = parent[parent[through]]
        parent[(parent >= 0) & progress[np.maximum(parent, 0)]] = MISSING
        return parent

    @property
    def children(self) -> dict[int, list[int]]:
        """Slots of the rows below each slot, by file position; rebuilt after `relink`."""
        if self._children is None:
            found: dict[int, list[int]] = {}
            for row, parent in enumerate(self.parent):
                if parent >= 0 and self.alive[row]:
                    found.setdefault(parent, []).append(row)
            self._children = found
        return self._children

    def flag(self, slot: int, flag: int) -> bool:
        """Whether the row's content record has `flag` (one of this module's numbers)."""
        return bool(self.flags[self.content[slot]] & flag)

    def is_kind(self, slot: int, kind: int) -> bool:
        """Whether the row is of this kind (one of this module's numbers)."""
        return self.kind[self.content[slot]] == kind

    def speaks(self, slot: int) -> bool:
        """A user or assistant row."""
        kind = self.kind[self.content[slot]]
        return kind in (USER, ASSISTANT)

    def is_result(self, slot: int) -> bool:
        """A user row that holds a tool_result."""
        record = self.content[slot]
        return self.kind[record] == USER and bool(self.flags[record] & HAS_RESULT)

    def rides(self, slot: int) -> bool:
        """A row that hangs beside the conversation: attachment, system record, injected user text."""
        record = self.content[slot]
        kind, flags = self.kind[record], self.flags[record]
        if kind == ATTACHMENT:
            return True
        if kind == SYSTEM:
            return not flags & BOUNDARY
        return kind == USER and bool(flags & META) and not flags & HAS_RESULT

    def message_key(self, slot: int) -> int:
        """xxh3 of `message.id` of an assistant row, 0 when it has none."""
        return self._message_keys[self.content[slot]]

    def calls(self, slot: int) -> list[int]:
        """Keys of the tool_use ids of an assistant row."""
        record = self.content[slot]
        return self._call_keys.get(record, []) if self.kind[record] == ASSISTANT else []

    def answers(self, slot: int) -> list[int]:
        """Keys of the tool_use ids that a user row's tool_results answer."""
        record = self.content[slot]
        return self._answer_keys.get(record, []) if self.kind[record] == USER else []

    @cached_property
    def _message_keys(self) -> list[int]:
        return [int(key) for key in self.transcript.message_key.tolist()]

    @cached_property
    def _call_keys(self) -> dict[int, list[int]]:
        return self._keys(BlockType.TOOL_USE)

    @cached_property
    def _answer_keys(self) -> dict[int, list[int]]:
        return self._keys(BlockType.TOOL_RESULT)

    def _keys(self, kind: BlockType) -> dict[int, list[int]]:
        """The ids' keys of all blocks of one type, by record."""
        t = self.transcript
        chosen = np.flatnonzero(t.block_type == kind)
        found: dict[int, list[int]] = {}
        for record, key in zip(t.block_record[chosen].tolist(), t.block_key[chosen].tolist(), strict=True):
            found.setdefault(record, []).append(key)
        return found

    def slot_of_uuid(self, uuid: object) -> int:
        """The slot of a uuid, MISSING when the client does not have it."""
        if not isinstance(uuid, str):
            return MISSING
        return self.slot_of_key(key_of(uuid))

    def slot_of_key(self, key: int) -> int:
        """The slot of a uuid by its xxh3 key, MISSING when the client does not have it."""
        found = self._by_key.get(int(key), MISSING)
        return found if found >= 0 and self.alive[found] else MISSING

    @cached_property
    def _by_key(self) -> dict[int, int]:
        keys = self.transcript.uuid_key
        return {int(keys[row]): row for row in range(self.limit) if self.alive[row]}

    def boundaries(self) -> list[int]:
        """Slots of the compact boundaries, by file position."""
        return [
            b.record
            for b in self.transcript.boundaries
            if not b.micro and b.record < self.limit and self.alive[b.record]
        ]

    def relink(self) -> bool:
        """Put preserved messages behind the summary and drop what lies before the last boundary.

        transcript-format.md §7: cut at the last boundary by file position, then summary, preserved, later records.
        A compaction without preserved messages leaves the links as they are (its boundary has no parent anyway).
        Returns whether messages were preserved.
        """
        boundaries = self.boundaries()
        keeping = [b for b in boundaries if self._preserved_field(b)]
        if not keeping:
            return False
        last = boundaries[-1]
        kept = self._preserved(last) if keeping[-1] == last else (MISSING, [])
        if kept is None:
            return False
        anchor, rows = kept
        if any(row < 0 for row in rows):
            return False
        if rows:
            self._splice(anchor, rows)
        self._drop_before(last, rows)
        self._children = None
        return bool(rows)

    def _preserved_field(self, boundary: int) -> dict[str, object]:
        details = self.transcript.payload(self.content[boundary]).get("compactMetadata")
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
            row = self.parent[row]
        return None

    def _splice(self, anchor: int, rows: list[int]) -> None:
        kept = set(rows)
        followers = [row for row in self.children.get(anchor, []) if row not in kept]
        previous = anchor
        for row in rows:
            self.parent[row] = previous
            previous = row
        for row in followers:
            self.parent[row] = rows[-1]

    def _drop_before(self, boundary: int, kept: list[int]) -> None:
        staying = set(kept)
        gone = [row for row in range(boundary) if self.alive[row] and row not in staying]
        for row in gone:
            self.alive[row] = False
        if not kept:
            return
        dropped = set(gone)
        for row in range(self.limit):
            if self.alive[row] and self.speaks(row) and self.parent[row] in dropped:
                self.parent[row] = kept[-1]
