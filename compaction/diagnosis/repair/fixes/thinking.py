"""Mending of thinking: a whole turn or nothing, never invented, never turned into visible text (R18–R22, G9)."""

from __future__ import annotations

from compaction.diagnosis.case import Case
from compaction.diagnosis.model import Finding
from compaction.diagnosis.repair.editor import Editor
from compaction.diagnosis.repair.fixes.kit import Fix, is_document, placed_of, turn_of
from compaction.diagnosis.rules.thinking import open_loop_start
from compaction.diagnosis.view import Placed

_THINKING = ("thinking", "redacted_thinking")


def thinking_of_turn(case: Case, record: int, block: int) -> list[Placed]:
    """All thinking between two prompts: what `record`'s block belongs to (G9)."""
    placed = placed_of(case, record, block)
    turn = turn_of(case, placed.message) if placed is not None else None
    if placed is None or turn is None:
        return []
    if turn.role != "assistant":
        return [placed]  # no turn of thinking: the block is in the wrong place altogether
    turns = case.view.turns
    first = turn.number
    while first > 1 and turns[first - 1].only_results():
        first -= 2
    last = turn.number
    while last + 2 < len(turns) and turns[last + 1].only_results():
        last += 2
    return [b for t in turns[first : last + 1] if t.role == "assistant" for b in t.blocks if b.type in _THINKING]


def drop_thinking_of_turn(editor: Editor, finding: Finding) -> None:
    """All thinking of the turn goes; in an open tool loop the request's thinking goes off as well."""
    for record, block in finding.blocks:
        for placed in thinking_of_turn(editor.case, record, block):
            origin = editor.case.view.request.messages[placed.message].origins[placed.block]
            if origin is not None:
                editor.remove_block(origin.record, origin.block)
    if editor.is_document and _in_open_loop(editor.case, finding) and editor.case.view.thinking_type() == "enabled":
        thinking_off(editor, finding)


def _in_open_loop(case: Case, finding: Finding) -> bool:
    start = open_loop_start(case.view)
    if start is None:
        return False
    places = [case.place_of[b] for b in finding.blocks if b in case.place_of]
    return any(message >= start.first_message for message, _ in places)


def thinking_off(editor: Editor, finding: Finding) -> None:
    """This one request is sent with thinking off."""
    editor.set_document_member("thinking", {"type": "disabled"})


def rewind_turn(editor: Editor, finding: Finding) -> None:
    """Everything from the open loop's first reply on goes."""
    start = open_loop_start(editor.case.view)
    for record in range(start.first_message, len(editor.t)) if start is not None else ():
        editor.remove_record(record)


def add_empty_text(editor: Editor, finding: Finding) -> None:
    """The signed block gets its missing field, empty, as newer models return it."""
    for place in finding.blocks:
        editor.set_inside(*place, ("thinking",), "")


def is_signed(case: Case, finding: Finding) -> bool:
    """Whether the block has a signature, so that only its field is missing."""
    return bool(finding.details.get("signed"))


_DROP = Fix(
    "drop_turn_thinking",
    "Remove all thinking of that turn",
    "part of a turn's thinking is refused; none is allowed",
    drop_thinking_of_turn,
)

FIXES: dict[str, tuple[Fix, ...]] = {
    "thinking_order_suspect": (
        Fix(_DROP.name, _DROP.title, "the written order is not in the request", drop_thinking_of_turn, chosen=False),
    ),
    "invalid_thinking_signature": (_DROP,),
    "foreign_thinking": (_DROP,),
    "thinking_field_missing": (
        Fix("add_empty_text", "Add the field, empty", "the signature is what counts", add_empty_text, is_signed),
        _DROP,
    ),
    "open_loop_lacks_leading_thinking": (
        Fix(
            "thinking_off",
            "Send this one request with thinking off",
            "nothing of the conversation changes; the signed original, where another file holds it, would be better",
            thinking_off,
            is_document,
        ),
        Fix(
            "rewind_turn",
            "Go back to before the call",
            "the call and its result are lost",
            rewind_turn,
            is_document,
            False,
        ),
    ),
    "thinking_not_first": (_DROP,),
    "thinking_while_disabled": (_DROP,),
    "thinking_bound_to_prefix": (_DROP,),
}
