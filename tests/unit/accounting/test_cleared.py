"""Results cleared in the file afterwards come off the recorded usage (compaction.md 2 and 4, issue 6)."""

from __future__ import annotations

import json

import pytest

from compaction.accounting.cleared import PERSISTED_CHARACTERS, cleared_tokens, shown_text
from compaction.accounting.current import current_context
from compaction.accounting.figure import Method
from compaction.conversation import Conversation, build_conversation, open_session
from compaction.resources import resource
from compaction.strategies.apply import applied, derived
from compaction.strategies.inputs import strategy_input
from compaction.strategies.plan import Plan, StrategyInput
from compaction.strategies.registry import STRATEGIES, preview
from compaction.strategies.settings import make_settings
from compaction.transcript import transcript_from_bytes
from tests.support import SHARED, needs_shared


def cleared_plan(conversation: Conversation) -> tuple[StrategyInput, Plan]:
    now = int(conversation.transcript.timestamp_ms.max()) + 2 * 3_600_000
    given = strategy_input(conversation, now_ms=now)
    chosen = STRATEGIES["microcompact-time"]
    plan = preview(chosen, given, make_settings(chosen.settings_type, {"enabled": True}, chosen.name))
    assert plan.applies
    return given, plan


@pytest.fixture(scope="module")
def sample() -> tuple[StrategyInput, Plan]:
    return cleared_plan(open_session(resource("sample", "tide-tables.jsonl")).conversation)


def test_a_derived_session_has_the_size_that_its_plan_said(sample: tuple[StrategyInput, Plan]) -> None:
    given, plan = sample
    made = derived(given, plan)
    again = strategy_input(made, now_ms=given.now_ms)
    assert again.view.tokens == plan.tokens_after
    assert again.view.total.method is Method.ESTIMATED
    assert current_context(made).tokens.value == plan.tokens_after
    assert sum(again.view.categories().values()) == plan.tokens_after
    # What the earlier plan left is what the next one starts from, kind by kind but for rounding.
    for category, tokens in again.view.categories().items():
        assert abs(tokens - plan.after_categories[category.key]) <= max(60, plan.tokens_after // 50)
    for chosen in STRATEGIES.values():
        next_plan = preview(chosen, again, chosen.settings_type())
        assert next_plan.tokens_before == plan.tokens_after
        assert "would grow the context" not in next_plan.reason or next_plan.tokens_before < 70_000


def test_a_reopened_export_does_not_report_the_usage_from_before_the_clearing(
    sample: tuple[StrategyInput, Plan],
) -> None:
    given, plan = sample
    opened = applied(given.conversation.transcript, plan.edits)
    view = strategy_input(opened, now_ms=given.now_ms).view
    assert view.total.method is Method.ESTIMATED
    assert view.tokens == pytest.approx(plan.tokens_after, rel=0.05)
    current = current_context(opened).tokens
    assert current.method is Method.ESTIMATED
    assert current.value == pytest.approx(plan.tokens_after, rel=0.05)
    assert current_context(given.conversation).tokens.method is not Method.ESTIMATED


@needs_shared
@pytest.mark.parametrize("name", ["22-2.1.31", "37-1.0.29", "44-2.0.55", "46-2.1.217", "20-2.1.20"])
def test_real_exports_are_counted_within_five_per_cent_of_the_plan(name: str) -> None:
    given, plan = cleared_plan(open_session(SHARED / "corpus" / f"{name}.jsonl").conversation)
    opened = applied(given.conversation.transcript, plan.edits)
    assert strategy_input(opened, now_ms=given.now_ms).view.tokens == pytest.approx(plan.tokens_after, rel=0.05)


def test_usage_that_was_recorded_after_the_clearing_is_taken_as_it_is(sample: tuple[StrategyInput, Plan]) -> None:
    given, plan = sample
    opened = applied(given.conversation.transcript, plan.edits)
    t = opened.transcript
    # The client goes on without that content: its next response shows a context smaller by it.
    newest = int(opened.response_records(int(opened.response_of[opened.round_first_records[-1]]))[-1])
    answer = json.loads(t.record_bytes(newest))
    answer |= {"uuid": "9" * 8 + "-0000-4000-8000-000000000000", "parentUuid": t.uuid(opened.leaf)}
    answer["message"] |= {"id": "msg_after", "content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn"}
    answer["message"]["usage"] = {"input_tokens": 61_000, "output_tokens": 10}
    data = t.raw(0, t.size) + json.dumps(answer).encode() + b"\n"
    resumed = build_conversation(transcript_from_bytes(data))
    assert cleared_tokens(resumed, len(resumed.transcript) - 1, given.view.family) == {}
    assert current_context(resumed).tokens.value == 61_010
    view = strategy_input(resumed, now_ms=given.now_ms).view
    assert (view.tokens, view.total.method) == (61_010, Method.RECORDED)


@pytest.mark.parametrize(
    ("copy", "seen"),
    [
        ("Error: no such file", "Error: no such file"),
        ({"stdout": "out", "stderr": "bad", "interrupted": False}, "out\nbad"),
        ({"stdout": "x" * 9000, "persistedOutputPath": "a.txt"}, "x" * PERSISTED_CHARACTERS),
        ({"type": "text", "file": {"content": "a\nb"}}, "a\nb" + "0" * 14),
        ({"mode": "content", "content": "hit", "filenames": []}, "hit"),
        ({"filenames": ["a", "b"], "numFiles": 2}, "a\nb"),
        ({"content": [{"type": "text", "text": "answer"}], "agentId": "x"}, "answer"),
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "one\ntwo"),
        ({"oldString": "a", "newString": "b", "structuredPatch": []}, " " * 200),
        ({"type": "image", "file": {"base64": "AAAA"}}, "0" * 7),
        (None, ""),
    ],
)
def test_what_the_model_saw_is_read_from_the_clients_copy(copy: object, seen: str) -> None:
    assert shown_text(copy) == seen
