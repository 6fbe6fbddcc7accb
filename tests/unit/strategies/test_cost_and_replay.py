"""What a plan costs (compaction.md 13, issue 5), replay against recorded compactions, and what-if."""

from __future__ import annotations

import json
import statistics
from dataclasses import replace

import pytest

from compaction.accounting.prices import bundled_prices
from compaction.accounting.settings import WindowSettings
from compaction.conversation import build_conversation, open_session
from compaction.strategies.api_clear_tool_uses import ApiClearToolUsesSettings
from compaction.strategies.cost import (
    SUMMARY_INSTRUCTION_TOKENS,
    TYPICAL_SUMMARY_TOKENS,
    cache_state,
    growth_per_request,
)
from compaction.strategies.micro_fit import fit_microcompactions
from compaction.strategies.microcompact_time import MicrocompactTimeSettings
from compaction.strategies.replay import replay
from compaction.strategies.what_if import WhatIf, simulate
from compaction.transcript import transcript_from_bytes
from tests.generator.builder import SessionBuilder
from tests.generator.session import Session
from tests.support import corpus_files, needs_shared
from tests.unit.strategies.sessions import HOUR, MINUTE, bash, conversation_of, given_for, plan_of, session

STEPS = [(bash(f"step {n}"), f"output {n} " * 300) for n in range(10)]


def _priced(model: str = "claude-sonnet-4-6") -> SessionBuilder:
    return session(STEPS, model=model, version="2.1.39")


def test_section_13_a_warm_cache_is_read_and_a_cold_one_written() -> None:
    warm, cold = given_for(_priced(), later_ms=MINUTE), given_for(_priced(), later_ms=2 * HOUR)
    assert cache_state(warm).warm
    assert not cache_state(cold).warm
    rates = warm.prices.row("claude-sonnet-4-6")
    assert rates is not None
    tokens = warm.view.tokens
    held = cache_state(warm).tokens
    cost = plan_of("auto-compact", warm).cost
    assert cost is not None
    read, written = rates.rates[2] / 1e6, rates.rates[4 if cache_state(warm).one_hour else 3] / 1e6
    assert cost.next_request_without == pytest.approx(held * read + (tokens - held) * written)
    cold_cost = plan_of("auto-compact", cold).cost
    assert cold_cost is not None
    assert cold_cost.next_request_without == pytest.approx(tokens * written)


def test_section_13_the_summary_request_reads_a_warm_cache_and_pays_its_output() -> None:
    given = given_for(_priced(), later_ms=MINUTE)
    cost = plan_of("auto-compact", given).cost
    assert cost is not None
    held = cache_state(given).tokens
    prompt = given.view.tokens + SUMMARY_INSTRUCTION_TOKENS
    assert cost.usage == (prompt - held, TYPICAL_SUMMARY_TOKENS, held, 0)
    rates = given.prices.row("claude-sonnet-4-6").rates  # type: ignore[union-attr]
    expected = ((prompt - held) * rates[0] + TYPICAL_SUMMARY_TOKENS * rates[1] + held * rates[2]) / 1e6
    assert cost.one_off == pytest.approx(expected)


def test_issue_5_break_even_counts_requests_until_the_plan_has_paid_for_itself() -> None:
    cost = plan_of("auto-compact", given_for(_priced(), later_ms=MINUTE), restore=False).cost
    assert cost is not None
    assert None not in (cost.one_off, cost.next_request, cost.next_request_without, cost.per_request)
    invested = cost.one_off + cost.next_request - cost.next_request_without  # type: ignore[operator]
    saved = cost.per_request_without - cost.per_request  # type: ignore[operator]
    assert saved > 0
    assert cost.break_even_requests is not None
    assert cost.break_even_requests * saved >= invested > (cost.break_even_requests - 1) * saved


def test_issue_5_a_plan_without_a_model_call_on_a_cold_cache_pays_at_once() -> None:
    cost = plan_of("microcompact-time", given_for(_priced())).cost
    assert cost is not None
    assert (cost.one_off, cost.break_even_requests) == (0, 0)
    assert cost.next_request < cost.next_request_without  # type: ignore[operator]


def test_issue_5_clearing_early_results_loses_the_warm_cache_behind_them() -> None:
    given = given_for(_priced(), later_ms=MINUTE)
    cleared = plan_of("microcompact-time", given, gap_threshold_minutes=0).cost
    cached = plan_of("microcompact-cached", given, trigger_results=3).cost
    assert cleared is not None
    assert cached is not None
    assert cleared.cache_tokens_lost > 0
    assert cached.cache_tokens_lost < cleared.cache_tokens_lost
    assert cleared.cache_tokens_kept + cleared.cache_tokens_lost == cache_state(given).tokens


