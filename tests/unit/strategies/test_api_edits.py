"""Context management by the API: compaction.md section 5, api.md 1.5, 2.1 and 2.2."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction.conversation import build_conversation
from compaction.strategies.api_clear_tool_uses import PLACEHOLDER, ApiClearToolUsesSettings, edit_json
from compaction.strategies.api_compact import compacts_on_server
from compaction.strategies.apply import apply_plan
from compaction.strategies.inputs import strategy_input
from compaction.strategies.settings import make_settings
from compaction.transcript import transcript_from_bytes
from tests.generator.builder import SessionBuilder
from tests.unit.strategies.sessions import HOUR, bash, given_for, plan_of, read, results_in, session

SIX = [(bash(f"step {n}"), f"output {n} " * 60) for n in range(6)]
OPEN: dict[str, Any] = {"trigger": "tool_uses", "trigger_value": 0, "clear_at_least": 0}


def test_section_5_defaults_are_the_clients() -> None:
    settings = ApiClearToolUsesSettings()
    assert (settings.trigger, settings.trigger_value, settings.clear_at_least) == ("input_tokens", 180_000, 140_000)


def test_section_5_clear_tool_uses_keeps_the_newest_and_clears_the_oldest_first() -> None:
    plan = plan_of("api-clear-tool-uses", given_for(session(SIX)), **OPEN)
    assert [text == PLACEHOLDER for text in results_in(plan)] == [True, True, True, False, False, False]
    assert plan.edits == ()
    assert plan.sent.messages == plan.request.messages
    assert plan.sent.params["context_management"] == plan.server_edit["context_management"]  # type: ignore[index]


def test_api_2_1_the_trigger_is_strictly_over() -> None:
    given = given_for(session(SIX))
    assert not plan_of("api-clear-tool-uses", given, **{**OPEN, "trigger_value": 6}).applies
    assert plan_of("api-clear-tool-uses", given, **{**OPEN, "trigger_value": 5}).applies
    tokens = {"trigger": "input_tokens", "clear_at_least": 0}
    assert not plan_of("api-clear-tool-uses", given, **tokens, trigger_value=given.view.tokens).applies
    assert plan_of("api-clear-tool-uses", given, **tokens, trigger_value=given.view.tokens - 1).applies


def test_api_2_1_excluded_and_tiny_results_are_neither_cleared_nor_counted() -> None:
    steps = [(read("/a"), "file " * 90), (bash("t"), "x" * 46), (bash("u"), "x" * 47), *SIX[:3]]
    plan = plan_of("api-clear-tool-uses", given_for(session(steps)), **OPEN, exclude_tools=("Read",))
    assert [text == PLACEHOLDER for text in results_in(plan)] == [False, False, True, False, False, False]
    counted = plan_of(
        "api-clear-tool-uses", given_for(session(steps)), **{**OPEN, "trigger_value": 4}, exclude_tools="Read"
    )
    assert not counted.applies


def test_api_2_1_the_newest_result_is_never_cleared_even_with_keep_0() -> None:
    plan = plan_of("api-clear-tool-uses", given_for(session(SIX)), **OPEN, keep=0)
    assert [text == PLACEHOLDER for text in results_in(plan)] == [True] * 5 + [False]


def test_api_2_1_clear_at_least_works_in_whole_batches_or_not_at_all() -> None:
    given = given_for(session(SIX))
    item = plan_of("api-clear-tool-uses", given, **OPEN).cleared[0]
    each = item.tokens_before - item.tokens_after
    two = plan_of("api-clear-tool-uses", given, **{**OPEN, "clear_at_least": int(each * 1.5)}, keep=1)
    assert len(two.cleared) == 4, "five can go, in batches of two: an incomplete last batch stays"
    never = plan_of("api-clear-tool-uses", given, **{**OPEN, "clear_at_least": each * 100})
    assert not never.applies


@pytest.mark.parametrize(("inputs", "emptied"), [((), 0), (("Bash",), 3), (("*",), 3), (("Read",), 0)])
def test_api_2_1_clear_tool_inputs(inputs: tuple[str, ...], emptied: int) -> None:
    plan = plan_of("api-clear-tool-uses", given_for(session(SIX)), **OPEN, clear_tool_inputs=inputs)
    uses = [b["input"] for m in plan.after.messages for b in m.content if b.get("type") == "tool_use"]
    assert uses.count({}) == emptied


def test_api_1_5_the_edit_as_it_is_sent() -> None:
    settings = make_settings(
        ApiClearToolUsesSettings, {"trigger_value": "100_000", "exclude_tools": "memory,Read", "clear_tool_inputs": "*"}
    )
    assert edit_json(settings) == {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": 100_000},
        "keep": {"type": "tool_uses", "value": 3},
        "clear_at_least": {"type": "input_tokens", "value": 140_000},
        "exclude_tools": ["memory", "Read"],
        "clear_tool_inputs": True,
    }


def _thinking_session() -> SessionBuilder:
    builder = SessionBuilder("2.1.39", model="claude-opus-4-6")
    for number in range(3):
        builder.prompt(f"question {number}")
        builder.assistant(thinking=f"thought {number}", tools=[bash()], results=["out " * 30])
        builder.assistant(f"answer {number}")
    return builder


@pytest.mark.parametrize(("hours", "applies"), [(0.5, False), (2, True)])
def test_section_5_clear_thinking_keeps_all_but_after_an_hour_one_turn(hours: float, applies: bool) -> None:
    plan = plan_of("api-clear-thinking", given_for(_thinking_session(), later_ms=int(hours * HOUR)))
    assert plan.applies is applies
    left = [b["thinking"] for m in plan.after.messages for b in m.content if b.get("type") == "thinking"]
    assert left == (["thought 2"] if applies else ["thought 0", "thought 1", "thought 2"])
    if applies:
        assert plan.server_edit == {
            "context_management": {
                "edits": [{"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}}]
            }
        }


def test_section_5_clear_thinking_is_not_sent_without_thinking() -> None:
    plan = plan_of("api-clear-thinking", given_for(session(SIX)), keep="turns")
    assert not plan.applies
    assert "no thinking" in plan.reason


@pytest.mark.parametrize(
    ("model", "supported"),
    [
        ("claude-opus-4-6", True),
        ("claude-opus-4-5-20251101", False),
        ("claude-sonnet-5", True),
        ("claude-haiku-4-5", False),
        ("claude-haiku-5-5", True),
        ("claude-fable-5-2", True),
        ("gpt-7", False),
    ],
)
def test_api_2_2_models_that_compact_on_the_server(model: str, supported: bool) -> None:
    assert compacts_on_server(model) is supported


def test_api_2_2_compaction_leaves_one_block_before_which_all_is_ignored() -> None:
    builder = SessionBuilder("2.1.39", model="claude-opus-4-6", system_tokens=150_000)
    builder.prompt("write a long story about the tide " * 20)
    builder.assistant("a story " * 4_000)
    plan = plan_of("api-compact", given_for(builder), trigger_value=50_000)
    assert plan.applies, plan.reason
    (message,) = plan.after.messages
    assert [block["type"] for block in message.content] == ["compaction"]
    assert plan.model_calls == 1
    assert plan.sent.messages == plan.request.messages
    assert not plan_of("api-compact", given_for(builder), trigger_value=1_000_000).applies


def test_api_2_1_in_a_request_document_the_edit_is_set_and_thinking_comes_first() -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for number in range(5):
        call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {}}
        messages.append(
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, call]}
        )
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "output " * 50}
        messages.append({"role": "user", "content": [result]})
        messages.append({"role": "user", "content": f"next {number}"})
    document = json.dumps({"model": "claude-opus-4-6", "messages": messages}).encode()
    given = strategy_input(build_conversation(transcript_from_bytes(document)), now_ms=0)
    plan = plan_of("api-clear-tool-uses", given, **OPEN)
    once = b"".join(apply_plan(given.conversation.transcript, plan))
    given = strategy_input(build_conversation(transcript_from_bytes(once)), now_ms=0)
    assert not plan_of("api-clear-tool-uses", given, **OPEN).applies
    both = plan_of("api-clear-thinking", given, keep="turns")
    twice = json.loads(b"".join(apply_plan(given.conversation.transcript, both)))
    assert [e["type"] for e in twice["context_management"]["edits"]] == [
        "clear_thinking_20251015",
        "clear_tool_uses_20250919",
    ]
    assert twice["messages"] == messages
