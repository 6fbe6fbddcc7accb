"""Mending of calls and results (R01–R10)."""

from __future__ import annotations

import json
import re
from typing import Any

from compaction.diagnosis.case import Case
from compaction.diagnosis.model import Finding
from compaction.diagnosis.repair.editor import Editor, Json
from compaction.diagnosis.repair.fixes.kit import (
    CUT_INPUT_TEXT,
    NO_RESULT_TEXT,
    Fix,
    add_results,
    call_as_text,
    exchange_of,
    is_document,
    is_placeholder,
    last_of_exchange,
    placed_of,
    result_as_text,
    turn_of,
)
from compaction.diagnosis.rules.pairing import pairing_of
from compaction.transcript import BlockType, key_of

Block = tuple[int, int]


def _calls(editor: Editor, finding: Finding) -> list[Block]:
    """The call blocks of a finding (its places may name results too)."""
    return [b for b in finding.blocks if editor.block(*b).get("type") == "tool_use"]


def _results(editor: Editor, finding: Finding) -> list[Block]:
    return [b for b in finding.blocks if editor.block(*b).get("type") == "tool_result"]


def synthetic_result(identity: str, words: str = NO_RESULT_TEXT) -> Json:
    """The neutral stand-in for a lost result: is_error, text, the API's own field names (G7)."""
    return {"type": "tool_result", "tool_use_id": identity, "is_error": True, "content": words}


def _beside(editor: Editor, call: Block, shown: Any) -> dict[str, Any]:
    """The fields that a client writes beside a result; `toolUseResult` of an error is a text (transcript-format §3)."""
    more: dict[str, Any] = {"toolUseResult": shown}
    if editor.case.writes_source_uuid:
        more["sourceToolAssistantUUID"] = editor.t.uuid(call[0])
    return more


# --- R01 ------------------------------------------------------------------------------------------------------------


def _recorded_elsewhere(case: Case, identity: str) -> Block | None:
    """A result of the call that is in the file but not in the request."""
    t = case.transcript
    for block in case.blocks_with_key(key_of(identity)):
        place = (int(t.block_record[block]), int(t.block_position[block]))
        if t.block_type[block] == BlockType.TOOL_RESULT and place not in case.place_of:
            return place
    return None


def has_recorded_result(case: Case, finding: Finding) -> bool:
    """Whether every call of the finding has a result beside the request (G6)."""
    return not case.is_document and all(_recorded_elsewhere(case, i) is not None for i in finding.ids)


def use_recorded_result(editor: Editor, finding: Finding) -> None:
    """A copy of the recorded result takes its place behind the call."""
    for call in _calls(editor, finding):
        identity = str(editor.block(*call).get("id"))
        place = _recorded_elsewhere(editor.case, identity)
        if place is None:
            continue
        shown = editor.t.payload(place[0]).get("toolUseResult", "")
        add_results(editor, call, [(editor.block(*place), _beside(editor, call, shown))])


def has_subagent_answer(case: Case, finding: Finding) -> bool:
    """Whether the file of the sub-agent that each call started holds its answer (G6)."""
    return not case.is_document and bool(finding.ids) and all(case.answers.answer(i) for i in finding.ids)


def use_subagent_answer(editor: Editor, finding: Finding) -> None:
    """What the sub-agent said last becomes the result of the call that started it."""
    for call in _calls(editor, finding):
        identity = str(editor.block(*call).get("id"))
        content = [{"type": "text", "text": editor.case.answers.answer(identity)}]
        result = {"type": "tool_result", "tool_use_id": identity, "content": content}
        add_results(editor, call, [(result, _beside(editor, call, {"status": "completed", "content": content}))])


def insert_result(editor: Editor, finding: Finding) -> None:
    """One neutral error result for each call, behind the results that are there."""
    for call in _calls(editor, finding):
        identity = str(editor.block(*call).get("id"))
        add_results(editor, call, [(synthetic_result(identity), _beside(editor, call, f"Error: {NO_RESULT_TEXT}"))])


def remove_call(editor: Editor, finding: Finding) -> None:
    """The call goes, the rest of its message stays."""
    for call in _calls(editor, finding):
        editor.remove_block(*call)


