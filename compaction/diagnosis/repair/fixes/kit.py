"""What the fixers share: where results belong, how a block becomes text, which records follow each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from compaction.diagnosis.case import Case
from compaction.diagnosis.model import Finding
from compaction.diagnosis.repair.editor import Editor, Json, as_text
from compaction.diagnosis.view import Placed, Turn, placed_at

NO_RESULT_TEXT = "No result was recorded for this call; it is unknown whether it ran."
"""The neutral content of a synthetic result (api-rules.md G7)."""
CUT_INPUT_TEXT = "The input of this call was cut; it is unknown whether it ran."
"""The same for a call whose arguments did not arrive whole (R07)."""


def always(case: Case, finding: Finding) -> bool:
    """The fix can be tried on every finding of its kind."""
    return True


@dataclass(frozen=True, slots=True)
class Fix:
    """One way to mend a kind of finding.

    Attributes:
        name: what `--accept` takes.
        title, reason: for the person; the reason says why it stands at its rank.
        apply: asks the editor for the changes.
        applies: whether it can be offered for this finding.
        chosen: False for ways that only a person may choose (they lose something).
    """

    name: str
    title: str
    reason: str
    apply: Callable[[Editor, Finding], None]
    applies: Callable[[Case, Finding], bool] = always
    chosen: bool = True


def is_document(case: Case, finding: Finding) -> bool:
    """A Messages-API document, whose members beside the messages can change too."""
    return case.is_document


def is_session(case: Case, finding: Finding) -> bool:
    """A client's session file."""
    return not case.is_document


def turn_of(case: Case, message: int) -> Turn | None:
    """The turn that holds a wire message."""
    return case.view.turn_of(message)


def placed_of(case: Case, record: int, block: int) -> Placed | None:
    """Where a block of a record stands in the request, or None."""
    place = case.place_of.get((record, block))
    if place is None:
        return None
    return placed_at(*place, case.view.request.messages[place[0]].content[place[1]])


def exchange_of(case: Case, call: tuple[int, int]) -> tuple[Turn, Turn | None] | None:
    """The turn that results of a call belong behind, and the user turn that follows it; None outside the request.

    Where another reply follows the call's message without a user message between, the results belong behind that
    message alone.
    """
    placed = placed_of(case, *call)
    turn = turn_of(case, placed.message) if placed is not None else None
    if placed is None or turn is None:
        return None
    if turn.blocks[-1].message != placed.message:
        return Turn(turn.number, turn.role, tuple(b for b in turn.blocks if b.message == placed.message)), None
    return turn, case.view.following(turn)


def leading_results(turn: Turn | None) -> list[Placed]:
    """The tool results at the head of a user turn."""
    found: list[Placed] = []
    for block in turn.blocks if turn is not None else ():
        if block.type != "tool_result":
            break
        found.append(block)
    return found


def add_results(editor: Editor, call: tuple[int, int], results: list[tuple[Json, dict[str, Any]]]) -> None:
    """Put results right behind the turn of `call` (record, block), behind the results that are there already.

    `results`: each block with further fields for the record that a session file needs for it (`toolUseResult` …).
    """
    found = exchange_of(editor.case, call)
    results = [(block, more) for block, more in results if str(block.get("tool_use_id")) not in editor.answered]
    if found is None or not results:
        return
    editor.answered.update(str(block.get("tool_use_id")) for block, _ in results)
    turn, following = found
    if editor.is_document:
        _add_to_document(editor, turn, following, [block for block, _ in results])
    else:
        _add_to_session(editor, turn, following, call, results)


def _add_to_document(editor: Editor, turn: Turn, following: Turn | None, blocks: list[Json]) -> None:
    last = turn.blocks[-1].message
    if following is None:
        editor.insert_record(last, {"role": "user", "content": blocks})
        return
    first = following.first_message
    own = [b for b in leading_results(following) if b.message == first]
    editor.insert_blocks(first, len(own), blocks)


def _add_to_session(
    editor: Editor,
    turn: Turn,
    following: Turn | None,
    call: tuple[int, int],
    results: list[tuple[Json, dict[str, Any]]],
) -> None:
    case = editor.case
    last = case.origin_of(leading_results(following)[-1].place) if leading_results(following) else None
    if last is not None and last[1] + 1 < editor.block_count(last[0]):
        # Text follows in the same record: a record of its own would put the result behind that text.
        editor.insert_blocks(last[0], last[1] + 1, [block for block, _ in results])
        return
    anchor = last_of_exchange(case, turn, following)
    for block, more in results:
        identity = editor.new_uuid(editor.t.uuid(call[0]), str(block.get("tool_use_id")), "result")
        parent = editor.tail_behind(anchor)
        payload = editor.new_user_record(anchor, identity, parent, [block], **more)
        editor.insert_behind_in_chain(anchor, payload)


def last_of_exchange(case: Case, turn: Turn, following: Turn | None) -> int:
    """The last record on the chain of a turn's blocks and of the results that lead the next turn."""
    records = {r for b in (*turn.blocks, *leading_results(following)) if (r := case.record_of(b.place)) is not None}
    on_chain = [r for r in records if r in case.chain_position]
    if on_chain:
        return max(on_chain, key=lambda r: case.chain_position[r])
    return max(records)


def result_as_text(editor: Editor, block: Json) -> list[Json]:
    """A result as blocks that need no call: its text with a label, its images and documents as they are (G3)."""
    name = editor.case.tool_of(str(block.get("tool_use_id", "")))
    label = f"[Result of an earlier {name} call]" if name else "[Result of an earlier tool call]"
    content = block.get("content")
    words, media = content if isinstance(content, str) else "", []
    if isinstance(content, list):
        texts = [i["text"] for i in content if isinstance(i, dict) and isinstance(i.get("text"), str)]
        words = "\n".join(texts)
        media = [i for i in content if isinstance(i, dict) and i.get("type") in ("image", "document")]
    return [{"type": "text", "text": f"{label} {words}".rstrip()}, *media]


def call_as_text(block: Json) -> Json:
    """A call as a text block that says what was called."""
    return {"type": "text", "text": f"[Call of {block.get('name', 'a tool')}] {as_text(block.get('input'))}"}


def is_placeholder(block: Json) -> bool:
    """A result that a program put in place of a real one: an error with one of the known stand-in sentences."""
    content = block.get("content")
    words = content if isinstance(content, str) else ""
    if isinstance(content, list):
        words = "\n".join(str(i.get("text", "")) for i in content if isinstance(i, dict))
    known = (NO_RESULT_TEXT, "[Tool result missing", "[Request interrupted", "No result", "interrupted by user")
    return any(part.lower() in words.lower() for part in known)
