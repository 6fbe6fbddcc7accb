from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from compaction.accounting.cost import cost_state
from compaction.accounting.prices import bundled_prices
from compaction.accounting.usage import Ledger, Responses, usage_of_session
from compaction.conversation import open_session
from compaction.transcript import Transcript, open_transcript
from compaction.transcript.usage_lines import open_usage_lines
from tests.support import corpus_files, needs_shared
from tests.unit.accounting.sessions import SessionBuilder, call, lines, text, usage

PUBLIC = bundled_prices().set()


def settle(*transcripts: Transcript, covered: frozenset[str] = frozenset()) -> Responses:
    ledger = Ledger()
    for transcript in transcripts:
        ledger.add(transcript, covered)
    return ledger.settle()


def test_one_response_counts_once_however_many_records_it_has_section_5() -> None:
    s = SessionBuilder()
    s.prompt("go")
    s.answer("msg_1", text(3), call("toolu_1"), request="req_1", **usage(5, 40, 1000, 200))
    r = settle(s.transcript())
    assert (r.count, r.duplicates) == (1, 1)
    assert r.tokens.tolist() == [[5, 40, 1000, 200, 0]]


def test_the_largest_output_of_the_copies_counts_section_5() -> None:
    s = SessionBuilder()
    s.answer("msg_1", text(1), stop=None, **usage(5, 1, 1000))
    s.answer("msg_1", text(1), **usage(5, 321, 1000))
    s.answer("msg_1", text(1), stop=None, **usage(5, 7, 1000))
    r = settle(s.transcript())
    assert r.tokens.tolist() == [[5, 321, 1000, 0, 0]]
    assert not r.uncertain[0]


def test_copies_without_figures_join_the_one_that_has_them_section_5() -> None:
    s = SessionBuilder()
    s.answer("msg_1", text(1), stop=None, **usage())
    s.answer("msg_1", text(1), **usage(2, 113, 39_305))
    assert settle(s.transcript()).tokens.tolist() == [[2, 113, 39_305, 0, 0]]


def test_output_without_any_stop_reason_is_flagged_as_uncertain_section_5() -> None:
    s = SessionBuilder()
    s.answer("msg_1", text(1), stop=None, **usage(5, 1, 1000))
    s.answer("msg_2", text(1), stop="end_turn", **usage(5, 1, 1000))
    assert settle(s.transcript()).uncertain.tolist() == [True, False]


def test_forks_and_copies_in_other_files_count_once_section_6() -> None:
    s = SessionBuilder()
    s.answer("msg_1", text(1), request="req_1", **usage(5, 10, 1000))
    fork = [{**r, "sessionId": "other", "uuid": r["uuid"] + "x"} for r in s.records]
    s.answer("msg_2", text(1), request="req_2", **usage(5, 20, 2000))
    from compaction.transcript import transcript_from_bytes

    r = settle(s.transcript("one"), transcript_from_bytes(lines(fork), "two"))
    assert (r.count, r.duplicates) == (2, 1)
    assert r.tokens.sum(axis=0).tolist() == [10, 30, 3000, 0, 0]
    assert [f.responses for f in r.files] == [2, 1]


def test_the_same_message_id_under_two_request_ids_is_two_responses() -> None:
    s = SessionBuilder()
    s.answer("msg_1", request="req_1", **usage(5, 10, 1000))
    s.answer("msg_1", request="req_2", **usage(5, 10, 1000))
    assert settle(s.transcript()).count == 2


def test_a_copy_without_request_id_joins_the_response_section_3() -> None:
    s = SessionBuilder()
    s.answer("msg_1", request="req_1", **usage(5, 10, 1000))
    s.answer("msg_1", **usage(5, 10, 1000))
    assert settle(s.transcript()).count == 1


def test_ids_given_out_anew_after_a_restart_are_two_responses_when_their_prompts_differ() -> None:
    s = SessionBuilder()
    for context in (1000, 4000):
        s.prompt("go")
        s.answer("msg_1", text(1), call("t"), request="req_1", **usage(5, 10, context))
    assert settle(s.transcript()).tokens[:, 2].tolist() == [1000, 4000]


