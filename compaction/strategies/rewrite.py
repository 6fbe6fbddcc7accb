"""Changes to a request block by block that become both the request afterwards and the edits of the transcript."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from compaction.request.wire import Json, Origin, WireMessage, WireRequest
from compaction.strategies.context import ContextView
from compaction.strategies.joining import Joiner
from compaction.strategies.parts import Part, Place
from compaction.strategies.records import NewRecords
from compaction.transcript import key_of, patching
from compaction.transcript.edits import Edit, InsertRecord, RemoveRecord, ReplaceRecord

Patch = tuple[patching.Path, Any]
"""A change inside a content block: the path from the block, and the new value."""


@dataclass(frozen=True, slots=True)
class StandIn:
    """A new user message that takes the place of removed blocks: the blocks from `first` on that are `removed`."""

    first: Place
    content: tuple[Json, ...]
    record: int
    """The first removed record: the stand-in's line goes before it and its parent becomes the stand-in's."""


class Rewrite:
    """Collects what happens to which block of one request; `request` and `edits` are two readings of it.

    Only complete records are removed from the file; where a record keeps some of its blocks, the others are cut out
    of its bytes. Children of removed records are re-attached to the nearest record that stays, so the chain holds.
    """

    def __init__(self, view: ContextView, records: NewRecords) -> None:
        self.view = view
        self.transcript = view.conversation.transcript
        self._records = records
        self._replaced: dict[Place, tuple[Json, tuple[Patch, ...]]] = {}
        self._removed: set[Place] = set()
        self._stand_ins: list[StandIn] = []
        self._parents: dict[int, str | None] = {}

    @property
    def touched(self) -> set[Place]:
        """Every place that does not stay as it is."""
        return self._removed | set(self._replaced) | {s.first for s in self._stand_ins}

    def replace(self, part: Part, block: Json, patches: Sequence[Patch]) -> None:
        """Block `part` becomes `block`; `patches` make the same change inside the record."""
        self._replaced[part.place] = (block, tuple(patches))

    def remove(self, parts: Iterable[Part]) -> None:
        """These blocks are not sent any more."""
        self._removed.update(part.place for part in parts)

    def stand_in(self, parts: Sequence[Part], content: Sequence[Json]) -> None:
        """These blocks are replaced by one user message with `content`."""
        self.remove(parts)
        record = min(part.record for part in parts if part.origin is not None)
        self._stand_ins.append(StandIn(parts[0].place, tuple(content), record))

    def reparent(self, record: int, parent: str | None) -> None:
        """Record `record` (or what hangs on it, should it go) gets that parent uuid."""
        self._parents[record] = parent

    def request(self) -> WireRequest:
        """The request afterwards; user messages that a removal brought together are joined as the client does."""
        if not self._removed and not self._stand_ins:
            return replace(self.view.wire, messages=self._replaced_only(), verified="profile")
        inserted = {s.first: s for s in self._stand_ins}
        joiner = Joiner(self.view)
        origin = -1
        for number, message in enumerate(self.view.wire.messages):
            for role, content, origins, new in self._pieces(number, message, inserted):
                if not new and origin == number:
                    joiner.extend(content, origins)
                    continue
                joiner.add(role, content, origins, joins=new or origin == -2 or self._met(number), new=new)
                origin = -2 if new else number
        return replace(self.view.wire, messages=joiner.finished(), verified="profile")

    def _replaced_only(self) -> list[WireMessage]:
        """The messages where only the content of blocks changes: nothing moves, so nothing joins."""
        messages = list(self.view.wire.messages)
        for (number, position), (block, _) in self._replaced.items():
            message = messages[number]
            if message is self.view.wire.messages[number]:
                message = messages[number] = WireMessage(message.role, list(message.content), message.origins)
            message.content[position] = block
        return messages

    def _met(self, number: int) -> bool:
        """Whether all between message `number` and the kept one before it went, so that they came together there."""
        previous = number - 1
        while previous >= 0:
            blocks = len(self.view.wire.messages[previous].content)
            if any((previous, b) not in self._removed for b in range(blocks)):
                return previous < number - 1
            previous -= 1
        return False

    def _pieces(
        self, number: int, message: WireMessage, inserted: dict[Place, StandIn]
    ) -> list[tuple[str, list[Json], list[Origin | None], bool]]:
        """Message `number` in runs of kept blocks and stand-ins: role, blocks, origins, whether it is a stand-in."""
        pieces: list[tuple[str, list[Json], list[Origin | None], bool]] = []
        for position, block in enumerate(message.content):
            place = (number, position)
            if place in inserted:
                content = inserted[place].content
                pieces.append(("user", list(content), [None] * len(content), True))
            if place in self._removed:
                continue
            if not pieces or pieces[-1][3]:
                pieces.append((message.role, [], [], False))
            pieces[-1][1].append(self._replaced[place][0] if place in self._replaced else block)
            pieces[-1][2].append(message.origins[position])
        return pieces

    def edits(self) -> tuple[Edit, ...]:
        """The same changes to the transcript's records."""
        gone = self._gone_blocks()
        removed = {record for record, positions in gone.items() if self._whole(record, positions)}
        removed |= self._unsent_pieces(removed)
        data: dict[int, bytes] = {}
        self._patch_blocks(data, {r: p for r, p in gone.items() if r not in removed})
        inserts, stand_in_of = self._stand_in_records(removed)
        if not self._records.plain:
            self._relink(data, removed, stand_in_of)
        return (
            *inserts,
            *(RemoveRecord(record) for record in sorted(removed)),
            *(ReplaceRecord(record, new) for record, new in sorted(data.items())),
        )

    def _gone_blocks(self) -> dict[int, set[int]]:
        """Record → positions of its content blocks that go (−1: the record as a whole was rendered)."""
        gone: dict[int, set[int]] = defaultdict(set)
        for place in self._removed:
            origin = self.view.by_place[place].origin
            if origin is not None:
                gone[origin.record].add(origin.block)
        return gone

    def _unsent_pieces(self, removed: set[int]) -> set[int]:
        """Pieces of wholly removed responses that the request did not send (another model's thinking, say).

        Left behind they would bring the response back: newer clients complete a response from its pieces.
        """
        conversation = self.view.conversation
        found: set[int] = set()
        for response in {int(conversation.response_of[record]) for record in removed} - {-1}:
            pieces = set(conversation.response_records(response))
            if all(part.place in self._removed for piece in pieces for part in self.view.parts_of_record(piece)):
                found |= pieces
        return found

    def _whole(self, record: int, positions: set[int]) -> bool:
        """Whether nothing of a record would be left to send."""
        blocks = self.transcript.blocks_of(record)
        if -1 in positions or len(blocks) <= 1:
            return True
        sent = {
            part.origin.block
            for part in self.view.parts_of_record(record)
            if part.origin is not None and part.place not in self._removed
        }
        return not sent

    def _patch_blocks(self, data: dict[int, bytes], cut: dict[int, set[int]]) -> None:
        prefix = self.transcript.format.message_path
        changes: dict[int, list[tuple[patching.Path, Any]]] = defaultdict(list)
        for place, (_, patches) in self._replaced.items():
            origin = self.view.by_place[place].origin
            if origin is None or place in self._removed:
                continue
            at: patching.Path = (*prefix, "content", origin.block)
            changes[origin.record] += [((*at, *path), value) for path, value in patches]
        for record, changed in changes.items():
            data[record] = patching.replace_values(self.transcript.record_bytes(record), changed)
        for record, positions in cut.items():
            line = data.get(record, self.transcript.record_bytes(record))
            for position in sorted(positions, reverse=True):
                line = patching.remove_value(line, (*prefix, "content", position))
            data[record] = line

    def _stand_in_records(self, removed: set[int]) -> tuple[list[Edit], dict[int, str]]:
        """The stand-ins' lines, and for every record that one of them replaces, its uuid."""
        inserts: list[Edit] = []
        names: dict[int, str] = {}
        ordered = sorted(self._stand_ins, key=lambda s: s.record)
        gone = sorted(removed)
        for number, stand_in in enumerate(ordered):
            end = ordered[number + 1].record if number + 1 < len(ordered) else len(self.transcript)
            first = stand_in.record
            # A record that keeps a block (results ahead of the prompt) stays ahead of the stand-in.
            stays = first not in removed
            above = first if stays else int(self.view.conversation.parent[first])
            parent = self._surviving(above, removed, names)
            stamp = int(self.transcript.timestamp_ms[first]) or self._records.newest_ms
            name, line = self._records.user(parent, list(stand_in.content), stamp, meta=True)
            inserts.append(InsertRecord(first if stays else first - 1, line))
            for record in gone[bisect_left(gone, first) : bisect_left(gone, end)]:
                names[record] = name
        return inserts, names

    def _surviving(self, record: int, removed: set[int], names: dict[int, str]) -> str | None:
        """The uuid that a child of `record` hangs on when the removed records are gone; None is a root."""
        parent = self.view.conversation.parent
        while record in removed:
            if record in names:
                return names[record]
            if record in self._parents:
                return self._parents[record]
            above = int(parent[record])
            if above < 0:
                # The removed record was a root, or its own parent was never written: pass on what it said.
                return self.transcript.parent_uuid(record) or None
            record = above
        return self.transcript.uuid(record) if record >= 0 else None

    def _relink(self, data: dict[int, bytes], removed: set[int], names: dict[int, str]) -> None:
        t, conversation = self.transcript, self.view.conversation
        for record in sorted(removed):
            for child in conversation.children(record):
                if child not in removed:
                    parent = self._surviving(record, removed, names)
                    data[child] = patching.replace_value(
                        data.get(child, t.record_bytes(child)), ("parentUuid",), parent
                    )
        for record, parent in self._parents.items():
            if record not in removed:
                data[record] = patching.replace_value(data.get(record, t.record_bytes(record)), ("parentUuid",), parent)
        for record, leaf in named_leaves(self.view, removed).items():
            survivor = self._surviving(leaf, removed, names)
            if survivor is not None:
                line = data.get(record, t.record_bytes(record))
                data[record] = patching.replace_value(line, ("leafUuid",), survivor)


