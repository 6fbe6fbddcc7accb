"""Requests side by side: every block once on each side, and the right word for what became of it (issue 6)."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from compaction.request.alignment import AlignedBlock, Change, align_requests, changed
from compaction.request.wire import Origin, WireMessage, WireRequest
from compaction.transcript import CLEARED_MARKER, Transcript, transcript_from_bytes


def transcript(count: int) -> Transcript:
    lines = [json.dumps({"type": "user", "uuid": f"u{i}", "message": {"content": str(i)}}) for i in range(count)]
    return transcript_from_bytes("\n".join(lines).encode())


def request(blocks: list[tuple[int | None, dict[str, Any]]]) -> WireRequest:
    messages = [WireMessage("user", [b], [Origin(r, r + 1, 0) if r is not None else None]) for r, b in blocks]
    return WireRequest("2.1.332", None, messages, "m")


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def test_kept_removed_inserted_replaced_and_cleared() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": "long"}
    before = request([(0, text("a")), (1, text("b")), (2, result), (3, text("d"))])
    after = request(
        [(None, text("summary")), (1, text("B")), (2, {**result, "content": CLEARED_MARKER}), (3, text("d"))]
    )
    rows = align_requests(before, after, transcript(4))
    assert [(r.change, r.before, r.after) for r in rows] == [
        (Change.INSERTED, None, (0, 0)),
        (Change.REMOVED, (0, 0), None),
        (Change.REPLACED, (1, 0), (1, 0)),
        (Change.CLEARED, (2, 0), (2, 0)),
        (Change.KEPT, (3, 0), (3, 0)),
    ]
    assert len(changed(rows)) == 4


def test_what_stands_elsewhere_is_moved() -> None:
    before = request([(0, text("a")), (1, text("b")), (2, text("c"))])
    after = request([(2, text("c")), (0, text("a")), (1, text("b"))])
    rows = align_requests(before, after, transcript(3))
    assert [r.change for r in rows].count(Change.MOVED) >= 1
    assert {r.change for r in rows} <= {Change.MOVED, Change.KEPT}


@given(st.lists(st.integers(0, 8), unique=True), st.lists(st.integers(0, 8), unique=True))
def test_every_block_appears_exactly_once_on_its_side(old: list[int], new: list[int]) -> None:
    before = request([(i, text(str(i))) for i in old])
    after = request([(i, text(str(i))) for i in new])
    rows = align_requests(before, after, transcript(9))
    assert sorted(r.before for r in rows if r.before) == [(m, 0) for m in range(len(old))]
    assert sorted(r.after for r in rows if r.after) == [(m, 0) for m in range(len(new))]
    shared = set(old) & set(new)
    assert sum(r.before is not None and r.after is not None for r in rows) == len(shared)
    assert all(isinstance(r, AlignedBlock) for r in rows)


def test_the_same_request_is_kept_whole() -> None:
    before = request([(0, text("a")), (None, text("reminder")), (None, text("reminder")), (1, text("b"))])
    assert {r.change for r in align_requests(before, before, transcript(2))} == {Change.KEPT}