def test_a_response_whose_prompt_figure_grew_while_it_streamed_is_one() -> None:
    s = SessionBuilder()
    s.prompt("search")
    s.answer("msg_1", text(1), stop=None, **usage(5, 1, 1000))
    s.result("t", "found")
    s.answer("msg_1", text(1), **usage(5, 90, 2000))
    assert settle(s.transcript()).tokens.tolist() == [[5, 90, 2000, 0, 0]]


@pytest.mark.parametrize(
    ("flat", "nested", "expected"),
    [
        (300, None, (300, 0)),
        (0, {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200}, (100, 200)),
        (999, {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200}, (100, 200)),
        (300, {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 300}, (0, 300)),
        # Measured on client 2.1.332: a nested object of zeros says nothing.
        (300, {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0}, (300, 0)),
    ],
)
def test_nested_cache_writes_win_over_the_flat_field_section_5(
    flat: int, nested: dict[str, int] | None, expected: tuple[int, int]
) -> None:
    s = SessionBuilder()
    extra = {} if nested is None else {"cache_creation": nested}
    s.answer("msg_1", **usage(1, 2, 3, flat, **extra))
    assert tuple(settle(s.transcript()).tokens[0, 3:].tolist()) == expected


def test_synthetic_messages_cost_nothing_section_10() -> None:
    s = SessionBuilder()
    s.answer("msg_1", model="<synthetic>", **usage(1000, 1000))
    r = settle(s.transcript())
    assert (r.count, cost_state(r, PUBLIC).total_usd) == (0, 0)


def test_iterations_are_summed_for_cost_each_at_its_own_model_and_tier_section_5() -> None:
    s = SessionBuilder(model="claude-haiku-5-5")
    first, last = usage(0, 100, 60_000), usage(0, 50, 61_000)
    advisor = usage(10_000, 200)
    iterations = [{"type": "message", **first}, {"type": "advisor_message", **advisor}, {"type": "message", **last}]
    records = s.answer("msg_1", **usage(0, 150, 121_000, iterations=iterations))
    records[0]["advisorModel"] = "claude-opus-5"
    r = settle(s.transcript())
    assert r.tokens.tolist() == [[10_000, 350, 121_000, 0, 0]]
    # No single request exceeds 100K: the lower tier of Haiku 5.5, although the top level says 121,000.
    expected = (121_000 * 0.01 + 150 * 0.5 + 10_000 * 5 + 200 * 25) / 1e6
    assert cost_state(r, PUBLIC).total_usd == pytest.approx(expected, abs=1e-12)


def test_a_lone_compaction_iteration_counts_although_the_top_level_is_zero_api_1_6() -> None:
    s = SessionBuilder()
    s.answer("msg_1", **usage(iterations=[{"type": "compaction", **usage(180_000, 3_500)}]))
    assert settle(s.transcript()).tokens.tolist() == [[180_000, 3_500, 0, 0, 0]]


def test_refusal_fallback_prices_the_refused_call_at_the_old_model_section_5() -> None:
    s = SessionBuilder(model="claude-opus-4-8")
    iterations = [{"type": "message", **usage(100_000, 10)}, {"type": "fallback_message", **usage(100_000, 20)}]
    block = {"type": "fallback", "from": "claude-fable-5", "to": "claude-opus-4-8"}
    s.answer("msg_1", block, **usage(200_000, 30, iterations=iterations))
    expected = (100_000 * 10 + 10 * 50 + 100_000 * 5 + 20 * 25) / 1e6
    assert cost_state(settle(s.transcript()), PUBLIC).total_usd == pytest.approx(expected, abs=1e-12)


def progress(s: SessionBuilder, agent: str, identity: str, **figures: Any) -> dict[str, Any]:
    message = {"id": identity, "role": "assistant", "model": s.model, "content": [text(1)], "stop_reason": None,
               "usage": figures}  # fmt: skip
    return s._add("progress", parentToolUseID="toolu_1",
                  data={"type": "agent_progress", "agentId": agent,
                        "message": {"type": "assistant", "requestId": "req_9", "message": message}})  # fmt: skip


