"""Thinking whose signature is bound to the exact prefix before it (preserved thinking, api.md 2.4)."""

from __future__ import annotations

from dataclasses import replace

from compaction.diagnosis.case import Case
from compaction.diagnosis.model import Finding
from compaction.diagnosis.models import binds_thinking
from compaction.diagnosis.repair.fixes.thinking import thinking_of_turn
from compaction.diagnosis.repair.registry import repairs_for
from compaction.request.wire import WireRequest

_THINKING = ("thinking", "redacted_thinking")


def bound_thinking(before: Case, after: Case) -> list[Finding]:
    """One finding for each turn of `after` whose thinking follows the first difference between the two requests.

    The API refuses such a signature (or drops the block), so the whole turn's thinking has to go; earlier turns, whose
    prefix is the same as before, keep theirs.
    """
    start = _first_difference(before.view.request, after.view.request)
    found: list[Finding] = []
    done: set[tuple[int, int]] = set()
    for placed in after.view.blocks():
        if placed.type not in _THINKING or placed.place < start or placed.place in done:
            continue
        origin = after.origin_of(placed.place)
        if origin is None or not binds_thinking(_model(after, origin[0])):
            continue
        turn = thinking_of_turn(after, *origin)
        done.update(block.place for block in turn)
        found.append(_finding(after, origin, placed.path))
    return found


def _model(case: Case, record: int) -> str:
    return case.view.request.model if case.is_document else case.transcript.model(record)


def _finding(case: Case, origin: tuple[int, int], path: str) -> Finding:
    finding = Finding(
        code="thinking_bound_to_prefix",
        rule="R19",
        severity="error",
        message="The thinking of this turn is bound to what stood before it, and that has changed.",
        api_error=f"{path}: Invalid `signature` in `thinking` block. The block is bound to a different conversation",
        wire=path,
        lines=(case.line(origin[0]),),
        records=(origin[0],),
        blocks=(origin,),
        why="The repair changed an earlier message; the signature covers the exact prefix.",
    )
    return replace(finding, repairs=repairs_for(case, finding))


def _first_difference(one: WireRequest, other: WireRequest) -> tuple[int, int]:
    """The first place where two requests differ; past the end when one is a beginning of the other."""
    for number, (left, right) in enumerate(zip(one.messages, other.messages, strict=False)):
        if left.role != right.role:
            return (number, 0)
        for position, (a, b) in enumerate(zip(left.content, right.content, strict=False)):
            if a != b:
                return (number, position)
        if len(left.content) != len(right.content):
            return (number, min(len(left.content), len(right.content)))
    return (min(len(one.messages), len(other.messages)), 0)