# --- R02 ------------------------------------------------------------------------------------------------------------


def _call_elsewhere(case: Case, identity: str) -> Block | None:
    """The call of an orphaned result, in the file but not in the request; the last one before the result."""
    t = case.transcript
    found = [
        (int(t.block_record[b]), int(t.block_position[b]))
        for b in case.blocks_with_key(key_of(identity))
        if t.block_type[b] == BlockType.TOOL_USE
    ]
    return None if not found or any(place in case.place_of for place in found) else found[-1]


def call_can_return(case: Case, finding: Finding) -> bool:
    """Whether the orphan's call is in the file (before the boundary, on another branch) and can be adopted again."""
    if case.is_document or not finding.ids or finding.records[0] < case.window_start:
        return False  # a message that a compaction preserved: what stands before it in the file is not sent with it
    return _call_elsewhere(case, finding.ids[0]) is not None


def readopt_call(editor: Editor, finding: Finding) -> None:
    """A copy of the call under ids of its own, right before its result.

    Its `message.id` is new, because newer clients collect all records of one response, wherever they are, and would
    send the call twice; its usage is zero, because those tokens are counted where the original stands (G14).
    """
    for result in _results(editor, finding):
        place = _call_elsewhere(editor.case, str(editor.block(*result).get("tool_use_id")))
        if place is None:
            continue
        record = result[0]
        payload = editor.copy_of(place[0])
        payload["message"]["content"] = [editor.block(*place)]
        payload["message"] = _without_usage(payload["message"], editor.t.uuid(record))
        payload.pop("requestId", None)
        payload["uuid"] = editor.new_uuid(editor.t.uuid(place[0]), editor.t.uuid(record), "call")
        payload["parentUuid"] = editor.parent_of(record)
        payload["sessionId"] = editor.t.session(record) or payload.get("sessionId")
        editor.insert_record(record - 1, payload)
        editor.set_parent(record, payload["uuid"])


def _without_usage(message: Json, result_uuid: str) -> Json:
    copied = {**message, "id": f"{message.get('id') or 'msg'}_{key_of(result_uuid):016x}"}
    if isinstance(copied.get("usage"), dict):
        copied["usage"] = {k: 0 for k, v in copied["usage"].items() if isinstance(v, int) and not isinstance(v, bool)}
    return copied


def result_to_text(editor: Editor, finding: Finding) -> None:
    """The result's content stays as text."""
    for result in _results(editor, finding):
        _to_text(editor, result)


def remove_result(editor: Editor, finding: Finding) -> None:
    """The result goes, the rest of its message stays."""
    for result in _results(editor, finding):
        editor.remove_block(*result)


# --- R03, R04 -------------------------------------------------------------------------------------------------------


def move_results(editor: Editor, finding: Finding) -> None:
    """Each result right behind its call: the block in a document, the record's links in a session."""
    by_id = {str(editor.block(*c).get("id")): c for c in _calls(editor, finding)}
    for result in _results(editor, finding):
        call = by_id.get(str(editor.block(*result).get("tool_use_id")))
        if call is None:
            continue
        if editor.is_document or editor.block_count(result[0]) > 1:
            block = editor.block(*result)
            shown = editor.t.payload(result[0]).get("toolUseResult", "")
            editor.remove_block(*result)
            add_results(editor, call, [(block, _beside(editor, call, shown))])
        else:
            _relink_result(editor, call, result[0])


def _relink_result(editor: Editor, call: Block, record: int) -> None:
    """Hang a result record behind its call's exchange and close the gap it leaves; no line moves."""
    exchange = exchange_of(editor.case, call)
    if exchange is None:
        return
    anchor = last_of_exchange(editor.case, *exchange)
    if anchor != record:
        editor.move_in_chain(record, anchor)


def results_first(editor: Editor, finding: Finding) -> None:
    """A stable partition: results in their order, then the rest."""
    records = {r for r, _ in _results(editor, finding)}
    message = {editor.case.place_of[b][0] for b in _results(editor, finding) if b in editor.case.place_of}
    parts = {o.record for m in message for o in editor.case.view.request.messages[m].origins if o is not None}
    if len(parts) == 1 or editor.is_document:
        for record in records:
            _partition(editor, record)
        return
    for record in sorted(records):
        if editor.block_count(record) > 1:
            _partition(editor, record)
    _relink_results_first(editor, finding)


