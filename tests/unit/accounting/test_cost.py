from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compaction.accounting.accounts import account_session
from compaction.accounting.cache import cache_misses
from compaction.accounting.context import context_series
from compaction.accounting.cost import CostState, cost_report, cost_state
from compaction.accounting.figure import Method
from compaction.accounting.prices import bundled_prices
from compaction.accounting.round_cost import compaction_costs, round_costs
from compaction.accounting.usage import Ledger
from compaction.cli.main import main
from compaction.conversation import open_session
from tests.unit.accounting.sessions import SessionBuilder, call, text, usage

PUBLIC = bundled_prices().set()


def state_of(*sessions: SessionBuilder) -> CostState:
    ledger = Ledger()
    for number, session in enumerate(sessions):
        ledger.add(session.transcript(str(number)))
    return cost_state(ledger.settle(), PUBLIC)


def client(s: SessionBuilder, usd: float, models: dict[str, tuple[int, int, int, int, float]], **more: Any) -> None:
    names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "costUSD")
    s.state(totalCostUSD=usd, totalAPIDuration=1500, startTime=0, **more,
            modelUsage={m: dict(zip(names, figures, strict=True)) for m, figures in models.items()})  # fmt: skip


def test_cost_state_has_totals_buckets_and_models_section_13() -> None:
    s = SessionBuilder()
    s.answer("msg_1", **usage(1_000, 500, 50_000))
    s.answer("msg_2", model="claude-opus-4-5-20251101", **usage(0, 1_000_000, 0, 1_000_000))
    state = state_of(s)
    assert state.total_usd == pytest.approx(0.0255 + 25 + 6.25)
    assert list(state.models) == ["opus-4-5", "sonnet-4-6"]
    assert state.tokens == [1_000, 1_000_500, 50_000, 1_000_000, 0]
    assert state.usd == pytest.approx([0.003, 25.0075, 0.015, 6.25, 0])
    assert state.models["opus-4-5"].names == ["claude-opus-4-5-20251101"]
    report = "\n".join(cost_report(state))
    assert "$31.2755" in report
    assert "opus-4-5" in report


def test_api_time_is_the_wait_for_each_response_unless_the_client_recorded_it_section_13() -> None:
    s = SessionBuilder()
    s.prompt("go")
    s.wait(9)
    s.answer("msg_1", text(1), call("t"), **usage(10, 10))
    state = state_of(s)
    assert (state.api_time.value, state.api_time.method) == (11_000, Method.ESTIMATED)
    client(s, 0.00018, {"claude-sonnet-4-6": (10, 10, 0, 0, 0.00018)})
    assert (state_of(s).api_time.value, state_of(s).api_time.method) == (1500, Method.RECORDED)


def test_unknown_models_are_listed_as_unpriced() -> None:
    s = SessionBuilder(model="gpt-6")
    s.answer("msg_1", **usage(1_000, 500))
    state = state_of(s)
    assert [(m.model, m.unpriced_responses, sum(m.unpriced)) for m in state.unpriced] == [("gpt-6", 1, 1_500)]
    assert state.total_usd == 0
    assert "1,500 tokens unpriced" in "\n".join(cost_report(state))


def test_requests_that_only_the_clients_totals_show_are_part_of_the_cost() -> None:
    s = SessionBuilder()
    s.answer("msg_1", **usage(100, 10, 50_000, 1_000))
    client(s, 0.0192, {"claude-sonnet-4-6": (100, 10, 50_000, 1_000, 0.01920)})
    s.boundary("auto", 51_110, "Summary: done")
    client(s, 0.06, {"claude-sonnet-4-6": (110, 1_010, 101_000, 1_000, 0.0495),
                     "claude-haiku-4-5": (500, 20, 0, 0, 0.0006)})  # fmt: skip
    s.answer("msg_2", **usage(5, 5, 20_000))
    state = state_of(s)
    hidden = {u.model: u for u in state.unrecorded}
    assert hidden["claude-sonnet-4-6"].tokens == (10, 1_000, 51_000, 0, 0)
    assert hidden["claude-haiku-4-5"].tokens == (500, 20, 0, 0, 0)
    recorded = (105 * 3 + 15 * 15 + 70_000 * 0.3 + 1_000 * 3.75) / 1e6
    call_usd = (10 * 3 + 1_000 * 15 + 51_000 * 0.3) / 1e6
    assert state.total_usd == pytest.approx(recorded + call_usd + (500 + 20 * 5) / 1e6, abs=1e-12)
    ledger = Ledger()
    ledger.add(s.transcript())
    [compaction] = compaction_costs(context_series(s.conversation()), ledger.settle(), state)
    assert compaction.call.value == pytest.approx(call_usd)
    assert compaction.call.method == Method.COMPUTED


