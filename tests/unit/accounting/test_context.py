from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.accounting.calibration import calibrate
from compaction.accounting.categories import CATEGORY_COUNT, Category
from compaction.accounting.composition import Added, Composition, first_composition, next_composition
from compaction.accounting.context import context_series
from compaction.accounting.current import context_summary, current_context
from compaction.accounting.parts import estimate_parts
from compaction.conversation import build_conversation, open_session
from compaction.transcript import open_transcript, transcript_from_bytes
from tests.support import corpus_files, needs_shared
from tests.unit.accounting.sessions import SessionBuilder, call, lines, text, usage


def weights(**tokens: float) -> np.ndarray:
    found = np.zeros(CATEGORY_COUNT)
    for name, value in tokens.items():
        found[Category[name.upper()]] = value
    return found


def composition(**tokens: int) -> Composition:
    return Composition(weights(**tokens).astype(np.int64), 0)


def as_dict(c: Composition) -> dict[str, int]:
    return {category.key: int(n) for category, n in zip(Category, c.tokens, strict=True) if n}


def test_first_context_is_system_and_tools_beyond_what_is_visible_section_9() -> None:
    assert as_dict(first_composition(20_000, weights(user_text=500.4), None)) == {
        "system_and_tools": 19_500, "user_text": 500,
    }  # fmt: skip


def test_after_a_compaction_unseen_growth_is_re_attached_text_section_7() -> None:
    got = as_dict(first_composition(50_000, weights(summary=3_000), 30_000))
    assert got == {"system_and_tools": 30_000, "summary": 3_000, "attachments": 17_000}


def test_an_estimate_that_leaves_too_little_for_system_and_tools_is_scaled_down() -> None:
    got = as_dict(first_composition(50_000, weights(summary=30_000, user_text=10_000), 30_000))
    assert got == {"system_and_tools": 30_000, "summary": 15_000, "user_text": 5_000}


def test_growth_is_exact_and_the_estimate_only_divides_it_section_11() -> None:
    base = composition(system_and_tools=10_000)
    added = Added(weights(tool_use=100), weights(tool_result=300), hidden=False, output=None)
    got = as_dict(next_composition(base, 10_800, added, cleared=False, stripped=False))
    assert got == {"system_and_tools": 10_000, "tool_use": 200, "tool_result": 600}


def test_recorded_output_is_the_response_s_share_of_the_growth() -> None:
    base = composition(system_and_tools=10_000)
    added = Added(weights(tool_use=100), weights(tool_result=300), hidden=False, output=150)
    got = as_dict(next_composition(base, 10_800, added, cleared=False, stripped=False))
    assert got == {"system_and_tools": 10_000, "tool_use": 150, "tool_result": 650}


@pytest.mark.parametrize("output", [1_150, None])
def test_hidden_thinking_is_the_residual_of_output_or_growth_section_5(output: int | None) -> None:
    base = composition(system_and_tools=10_000)
    added = Added(weights(tool_use=150), weights(tool_result=300), hidden=True, output=output)
    got = next_composition(base, 11_450, added, cleared=False, stripped=False)
    assert as_dict(got) == {"system_and_tools": 10_000, "thinking": 1_000, "tool_use": 150, "tool_result": 300}
    assert got.hidden_thinking == 1_000


def test_recorded_thinking_tokens_are_thinking_exactly_section_5() -> None:
    base = composition(system_and_tools=10_000)
    added = Added(weights(tool_use=300), weights(tool_result=300), hidden=True, output=1_150, thinking=700)
    got = next_composition(base, 11_450, added, cleared=False, stripped=False)
    assert as_dict(got) == {"system_and_tools": 10_000, "thinking": 700, "tool_use": 450, "tool_result": 300}
    assert got.hidden_thinking == 700
    s = SessionBuilder(version="2.1.332", model="claude-opus-5-5")
    details = {"output_tokens_details": {"thinking_tokens": 900}}
    s.prompt("go")
    s.answer(
        "msg_1", {"type": "thinking", "thinking": "", "signature": "x"}, call("a"), **usage(3, 1_000, 20_000, **details)
    )
    s.result("a", "line\n" * 40)
    s.answer("msg_2", **usage(3, 1, 21_300))
    assert context_series(s.conversation()).parts[1][Category.THINKING] == 900


def test_growth_far_beyond_the_records_is_content_that_the_transcript_does_not_hold() -> None:
    base = composition(system_and_tools=10_000)
    added = Added(weights(assistant_text=100), weights(user_text=100), hidden=False, output=100)
    got = as_dict(next_composition(base, 30_200, added, cleared=False, stripped=False))
    assert got == {"system_and_tools": 30_000, "user_text": 100, "assistant_text": 100}