def _partition(editor: Editor, record: int) -> None:
    count = editor.block_count(record)
    results = [n for n in range(count) if editor.block(record, n).get("type") == "tool_result"]
    editor.reorder(record, results + [n for n in range(count) if n not in results])


def _relink_results_first(editor: Editor, finding: Finding) -> None:
    """Records of results ahead of the other records of their message, by their links."""
    calls = _calls(editor, finding)
    for result in _results(editor, finding):
        _relink_result(editor, calls[0], result[0])


# --- R05, R06 -------------------------------------------------------------------------------------------------------


def keep_first_real(editor: Editor, finding: Finding) -> None:
    """The first result that a tool gave stays, stand-ins and repeats go."""
    results = _results(editor, finding)
    kept = next((r for r in results if not is_placeholder(editor.block(*r))), results[0])
    for result in results:
        if result != kept:
            editor.remove_block(*result)


def keep_last(editor: Editor, finding: Finding) -> None:
    """The last result stays."""
    for result in _results(editor, finding)[:-1]:
        editor.remove_block(*result)


def renumber_calls(editor: Editor, finding: Finding) -> None:
    """Exact copies go; different calls get ids of their own, and the results follow in order."""
    calls = _calls(editor, finding)
    identity = finding.ids[0]
    first = editor.block(*calls[0])
    copies = [c for c in calls[1:] if _same(first, editor.block(*c))]
    kept = [c for c in calls if c not in copies]
    results = _following_results(editor, calls[0], identity)
    # As many results as calls: each call had its own, the copies too. Otherwise the kept calls are served in order.
    served = calls if len(results) == len(calls) else kept
    names = {call: identity if n == 0 else editor.case.free_id(identity, n + 1) for n, call in enumerate(kept)}
    for call in copies:
        editor.remove_block(*call)
    for call in kept[1:]:
        editor.set_inside(*call, ("id",), names[call])
    for call, result in zip(served, results, strict=False):
        if call in copies:
            editor.remove_block(*result)
        elif names[call] != identity:
            editor.set_inside(*result, ("tool_use_id",), names[call])


def _same(one: Json, other: Json) -> bool:
    return all(one.get(key) == other.get(key) for key in ("name", "input"))


def _following_results(editor: Editor, call: Block, identity: str) -> list[Block]:
    placed = placed_of(editor.case, *call)
    turn = turn_of(editor.case, placed.message) if placed is not None else None
    following = editor.case.view.following(turn) if turn is not None else None
    found = []
    for block in following.blocks if following is not None else ():
        if block.type == "tool_result" and block.value.get("tool_use_id") == identity:
            origin = editor.case.view.request.messages[block.message].origins[block.block]
            if origin is not None:
                found.append((origin.record, origin.block))
    return found


# --- R07 ------------------------------------------------------------------------------------------------------------


def rename_id(editor: Editor, finding: Finding) -> None:
    """The id in the API's alphabet, on both sides, wherever it stands; different ids stay different."""
    old = finding.ids[0] if finding.ids else ""
    new = editor.case.free_id(re.sub(r"[^a-zA-Z0-9_-]", "_", old) or "toolu_without_id", 0)
    if not old:
        for call in finding.blocks:
            editor.set_inside(*call, ("id",), new)
        return
    for record, block in editor.case.places_with_id(old):
        kind = editor.block(record, block).get("type")
        editor.set_inside(record, block, ("id",) if kind == "tool_use" else ("tool_use_id",), new)


def whole_input(editor: Editor, finding: Finding) -> None:
    """A text that is a whole object becomes that object; anything else was cut and becomes an empty one.

    A call without a result gets one that says so.
    """
    for call in finding.blocks:
        value = editor.block(*call).get("input")
        parsed: Any = None
        if isinstance(value, str):
            try:
                parsed = json.loads(value)
            except ValueError:
                parsed = None  # the stream was cut inside the text: nothing whole is left of it
        editor.set_inside(*call, ("input",), parsed if isinstance(parsed, dict) else {})
        if not isinstance(parsed, dict) and _is_unanswered(editor.case, call):
            result = synthetic_result(str(editor.block(*call).get("id")), CUT_INPUT_TEXT)
            add_results(editor, call, [(result, _beside(editor, call, f"Error: {CUT_INPUT_TEXT}"))])


