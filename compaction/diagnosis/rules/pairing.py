"""R01–R10: client tool calls and their results (api-rules.md A1)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compaction.diagnosis.model import Severity, Violation
from compaction.diagnosis.view import Placed, RequestView, Turn, block_path

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_MAXIMUM_NAME = 200
NO_RESULT = (
    "messages.{n}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. "
    "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
)
NO_CALL = (
    "messages.{n}.content.{m}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. "
    "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
)


@dataclass(frozen=True, slots=True)
class CallState:
    """How one call of a turn is answered: `answered`, `pending`, `late` (elsewhere), `behind` (not first), `missing`.

    `result` is the result block that counts as its answer, or None.
    """

    call: Placed
    state: str
    result: Placed | None = None


@dataclass(frozen=True, slots=True)
class Pairing:
    """Every call and every result of a request, judged by position (G5), not by whether the id exists somewhere."""

    calls: tuple[CallState, ...]
    unexpected: tuple[Placed, ...]
    """Results that the previous message does not ask for and that are not a call's late answer."""


def pairing_of(view: RequestView) -> Pairing:
    """Judge all calls and results of a request in one pass over its turns; worked out once a view."""
    if "pairing" not in view.memo:
        view.memo["pairing"] = _judge(view)
    found: Pairing = view.memo["pairing"]
    return found


def _judge(view: RequestView) -> Pairing:
    results_by_id: dict[str, list[tuple[Turn, Placed]]] = {}
    for turn in view.turns:
        for block in turn.blocks:
            if block.type == "tool_result":
                results_by_id.setdefault(_result_id(block), []).append((turn, block))
    calls: list[CallState] = []
    late_answers: set[tuple[int, int]] = set()
    for turn in view.turns:
        if turn.role != "assistant":
            continue
        following = view.following(turn)
        leading = _leading(following)
        for call in (b for b in turn.blocks if b.type == "tool_use"):
            state = _state(view, turn, following, leading, results_by_id, call)
            calls.append(state)
            if state.state != "answered" and state.result is not None:
                late_answers.add(state.result.place)
    unexpected = [
        block
        for turn in view.turns
        if turn.role == "user"
        for block in turn.blocks
        if block.type == "tool_result" and block.place not in late_answers and not _asked_for(view, turn, block)
    ]
    return Pairing(tuple(calls), tuple(unexpected))


def _state(
    view: RequestView,
    turn: Turn,
    following: Turn | None,
    leading: dict[str, Placed],
    results: dict[str, list[tuple[Turn, Placed]]],
    call: Placed,
) -> CallState:
    identity = _call_id(call)
    if identity in leading:
        return CallState(call, "answered", leading[identity])
    elsewhere = results.get(identity, [])
    for place, block in elsewhere:
        if following is not None and place.number == following.number:
            # In a message of its own behind other user messages it is R03: combining them would not help.
            return CallState(call, "behind" if block.message == following.first_message else "late", block)
        if place.number == turn.number:
            return CallState(call, "wrong_role", block)
    # A result that answers a call of the same id where it stands is not this call's late answer.
    for place, block in elsewhere:
        if place.role == "user" and not _asked_for(view, place, block):
            return CallState(call, "late", block)
    # A later reply shows that the conversation went on without the result: then nothing is pending.
    last = turn.number == len(view.turns) - 1 and call.message == turn.blocks[-1].message
    open_tail = turn.number == len(view.turns) - 2 and following is not None and following.only_results()
    if last or (view.awaits_prompt and open_tail):
        return CallState(call, "pending")
    return CallState(call, "missing")


def _asked_for(view: RequestView, turn: Turn, result: Placed) -> bool:
    before = view.turns[turn.number - 1] if turn.number else None
    return (
        before is not None
        and before.role == "assistant"
        and any(b.type == "tool_use" and _call_id(b) == _result_id(result) for b in before.blocks)
    )


def _leading(turn: Turn | None) -> dict[str, Placed]:
    """The results at the head of a user turn, by id (the first of each id)."""
    found: dict[str, Placed] = {}
    for block in turn.blocks if turn is not None else ():
        if block.type != "tool_result":
            break
        found.setdefault(_result_id(block), block)
    return found


def _call_id(block: Placed) -> str:
    found = block.value.get("id")
    return found if isinstance(found, str) else ""


def _result_id(block: Placed) -> str:
    found = block.value.get("tool_use_id")
    return found if isinstance(found, str) else ""


def _by_message(states: list[CallState]) -> Iterator[tuple[int, list[CallState]]]:
    groups: dict[int, list[CallState]] = {}
    for state in states:
        groups.setdefault(state.call.message, []).append(state)
    yield from groups.items()