def test_a_clearing_takes_tool_results_first_section_4() -> None:
    base = composition(system_and_tools=10_000, tool_result=50_000, user_text=1_000)
    added = Added(weights(assistant_text=200), weights(user_text=300), hidden=False, output=200)
    got = as_dict(next_composition(base, 21_500, added, cleared=True, stripped=False))
    assert got == {"system_and_tools": 10_000, "tool_result": 10_000, "user_text": 1_300, "assistant_text": 200}


def test_old_models_lose_earlier_thinking_at_a_new_prompt_section_5() -> None:
    base = composition(system_and_tools=10_000, thinking=2_000, user_text=1_000)
    added = Added(weights(assistant_text=200, thinking=900), weights(user_text=300), hidden=False, output=1_100)
    got = as_dict(next_composition(base, 11_500, added, cleared=False, stripped=True))
    assert got == {"system_and_tools": 10_000, "user_text": 1_300, "assistant_text": 200}


amounts = st.lists(st.floats(0, 40_000), min_size=9, max_size=9)


@given(
    st.lists(st.integers(0, 60_000), min_size=9, max_size=9), st.integers(0, 900_000), amounts, amounts,
    st.booleans(), st.one_of(st.none(), st.integers(0, 50_000)), st.booleans(), st.booleans(),
    st.one_of(st.none(), st.integers(0, 50_000)),
)  # fmt: skip
def test_parts_always_add_up_to_the_recorded_total(
    base: list[int], total: int, assistant: list[float], user: list[float], hidden: bool, output: int | None,
    cleared: bool, stripped: bool, thinking: int | None,
) -> None:  # fmt: skip
    start = Composition(np.array(base, np.int64), min(7, base[Category.THINKING]))
    added = Added(np.array(assistant), np.array(user), hidden, output, thinking)
    got = next_composition(start, total, added, cleared, stripped)
    assert got.total == total
    assert (got.tokens >= 0).all()
    assert 0 <= got.hidden_thinking <= got.tokens[Category.THINKING]
    first = first_composition(total, np.array(user), base[0] or None)
    assert first.total == total
    assert (first.tokens >= 0).all()


def test_calibration_takes_the_sessions_own_ratio_and_measures_it_on_held_out_rounds() -> None:
    estimated = np.array([1000.0] * 12)
    got = calibrate(estimated, estimated * 1.3)
    assert (got.factor, got.rounds, got.error) == (pytest.approx(1.3), 12, pytest.approx(0))
    noisy = calibrate(estimated, np.array([1000.0, 1500.0] * 6))
    # Even rounds give 1.0, odd ones 1.5: each misses the other half.
    assert noisy.error == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert calibrate(estimated[:3], estimated[:3] * 2).factor == 1.0


@needs_shared
def test_parts_add_up_in_every_round_of_the_corpus() -> None:
    rounds = 0
    for path in corpus_files():
        series = context_series(build_conversation(open_transcript(path)))
        assert (series.parts >= 0).all(), path.name
        assert series.parts.sum(axis=1).tolist() == series.usage.context.tolist(), path.name
        assert (series.hidden_thinking <= series.parts[:, Category.THINKING]).all(), path.name
        rounds += series.rounds
    assert rounds > 2_500


@needs_shared
def test_every_fall_of_more_than_15000_tokens_in_the_corpus_is_named() -> None:
    unnamed = []
    for path in corpus_files():
        series = context_series(build_conversation(open_transcript(path)))
        c = series.conversation
        known = np.flatnonzero(series.usage.context)
        for before, after in pairwise(known.tolist()):
            if series.usage.context[before] - series.usage.context[after] <= 15_000:
                continue
            first, last = c.round_first_records[before], c.round_first_records[after]
            named = any(first < x.record <= last for x in series.compactions)
            # A rewind or a new beginning is no fall of one context: the walk to the root passes another round.
            if not named and series.predecessor[after] == before:
                unnamed.append((path.name, after + 1))
    assert not unnamed


def session() -> SessionBuilder:
    s = SessionBuilder()
    s.prompt("please look " * 40)
    s.answer("msg_1", text(30), call("a"), **usage(3, 120, 0, 30_000))
    s.result("a", "line of output\n" * 200)
    s.answer("msg_2", text(40), **usage(3, 60, 30_000, 1_100))
    return s


def test_a_session_is_divided_round_by_round() -> None:
    series = context_series(session().conversation())
    assert series.usage.context.tolist() == [30_003, 31_103]
    first, second = series.parts
    assert first[Category.SYSTEM_AND_TOOLS] + first[Category.USER_TEXT] == 30_003
    assert second[Category.SYSTEM_AND_TOOLS] == first[Category.SYSTEM_AND_TOOLS]
    assert second[Category.ASSISTANT_TEXT] + second[Category.TOOL_USE] == 120
    assert second[Category.TOOL_RESULT] == 1_100 - 120


