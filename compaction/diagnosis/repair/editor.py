"""One round of changes to a draft: blocks, records, links. Fixers ask for changes; `flush` makes them all at once."""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from compaction.diagnosis.case import Case
from compaction.diagnosis.repair.draft import Draft, Slot
from compaction.diagnosis.view import PLAIN_API
from compaction.transcript.document_edits import SetMember
from compaction.transcript.patching import (
    Path,
    PathNotFoundError,
    encode_value,
    find_span,
    has_value,
    insert_item,
    read_value,
    remove_value,
    replace_value,
    set_member,
)

Json = dict[str, Any]
Block = tuple[int, int]
_NAMESPACE = uuid.UUID("7a0d0d7c-9d4b-5f0e-8d7b-2a5f1f3c6e11")
_ENVELOPE = (
    "isSidechain",
    "userType",
    "cwd",
    "sessionId",
    "session_id",
    "version",
    "gitBranch",
    "slug",
    "entrypoint",
    "teamName",
    "agentName",
    "agentId",
)
"""Fields of a neighbour that a new record takes over (transcript-format.md §3)."""


@dataclass(slots=True)
class _Changes:
    """What is asked of one record's content, by block: what comes before it, what it becomes (None: goes)."""

    before: dict[int, list[Json]] = field(default_factory=dict)
    replaced: dict[int, Json | None] = field(default_factory=dict)
    inner: list[tuple[int, Path, Any]] = field(default_factory=list)
    order: list[int] | None = None


class PostponedError(Exception):
    """Another repair of this round has changed the same links: the next round does this one, on what is there then."""