def test_the_price_tier_of_unrecorded_requests_is_the_one_that_gives_the_clients_figure() -> None:
    def unrecorded(usd: float) -> tuple[float, Method]:
        s = SessionBuilder(model="claude-haiku-5-5")
        client(s, usd, {"claude-haiku-5-5": (0, 0, 240_000, 0, usd)})
        [found] = state_of(s).unrecorded
        return found.total_usd, found.method

    assert unrecorded(0.0024) == (pytest.approx(0.0024), Method.COMPUTED)
    assert unrecorded(0.012) == (pytest.approx(0.012), Method.COMPUTED)
    # One request of 90,000 below the tier and one of 150,000 above it.
    assert unrecorded(0.0084) == (pytest.approx(0.0084), Method.RECORDED)


def test_totals_copied_by_a_fork_or_with_the_file_count_once() -> None:
    s = SessionBuilder()
    s.answer("msg_1", request="r1", **usage(100, 10, 50_000, 1_000))
    client(s, 0.02, {"claude-sonnet-4-6": (110, 1_010, 101_000, 1_000, 0.02)}, totalDuration=500)
    fork = SessionBuilder(session="fork")
    fork.records = [{**r, "sessionId": "fork"} for r in s.records]
    fork.answer("msg_2", request="r2", **usage(7, 8, 9))
    client(fork, 0.05, {"claude-sonnet-4-6": (117, 1_018, 101_009, 1_000, 0.05)}, totalDuration=900)
    copy = SessionBuilder()
    copy.records = list(s.records)
    alone, together = state_of(s), state_of(s, fork, copy)
    assert (
        [u.tokens for u in together.unrecorded] == [u.tokens for u in alone.unrecorded] == [(10, 1_000, 51_000, 0, 0)]
    )
    assert together.total_usd == pytest.approx(alone.total_usd + (7 * 3 + 8 * 15 + 9 * 0.3) / 1e6)
    assert together.client_usd == pytest.approx(0.05)


def test_responses_older_than_the_clients_count_do_not_belong_to_it() -> None:
    s = SessionBuilder()
    s.answer("msg_old", **usage(100, 10, 50_000))
    s.wait(7_200)
    s.answer("msg_new", **usage(7, 8, 9))
    start = 1_793_577_600_000 + 7_000_000  # 2026-11-02 and a little less than two hours
    s.state(totalCostUSD=1, startTime=start, modelUsage={"claude-sonnet-4-6": {"inputTokens": 8, "outputTokens": 8,
                                                         "cacheReadInputTokens": 9, "costUSD": 0.0001}})  # fmt: skip
    [found] = state_of(s).unrecorded
    assert found.tokens == (1, 0, 0, 0, 0)


def test_cost_of_a_round_is_that_of_its_response_and_unpriced_is_not_zero() -> None:
    s = SessionBuilder()
    s.prompt("go")
    s.answer("msg_1", text(1), call("t"), **usage(1_000, 500, 50_000))
    s.result("t", "x")
    s.answer("msg_2", model="gpt-6", **usage(1_000))
    c = s.conversation()
    ledger = Ledger()
    ledger.add(c.transcript)
    responses = ledger.settle()
    costs = round_costs(c, responses, cost_state(responses, PUBLIC))
    assert costs[0] == pytest.approx(0.0255)
    assert np.isnan(costs[1])


def test_the_cost_of_a_compaction_is_that_of_its_own_transcript_where_there_is_one_section_1(tmp_path: Path) -> None:
    s = SessionBuilder(version="2.1.39")
    s.prompt("go")
    s.answer("msg_1", request="r1", **usage(3, 10, 150_000, 100))
    s.wait(70)
    s.boundary("auto", 150_200, "Summary: " + "done " * 400)
    s.answer("msg_2", request="r2", **usage(3, 10, 20_000, 30_000))
    main_file = tmp_path / "s.jsonl"
    main_file.write_bytes(s.bytes())
    own = SessionBuilder(version="2.1.39")
    own.wait(60)
    own.prompt("summarise")
    own.answer("msg_c", request="rc", **usage(5, 2_000, 150_000, 2_000))
    folder = tmp_path / "s" / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-acompact-1a2b.jsonl").write_bytes(own.bytes())
    accounts = account_session(open_session(main_file), PUBLIC)
    [compaction] = accounts.compactions
    expected = (5 * 3 + 2_000 * 15 + 150_000 * 0.3 + 2_000 * 3.75) / 1e6
    assert (compaction.call.value, compaction.call.method) == (pytest.approx(expected), Method.COMPUTED)
    assert compaction.rebuild.value == pytest.approx(30_000 * (3.75 - 0.3) / 1e6)
    assert accounts.cost.responses == 3


def test_without_any_record_of_its_request_a_compaction_is_estimated_between_warm_and_cold() -> None:
    s = SessionBuilder(model="claude-opus-4-6")
    s.answer("msg_1", **usage(3, 10, 150_000, 100))
    s.boundary("auto", 150_200, "Summary: " + "word " * 500)
    ledger = Ledger()
    ledger.add(s.transcript())
    responses = ledger.settle()
    [found] = compaction_costs(context_series(s.conversation()), responses, cost_state(responses, PUBLIC))
    assert found.call.method == Method.ESTIMATED
    assert found.call.value == pytest.approx(150_200 * 0.5 / 1e6, rel=0.3)
    assert found.call.error == pytest.approx(150_200 * 4.5 / 1e6)
    assert found.rebuild.value is None


