"""Our cost against the client's own: sessions recorded afresh through ../shared/client-lab."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compaction.accounting.cost import CostState, cost_state
from compaction.accounting.models import model_key
from compaction.accounting.prices import bundled_prices
from compaction.accounting.usage import usage_of_session
from compaction.cli.main import main
from compaction.conversation import open_session
from tests.support import SHARED, needs_shared

pytestmark = [pytest.mark.lab, needs_shared]

LAB = SHARED / "client-lab" / "lab.py"
VERSION = "2.1.332"


def record(folder: Path, model: str, prompt: str, *extra: str, scale: float = 1.0) -> Path:
    """Record a session with the real client and return its transcript; skips where the client cannot run."""
    clients = Path(os.environ.get("CLIENT_LAB_HOME", Path.home() / ".cache" / "client-lab"))
    if not (clients / VERSION / "node_modules").is_dir():
        done = subprocess.run(
            [sys.executable, str(LAB), "install", VERSION], check=False, capture_output=True, text=True
        )
        if done.returncode:
            pytest.skip(f"client {VERSION} could not be installed: {done.stderr[-200:]}")
    arguments = [sys.executable, str(LAB), "record", VERSION, prompt, "--model", model, "-o", str(folder)]
    arguments += ["-e", f"USAGE_SCALE={scale}", *(a for text in extra for a in ("-p", text))]
    done = subprocess.run(arguments, check=False, capture_output=True, text=True, timeout=280)
    if "unshare" in done.stderr and "not permitted" in done.stderr:
        pytest.skip("no network namespaces here")
    assert done.returncode == 0, done.stderr[-2000:]
    return next(folder.glob("*.jsonl"))


def last_total(path: Path) -> dict[str, Any]:
    """The newest cost-state record: the client's own figures."""
    found = [json.loads(line) for line in path.read_bytes().splitlines() if b'"cost-state"' in line]
    total: dict[str, Any] = [f for f in found if f.get("type") == "cost-state"][-1]
    return total


def our_state(path: Path) -> CostState:
    return cost_state(usage_of_session(open_session(path)), bundled_prices().set())


def assert_same(state: CostState, total: dict[str, Any]) -> None:
    assert state.total_usd == pytest.approx(total["totalCostUSD"], abs=1e-6)
    assert state.client_usd == pytest.approx(total["totalCostUSD"], abs=1e-9)
    for name, figures in total["modelUsage"].items():
        model = state.models[model_key(name)]
        assert model.total_usd == pytest.approx(figures["costUSD"], abs=1e-6), name
        assert model.tokens[:3] == [figures[k] for k in ("inputTokens", "outputTokens", "cacheReadInputTokens")]
        assert model.tokens[3] + model.tokens[4] == figures["cacheCreationInputTokens"]
    assert set(state.models) == {model_key(name) for name in total["modelUsage"]}


MODELS = (
    "claude-fable-5-2", "claude-mythos-5-2", "claude-fable-5-1", "claude-fable-5", "claude-opus-5-5", "claude-opus-5",
    "claude-opus-4-8", "claude-opus-4-7", "claude-opus-4-6", "claude-opus-4-5", "claude-sonnet-5-5", "claude-sonnet-5",
    "claude-sonnet-4-6", "claude-sonnet-4-5", "claude-sonnet-4", "claude-haiku-5-5", "claude-haiku-4-5",
)  # fmt: skip
"""The models of prices.md that the client can be started with."""


@pytest.mark.parametrize("model", MODELS)
def test_our_total_is_the_client_s_own_for_a_plain_session(tmp_path: Path, model: str) -> None:
    path = record(tmp_path, model, "STEPS=3 SIZE=2000 TAG=a PARALLEL=2")
    state = our_state(path)
    assert_same(state, last_total(path))
    assert state.unrecorded == []


def test_haiku_5_5_beyond_100k_pays_the_higher_tier_for_the_whole_request(tmp_path: Path) -> None:
    path = record(tmp_path, "claude-haiku-5-5", "STEPS=6 SIZE=20000 TAG=a", scale=6)
    state = our_state(path)
    assert_same(state, last_total(path))
    prompts = usage_of_session(open_session(path)).tokens
    contexts = prompts.sum(axis=1) - prompts[:, 1]
    assert contexts.min() <= 100_000 < contexts.max()


@pytest.mark.parametrize(("model", "scale"), [("claude-opus-5-5", 1.0), ("claude-haiku-5-5", 6.0)])
def test_a_compaction_and_a_resume_keep_our_total_and_the_client_s_equal(
    tmp_path: Path, model: str, scale: float
) -> None:
    path = record(tmp_path, model, "STEPS=3 SIZE=3000 TAG=a", "/compact focus on tests", "STEPS=2 SIZE=2000 TAG=b",
                  scale=scale)  # fmt: skip
    state = our_state(path)
    assert_same(state, last_total(path))
    # The compaction's own request has no response on record: only the client's totals tell of it.
    assert len(state.unrecorded) == 1
    assert state.unrecorded[0].method == "computed"


def test_an_automatic_compaction_is_part_of_the_cost(tmp_path: Path) -> None:
    path = record(tmp_path, "claude-sonnet-4-6", "STEPS=14 SIZE=20000 TAG=a", scale=3)
    assert any(c.kind == "auto" for c in open_session(path).conversation.compactions)
    assert_same(our_state(path), last_total(path))


def test_sessions_recorded_apart_do_not_swallow_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The lab's API hands out msg_lab00000001 anew in each run: equal ids, different responses.
    one = record(tmp_path / "one", "claude-sonnet-4-6", "STEPS=2 SIZE=1000 TAG=a")
    two = record(tmp_path / "two", "claude-opus-5-5", "STEPS=2 SIZE=9000 TAG=b")
    assert main(["cost", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    expected = last_total(one)["totalCostUSD"] + last_total(two)["totalCostUSD"]
    assert document["total_usd"] == pytest.approx(expected, abs=1e-6)
    assert document["client_total_usd"] == pytest.approx(expected, abs=1e-9)