def named_leaves(view: ContextView, removed: set[int]) -> dict[int, int]:
    """`last-prompt` records that name a removed record as the leaf → that record."""
    t = view.conversation.transcript
    if not removed or not t.leaf_key:
        return {}
    by_key = {int(t.uuid_key[record]): record for record in removed}
    numbers = [n for n, name in enumerate(t.type_names) if name == "last-prompt"]
    found: dict[int, int] = {}
    for record in np.flatnonzero(np.isin(t.type_number, numbers)).tolist():
        leaf = t.payload(record).get("leafUuid")
        target = by_key.get(key_of(leaf)) if isinstance(leaf, str) else None
        if target is not None:
            found[record] = target
    return found


def carries_reminders(view: ContextView, parts: Iterable[Part]) -> bool:
    """Whether reminders of the client hang on some of these blocks: it puts them elsewhere once the blocks are gone."""
    return any(
        part.role == "user" and (part.origin is None or part.origin.block < 0 or _extended(view, part))
        for part in parts
    )


def _extended(view: ContextView, part: Part) -> bool:
    """Whether the client appended a reminder to a result."""
    content = part.value.get("content")
    if part.type != "tool_result" or (isinstance(content, str) and "<system-reminder>" not in content):
        return False
    return view.recorded(part) != part.value