def test_estimates_from_characters_alone_come_near_those_of_the_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    c = session().conversation()
    read = estimate_parts(c)
    monkeypatch.setattr("compaction.accounting.parts.READ_IN_FULL", 0)
    counted = estimate_parts(c)
    assert (read.read_in_full, counted.read_in_full) == (True, False)
    assert counted.category.tolist() == read.category.tolist()
    assert counted.tokens.sum() == pytest.approx(read.tokens.sum(), rel=0.35)


def test_a_prompt_that_only_injects_text_is_an_attachment_section_9() -> None:
    s = SessionBuilder()
    s.prompt("skill body " * 100, isMeta=True)
    s.prompt("<system-reminder>the date</system-reminder>")
    s.answer("msg_1", **usage(3, 1, 0, 20_000))
    [parts] = context_series(s.conversation()).parts
    assert parts[Category.USER_TEXT] == 0
    assert parts[Category.ATTACHMENTS] > 100


def test_an_abandoned_branch_does_not_count_after_a_rewind_section_6() -> None:
    s = session()
    long = s.answer("msg_3", text(4_000), **usage(3, 5_000, 31_100, 200))
    s._last = s.records[-2]["uuid"]  # back to the record before msg_3
    s.prompt("another way")
    s.answer("msg_4", **usage(3, 10, 31_100, 80))
    series = context_series(s.conversation())
    assert series.usage.context[3] < series.usage.context[2]
    assert series.predecessor.tolist() == [-1, 0, 1, 1]
    assert series.parts[3][Category.ASSISTANT_TEXT] < 200
    assert long


def test_microcompaction_takes_the_tool_results_section_7() -> None:
    s = session()
    s._add("system", subtype="microcompact_boundary",
           microcompactMetadata={"trigger": "auto", "preTokens": 900, "tokensSaved": 800})  # fmt: skip
    s.answer("msg_3", **usage(3, 10, 20_000, 10_300))
    series = context_series(s.conversation())
    assert series.parts[2][Category.TOOL_RESULT] < series.parts[1][Category.TOOL_RESULT]
    assert series.parts[2].sum() == 30_303


def test_context_summary_counts_the_newest_usage_and_what_follows_section_2() -> None:
    s = session()
    c = s.conversation()
    assert context_summary(c) == {
        "tokens": 31_163, "method": "recorded", "window": 200_000, "effective_window": 180_000,
        "auto_compact_threshold": 167_000, "blocking_limit": 177_000, "percent_left": 81, "state": "ok",
    }  # fmt: skip
    s.prompt("x" * 401)
    later = context_summary(s.conversation())
    assert (later["tokens"], later["method"]) == (31_163 + 101, "estimated")
    assert context_summary(s.conversation(), at=1)["tokens"] == 30_123
    assert context_summary(c, client="2.0.76")["auto_compact_threshold"] == 155_000


def test_after_a_compaction_the_count_is_an_estimate_of_what_is_kept() -> None:
    s = session()
    s.boundary("auto", 167_500, "Summary: " + "done this and that. " * 200)
    now = current_context(s.conversation())
    assert now.tokens.method == "estimated"
    assert 29_000 < now.tokens.value < 32_500
    s.answer("msg_9", **usage(3, 10, 0, 34_000))
    assert context_summary(s.conversation())["tokens"] == 34_013


def test_without_usage_everything_is_the_rough_estimate_and_nothing_is_unknown() -> None:
    s = SessionBuilder()
    s.prompt("x" * 401)
    assert context_summary(s.conversation())["method"] == "estimated"
    assert context_summary(s.conversation())["tokens"] == 101
    empty = context_summary(build_conversation(transcript_from_bytes(b"")))
    assert (empty["tokens"], empty["method"], empty["state"]) == (0, "unknown", "ok")


def test_a_messages_api_request_counts_its_system_and_tools() -> None:
    request = {"model": "claude-opus-5", "system": "s" * 400, "max_tokens": 1,
               "messages": [{"role": "user", "content": "y" * 40}]}  # fmt: skip
    got = context_summary(build_conversation(transcript_from_bytes(lines([request]))))
    assert (got["tokens"], got["window"]) == (10 + 101, 1_000_000)


def test_ids_given_out_anew_do_not_mix_the_figures_of_two_rounds() -> None:
    s = SessionBuilder()
    for context in (20_000, 30_000):
        s.prompt("go")
        s.answer("msg_1", text(5), request="req_1", **usage(3, 9, context))
        s.prompt("and")
        s.answer("msg_2", text(5), request="req_2", **usage(3, 9, context + 1_000))
    assert context_series(s.conversation()).usage.context.tolist() == [20_003, 21_003, 30_003, 31_003]


@needs_shared
def test_inspect_shows_the_context_of_a_real_session() -> None:
    path = next(p for p in corpus_files() if p.name.startswith("46-"))
    summary = context_summary(open_session(path).conversation)
    # Last line of the file: input 2 + read + written + output, added up by hand from its usage.
    assert (summary["tokens"], summary["method"], summary["window"]) == (401_794, "recorded", 1_000_000)