def _is_unanswered(case: Case, call: Block) -> bool:
    """Whether the request holds no result of the call and does not wait for one."""
    place = case.place_of.get(call)
    return any(s.call.place == place and s.state == "missing" for s in pairing_of(case.view).calls)


def shorten_name(editor: Editor, finding: Finding) -> None:
    """The name up to the first character that no name holds, at most 200."""
    for call in finding.blocks:
        name = str(editor.block(*call).get("name"))
        found = re.match(r"[a-zA-Z0-9_-]{1,200}", name)
        editor.set_inside(*call, ("name",), found.group() if found else "unknown_tool")


def lone_call(case: Case, finding: Finding) -> bool:
    """Whether exactly one call of the turn before waits for a result: the one without id must be its."""
    return _waiting(case, finding) is not None


def _waiting(case: Case, finding: Finding) -> str | None:
    placed = placed_of(case, *finding.blocks[0]) if finding.blocks else None
    turn = turn_of(case, placed.message) if placed is not None else None
    if turn is None or turn.number == 0:
        return None
    answered = {b.value.get("tool_use_id") for b in turn.blocks}
    before = case.view.turns[turn.number - 1]
    open_calls = [
        b.value.get("id") for b in before.blocks if b.type == "tool_use" and b.value.get("id") not in answered
    ]
    return open_calls[0] if len(open_calls) == 1 and isinstance(open_calls[0], str) else None


def give_id(editor: Editor, finding: Finding) -> None:
    """The result gets the id of the only call that waits."""
    waiting = _waiting(editor.case, finding)
    if waiting is not None:
        editor.set_inside(*finding.blocks[0], ("tool_use_id",), waiting)


# --- R08, R09, R10 --------------------------------------------------------------------------------------------------


def right_role(editor: Editor, finding: Finding) -> None:
    """Results go behind their call's message; what has no call there, and calls in a user message, become text."""
    for place in finding.blocks:
        block = editor.block(*place)
        call = _call_in_turn(editor, place, str(block.get("tool_use_id")))
        if block.get("type") != "tool_result" or call is None:
            _to_text(editor, place)
            continue
        editor.remove_block(*place)
        add_results(editor, call, [(block, _beside(editor, call, ""))])


def _call_in_turn(editor: Editor, place: Block, identity: str) -> Block | None:
    """The call with this id in the turn that holds `place`."""
    placed = placed_of(editor.case, *place)
    turn = turn_of(editor.case, placed.message) if placed is not None else None
    for block in turn.blocks if turn is not None else ():
        if block.type == "tool_use" and block.value.get("id") == identity:
            return editor.case.origin_of(block.place)
    return None


def _to_text(editor: Editor, place: Block) -> None:
    """A call or result as text in its place."""
    block = editor.block(*place)
    blocks = [call_as_text(block)] if block.get("type") == "tool_use" else result_as_text(editor, block)
    editor.set_block(*place, blocks[0])
    if len(blocks) > 1:
        editor.insert_blocks(place[0], place[1] + 1, blocks[1:])


def blocks_to_text(editor: Editor, finding: Finding) -> None:
    """Calls and results become text where they are."""
    for place in finding.blocks:
        _to_text(editor, place)


def unique_tools(editor: Editor, finding: Finding) -> None:
    """Of tools with one name the first stays."""
    seen: set[object] = set()
    kept = []
    for tool in editor.t.document.get("tools") or []:
        name = tool.get("name") if isinstance(tool, dict) else None
        if name is None or name not in seen:
            kept.append(tool)
        seen.add(name)
    editor.set_document_member("tools", kept)


def media_out_of_error(editor: Editor, finding: Finding) -> None:
    """The text stays in the error result, everything else follows behind the results of its message."""
    for place in finding.blocks:
        content = editor.block(*place).get("content")
        items = content if isinstance(content, list) else []
        texts = [i for i in items if isinstance(i, dict) and i.get("type") == "text"]
        moved = [i for i in items if isinstance(i, dict) and i.get("type") in ("image", "document")]
        editor.set_inside(*place, ("content",), texts or [{"type": "text", "text": "(see what follows)"}])
        record, block = place
        end = block + 1
        while end < editor.block_count(record) and editor.block(record, end).get("type") == "tool_result":
            end += 1
        editor.insert_blocks(record, end, moved)


