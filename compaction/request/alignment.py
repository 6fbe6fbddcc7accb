"""Two requests side by side: what stays, what is cleared, replaced, removed, inserted, moved."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum

from compaction.request.wire import Json, WireRequest
from compaction.transcript import CLEARED_MARKER, Transcript

Place = tuple[int, int]
"""A block of a request: (message number, block number), 0-based."""


class Change(Enum):
    """What became of a block; the value is its sign."""

    KEPT = "="
    CLEARED = "○"
    REPLACED = "≠"
    REMOVED = "−"
    INSERTED = "+"
    MOVED = "↕"

    @property
    def title(self) -> str:
        """The word for people."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class AlignedBlock:
    """One block in both requests; a place is None where the block is not."""

    change: Change
    before: Place | None
    after: Place | None


def block_keys(request: WireRequest, transcript: Transcript) -> dict[Place, Hashable]:
    """What identifies each block across requests: its record's uuid and place in it, else its content.

    Blocks that a client put in have no record: equal content means the same block.
    """
    keys: dict[Place, Hashable] = {}
    seen: dict[Hashable, int] = {}
    for m, message in enumerate(request.messages):
        for b, block in enumerate(message.content):
            origin = message.origins[b]
            uuid = transcript.uuid(origin.record) if origin is not None else ""
            key: Hashable = (uuid, origin.block) if uuid and origin is not None else (message.role, _content_key(block))
            count = seen[key] = seen.get(key, -1) + 1
            keys[m, b] = (key, count)
    return keys


def _content_key(block: Json) -> Hashable:
    kind = block.get("type")
    return kind, str(block.get("id") or block.get("tool_use_id") or ""), str(block.get("text") or "")


def align_requests(
    before: WireRequest, after: WireRequest, before_transcript: Transcript, after_transcript: Transcript | None = None
) -> list[AlignedBlock]:
    """The blocks of both requests in one order; linear in their number.

    Args:
        after_transcript: what `after`'s origins are about; None: the same as `before`'s.
    """
    old = block_keys(before, before_transcript)
    new = block_keys(after, after_transcript or before_transcript)
    new_place = {key: place for place, key in new.items()}
    old_keys = set(old.values())
    rows: list[AlignedBlock] = []
    old_places, new_places = list(old), list(new)
    i = j = 0
    placed: set[Place] = set()
    while i < len(old_places) or j < len(new_places):
        if j < len(new_places) and (new_places[j] in placed or new[new_places[j]] not in old_keys):
            if new_places[j] not in placed:
                rows.append(AlignedBlock(Change.INSERTED, None, new_places[j]))
            j += 1
            continue
        if i >= len(old_places):
            break
        here = old_places[i]
        there = new_place.get(old[here])
        if there is None:
            rows.append(AlignedBlock(Change.REMOVED, here, None))
        else:
            moved = j >= len(new_places) or there != new_places[j]
            placed.add(there)
            rows.append(AlignedBlock(_change(before, after, here, there, moved=moved), here, there))
            j += 0 if moved else 1
        i += 1
    return rows


def _change(before: WireRequest, after: WireRequest, here: Place, there: Place, *, moved: bool) -> Change:
    one, other = block_at(before, here), block_at(after, there)
    if one != other:
        return Change.CLEARED if _is_cleared(other) and not _is_cleared(one) else Change.REPLACED
    return Change.MOVED if moved else Change.KEPT


def _is_cleared(block: Json) -> bool:
    content = block.get("content")
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        content = content[0].get("text")
    return content == CLEARED_MARKER


def block_at(request: WireRequest, place: Place) -> Json:
    """The block at a place."""
    return request.messages[place[0]].content[place[1]]


def changed(rows: Sequence[AlignedBlock]) -> list[AlignedBlock]:
    """Only what does not stay as it is."""
    return [row for row in rows if row.change is not Change.KEPT]