def test_section_13_an_unpriced_model_is_unknown_never_zero() -> None:
    cost = plan_of("auto-compact", given_for(_priced("some-model-9"))).cost
    assert cost is not None
    assert (cost.one_off, cost.next_request, cost.break_even_requests) == (None, None, None)
    assert cost.method == "unknown"


def test_issue_5_against_waiting_for_auto_compact() -> None:
    given = given_for(_priced(), later_ms=MINUTE)
    cost = plan_of("auto-compact", given, restore=False).cost
    assert cost is not None
    assert cost.requests_until_auto_compact is not None
    assert cost.requests_until_auto_compact > 0
    assert cost.saved_until_auto_compact is not None
    off = replace(given, thresholds=replace(given.thresholds, auto_compact_on=False))
    no_limit = plan_of("auto-compact", off).cost
    assert no_limit is not None
    assert no_limit.requests_until_auto_compact is None


def test_issue_5_a_plan_that_changes_nothing_saves_nothing_until_auto_compact() -> None:
    cost = plan_of("microcompact-time", given_for(_priced(), later_ms=MINUTE)).cost
    assert cost is not None
    assert cost.next_request == cost.next_request_without, "it does not apply so soon"
    assert cost.requests_until_auto_compact
    assert cost.saved_until_auto_compact == 0


