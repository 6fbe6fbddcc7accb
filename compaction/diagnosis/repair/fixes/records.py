"""Mending of the parent chain and of damaged lines (G8, G12)."""

from __future__ import annotations

import re
from functools import partial
from itertools import pairwise

from compaction.diagnosis.bridging import bridge_candidates
from compaction.diagnosis.case import Case
from compaction.diagnosis.model import Finding
from compaction.diagnosis.repair.editor import Editor
from compaction.diagnosis.repair.fixes.kit import Fix, is_session
from compaction.transcript import BlockType, Flag, RecordKind


def bridge(editor: Editor, finding: Finding, rank: int) -> None:
    """The record hangs on the candidate of that rank."""
    record = finding.records[0]
    editor.needs_untouched([record])
    candidates = bridge_candidates(editor.conversation, record)
    if rank < len(candidates):
        editor.set_parent(record, editor.t.uuid(candidates[rank].record))


def make_root(editor: Editor, finding: Finding) -> None:
    """The record begins the conversation."""
    editor.set_parent(finding.records[0], None)


def skip_progress(editor: Editor, finding: Finding) -> None:
    """Each record hangs on the nearest ancestor that is no progress record; those stay where they are."""
    t, parent = editor.t, editor.conversation.parent
    for record in finding.records:
        above = int(parent[record])
        while above >= 0 and t.kind[above] == RecordKind.PROGRESS:
            above = int(parent[above])
        if above >= 0:
            editor.needs_untouched([record])
            editor.set_parent(record, t.uuid(above))


def rechain(editor: Editor, finding: Finding) -> None:
    """The response's blocks, then its results, then what stood between them, then what follows: only links change.

    Blocks keep the order they were written in. Results on the chain come last, so that the end of the conversation
    stays the end.
    """
    t, conversation, case = editor.t, editor.conversation, editor.case
    blocks, results = _response_of(editor, finding)
    group = {*blocks, *results}
    inside = [n for n, r in enumerate(case.chain) if r in group]
    if not inside:
        return
    segment = case.chain[inside[0] : inside[-1] + 1]
    new = [*_as_written(case, blocks), *_chained_last(case, results), *(r for r in segment if r not in group)]
    following = case.chain[inside[-1] + 1 : inside[-1] + 2]
    editor.needs_untouched([*new, *following])
    for previous, record in pairwise(new):
        editor.set_parent(record, t.uuid(previous))
    for record in following:
        editor.set_parent(record, t.uuid(new[-1]))
    first_parent = int(conversation.parent[segment[0]])
    if new[0] != segment[0] and first_parent >= 0:
        editor.set_parent(new[0], t.uuid(first_parent))


def _as_written(case: Case, records: list[int]) -> list[int]:
    """Records on the chain in its order, each of the others ahead of the first that stands later in the file."""
    found = sorted((r for r in records if r in case.chain_position), key=lambda r: case.chain_position[r])
    for record in (r for r in records if r not in case.chain_position):
        place = next((n for n, other in enumerate(found) if other > record), len(found))
        found.insert(place, record)
    return found


def _chained_last(case: Case, records: list[int]) -> list[int]:
    """Records beside the chain in their order, then those on it in the chain's order."""
    chained = sorted((r for r in records if r in case.chain_position), key=lambda r: case.chain_position[r])
    beside = [r for r in records if r not in case.chain_position]
    return [*beside, *chained]


def _response_of(editor: Editor, finding: Finding) -> tuple[list[int], list[int]]:
    """The records of the response that the results belong to, and all results of its calls in call order."""
    t, conversation = editor.t, editor.conversation
    response = -1
    for block in t.blocks_of(finding.records[0]):
        call = int(conversation.pair[block])
        if call >= 0:
            response = int(conversation.response_of[t.block_record[call]])
    blocks = editor.case.once([r for r in conversation.response_records(response) if conversation.main[r]])
    ordered: list[int] = []
    for record in blocks:
        for block in t.blocks_of(record):
            answer = int(conversation.pair[block])
            if t.block_type[block] == BlockType.TOOL_USE and answer >= 0 and conversation.main[t.block_record[answer]]:
                ordered.append(int(t.block_record[answer]))
    return blocks, editor.case.once(ordered)


def one_record_per_line(editor: Editor, finding: Finding) -> None:
    """Whole records on lines of their own; inside a record only the bytes that break it are replaced."""
    editor.leave_out_damage()
    for record in finding.records:
        if editor.t.flags[record] & Flag.LENIENT:
            editor.change_bytes(record, _readable)


_ESCAPE = re.compile(rb'\\\\|\\u[0-9a-fA-F]{4}|\\["/bfnrt]|(\\)')


def _readable(data: bytes) -> bytes:
    """The record with backslashes that escape nothing doubled and bytes that are no UTF-8 as U+FFFD."""
    data = _ESCAPE.sub(lambda found: b"\\\\" if found.group(1) else found.group(), data)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace").encode("utf-8")
    return data


_BRIDGES = (
    *(
        Fix(
            "bridge" if rank == 0 else f"bridge_{rank + 1}",
            "Hang the record on an earlier one",
            "the best candidate of the file",
            partial(bridge, rank=rank),
        )
        for rank in range(5)
    ),
    Fix("make_root", "Let the record begin the conversation", "nothing is before it", make_root),
)
_DAMAGE = (
    Fix(
        "one_record_per_line",
        "Write each whole record on a line of its own",
        "nothing that can be read is lost",
        one_record_per_line,
        is_session,
    ),
)

FIXES: dict[str, tuple[Fix, ...]] = {
    **dict.fromkeys(
        ("dangling_parent", "self_parent", "parent_cycle", "chain_enters_sidechain", "root_inside_conversation"),
        _BRIDGES,
    ),
    "chain_through_progress": (
        Fix(
            "skip_progress",
            "Hang the records on what the progress records hang on",
            "nothing else changes",
            skip_progress,
        ),
    ),
    "sibling_results_off_chain": (
        Fix("rechain", "Put the results into the chain", "older clients follow parents only", rechain),
    ),
    **dict.fromkeys(
        (
            "nul_padding",
            "spliced_record",
            "two_records_one_line",
            "blank_line",
            "truncated_last_line",
            "not_an_object",
            "invalid_utf8",
            "invalid_json",
            "invalid_escape",
            "byte_order_mark",
            "nested_too_deeply",
        ),
        _DAMAGE,
    ),
}