def cache_session(change: str) -> SessionBuilder:
    s = SessionBuilder(model="claude-opus-4-6")
    s.prompt("go")
    s.answer("msg_1", call("a"), **usage(3, 10, 0, 60_000))
    s.result("a", "x" * 400)
    if change == "gap":
        s.wait(360)
    if change == "compaction":
        s.boundary("manual", 60_100, "Summary: " + "w " * 400)
        s.prompt("and now")
    if change == "tools":
        s._add("attachment", attachment={"type": "deferred_tools_delta", "addedLines": ["x"]})
    if change == "client":
        s.version = "2.1.51"
    model = "claude-sonnet-4-6" if change == "model" else "claude-opus-4-6"
    read = 60_000 if change == "none" else 20_000
    s.answer("msg_2", model=model, **usage(3, 10, read, 60_400 - read))
    return s


@pytest.mark.parametrize(
    ("change", "reason"),
    [("gap", "time gap of 6 min"), ("compaction", "compaction"), ("tools", "tools, agents or skills changed"),
     ("client", "client changed: 2.1.50 to 2.1.51"), ("model", "model switch: opus-4-6 to sonnet-4-6"),
     ("silently", "unknown")],
)  # fmt: skip
def test_cache_misses_tell_their_reason_and_price(change: str, reason: str) -> None:
    [miss] = cache_misses(context_series(cache_session(change).conversation()), PUBLIC)
    assert (miss.round, miss.cached_before, miss.read, miss.reason) == (2, 60_000, 20_000, reason)
    write, read, fresh = (3.75, 0.3, 3.0) if change == "model" else (6.25, 0.5, 5.0)
    mean = (40_400 * write + 3 * fresh) / 40_403
    assert miss.usd == pytest.approx(40_000 * (mean - read) / 1e6)


def test_a_full_read_is_no_cache_miss() -> None:
    assert cache_misses(context_series(cache_session("none").conversation()), PUBLIC) == []


def test_the_api_s_own_reason_of_a_miss_wins_api_1_6() -> None:
    s = cache_session("gap")
    s.records[-1]["message"]["diagnostics"] = {"cache_miss_reason": {"type": "system_changed"}}
    [miss] = cache_misses(context_series(s.conversation()), PUBLIC)
    assert (miss.reason, miss.method) == ("system changed", Method.RECORDED)


def run_cost(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["cost", *arguments, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_cost_command_has_the_keys_of_cli_md(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    s = SessionBuilder()
    s.answer("msg_1", text(1), call("t"), request="r1", **usage(1_000, 500, 50_000))
    s.answer("msg_2", request="r2", model="gpt-6", stop=None, **usage(10))
    for name in ("a.jsonl", "copy/b.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(s.bytes())
    document = run_cost(capsys, str(tmp_path), str(tmp_path / "a.jsonl"))
    keys = {"files", "responses", "total_usd", "buckets", "models", "unpriced", "duplicates_removed",
            "output_tokens_uncertain"}  # fmt: skip
    assert keys <= set(document)
    assert (document["files"], document["responses"], document["duplicates_removed"]) == (2, 2, 4)
    assert document["total_usd"] == pytest.approx(0.0255)
    assert document["buckets"]["cache_read"] == {"tokens": 50_000, "usd": pytest.approx(0.015)}
    assert set(document["buckets"]) == {"input", "output", "cache_read", "cache_write_5m", "cache_write_1h"}
    [model] = document["models"]
    assert (model["model"], model["responses"], model["tokens"]) == ("claude-sonnet-4-6", 1, 51_500)
    assert model["price_source"]
    assert document["unpriced"] == [{"model": "gpt-6", "responses": 1, "tokens": 10}]
    assert document["output_tokens_uncertain"] == 1
    assert document["reconciliation"]["tokens_summed_per_record"] == 2 * (2 * 51_500 + 10)
    assert document["reconciliation"]["tokens_once_per_file"] == 2 * (51_500 + 10)
    assert document["reconciliation"]["tokens_once_over_all_files"] == 51_500 + 10


def test_cost_command_prices_by_the_set_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    s = SessionBuilder(model="claude-opus-4-7")
    s.answer("msg_1", **usage(1_000_000))
    path = tmp_path / "a.jsonl"
    path.write_bytes(s.bytes())
    assert run_cost(capsys, str(path))["total_usd"] == pytest.approx(5)
    assert run_cost(capsys, str(path), "--prices", "design document")["total_usd"] == pytest.approx(15)
    assert main(["cost", str(path), "--prices", "nobody"]) == 2
    assert main(["cost", str(tmp_path / "missing.jsonl")]) == 3


def test_cost_command_prints_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    s = SessionBuilder()
    s.answer("msg_1", stop=None, **usage(1_000, 500, 50_000))
    path = tmp_path / "a.jsonl"
    path.write_bytes(s.bytes())
    assert main(["cost", str(path)]) == 0
    out = capsys.readouterr().out
    assert "$0.0255" in out
    assert "placeholder" in out