def _unanswered(view: RequestView, state: str, rule: str, code: str, sentence: str) -> Iterator[Violation]:
    found = [s for s in pairing_of(view).calls if s.state == state]
    for number, states in _by_message(found):
        ids = tuple(dict.fromkeys(_call_id(s.call) for s in states))
        places = tuple(s.call.place for s in states) + tuple(s.result.place for s in states if s.result is not None)
        yield Violation(
            rule=rule,
            path=block_path(number, -1),
            message=sentence.format(ids=", ".join(ids)),
            api_error=NO_RESULT.format(n=number, ids=", ".join(ids)),
            code=code,
            ids=ids,
            places=places,
            details={"api_index_may_be": [number, number + 1]},
        )


def call_without_result(view: RequestView) -> Iterator[Violation]:
    """R01: every tool_use needs its tool_result in the next message; a call that ends the array is pending."""
    yield from _unanswered(
        view, "missing", "R01", "tool_use_without_result", "No result follows the call {ids}, and none is elsewhere."
    )


def result_without_call(view: RequestView) -> Iterator[Violation]:
    """R02: a tool_result whose call is not in the previous message."""
    for block in pairing_of(view).unexpected:
        identity = _result_id(block)
        if not identity:
            continue
        yield Violation(
            rule="R02",
            path=block.path,
            message=f"The result of {identity} does not follow its call.",
            api_error=NO_CALL.format(n=block.message, m=block.block, id=identity),
            code="result_without_tool_use",
            ids=(identity,),
            places=(block.place,),
        )


def pair_not_adjacent(view: RequestView) -> Iterator[Violation]:
    """R03: call and result both exist, but the result is not in the message right after the call."""
    yield from _unanswered(
        view, "late", "R03", "result_not_adjacent", "The result of {ids} exists, but not in the message after the call."
    )


def results_not_first(view: RequestView) -> Iterator[Violation]:
    """R04: the results must lead the user message that follows the calls; the API blames the calls (R01's text)."""
    yield from _unanswered(
        view, "behind", "R04", "result_not_first", "The result of {ids} comes after other content of its message."
    )


def duplicate_results(view: RequestView) -> Iterator[Violation]:
    """R05: two results for one call. More results than calls of that id counts; equal numbers are R06's matter."""
    for turn in view.turns:
        if turn.role != "user" or not turn.number:
            continue
        asked = Counter(_call_id(b) for b in view.turns[turn.number - 1].blocks if b.type == "tool_use")
        seen: dict[str, list[Placed]] = {}
        for block in turn.blocks:
            if block.type == "tool_result" and asked[_result_id(block)]:
                seen.setdefault(_result_id(block), []).append(block)
        for identity, blocks in seen.items():
            if len(blocks) <= asked[identity]:
                continue
            second = blocks[1]
            yield Violation(
                rule="R05",
                path=second.path,
                message=f"The call {identity} has {len(blocks)} results.",
                api_error=f"{second.path}: each tool_use must have a single result. "
                f"Found multiple `tool_result` blocks with id: {identity}",
                code="duplicate_tool_result",
                ids=(identity,),
                places=tuple(b.place for b in blocks),
            )


def duplicate_calls(view: RequestView) -> Iterator[Violation]:
    """R06: tool_use ids must be unique; inside one turn it is certain, in a later turn disputed (a warning)."""
    earlier: dict[str, Placed] = {}
    for turn in view.turns:
        if turn.role != "assistant":
            continue
        here: dict[str, list[Placed]] = {}
        for block in turn.blocks:
            if block.type == "tool_use" and _call_id(block):
                here.setdefault(_call_id(block), []).append(block)
        for identity, blocks in here.items():
            if len(blocks) > 1:
                yield _duplicate_call(identity, blocks, "duplicate_tool_use_id", "error")
            elif identity in earlier:
                yield _duplicate_call(identity, [earlier[identity], *blocks], "tool_use_id_reused", "warning")
            earlier.setdefault(identity, blocks[0])


def _duplicate_call(identity: str, blocks: list[Placed], code: str, severity: Severity) -> Violation:
    first = blocks[0]
    same = [b for b in blocks[1:] if _same_call(first, b)]
    kinds = {"identical": [b.path for b in same], "different": [b.path for b in blocks[1:] if b not in same]}
    return Violation(
        rule="R06",
        path=blocks[1].path,
        message=f"{len(blocks)} calls have the id {identity}: {len(same)} exact copies of the first, "
        f"{len(blocks) - 1 - len(same)} different calls.",
        api_error=f"{blocks[1].path}: `tool_use` ids must be unique",
        code=code,
        severity=severity,
        ids=(identity,),
        places=tuple(b.place for b in blocks),
        details=kinds,
    )


