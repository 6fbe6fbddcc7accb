"""What may stay and what must go together: compaction.md section 8."""

from __future__ import annotations

import pytest

from compaction.strategies.borders import (
    MessageFacts,
    adjust_index_to_preserve_api_invariants,
    calculate_messages_to_keep_index,
)
from compaction.strategies.session_memory import SessionMemorySettings, is_empty_memory, session_memory_enabled
from tests.generator.builder import SessionBuilder
from tests.unit.strategies.sessions import bash, given_for, plan_of, session

MEMORY = "# Session\nThe parser was mended."
LIMITS = {"min_tokens": 10_000, "min_text_block_messages": 5, "max_tokens": 40_000}


def _texts(*tokens: int) -> list[MessageFacts]:
    return [MessageFacts(n, has_text=True) for n in tokens]


@pytest.mark.parametrize(
    ("messages", "last", "expected"),
    [
        (_texts(*[3_000] * 10), 9, 5),  # five messages with text: both minima are met at once
        (_texts(*[1_000] * 20), 19, 10),  # ten thousand tokens
        (_texts(*[30_000] * 4), 3, 2),  # the maximum stops it before five texts
        (_texts(*[3_000] * 10), -1, 5),  # nothing summarised yet: start = length
        (_texts(*[20_000] * 6), 0, 1),  # more than the maximum after the last summarised: no walk
        (_texts(100, 100), 1, 0),  # the beginning ends the walk
    ],
)
def test_section_8_how_many_messages_stay(messages: list[MessageFacts], last: int, expected: int) -> None:
    assert calculate_messages_to_keep_index(messages, last, **LIMITS) == expected


def test_section_8_the_walk_never_passes_the_last_compact_boundary() -> None:
    messages = [*_texts(50_000, 50_000), MessageFacts(0, False, boundary=True), *_texts(10, 10)]
    assert calculate_messages_to_keep_index(messages, 4, **LIMITS) == 3


def test_section_8_messages_without_text_do_not_count_as_text() -> None:
    silent = [MessageFacts(3_000, has_text=False)] * 10
    assert calculate_messages_to_keep_index(silent, 9, **LIMITS) == 0


def test_section_8_adjustment_brings_missing_calls_and_pieces_of_a_response_in() -> None:
    thinking = MessageFacts(1, False, response="A")
    call = MessageFacts(1, False, response="A", calls=frozenset({"x"}))
    other_call = MessageFacts(1, False, response="A", calls=frozenset({"y"}))
    results = [MessageFacts(1, False, answers=frozenset({name})) for name in ("x", "y")]
    messages = [*_texts(1), thinking, call, other_call, *results, *_texts(1)]
    for start in range(2, 6):
        assert adjust_index_to_preserve_api_invariants(messages, start) == 1
    assert adjust_index_to_preserve_api_invariants(messages, 6) == 6


@pytest.mark.parametrize("start", [-3, 0, 7, 99])
def test_section_8_adjustment_is_the_identity_at_the_ends(start: int) -> None:
    assert adjust_index_to_preserve_api_invariants(_texts(*[1] * 7), start) == start


@pytest.mark.parametrize(
    ("enable", "disable", "flags", "on"),
    [
        (True, False, (False, False), True),
        (True, True, (False, False), True),
        (False, True, (True, True), False),
        (False, False, (True, True), True),
        (False, False, (True, False), False),
        (False, False, (False, True), False),
    ],
)
def test_section_8_when_it_is_on(enable: bool, disable: bool, flags: tuple[bool, bool], on: bool) -> None:
    found = session_memory_enabled(enable=enable, disable=disable, session_memory_flag=flags[0], compact_flag=flags[1])
    assert found is on


@pytest.mark.parametrize(
    ("text", "empty"),
    [("", True), ("# Title\n_A hint_\n\n- \n<!-- note -->\n", True), ("# Title\n_A hint_\nWe decided.", False)],
)
def test_section_8_the_empty_template(text: str, empty: bool) -> None:
    assert is_empty_memory(text) is empty


def test_section_8_defaults() -> None:
    settings = SessionMemorySettings()
    assert (settings.min_tokens, settings.min_text_block_messages, settings.max_tokens) == (10_000, 5, 40_000)


def _long_session() -> SessionBuilder:
    builder = SessionBuilder("2.1.39")
    for number in range(12):
        builder.prompt(f"question {number} " * 50)
        builder.assistant(f"answer {number} " * 400, tools=[bash()], results=["out " * 400])
        builder.assistant(f"so it is {number}")
    return builder


def test_section_8_the_memory_becomes_the_summary_without_a_model() -> None:
    given = given_for(_long_session(), session_memory=MEMORY)
    plan = plan_of("session-memory", given, min_tokens=1_000)
    assert plan.applies, plan.reason
    assert plan.model_calls == 0
    assert MEMORY in plan.after.messages[0].content[0]["text"]
    assert plan.after.messages[-1].content == plan.request.messages[-1].content


@pytest.mark.parametrize(
    ("memory", "uuid", "reason"),
    [
        (None, "", "no session memory"),
        ("# T\n_hint_", "", "empty template"),
        (MEMORY, "not-there", "not in the request"),
    ],
)
def test_section_8_falls_back_to_auto_compact(memory: str | None, uuid: str, reason: str) -> None:
    given = given_for(_long_session(), session_memory=memory, last_summarised_uuid=uuid)
    plan = plan_of("session-memory", given)
    assert not plan.applies
    assert reason in plan.reason
    assert "falls back" in plan.reason


def test_section_8_falls_back_when_the_result_is_still_over_the_threshold() -> None:
    builder = SessionBuilder("2.1.39", system_tokens=160_000)
    for number in range(12):
        builder.prompt(f"question {number} " * 500)
        builder.assistant(f"answer {number} " * 500)
    plan = plan_of("session-memory", given_for(builder, session_memory=MEMORY), min_tokens=9_000)
    assert not plan.applies
    assert "over the threshold" in plan.reason


def test_section_8_a_known_last_summarised_message_is_where_the_tail_begins() -> None:
    builder = _long_session()
    given = given_for(builder)
    t = given.conversation.transcript
    target = next(r for r in range(40, len(t)) if t.preview(r).startswith("question"))
    given = given_for(builder, session_memory=MEMORY, last_summarised_uuid=t.uuid(target - 1))
    plan = plan_of("session-memory", given, min_tokens=0, min_text_block_messages=0)
    kept = [o.record for m in plan.after.messages for o in m.origins if o is not None]
    assert min(kept) == target


def test_partial_pivot_never_splits_a_pair() -> None:
    builder = session([(bash(str(n)), f"out {n} " * 80) for n in range(8)])
    given = given_for(builder)
    t = given.conversation.transcript
    for record in range(2, len(t)):
        for name in ("partial-from", "partial-up-to"):
            plan = plan_of(name, given, pivot_uuid=t.uuid(record), restore=False)
            calls = {b["id"] for m in plan.after.messages for b in m.content if b.get("type") == "tool_use"}
            answers = {
                b["tool_use_id"] for m in plan.after.messages for b in m.content if b.get("type") == "tool_result"
            }
            assert calls == answers
