"""Compactions as records: transcript-format.md section 7, compaction.md section 6 (order of the result)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction.request.assemble import assemble
from compaction.strategies.apply import applied, apply_plan
from compaction.strategies.plan import Plan, StrategyInput
from compaction.transcript.edits import InsertRecord, ReplaceRecord
from tests.generator.builder import SessionBuilder
from tests.unit.strategies.sessions import bash, given_for, plan_of, session, write

STEPS = [(bash(f"step {n}"), f"output {n} " * 60) for n in range(12)]


def _inserted(plan: Plan) -> list[dict[str, Any]]:
    return [json.loads(edit.data) for edit in plan.edits if isinstance(edit, InsertRecord)]


def _unchanged(given: StrategyInput, plan: Plan) -> int:
    """How many lines of the original are in the result byte for byte, and that they keep their order."""
    before = given.conversation.transcript.source.read(0, 1 << 30).splitlines()
    after = b"".join(apply_plan(given.conversation.transcript, plan)).splitlines()
    kept = [line for line in before if line in set(after)]
    assert [line for line in after if line in set(before)] == kept
    return len(kept)


@pytest.mark.parametrize(
    ("version", "boundary", "visible", "post"),
    [
        ("1.0.90", False, False, False),
        ("2.0.76", True, True, False),
        ("2.1.39", True, True, False),
        ("2.1.217", True, True, True),
    ],
)
def test_records_take_the_form_of_the_sessions_own_version(
    version: str, boundary: bool, visible: bool, post: bool
) -> None:
    given = given_for(session(STEPS, version=version))
    plan = plan_of("auto-compact", given, restore=False)
    records = _inserted(plan)
    summary = next(r for r in records if r.get("isCompactSummary"))
    assert ("isVisibleInTranscriptOnly" in summary) is visible
    assert summary["version"] == version
    boundaries = [r for r in records if r.get("subtype") == "compact_boundary"]
    assert len(boundaries) == boundary
    if boundary:
        (mark,) = boundaries
        assert (mark["parentUuid"], mark["isMeta"], mark["level"]) == (None, False, "info")
        assert summary["parentUuid"] == mark["uuid"]
        assert mark["logicalParentUuid"] == given.conversation.transcript.uuid(given.conversation.leaf)
        assert mark["compactMetadata"]["preTokens"] == plan.tokens_before
        assert mark["compactMetadata"]["trigger"] == "manual"
        assert ("postTokens" in mark["compactMetadata"]) is post
        if post:
            assert mark["compactMetadata"]["postTokens"] == plan.tokens_after
    else:
        assert summary["parentUuid"] is None


def test_auto_compact_only_appends_and_is_the_next_epoch() -> None:
    given = given_for(session(STEPS))
    plan = plan_of("auto-compact", given, restore=False)
    t = given.conversation.transcript
    before = t.source.read(0, 1 << 30)
    assert b"".join(apply_plan(t, plan)).startswith(before)
    after = applied(t, plan.edits)
    assert len(after.epochs) == 2
    assert [c.kind for c in after.compactions] == ["manual"]
    assert after.dangling == []


def test_the_closing_answer_lets_old_clients_keep_a_summary_that_ends_the_file() -> None:
    plan = plan_of("auto-compact", given_for(session(STEPS)), restore=False)
    last = _inserted(plan)[-1]
    assert last["message"]["model"] == "<synthetic>"
    assert last["message"]["content"] == [{"type": "text", "text": "No response requested."}]
    for client in ("1.0.128", "2.0.76", "2.1.332"):
        given = given_for(session(STEPS), client=client)
        plan = plan_of("auto-compact", given, restore=False)
        sent = assemble(applied(given.conversation.transcript, plan.edits), client)
        assert [m.content for m in sent.messages] == [m.content for m in plan.sent.messages]
        assert len(sent.messages) == 2


def test_section_6_order_boundary_summary_kept_messages_attachments() -> None:
    steps = [(write("/a.py", "whole file " * 30), "done"), *STEPS]
    plan = plan_of("partial-up-to", given_for(session(steps)), keep_rounds=3)
    first, last = plan.after.messages[0], plan.after.messages[-2]
    assert first.content[0]["text"].startswith("This session is being continued")
    assert "verbatim" in first.content[0]["text"]
    assert "/a.py" in last.content[-1]["text"]
    kept = [b["id"] for m in plan.after.messages for b in m.content if b.get("type") == "tool_use"]
    assert len(kept) == 2


def test_partial_up_to_changes_one_line_and_keeps_all_others_byte_identical() -> None:
    given = given_for(session(STEPS))
    plan = plan_of("partial-up-to", given, keep_rounds=4, restore=False)
    replaced = [edit for edit in plan.edits if isinstance(edit, ReplaceRecord)]
    assert len(replaced) == 1
    assert _unchanged(given, plan) == len(given.conversation.transcript) - 1
    old = given.conversation.transcript.payload(replaced[0].record)
    new = json.loads(replaced[0].data)
    assert {k: v for k, v in new.items() if k != "parentUuid"} == {k: v for k, v in old.items() if k != "parentUuid"}


def test_partial_from_branches_off_and_only_appends() -> None:
    given = given_for(session(STEPS))
    plan = plan_of("partial-from", given, keep_rounds=4, restore=False)
    assert all(isinstance(edit, InsertRecord) for edit in plan.edits)
    assert _unchanged(given, plan) == len(given.conversation.transcript)
    kept = [m for m in plan.after.messages if m.role == "assistant"][:-1]
    assert len(kept) == 4
    assert plan.first_changed >= 8, "the cached prefix survives"
    assert any("prefix survives" in note for note in plan.notes)


def test_a_last_prompt_record_names_the_new_leaf_where_the_session_has_such() -> None:
    builder = session(STEPS, version="2.1.217")
    builder.last_prompt("Mend it.")
    for name in ("auto-compact", "partial-from"):
        records = _inserted(plan_of(name, given_for(builder), restore=False))
        assert records[-1]["type"] == "last-prompt"
        assert records[-1]["leafUuid"] == records[-2]["uuid"]
    assert all(r["type"] != "last-prompt" for r in _inserted(plan_of("auto-compact", given_for(session(STEPS)))))


def test_usage_of_kept_messages_is_from_before_the_compaction_and_does_not_count_again() -> None:
    builder = session(STEPS)
    given = given_for(builder)
    plan = plan_of("partial-up-to", given, keep_rounds=3, restore=False)
    from compaction.strategies.inputs import strategy_input

    after = strategy_input(applied(given.conversation.transcript, plan.edits), now_ms=given.now_ms)
    assert after.view.tokens == plan.tokens_after
    assert sum(after.view.categories().values()) == after.view.tokens


def test_prefix_bound_models_keep_a_tail_without_thinking() -> None:
    builder = SessionBuilder("2.1.332", model="claude-sonnet-5-5")
    builder.prompt("go")
    for tool, text in STEPS:
        builder.assistant(thinking="hm", tools=[tool], results=[text])
    builder.assistant("done")
    given = given_for(builder)
    up_to = plan_of("partial-up-to", given, keep_rounds=4)
    assert not [b for m in up_to.after.messages for b in m.content if b.get("type") == "thinking"]
    early = plan_of("partial-from", given, keep_rounds=4)
    assert len([b for m in early.after.messages for b in m.content if b.get("type") == "thinking"]) == 4


def test_nothing_to_summarise_says_so() -> None:
    builder = SessionBuilder("2.1.39")
    builder.prompt("hello")
    for name in ("auto-compact", "partial-from", "partial-up-to"):
        plan = plan_of(name, given_for(builder))
        assert not plan.applies
        assert plan.after is plan.request


def test_custom_instructions_and_transcript_path_reach_the_summary() -> None:
    plan = plan_of("auto-compact", given_for(session(STEPS)), custom_instructions="keep the numbers")
    assert "keep the numbers" in plan.summary