def _same_call(one: Placed, other: Placed) -> bool:
    return all(one.value.get(key) == other.value.get(key) for key in ("name", "input"))


def call_shape(view: RequestView) -> Iterator[Violation]:
    """R07: the id's alphabet, the name's length, the input's type, and the result's own id field."""
    for block in view.blocks():
        if block.type == "tool_use":
            yield from _call_faults(block)
        elif block.type == "tool_result" and not isinstance(block.value.get("tool_use_id"), str):
            yield _shape(block, "tool_result_lacks_id", "tool_result.tool_use_id: Field required", "has no tool_use_id")


def _call_faults(block: Placed) -> Iterator[Violation]:
    identity, name = block.value.get("id"), block.value.get("name")
    if not isinstance(identity, str) or not _ID.fullmatch(identity):
        yield _shape(
            block,
            "invalid_tool_use_id",
            "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            f"has the id {identity!r}, which the API's alphabet does not allow",
        )
    if isinstance(name, str) and len(name) > _MAXIMUM_NAME:
        yield _shape(
            block,
            "tool_name_too_long",
            f"tool_use.name: String should have at most {_MAXIMUM_NAME} characters",
            f"has a name of {len(name)} characters",
        )
    if not isinstance(block.value.get("input"), dict):
        yield _shape(
            block,
            "tool_input_not_object",
            "tool_use.input: Input should be a valid dictionary",
            "has an input that is no object: the call was cut",
        )


def _shape(block: Placed, code: str, text: str, what: str) -> Violation:
    identity = block.value.get("id") if block.type == "tool_use" else block.value.get("tool_use_id")
    return Violation(
        rule="R07",
        path=f"{block.path}.{text.split(':')[0]}",
        message=f"The {block.type} block {what}.",
        api_error=f"{block.path}.{text}",
        code=code,
        ids=(identity,) if isinstance(identity, str) else (),
        places=(block.place,),
    )


def wrong_role(view: RequestView) -> Iterator[Violation]:
    """R08: results belong in user messages, calls in assistant messages."""
    for turn in view.turns:
        wrong, right = ("tool_result", "user") if turn.role == "assistant" else ("tool_use", "assistant")
        groups: dict[int, list[Placed]] = {}
        for block in turn.blocks:
            if block.type == wrong:
                groups.setdefault(block.message, []).append(block)
        for number, blocks in groups.items():
            yield Violation(
                rule="R08",
                path=block_path(number, -1),
                message=f"A {wrong} block stands in a message of role {turn.role}.",
                api_error=f"messages.{number}: `{wrong}` blocks can only be in `{right}` messages",
                code="block_in_wrong_role",
                ids=tuple(_result_id(b) or _call_id(b) for b in blocks),
                places=tuple(b.place for b in blocks),
            )


def tools_defined(view: RequestView) -> Iterator[Violation]:
    """R09: a history with tool blocks needs tool definitions, with unique names."""
    names = view.tool_names()
    if names is None:
        return
    used = [b for b in view.blocks() if b.type in ("tool_use", "tool_result")]
    if used and not names:
        yield Violation(
            rule="R09",
            path="",
            message=f"The history holds {len(used)} tool blocks, but the request defines no tool.",
            api_error="Requests which include `tool_use` or `tool_result` blocks must define tools.",
            code="tools_not_defined",
            places=tuple(b.place for b in used),
        )
    double = [name for name, count in Counter(names).items() if count > 1]
    if double:
        yield Violation(
            rule="R09",
            path="tools",
            message=f"Two tools have the same name: {', '.join(double)}.",
            api_error="tools: Tool names must be unique.",
            code="duplicate_tool_names",
            details={"tools": double},
        )


def error_results_are_text(view: RequestView) -> Iterator[Violation]:
    """R10: a result with is_error holds text only."""
    for block in view.blocks():
        content = block.value.get("content")
        if block.type != "tool_result" or block.value.get("is_error") is not True or not isinstance(content, list):
            continue
        if any(_kind(item) != "text" for item in content):
            yield Violation(
                rule="R10",
                path=f"{block.path}.content",
                message="An error result holds something other than text.",
                api_error=f'{block.path}: all content must be type "text" if `is_error` is true',
                code="error_result_not_text",
                ids=(_result_id(block),),
                places=(block.place,),
            )


def _kind(item: Any) -> str:
    found = item.get("type") if isinstance(item, dict) else None
    return found if isinstance(found, str) else ""
