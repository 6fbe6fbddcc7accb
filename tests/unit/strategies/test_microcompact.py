"""MicroCompact: compaction.md section 4."""

from __future__ import annotations

import json

import pytest

from compaction.strategies.apply import apply_plan
from compaction.strategies.microcompact import COMPACTABLE_TOOLS
from compaction.strategies.microcompact_cached import MicrocompactCachedSettings, microcompact_path
from compaction.strategies.microcompact_time import MicrocompactTimeSettings
from compaction.transcript import CLEARED_MARKER
from tests.generator.builder import SessionBuilder, Tool
from tests.unit.strategies.sessions import MINUTE, bash, given_for, plan_of, read, results_in, session

EIGHT = [(bash(f"step {n}"), f"output {n} " * 40) for n in range(8)]


@pytest.mark.parametrize(
    ("minutes", "keep", "cleared"),
    [(61, 5, 3), (59, 5, 0), (60, 5, 3), (61, 0, 7), (61, 1, 7), (61, 8, 0), (61, 20, 0)],
)
def test_section_14_exercise_4_time_based_clears_all_but_the_newest(minutes: int, keep: int, cleared: int) -> None:
    plan = plan_of("microcompact-time", given_for(session(EIGHT), later_ms=minutes * MINUTE), keep_recent=keep)
    assert plan.applies == (cleared > 0)
    assert len(plan.cleared) == cleared
    assert results_in(plan).count(CLEARED_MARKER) == cleared
    assert results_in(plan)[cleared:] == [text for _, text in EIGHT[cleared:]]


def test_section_4_defaults_are_the_specifications() -> None:
    settings = MicrocompactTimeSettings()
    assert (settings.enabled, settings.gap_threshold_minutes, settings.keep_recent) == (False, 60, 5)
    assert {"Read", "Bash", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "Write"} <= set(COMPACTABLE_TOOLS)


@pytest.mark.parametrize("gap", [float("inf"), float("nan"), float("-inf")])
def test_section_4_a_gap_that_is_not_finite_never_fires(gap: float) -> None:
    given = given_for(session(EIGHT))
    from compaction.strategies.microcompact_time import MicrocompactTime

    plan = MicrocompactTime().preview(given, MicrocompactTimeSettings(enabled=True, gap_threshold_minutes=gap))
    assert not plan.applies


@pytest.mark.parametrize(
    ("source", "fires"),
    [(None, True), ("repl_main_thread", True), ("repl_main_thread:1", True), ("sdk", True), ("agent:x", False)],
)
def test_section_4_fires_for_the_main_thread_only(source: str | None, fires: bool) -> None:
    assert plan_of("microcompact-time", given_for(session(EIGHT), query_source=source)).applies is fires


def test_section_4_needs_an_assistant_message() -> None:
    builder = SessionBuilder("2.1.39")
    builder.prompt("hello")
    plan = plan_of("microcompact-time", given_for(builder))
    assert not plan.applies
    assert "no answer" in plan.reason


def test_section_4_other_tools_and_cleared_results_stay_as_they_are() -> None:
    steps = [
        (bash("a"), CLEARED_MARKER),
        (Tool("Task", {"prompt": "look"}), "an agent's answer " * 30),
        (read("/a.py"), "long " * 200),
        *EIGHT[:5],
    ]
    plan = plan_of("microcompact-time", given_for(session(steps)))
    assert [item.tool for item in plan.cleared] == ["Read"]
    assert results_in(plan)[1].startswith("an agent's answer")
    done = [(tool, CLEARED_MARKER if n < 3 else text) for n, (tool, text) in enumerate(EIGHT)]
    nothing = plan_of("microcompact-time", given_for(session(done)))
    assert not nothing.applies
    assert "nothing to clear" in nothing.reason


def test_section_4_only_the_content_of_the_cleared_results_changes_in_the_file() -> None:
    given = given_for(session(EIGHT))
    plan = plan_of("microcompact-time", given)
    before = given.conversation.transcript.source.read(0, 1 << 30).splitlines()
    after = b"".join(apply_plan(given.conversation.transcript, plan)).splitlines()
    changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    assert len(changed) == 3
    for old, new in changed:
        expected = json.loads(old)
        expected["message"]["content"][0]["content"] = CLEARED_MARKER
        assert json.loads(new) == expected


def test_section_4_disabled_by_default_in_the_pipeline_and_reported_tokens_are_those_freed() -> None:
    given = given_for(session(EIGHT))
    assert not plan_of("microcompact-time", given, enabled=False).applies
    plan = plan_of("microcompact-time", given)
    assert plan.tokens_freed == sum(i.tokens_before - i.tokens_after for i in plan.cleared)
    assert plan.before["tool_result"] - plan.after_categories["tool_result"] == plan.tokens_freed


def test_section_4_prefix_bound_models_lose_the_thinking_behind_the_change() -> None:
    builder = SessionBuilder("2.1.332", model="claude-opus-5-5")
    builder.prompt("go")
    for tool, text in EIGHT:
        builder.assistant(thinking="hm", tools=[tool], results=[text])
    builder.assistant("done")
    plan = plan_of("microcompact-time", given_for(builder))
    kinds = [b["type"] for m in plan.after.messages for b in m.content]
    # The first round's thinking stands before the first cleared result and stays valid.
    assert kinds.count("thinking") == 1
    assert any("binds its thinking" in note for note in plan.notes)


def test_section_4_cached_changes_nothing_locally_and_queues_the_ids_grouped_by_message() -> None:
    builder = SessionBuilder("2.1.39", model="claude-opus-4-6")
    builder.prompt("go")
    first = builder.assistant(tools=[bash("1"), bash("2")], results=["x" * 400, "y" * 400])
    for tool, text in EIGHT[:3]:
        builder.assistant(tools=[tool], results=[text])
    plan = plan_of("microcompact-cached", given_for(builder), trigger_results=4, keep_recent=3)
    assert plan.edits == ()
    assert plan.sent.messages == plan.request.messages
    assert plan.server_edit is not None
    assert plan.server_edit["type"] == "cache_edits"
    assert plan.server_edit["trigger"] == "auto"
    assert [edit["tool_use_ids"] for edit in plan.server_edit["edits"]] == [first.tools]
    assert plan.first_changed == len(plan.request.messages)
    assert plan.tokens_after < plan.tokens_before


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"trigger_results": 20}, "trigger"),
        ({"enabled": False}, "feature"),
        ({"trigger_results": 3, "keep_recent": 9}, "kept"),
    ],
)
def test_section_4_cached_says_why_not(settings: dict[str, object], reason: str) -> None:
    plan = plan_of("microcompact-cached", given_for(session(EIGHT, model="claude-opus-4-6")), **settings)
    assert not plan.applies
    assert reason in plan.reason


def test_section_4_cached_needs_the_main_thread() -> None:
    given = given_for(session(EIGHT, model="claude-opus-4-6"), query_source="agent:1")
    assert not plan_of("microcompact-cached", given, trigger_results=3).applies


def test_section_4_entry_order_time_short_circuits_cached_else_no_op() -> None:
    builder = session(EIGHT, model="claude-opus-4-6")
    timed = MicrocompactTimeSettings(enabled=True)
    cached = MicrocompactCachedSettings(enabled=True, trigger_results=3)
    assert microcompact_path(given_for(builder), timed, cached) == "time"
    soon = given_for(builder, later_ms=MINUTE)
    assert microcompact_path(soon, timed, cached) == "cached"
    assert microcompact_path(soon, timed, MicrocompactCachedSettings()) == "none"