class Editor:
    """Collects one round of changes. Record numbers are those of `case.transcript`, the draft's present version.

    Each change is asked for on behalf of a finding (`begin`), so the person can see what belongs to what.
    """

    def __init__(self, case: Case, draft: Draft) -> None:
        self.case = case
        self.draft = draft
        self.t = case.transcript
        self.conversation = case.conversation
        self.is_document = self.t.format_name == PLAIN_API
        self.slots = draft.slots()
        if len(self.slots) != len(self.t):
            raise ValueError(f"the draft has {len(self.slots)} records, its file {len(self.t)}")
        self._content: dict[int, _Changes] = {}
        self._parents: dict[int, str | None] = {}
        self._removed: dict[int, None] = {}
        self._raw: dict[int, list[Callable[[bytes], bytes]]] = {}
        self._inserted: list[tuple[int, Json, str, str]] = []
        self._notes: dict[int, list[tuple[str, str]]] = {}
        self._tails: dict[int, str] = {}
        self._moved: set[int] = set()
        self.answered: set[str] = set()
        """Tool ids that got a result in this round: a second finding about the same call adds none."""
        self._finding = ""
        self._reason = ""
        self.touched = False
        self.draft_untouched = True

    # --- asking -----------------------------------------------------------------------------------------------------

    def begin(self, finding: str, reason: str) -> None:
        """The changes that follow belong to this finding, for this reason."""
        self._finding, self._reason = finding, reason

    def only_for(self, finding: str) -> bool:
        """Whether everything asked for so far belongs to findings of this code."""
        return all(code == finding for notes in self._notes.values() for code, _ in notes) and self.draft_untouched

    def _touch(self, record: int) -> None:
        self.touched = True
        self._notes.setdefault(record, []).append((self._finding, self._reason))

    def _of(self, record: int) -> _Changes:
        self._touch(record)
        return self._content.setdefault(record, _Changes())

    def block(self, record: int, block: int) -> Json:
        """A block as it is now: never change it, copy it."""
        content = self.t.message(record).get("content")
        if isinstance(content, str):
            return {"type": "text", "text": content}
        found = content[block] if isinstance(content, list) and 0 <= block < len(content) else None
        return found if isinstance(found, dict) else {}

    def block_count(self, record: int) -> int:
        """How many blocks the record's content has."""
        content = self.t.message(record).get("content")
        return len(content) if isinstance(content, list) else int(isinstance(content, str))

    def is_gone(self, record: int, block: int) -> bool:
        """Whether the block, or its record, is to go already."""
        changes = self._content.get(record)
        return record in self._removed or (changes is not None and changes.replaced.get(block, {}) is None)

    def remove_block(self, record: int, block: int) -> None:
        """The block goes; a record that is left without any goes with it and what hung on it is relinked."""
        self._of(record).replaced[block] = None

    def set_block(self, record: int, block: int, value: Json) -> None:
        """The block becomes `value`."""
        self._of(record).replaced[block] = value

    def set_inside(self, record: int, block: int, path: Path, value: Any) -> None:
        """One value inside the block changes, or the member at the end of `path` is added; all other bytes stay."""
        self._of(record).inner.append((block, path, value))

    def insert_blocks(self, record: int, before: int, blocks: Iterable[Json]) -> None:
        """New blocks ahead of block number `before` (their count: at the end)."""
        self._of(record).before.setdefault(before, []).extend(blocks)

    def reorder(self, record: int, order: list[int]) -> None:
        """The blocks take the order of these old numbers; each keeps its bytes."""
        self._of(record).order = order

    def change_bytes(self, record: int, change: Callable[[bytes], bytes]) -> None:
        """The record's bytes go through `change`."""
        self._touch(record)
        self._raw.setdefault(record, []).append(change)

    def remove_record(self, record: int) -> None:
        """The record goes; its children hang on its parent then (G8)."""
        self._touch(record)
        self._removed[record] = None

    def set_parent(self, record: int, parent: str | None) -> None:
        """The record hangs on `parent` from now on, repeats of it too; nothing happens when it does already."""
        for twin in self.case.twins(record):
            if (self.t.parent_uuid(twin) or None) != parent or twin in self._parents:
                self._touch(twin)
                self._parents[twin] = parent

    def parent_of(self, record: int) -> str | None:
        """The uuid that the record hangs on, with what was asked for so far."""
        if record in self._parents:
            return self._parents[record]
        return self.t.parent_uuid(record) or None

    def insert_record(self, after: int, payload: Json) -> None:
        """A new record behind record `after` (-1: at the start)."""
        self.touched = True
        self._inserted.append((after, payload, self._finding, self._reason))

    # --- the chain --------------------------------------------------------------------------------------------------

    def tail_behind(self, anchor: int) -> str:
        """The uuid that the next record behind `anchor` hangs on: what was put there last, or `anchor` itself."""
        return self._tails.get(anchor) or self.t.uuid(anchor)

    def _successor(self, record: int, besides: int = -1) -> int | None:
        """The record that follows on the chain, `besides` left out; None at the leaf."""
        chain, position = self.case.chain, self.case.chain_position.get(record)
        if position is None:
            return None
        following = [r for r in chain[position + 1 : position + 3] if r != besides]
        return following[0] if following else None

    def insert_behind_in_chain(self, anchor: int, payload: Json) -> None:
        """A new record (with its uuid and parent) between `anchor` and what follows it on the chain."""
        successor = self._successor(anchor)
        if successor is None and "timestamp" in payload:
            # It becomes the leaf: clients that take the newest record must find it newer than its parent.
            payload = {**payload, "timestamp": _a_moment_later(payload["timestamp"])}
        self._preserve_too(self.tail_behind(anchor), payload["uuid"])
        self.insert_record(anchor, payload)
        self._tails[anchor] = payload["uuid"]
        if successor is not None:
            self.set_parent(successor, payload["uuid"])

    def _preserve_too(self, previous: str, identity: str) -> None:
        """A new record behind one that the last compaction preserved by name is preserved with it."""
        boundary, uuids = self.case.preserved
        if previous not in uuids:
            return
        uuids.insert(uuids.index(previous) + 1, identity)
        self.change_bytes(boundary, partial(_name_preserved, previous=previous, identity=identity))

    def needs_untouched(self, records: Iterable[int | None]) -> None:
        """Make sure that no other repair of this round has changed these records' links.

        Raises:
            PostponedError: one has.
        """
        if any(record in self._parents or record in self._removed for record in records if record is not None):
            raise PostponedError

    def move_in_chain(self, record: int, anchor: int) -> None:
        """Hang an existing record behind `anchor` and close the gap it leaves; what followed `anchor` follows it."""
        uuid = self.t.uuid(record)
        after = self._successor(record)
        if anchor not in self._tails:
            self.needs_untouched((record, after, self._successor(anchor, besides=record)))
        if after is not None:
            self.set_parent(after, self.parent_of(record))
        successor = self._successor(anchor, besides=record)
        self.set_parent(record, self.tail_behind(anchor))
        self._tails[anchor] = uuid
        if successor is not None:
            self.set_parent(successor, uuid)
        if record == self.case.chain[-1] and successor is not None:
            self._move_line(record, anchor)

    def _move_line(self, record: int, anchor: int) -> None:
        """The record is the leaf no longer: neither its line nor its time may make a client take it for the leaf."""
        payload = self.copy_of(record)
        payload["parentUuid"] = self.parent_of(record)
        if "timestamp" in payload:
            payload["timestamp"] = self.t.payload(anchor).get("timestamp", payload["timestamp"])
        self._moved.add(record)
        self.insert_record(anchor, payload)

    def set_document_member(self, name: str, value: Any) -> None:
        """A member beside the messages of an API document becomes `value` (None: goes)."""
        self.touched = True
        self.draft.members[name] = SetMember(name, value)

    def leave_out_damage(self) -> None:
        """The new file holds whole records only, each on a line of its own."""
        self.touched = True
        self.draft_untouched = False
        self.draft.keep_damage = False

    # --- new records ------------------------------------------------------------------------------------------------

    def new_uuid(self, *parts: str) -> str:
        """A uuid that is the same for the same parts, so that the same repair gives the same bytes."""
        return str(uuid.uuid5(_NAMESPACE, "\0".join(parts)))

    def new_user_record(self, like: int, identity: str, parent: str | None, content: list[Json], **more: Any) -> Json:
        """A user record with the envelope of record `like`."""
        source = self.t.payload(like)
        envelope = {key: source[key] for key in _ENVELOPE if key in source}
        return {
            "parentUuid": parent,
            **envelope,
            "type": "user",
            "message": {"role": "user", "content": content},
            "uuid": identity,
            **({"timestamp": source["timestamp"]} if "timestamp" in source else {}),
            **more,
        }

    def copy_of(self, record: int) -> Json:
        """The record's object, free to change."""
        return copy.deepcopy(self.t.payload(record))

    # --- making -----------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Make every change asked for; the draft's next `transcript()` shows them."""
        for record in list(self._content):
            if self._empties(record):
                self._removed.setdefault(record, None)
        self._keep_one_message()
        self._relink_around_removed()
        for record in self._changed_records():
            self._note(self.slots[record], record)
            if record in self._removed or record in self._moved:
                self._remove(self.slots[record])
            else:
                self._rewrite(record)
        for after, payload, finding, reason in self._placed():
            slot = self.draft.insert_behind(self.slots[after] if after >= 0 else None, encode_value(payload))
            slot.note(finding, reason)

    def _keep_one_message(self) -> None:
        """A document needs a message: when all would go, the first stays with visible words in it."""
        if self.is_document and len(self.t) and len(self._removed) == len(self.t) and not self._inserted:
            del self._removed[0]
            gone = dict.fromkeys(range(self.block_count(0)))
            self._content[0] = _Changes({0: [{"type": "text", "text": "(empty message)"}]}, {**gone})

    def _changed_records(self) -> list[int]:
        return sorted({*self._content, *self._parents, *self._removed, *self._raw})

    def _placed(self) -> list[tuple[int, Json, str, str]]:
        # Inserting behind one slot puts the newest first, so each place is filled from its last record backwards.
        return list(reversed(self._inserted))

    def _remove(self, slot: Slot) -> None:
        slot.removed = True
        if slot.origin < 0:
            slot.data = None

    def _note(self, slot: Slot, record: int) -> None:
        for finding, reason in self._notes.get(record, []):
            slot.note(finding, reason)

    def _empties(self, record: int) -> bool:
        changes = self._content[record]
        gone = {block for block, value in changes.replaced.items() if value is None}
        return bool(gone) and len(gone) == self.block_count(record) and not any(changes.before.values())

    def _relink_around_removed(self) -> None:
        if self.is_document or not self._removed:
            return
        for record in list(self._removed):
            if self._stands_twice(record):
                continue
            for child in self.conversation.children(record):
                if child not in self._removed and child not in self._parents:
                    self.begin(*self._notes[record][0])
                    self.set_parent(child, self._standing_parent(record))
        # What was asked to hang on a record that goes hangs on what stays of its ancestors.
        gone = {self.t.uuid(r): r for r in self._removed if self.t.uuid(r) and not self._stands_twice(r)}
        for record, parent in self._parents.items():
            if parent in gone:
                self._parents[record] = self._standing_parent(gone[parent])
        self._inserted = [
            (after, {**payload, "parentUuid": self._standing_parent(gone[payload["parentUuid"]])}, finding, reason)
            if payload.get("parentUuid") in gone
            else (after, payload, finding, reason)
            for after, payload, finding, reason in self._inserted
        ]
        self._move_leaf_mark()

    def _stands_twice(self, record: int) -> bool:
        """Whether another record with the same uuid stays: its children still find it."""
        return any(twin not in self._removed for twin in self.case.twins(record))

    def _standing_parent(self, record: int) -> str | None:
        """The nearest ancestor of a removed record that stays."""
        seen: set[int] = set()
        at = record
        while at in self._removed and at not in seen:
            seen.add(at)
            if at in self._parents:
                return self._parents[at]
            parent = int(self.conversation.parent[at])
            if parent < 0:
                return self.t.parent_uuid(at) or None
            at = parent
        return self.t.uuid(at)

    def _move_leaf_mark(self) -> None:
        """A `last-prompt` that names a removed record names the record it hung on."""
        gone = {self.t.uuid(record): record for record in self._removed if self.t.uuid(record)}
        record = int(self.t.leaf_record) if self.t.leaf_key else -1
        named = self.t.payload(record).get("leafUuid") if record >= 0 else None
        if named in gone:
            standing = self._standing_parent(gone[named])
            self.begin(*self._notes[gone[named]][0])
            self.change_bytes(record, lambda data: replace_value(data, ("leafUuid",), standing))

    def _rewrite(self, record: int) -> None:
        slot = self.slots[record]
        before = self.draft.data_of(slot)
        try:
            data = self._apply(record, before)
        except PathNotFoundError:
            # The line needed leniency to be read at all: write what was read as clean JSON and change that.
            payload = self.t.message(record) if self.is_document else self.t.payload(record)
            data = self._apply(record, encode_value(payload))
        if data != before:
            slot.data = data

    def _apply(self, record: int, data: bytes) -> bytes:
        for change in self._raw.get(record, []):
            data = change(data)
        if record in self._content:
            data = self._with_content(data, self._content[record], (*self.t.format.message_path, "content"))
        if record in self._parents:
            data = set_member(data, ("parentUuid",), self._parents[record])
        return data

    def _with_content(self, data: bytes, changes: _Changes, path: Path) -> bytes:
        if not has_value(data, path) or data[find_span(data, path)[0]] not in b'["':
            # No content, or null, a number, an object: no request takes any of it, so the list begins empty.
            data = set_member(data, path, [])
        start, _ = find_span(data, path)
        if data[start : start + 1] == b'"':
            return self._with_string(data, changes, path)
        for block, inner, value in changes.inner:
            if isinstance(inner[-1], str):
                data = set_member(data, (*path, block, *inner), value)
            else:
                data = replace_value(data, (*path, block, *inner), value)
        if changes.order is not None:
            data = _reordered(data, path, changes.order)
        for block in sorted({*changes.before, *changes.replaced}, reverse=True):
            if block in changes.replaced:
                new = changes.replaced[block]
                data = remove_value(data, (*path, block)) if new is None else replace_value(data, (*path, block), new)
            for value in reversed(changes.before.get(block, [])):
                data = insert_item(data, path, block, value)
        return data

    def _with_string(self, data: bytes, changes: _Changes, path: Path) -> bytes:
        """A string content is one text block; it stays a string while one text is all there is."""
        own = changes.replaced.get(0, {"type": "text", "text": read_value(data, path)})
        blocks = [*changes.before.get(0, []), *([own] if own is not None else []), *changes.before.get(1, [])]
        for _, inner, value in changes.inner:
            blocks = [
                {**block, str(inner[0]): value} if block is own and len(inner) == 1 else block for block in blocks
            ]
        if len(blocks) == 1 and blocks[0].get("type") == "text":
            return replace_value(data, path, blocks[0].get("text", ""))
        return replace_value(data, path, blocks)