def clear_error_mark(editor: Editor, finding: Finding) -> None:
    """The result is no error any more and keeps all its content."""
    for place in finding.blocks:
        editor.set_inside(*place, ("is_error",), False)


FIXES: dict[str, tuple[Fix, ...]] = {
    "tool_use_without_result": (
        Fix(
            "use_recorded_result",
            "Put the recorded result behind its call",
            "the file holds it beside the current conversation",
            use_recorded_result,
            has_recorded_result,
        ),
        Fix(
            "use_subagent_answer",
            "Put the sub-agent's own answer behind the call",
            "the sub-agent's file holds it",
            use_subagent_answer,
            has_subagent_answer,
        ),
        Fix(
            "insert_result",
            "Insert a neutral error result for the call",
            "nothing is lost, and nothing is claimed about what happened",
            insert_result,
        ),
        Fix("remove_call", "Remove the call", "the model would not know that it made it", remove_call, chosen=False),
    ),
    "result_without_tool_use": (
        Fix(
            "readopt_call",
            "Bring the call back from where it is in the file",
            "lossless: both halves are in the file",
            readopt_call,
            call_can_return,
        ),
        Fix(
            "result_to_text", "Keep the result as text", "its content stays, the pairing is not needed", result_to_text
        ),
        Fix(
            "remove_result",
            "Remove the result",
            "the model would have to find it out again",
            remove_result,
            chosen=False,
        ),
    ),
    "result_not_adjacent": (
        Fix("move_result", "Move the result right behind its call", "both halves are there", move_results),
        Fix("result_to_text", "Keep the result as text", "the call still needs a result", result_to_text, chosen=False),
    ),
    "result_not_first": (
        Fix("results_first", "Put the results first in their message", "only the order changes", results_first),
        Fix("result_to_text", "Keep the result as text", "the call still needs a result", result_to_text, chosen=False),
    ),
    "duplicate_tool_result": (
        Fix("keep_first_real", "Keep the first real result", "stand-ins and repeats say nothing new", keep_first_real),
        Fix("keep_last", "Keep the last result", "when the later one is the better one", keep_last, chosen=False),
    ),
    "duplicate_tool_use_id": (
        Fix("renumber", "Drop exact copies, give different calls ids of their own", "no call is lost", renumber_calls),
    ),
    "tool_use_id_reused": (),
    "invalid_tool_use_id": (
        Fix("rename_id", "Write the id in the API's alphabet, on both sides", "only the name changes", rename_id),
    ),
    "tool_input_not_object": (
        Fix(
            "whole_input",
            "Read the input as an object, or leave it empty",
            "a cut input cannot be guessed",
            whole_input,
        ),
    ),
    "tool_name_too_long": (
        Fix("shorten_name", "Cut the name where the arguments begin", "what follows is no name", shorten_name),
    ),
    "tool_result_lacks_id": (
        Fix("give_id", "Give it the id of the only call that waits", "there is no other", give_id, lone_call),
        Fix("result_to_text", "Keep the result as text", "its call cannot be told", result_to_text),
    ),
    "block_in_wrong_role": (
        Fix("right_role", "Move the block to the message where it belongs", "nothing is lost", right_role),
        Fix("to_text", "Write it as text", "its content stays", blocks_to_text, chosen=False),
    ),
    "tools_not_defined": (
        Fix("flatten_tools", "Write calls and results as text", "the tools are not in this file", blocks_to_text),
    ),
    "duplicate_tool_names": (
        Fix(
            "unique_tools",
            "Keep the first of tools with one name",
            "they cannot be told apart",
            unique_tools,
            is_document,
        ),
    ),
    "error_result_not_text": (
        Fix("media_behind", "Move what is no text behind the result", "the error mark stays true", media_out_of_error),
        Fix("clear_error", "Take the error mark off", "the content stays in place", clear_error_mark, chosen=False),
    ),
}
