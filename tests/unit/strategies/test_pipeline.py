"""The pipeline, its guards, the breaker, cleanup and telemetry: compaction.md sections 6, 10, 11 and 12."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compaction.accounting.settings import WindowSettings
from compaction.errors import Cancelled
from compaction.strategies.cleanup import EVERY_COMPACTION, MAIN_THREAD_ONLY, NEVER, WITH_ATTRIBUTION, cleared_state
from compaction.strategies.collapse import CollapseSettings
from compaction.strategies.microcompact_cached import MicrocompactCachedSettings
from compaction.strategies.microcompact_time import MicrocompactTimeSettings
from compaction.strategies.pipeline import PipelineSettings, PipelineState, run_pipeline, should_auto_compact
from compaction.strategies.plan import StrategyInput, is_main_thread
from compaction.strategies.session_memory import SessionMemorySettings
from compaction.strategies.snip import SnipSettings
from compaction.strategies.summariser import Summary, SummaryTask
from compaction.strategies.telemetry import Telemetry
from tests.generator.builder import SessionBuilder
from tests.unit.strategies.sessions import MINUTE, bash, given_for, plan_of, read, session

MEMORY = "# Session\nThe parser was mended."


def _full_session(system_tokens: int = 153_500) -> SessionBuilder:
    """A session just over 167,000 tokens, with a superseded read and old results."""
    builder = SessionBuilder("2.1.39", model="claude-opus-4-6", system_tokens=system_tokens)
    builder.prompt("go")
    builder.assistant(tools=[read("/a.py")], results=["     1→" + "alpha " * 2_000])
    for number in range(8):
        builder.assistant(tools=[bash(str(number))], results=[f"out {number} " * 700])
    builder.assistant(tools=[read("/a.py")], results=["     1→" + "beta " * 1_000])
    builder.prompt("and now?")
    builder.assistant("done")
    return builder


def _given(later_ms: int = MINUTE, **more: object) -> StrategyInput:
    return given_for(_full_session(), later_ms=later_ms, **more)


@pytest.mark.parametrize(
    ("source", "settings", "reason"),
    [
        ("session_memory", PipelineSettings(), "fork"),
        ("compact", PipelineSettings(), "fork"),
        ("context_collapse", PipelineSettings(), "collapse agent"),
        (None, PipelineSettings(reactive=True), "reactive"),
        (None, PipelineSettings(collapse=CollapseSettings(enabled=True)), "Context Collapse"),
    ],
)
def test_section_6_should_auto_compact_guards(source: str | None, settings: PipelineSettings, reason: str) -> None:
    should, why = should_auto_compact(_given(query_source=source), settings)
    assert not should
    assert reason in why


def test_section_6_should_auto_compact_compares_the_count_minus_snip_with_the_threshold() -> None:
    given = _given()
    threshold = given.thresholds.auto_compact_threshold
    over = given.view.tokens - threshold
    assert over >= 0
    assert should_auto_compact(given, PipelineSettings(), over)[0]
    assert not should_auto_compact(given, PipelineSettings(), over + 1)[0]
    off = replace(given, thresholds=replace(given.thresholds, auto_compact_on=False))
    assert should_auto_compact(off, PipelineSettings()) == (False, "auto-compact is off")


def test_section_6_disable_compact_does_nothing() -> None:
    result = run_pipeline(_given(), PipelineSettings(disable_compact=True))
    assert (result.compacted_by, result.cleared) == ("", ())
    assert "DISABLE_COMPACT" in result.skipped


def test_section_10_auto_compact_runs_over_the_threshold_and_suppresses_the_warning() -> None:
    result = run_pipeline(_given(), PipelineSettings(), PipelineState(consecutive_failures=2))
    assert result.compacted_by == "auto-compact"
    assert result.state == PipelineState(0, warning_suppressed=True)
    plan = result.plans[-1]
    assert plan.trigger == "auto"
    assert "without asking" in plan.after.messages[0].content[0]["text"]


def test_section_10_session_memory_comes_first_and_its_success_skips_auto_compact() -> None:
    settings = PipelineSettings(
        session_memory=SessionMemorySettings(enabled=True, min_tokens=10, min_text_block_messages=1)
    )
    builder = _full_session(system_tokens=120_000)
    window = WindowSettings(auto_compact_percent=70)
    given = given_for(builder, later_ms=MINUTE, session_memory=MEMORY, window=window)
    result = run_pipeline(given, settings, PipelineState(last_summarised_uuid=""))
    assert result.compacted_by == "session-memory"
    assert result.state.last_summarised_uuid == ""
    assert not any(plan.strategy == "auto-compact" for plan in result.plans)


def test_section_10_session_memory_that_does_not_apply_falls_back() -> None:
    settings = PipelineSettings(session_memory=SessionMemorySettings(enabled=True))
    assert run_pipeline(_given(), settings).compacted_by == "auto-compact"


def test_section_10_a_light_strategy_that_frees_enough_makes_the_expensive_one_unnecessary() -> None:
    given = _given()
    threshold = given.thresholds.auto_compact_threshold
    snip = SnipSettings(enabled=True, keep_recent_rounds=1)
    freed = plan_of("snip", given, keep_recent_rounds=1).tokens_freed
    assert given.view.tokens - freed < threshold <= given.view.tokens
    result = run_pipeline(given, PipelineSettings(snip=snip))
    assert result.snip_tokens_freed == freed
    assert result.compacted_by == ""
    assert "under the threshold" in result.skipped


def test_section_10_order_and_time_excludes_cached() -> None:
    settings = PipelineSettings(
        snip=SnipSettings(enabled=True),
        microcompact_time=MicrocompactTimeSettings(enabled=True),
        microcompact_cached=MicrocompactCachedSettings(enabled=True, trigger_results=2),
        collapse=CollapseSettings(enabled=True),
    )
    late = run_pipeline(_given(later_ms=120 * MINUTE), settings)
    assert [p.strategy for p in late.plans] == ["snip", "microcompact-time", "context-collapse"]
    soon = run_pipeline(_given(later_ms=MINUTE), settings)
    assert [p.strategy for p in soon.plans] == ["snip", "microcompact-time", "microcompact-cached", "context-collapse"]
    assert [p.applies for p in soon.plans[:3]] == [True, False, True]


class _Failing:
    """A summariser that fails as told."""

    name = title = "failing"
    offline = True

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.calls = 0

    def summarise(self, task: SummaryTask) -> Summary:
        self.calls += 1
        raise self.error


def test_section_6_the_circuit_breaker_opens_after_three_failures_in_a_row() -> None:
    failing = _Failing(RuntimeError("prompt is too long"))
    given = _given(summariser=failing)
    state = PipelineState()
    for number in range(1, 4):
        result = run_pipeline(given, PipelineSettings(), state)
        state = result.state
        assert state.consecutive_failures == number
        assert result.failure == "RuntimeError: prompt is too long"
        assert result.logged
        assert result.cleared == ()
    assert failing.calls == 3
    result = run_pipeline(given, PipelineSettings(), state)
    assert failing.calls == 3
    assert "circuit breaker" in result.skipped
    assert result.state.consecutive_failures == 3


def test_section_6_a_users_abort_counts_but_is_not_logged() -> None:
    result = run_pipeline(_given(summariser=_Failing(Cancelled())), PipelineSettings())
    assert result.state.consecutive_failures == 1
    assert not result.logged


def test_section_1_the_warning_is_shown_again_at_the_start_of_the_next_attempt() -> None:
    quiet = given_for(session([(bash(), "x")]))
    result = run_pipeline(quiet, PipelineSettings(), PipelineState(warning_suppressed=True))
    assert not result.state.warning_suppressed


@pytest.mark.parametrize(
    ("source", "main"),
    [
        (None, True),
        ("repl_main_thread", True),
        ("repl_main_thread:outputStyle", True),
        ("sdk", True),
        ("agent:x", False),
        ("compact", False),
    ],
)
def test_section_11_a_subagent_does_not_reset_the_main_threads_state(source: str | None, main: bool) -> None:
    assert is_main_thread(source) is main
    cleared = cleared_state(source)
    assert set(EVERY_COMPACTION) <= set(cleared)
    assert (set(MAIN_THREAD_ONLY) <= set(cleared)) is main
    assert not set(NEVER) & set(cleared)
    assert WITH_ATTRIBUTION not in cleared
    assert WITH_ATTRIBUTION in cleared_state(source, attribution=True)


def test_section_12_the_twelve_figures() -> None:
    builder = _full_session()
    builder.compact("Summary: all of it.")
    builder.prompt("more")
    builder.assistant("more " * 900, tools=[bash()], results=["out " * 900])
    builder.assistant("done")
    given = given_for(builder)
    plan = plan_of("auto-compact", given, restore=False)
    found = plan.telemetry
    assert found is not None
    assert len(found.as_json()) == 12
    assert found.pre_compact_token_count == plan.tokens_before
    assert found.true_post_compact_token_count == plan.tokens_after
    assert found.post_compact_token_count == plan.tokens_after - given.view.system_tokens
    assert found.auto_compact_threshold == given.thresholds.auto_compact_threshold
    assert (found.is_auto_compact, found.is_recompaction_in_chain, found.turns_since_previous_compact) == (
        False,
        True,
        2,
    )
    assert found.compaction_output_tokens > 0
    assert found.compaction_input_tokens + found.compaction_cache_read_tokens > plan.tokens_before


@pytest.mark.parametrize(("system_tokens", "retriggers"), [(20_000, False), (170_000, True)])
def test_section_12_will_retrigger_when_the_context_after_is_still_over(system_tokens: int, retriggers: bool) -> None:
    plan = plan_of("auto-compact", given_for(_full_session(system_tokens)), restore=False)
    assert isinstance(plan.telemetry, Telemetry)
    assert plan.telemetry.will_retrigger_next_turn is retriggers