def _reordered(data: bytes, path: Path, order: list[int]) -> bytes:
    """The items of the list at `path` in another order; the bytes between two places stay at their place."""
    spans = [find_span(data, (*path, number)) for number in range(len(order))]
    items = [data[start:stop] for start, stop in spans]
    pieces = [data[: spans[0][0]]]
    for place, old in enumerate(order):
        pieces.append(items[old])
        pieces.append(
            data[spans[place][1] : spans[place + 1][0]] if place + 1 < len(spans) else data[spans[place][1] :]
        )
    return b"".join(pieces)


def as_text(value: Any) -> str:
    """A tool input or result content as one line of text for a text block that takes its place."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _name_preserved(data: bytes, previous: str, identity: str) -> bytes:
    for name in ("uuids", "allUuids"):
        path: Path = ("compactMetadata", "preservedMessages", name)
        named = read_value(data, path) if has_value(data, path) else None
        if isinstance(named, list) and previous in named:
            data = insert_item(data, path, named.index(previous) + 1, identity)
    return data


def _a_moment_later(timestamp: Any) -> Any:
    """An ISO time one millisecond later, in the same form; anything else as it is."""
    if not isinstance(timestamp, str):
        return timestamp
    try:
        moment = datetime.fromisoformat(timestamp.replace("Z", "+00:00")) + timedelta(milliseconds=1)
    except ValueError:
        return timestamp
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