def test_agent_progress_counts_only_without_the_subagents_own_file_section_8() -> None:
    s = SessionBuilder(version="2.1.30")
    s.answer("msg_1", call("toolu_1", name="Task"), **usage(5, 10, 1000))
    progress(s, "abc1234", "msg_agent", **usage(7, 1, 500))
    progress(s, "abc1234", "msg_agent", **usage(7, 30, 500))
    alone = settle(s.transcript())
    assert alone.tokens.sum(axis=0).tolist() == [12, 40, 1500, 0, 0]
    assert settle(s.transcript(), covered=frozenset({"abc1234"})).tokens.sum(axis=0).tolist() == [5, 10, 1000, 0, 0]


def test_session_usage_reads_the_subagents_files_once(tmp_path: Path) -> None:
    s = SessionBuilder(version="2.1.30")
    s.answer("msg_1", call("toolu_1", name="Task"), request="req_1", **usage(5, 10, 1000))
    progress(s, "abc1234", "msg_agent", **usage(7, 1, 500))
    main = tmp_path / "5b0c6f5e.jsonl"
    main.write_bytes(s.bytes())
    agent = SessionBuilder(version="2.1.30")
    agent.answer("msg_agent", request="req_9", **usage(7, 30, 500))
    agent.answer("msg_agent_2", request="req_10", **usage(8, 40, 600))
    folder = tmp_path / "5b0c6f5e" / "subagents"
    folder.mkdir(parents=True)
    records = [{**r, "agentId": "abc1234", "isSidechain": True} for r in agent.records]
    (folder / "agent-abc1234.jsonl").write_bytes(lines(records))
    r = usage_of_session(open_session(main))
    assert r.tokens.sum(axis=0).tolist() == [20, 80, 2100, 0, 0]
    assert [f.subagent for f in r.files] == [False, True]


def independent_count(paths: list[Path]) -> tuple[int, list[int]]:
    """Responses and tokens by bucket by plain JSON: the oracle of the test below."""
    best: dict[Any, dict[str, Any]] = {}
    for path in paths:
        for number, line in enumerate(path.read_bytes().split(b"\n")):
            for record in objects(line):
                message = record.get("message")
                if record.get("type") != "assistant" or not isinstance(message, dict) or "usage" not in message:
                    continue
                if message.get("model") == "<synthetic>":
                    continue
                key = (message["id"], record.get("requestId")) if message.get("id") else (path, number)
                old = best.get(key)
                if old is None or message["usage"].get("output_tokens", 0) >= old.get("output_tokens", 0):
                    best[key] = message["usage"]
    total = [0] * 5
    for found in best.values():
        nested = found.get("cache_creation") or {}
        five, hour = nested.get("ephemeral_5m_input_tokens", 0), nested.get("ephemeral_1h_input_tokens", 0)
        if not five + hour:
            five = found.get("cache_creation_input_tokens") or 0
        figures = (
            found.get("input_tokens"),
            found.get("output_tokens"),
            found.get("cache_read_input_tokens"),
            five,
            hour,
        )
        total = [a + (b or 0) for a, b in zip(total, figures, strict=True)]
    return len(best), total


def objects(line: bytes) -> list[dict[str, Any]]:
    """The JSON objects of a line (two may be glued together, section 2)."""
    decoder, found, rest = json.JSONDecoder(), [], line.decode("utf-8", "replace").strip("\0 \r")
    while rest:
        try:
            value, end = decoder.raw_decode(rest)
        except ValueError:
            break
        found += [value] if isinstance(value, dict) else []
        rest = rest[end:].strip()
    return found


@needs_shared
def test_no_record_of_the_corpus_counts_twice() -> None:
    ledger = Ledger()
    agents: set[str] = set()
    for path in corpus_files():
        transcript = open_transcript(path)
        agents.update(transcript.agent_names)
        ledger.add(transcript, frozenset(transcript.agent_names))
    r = ledger.settle()
    count, tokens = independent_count(corpus_files())
    assert (r.count, r.tokens.sum(axis=0).tolist()) == (count, tokens)
    assert count + r.duplicates == len(r.rows)


@needs_shared
def test_reading_for_accounting_alone_finds_what_reading_everything_finds() -> None:
    differing = defaultdict(list)
    for path in corpus_files():
        whole, narrow = settle(open_transcript(path)), settle(open_usage_lines(path))
        if whole.tokens.tolist() != narrow.tokens.tolist() or whole.time.tolist() != narrow.time.tolist():
            differing[path.name].append((whole.count, narrow.count))
    assert not differing
