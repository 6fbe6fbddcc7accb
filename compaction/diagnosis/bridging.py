"""Where a record whose parent is lost belongs: candidates in the file, best first (api-rules.md B, G8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compaction.conversation import Conversation
from compaction.transcript import BlockType, Flag, RecordKind

_MOST_CANDIDATES = 5


@dataclass(frozen=True, slots=True)
class Bridge:
    """A record that could be the lost parent, and why."""

    record: int
    reason: str


def bridge_candidates(conversation: Conversation, record: int) -> list[Bridge]:
    """Earlier main-thread records that `record` could hang on, best first; never a sidechain, never a descendant.

    Order: the record that holds its call (a result belongs there), the block of its own response before it, then the
    nearest earlier record of the same session, then nearest ones that keep user and assistant in turns.
    """
    own = [c for c in (_call_of(conversation, record), _response_before(conversation, record)) if c is not None]
    near = _nearest(conversation, record)
    ordered = {c.record: c for c in reversed([*own, *near])}
    below = _descendants(conversation, record, set(ordered))
    found = [ordered[r] for r in dict.fromkeys(c.record for c in [*own, *near]) if r not in below]
    return found[:_MOST_CANDIDATES]


def _earlier(conversation: Conversation, record: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.flatnonzero((conversation.main & conversation.chained)[:record])


def _call_of(conversation: Conversation, record: int) -> Bridge | None:
    t = conversation.transcript
    for block in t.blocks_of(record):
        call = int(conversation.pair[block])
        if t.block_type[block] == BlockType.TOOL_RESULT and call >= 0:
            owner = int(t.block_record[call])
            if owner < record and conversation.main[owner]:
                return Bridge(owner, "it holds the call that this result answers")
    return None


def _response_before(conversation: Conversation, record: int) -> Bridge | None:
    response = int(conversation.response_of[record])
    if response < 0:
        return None
    before = [r for r in conversation.response_records(response) if r < record and conversation.main[r]]
    return Bridge(before[-1], "it is the block before it of the same response") if before else None


def _nearest(conversation: Conversation, record: int) -> list[Bridge]:
    t = conversation.transcript
    earlier = _earlier(conversation, record)
    same = earlier[t.session_number[earlier] == t.session_number[record]]
    pool = same if len(same) else earlier
    found: list[Bridge] = []
    if len(pool):
        found.append(Bridge(int(pool[-1]), "the nearest earlier record of the main conversation"))
    wanted = RecordKind.USER if t.kind[record] == RecordKind.ASSISTANT else RecordKind.ASSISTANT
    in_turn = pool[t.kind[pool] == wanted]
    if len(in_turn):
        found.append(Bridge(int(in_turn[-1]), "the nearest earlier record that keeps user and assistant in turns"))
    boundaries = pool[(t.flags[pool] & Flag.COMPACT_SUMMARY) != 0]
    if len(boundaries):
        found.append(Bridge(int(boundaries[-1]), "the last summary before it"))
    return found


def _descendants(conversation: Conversation, record: int, among: set[int]) -> set[int]:
    """Which of `among` reach `record` by their parents: hanging it there would close a circle."""
    below: set[int] = set()
    for candidate in among:
        seen: set[int] = set()
        at = candidate
        while at >= 0 and at not in seen:
            if at == record:
                below.add(candidate)
                break
            seen.add(at)
            at = int(conversation.parent[at])
    return below