@pytest.mark.parametrize("frees_enough", [True, False])
def test_issue_5_until_auto_compact_the_same_requests_are_counted_with_the_plan_and_without_it(
    frees_enough: bool,
) -> None:
    given = given_for(_priced())
    tokens, grows = given.view.tokens, growth_per_request(given)
    # Three requests are left; or none is, and the context is over the threshold with the plan too.
    threshold = tokens + 3 * grows if frees_enough else plan_of("microcompact-time", given).tokens_after - 100
    given = replace(given, thresholds=replace(given.thresholds, auto_compact_threshold=threshold))
    plan = plan_of("microcompact-time", given)
    cost = plan.cost
    assert cost is not None
    left = max(0, -((tokens - threshold) // grows))
    assert cost.requests_until_auto_compact == left
    rates = given.prices.row("claude-sonnet-4-6").rates  # type: ignore[union-attr]
    written = 4 if cache_state(given).one_hour else 3

    def later(context: int) -> float:
        return sum((context + n * grows) * rates[2] + grows * rates[written] for n in range(1, left)) / 1e6

    def summary(context: int) -> float:
        read = max(context, threshold)
        return (SUMMARY_INSTRUCTION_TOKENS * rates[0] + TYPICAL_SUMMARY_TOKENS * rates[1] + read * rates[2]) / 1e6

    waiting = (cost.next_request_without if left else 0) + later(tokens) + summary(tokens)  # type: ignore[operator]
    acting = (cost.next_request if left else 0) + later(plan.tokens_after)  # type: ignore[operator]
    if plan.tokens_after + left * grows >= threshold:
        acting += summary(plan.tokens_after)
    assert frees_enough == (plan.tokens_after + left * grows < threshold)
    assert cost.saved_until_auto_compact == pytest.approx(waiting - acting)
    assert cost.saved_until_auto_compact is not None
    assert cost.saved_until_auto_compact > 0, "less is written anew to the cold cache, and less is summarised"


@needs_shared
def test_issue_5_replay_predicts_recorded_auto_compactions_of_the_corpus() -> None:
    events = []
    extra = 0
    for path in corpus_files():
        found = replay(open_session(path).conversation)
        extra += found.extra
        events += [e for e in found.events if e.recorded is not None and e.recorded.trigger == "auto"]
    assert len(events) >= 7
    within = [e for e in events if e.error_rounds is not None and abs(e.error_rounds) <= 1]
    assert len(within) >= 0.95 * len(events)
    assert extra == 0
    errors = [abs(e.error_tokens) / e.recorded.tokens for e in events if e.error_tokens is not None and e.recorded]  # type: ignore[operator]
    assert len(errors) == len(events)
    assert statistics.median(errors) <= 0.01


@pytest.mark.parametrize("version", ["2.0.76", "2.1.39", "2.1.217"])
def test_issue_5_replay_predicts_generated_auto_compactions(version: str) -> None:
    data = Session(seed=4, version=version, rounds=160, result_characters=9_000, subagents=0).to_bytes()
    found = replay(build_conversation(transcript_from_bytes(data)))
    assert found.matched >= 1
    assert (found.missed, found.extra) == (0, 0)


def test_issue_5_a_manual_compaction_is_shown_and_counts_as_neither_matched_nor_missed() -> None:
    builder = _priced()
    builder.compact("Summary: all", trigger="manual")
    builder.prompt("on")
    builder.assistant("yes")
    found = replay(conversation_of(builder))
    (event,) = found.events
    assert event.recorded is not None
    assert event.recorded.trigger == "manual"
    assert (event.predicted, found.matched, found.missed, found.extra) == (None, 0, 0, 0)
    assert abs(event.error_tokens or 0) <= 3


def test_issue_5_another_threshold_predicts_earlier_and_is_reported_as_such() -> None:
    data = Session(seed=4, version="2.1.39", rounds=160, result_characters=9_000, subagents=0).to_bytes()
    conversation = build_conversation(transcript_from_bytes(data))
    early = replay(conversation, window=WindowSettings(auto_compact_percent=50))
    assert early.matched == 0
    assert early.missed >= 1
    assert all(e.error_rounds is None or e.error_rounds < -1 for e in early.events if e.recorded is not None)


@pytest.mark.parametrize("keep", [2, 5])
def test_issue_5_a_recorded_microcompaction_is_fitted_by_its_own_keep_count(keep: int) -> None:
    builder = SessionBuilder("2.1.14")
    builder.prompt("go")
    for tool, text in STEPS:
        builder.assistant(tools=[tool], results=[text])
    builder.microcompact(keep=keep)
    builder.prompt("on")
    builder.assistant("yes")
    (fit,) = fit_microcompactions(conversation_of(builder))
    assert (fit.rule, fit.value) == ("keep_recent", keep)
    assert fit.fit == 1.0
    assert (fit.recorded, fit.visible) == (10 - keep, 10 - keep)


@needs_shared
def test_issue_5_the_corpus_microcompaction_is_reproduced_and_its_fit_reported() -> None:
    path = next(p for p in corpus_files() if p.stem == "16-2.1.14")
    (fit,) = fit_microcompactions(open_session(path).conversation)
    assert (fit.rule, fit.value, fit.recorded) == ("keep_tokens", 40_000, 42)
    assert fit.agreed == fit.results == 11
    assert fit.tokens_left is not None
    assert fit.tokens_left <= 40_000


def _long() -> bytes:
    return Session(seed=4, version="2.1.39", rounds=160, result_characters=9_000, subagents=0).to_bytes()


def test_issue_5_what_if_other_settings_change_compactions_tokens_and_dollars() -> None:
    conversation = build_conversation(transcript_from_bytes(_long()))
    prices = bundled_prices().set()
    plain = simulate(conversation, WhatIf(), prices)
    assert plain.compactions == len([c for c in conversation.compactions if c.kind == "auto"])
    assert plain.cost_usd is not None
    early = simulate(conversation, WhatIf(window=WindowSettings(auto_compact_percent=50)), prices)
    never = simulate(conversation, WhatIf(auto_compact=False), prices)
    assert early.compactions > plain.compactions > never.compactions == 0
    assert early.context_tokens < plain.context_tokens < never.context_tokens
    assert early.largest_context < plain.largest_context < never.largest_context
    assert never.cost_usd is not None
    assert never.cost_usd > plain.cost_usd
    light = WhatIf(
        clear_tool_uses=ApiClearToolUsesSettings(trigger_value=80_000, clear_at_least=0),
        microcompact_time=MicrocompactTimeSettings(enabled=True, gap_threshold_minutes=0.1, keep_recent=3),
    )
    cleared = simulate(conversation, light, prices)
    assert {e.strategy for e in cleared.events} >= {"microcompact-time"}
    assert cleared.context_tokens < plain.context_tokens
    assert all(e.tokens_after < e.tokens_before for e in cleared.events)
    assert cleared.requests == conversation.round_count + cleared.compactions


def test_issue_5_buckets_of_a_simulation_add_up() -> None:
    conversation = build_conversation(transcript_from_bytes(_long()))
    run = simulate(conversation, WhatIf(), bundled_prices().set())
    assert run.cache_read + run.cache_written + run.uncached == run.context_tokens
    assert json.dumps(run.events[0].round)
