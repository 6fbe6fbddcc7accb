"""Mending of the parent chain and of damaged lines (G8, G12)."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

from compaction.diagnosis.bridging import bridge_candidates
from compaction.diagnosis.model import Finding
from compaction.diagnosis.repair.editor import Editor
from compaction.diagnosis.repair.fixes.kit import Fix, is_session
from compaction.transcript import BlockType, Flag
from compaction.transcript.patching import encode_value


def bridge(editor: Editor, finding: Finding, rank: int) -> None:
    """The record hangs on the candidate of that rank."""
    record = finding.records[0]
    candidates = bridge_candidates(editor.conversation, record)
    if rank < len(candidates):
        editor.set_parent(record, editor.t.uuid(candidates[rank].record))


def make_root(editor: Editor, finding: Finding) -> None:
    """The record begins the conversation."""
    editor.set_parent(finding.records[0], None)


def rechain(editor: Editor, finding: Finding) -> None:
    """Blocks of the response in file order, then the results in the order of their calls, then what follows."""
    t, conversation, case = editor.t, editor.conversation, editor.case
    results = set(finding.records)
    blocks, ordered = _response_of(editor, finding)
    group = set(blocks) | set(ordered) | results
    inside = [n for n, r in enumerate(case.chain) if r in group]
    segment = case.chain[inside[0] : inside[-1] + 1]
    new = blocks + ordered + [r for r in segment if r not in group]
    for previous, record in pairwise(new):
        editor.set_parent(record, t.uuid(previous))
    if inside[-1] + 1 < len(case.chain):
        editor.set_parent(case.chain[inside[-1] + 1], t.uuid(new[-1]))
    first_parent = int(conversation.parent[segment[0]])
    if new[0] != segment[0] and first_parent >= 0:
        editor.set_parent(new[0], t.uuid(first_parent))


def _response_of(editor: Editor, finding: Finding) -> tuple[list[int], list[int]]:
    """The records of the response that the results belong to, and all results of its calls in call order."""
    t, conversation = editor.t, editor.conversation
    response = -1
    for block in t.blocks_of(finding.records[0]):
        call = int(conversation.pair[block])
        if call >= 0:
            response = int(conversation.response_of[t.block_record[call]])
    blocks = [r for r in conversation.response_records(response) if conversation.main[r]]
    ordered: list[int] = []
    for record in blocks:
        for block in t.blocks_of(record):
            answer = int(conversation.pair[block])
            if t.block_type[block] == BlockType.TOOL_USE and answer >= 0:
                owner = int(t.block_record[answer])
                if owner not in ordered and conversation.main[owner]:
                    ordered.append(owner)
    return blocks, ordered


def one_record_per_line(editor: Editor, finding: Finding) -> None:
    """Whole records on lines of their own; a record that needed leniency is written as clean JSON."""
    editor.leave_out_damage()
    for record in finding.records:
        if finding.code in _REWRITTEN and editor.t.flags[record] & Flag.LENIENT:
            editor.change_bytes(record, partial(_clean, payload=editor.t.payload(record)))


def _clean(data: bytes, payload: dict[str, Any]) -> bytes:
    return encode_value(payload)


_REWRITTEN = ("invalid_escape", "invalid_utf8")
"""Damage that lies inside a record which could be read all the same."""

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
