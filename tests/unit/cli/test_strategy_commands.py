"""strategies, compare, compact, replay, export on the command line: keys and exit codes of cli.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compaction.cli.main import main
from compaction.export.journal import Journal
from compaction.strategies.registry import STRATEGIES
from compaction.transcript import CLEARED_MARKER
from tests.unit.strategies.sessions import bash, session

CATEGORIES = {
    "system_and_tools", "user_text", "assistant_text", "thinking", "tool_use", "tool_result", "attachments", "images",
    "summary",
}  # fmt: skip
TELEMETRY = {
    "pre_compact_token_count", "post_compact_token_count", "true_post_compact_token_count", "auto_compact_threshold",
    "will_retrigger_next_turn", "is_auto_compact", "is_recompaction_in_chain", "turns_since_previous_compact",
    "compaction_input_tokens", "compaction_output_tokens", "compaction_cache_read_tokens",
    "compaction_cache_creation_tokens",
}  # fmt: skip
PLAN_KEYS = {
    "name", "title", "applies", "reason", "settings", "tokens_before", "tokens_after", "tokens_freed", "method",
    "before", "after", "model_calls", "duration_ms", "one_off_cost_usd", "next_request_cost_usd",
    "cost_per_request_before_usd",
    "cost_per_request_after_usd", "break_even_requests", "cache_tokens_kept", "cache_tokens_lost",
    "will_retrigger_next_turn", "violations", "lost",
}  # fmt: skip


@pytest.fixture
def transcript(tmp_path: Path, own_data_folder: Path) -> Path:
    path = tmp_path / "session.jsonl"
    steps = [(bash(f"step {n}"), f"output {n} " * 60) for n in range(12)]
    path.write_bytes(session(steps, model="claude-opus-4-6").to_bytes())
    return path


def _json(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> dict[str, Any]:
    assert main([*map(str, arguments), "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_strategies_lists_the_registry_with_typed_settings(capsys: pytest.CaptureFixture[str]) -> None:
    found = _json(capsys, "strategies")["strategies"]
    assert [one["name"] for one in found] == list(STRATEGIES)
    for one in found:
        assert one["title"]
        assert all({"key", "type", "default", "unit", "source"} <= set(setting) for setting in one["settings"])
    assert main(["strategies"]) == 0
    assert "keep_recent" in capsys.readouterr().out


def test_compare_has_the_keys_of_the_contract_and_categories_add_up(
    transcript: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = _json(capsys, "compare", transcript)
    assert {"at", "context", "strategies"} <= set(found)
    keys = {"tokens", "method", "window", "effective_window", "auto_compact_threshold", "blocking_limit"}
    assert keys | {"percent_left", "state"} <= set(found["context"])
    assert [one["name"] for one in found["strategies"]] == list(STRATEGIES)
    for one in found["strategies"]:
        assert set(one) >= PLAN_KEYS
        assert set(one["before"]) == set(one["after"]) == CATEGORIES
        assert sum(one["before"].values()) == one["tokens_before"] == found["context"]["tokens"]
        assert sum(one["after"].values()) == one["tokens_after"]
        assert one["tokens_freed"] == one["tokens_before"] - one["tokens_after"]
        assert set(one["lost"]) == {"user_messages", "files", "tool_results", "thinking_turns"}


def test_compare_takes_strategies_settings_and_a_round(transcript: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--strategy", "microcompact-time", "--set", "microcompact-time.keep_recent=2", "--at", "8"]
    found = _json(capsys, "compare", transcript, *arguments, "--now", "2030-01-01T00:00:00Z")
    (one,) = found["strategies"]
    assert found["at"] == 8
    assert one["settings"]["keep_recent"] == 2
    assert one["applies"]
    assert main(["compare", str(transcript)]) == 0
    assert "break-even" in capsys.readouterr().out


def test_compact_writes_a_checked_copy_and_journals_it(
    transcript: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = transcript.read_bytes()
    out = tmp_path / "out.jsonl"
    arguments = ["--strategy", "microcompact-time", "--set", "keep_recent=5", "--now", "2030-01-01T00:00:00Z"]
    found = _json(capsys, "compact", transcript, *arguments, "-o", out)
    assert (found["strategy"], found["written"]) == ("microcompact-time", str(out))
    assert set(found["telemetry"]) == TELEMETRY
    assert transcript.read_bytes() == before
    old, new = before.splitlines(), out.read_bytes().splitlines()
    assert sum(one != other for one, other in zip(old, new, strict=True)) == 7
    assert out.read_bytes().count(CLEARED_MARKER.encode()) == 7
    (entry,) = Journal().entries()
    assert (entry.id, entry.state, entry.operation) == (found["journal"], "done", "compact")
    assert entry.lineage["settings"]["keep_recent"] == 5


def test_compact_at_a_round_exports_the_session_as_it_stood_then(
    transcript: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    found = _json(capsys, "compact", transcript, "--strategy", "auto-compact", "--at", "6", "-o", out)
    lines = out.read_bytes().splitlines()
    original = transcript.read_bytes().splitlines()
    kept = [line for line in lines if line in set(original)]
    assert kept == original[: len(kept)]
    assert len(kept) == 11
    assert found["telemetry"]["turns_since_previous_compact"] == 5


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_exit_code_1_and_one_line_when_a_strategy_has_nothing_to_do(
    name: str, tmp_path: Path, own_data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tiny.jsonl"
    path.write_bytes(session([]).to_bytes().splitlines()[0] + b"\n")
    found = _json(capsys, "compact", path, "--strategy", name, "-o", tmp_path / "out", code=1)
    assert (found["written"], found["journal"], found["applies"]) == (None, None, False)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["compact", "F", "--strategy", "magic", "-o", "O"], 2, "no strategy"),
        (["compact", "F", "--strategy", "snip", "--set", "x=1", "-o", "O"], 2, "no setting"),
        (["compact", "F", "--strategy", "snip", "--set", "x", "-o", "O"], 2, "no value"),
        (["compact", "F", "--strategy", "snip", "--set", "auto-compact.restore=no", "-o", "O"], 2, "the strategy is"),
        (["compact", "F", "--strategy", "auto-compact", "-o", "F"], 2, "original itself"),
        (["compact", "F", "--strategy", "auto-compact", "-o", "no/where"], 2, "does not exist"),
        (["compact", "F", "--strategy", "auto-compact", "--at", "99", "-o", "O"], 2, "no API round 99"),
        (["compare", "F", "--set", "keep_recent=2"], 2, "no strategy"),
        (["compare", "F", "--client", "old"], 2, "old"),
        (["compare", "F", "--now", "soon"], 2, "no ISO time"),
        (["compare", "missing.jsonl"], 3, "no such file"),
        (["compare", "F", "--memory", "missing.md"], 3, "missing.md"),
        (["replay", "F", "--what-if", "magic=1"], 2, "no what-if setting"),
        (["replay", "F", "--what-if", "auto_compact_percent=300"], 2, "out of range"),
        (["export", "F", "--format", "pdf", "-o", "O"], 2, "no export format"),
    ],
)
def test_errors_are_one_line_with_the_contracts_exit_code(
    arguments: list[str], code: int, text: str, transcript: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"F": str(transcript), "O": str(tmp_path / "o")}
    before = transcript.read_bytes()
    assert main([names.get(a, a) for a in arguments]) == code
    captured = capsys.readouterr()
    assert text in captured.err
    assert len(captured.err.strip().splitlines()) == 1
    assert captured.out == ""
    assert transcript.read_bytes() == before
    assert not (tmp_path / "o").exists()


def test_an_existing_output_is_refused_with_exit_code_1(
    transcript: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "mine"
    out.write_text("mine")
    assert main(["compact", str(transcript), "--strategy", "auto-compact", "-o", str(out)]) == 1
    assert "exists already" in capsys.readouterr().err
    assert out.read_text() == "mine"


def test_replay_has_the_keys_of_the_contract(transcript: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _json(capsys, "replay", transcript, "--what-if", "auto_compact_percent=10")
    assert {"client", "events", "matched", "missed", "extra"} <= set(found)
    assert found["what_if"]["compactions"] >= found["simulated"]["compactions"]
    for event in found["events"]:
        assert {"round", "line", "predicted", "recorded", "error_tokens", "error_rounds"} <= set(event)
    assert main(["replay", str(transcript)]) == 0
    assert "matched" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["jsonl", "messages", "markdown", "html"])
def test_export_writes_each_format(
    name: str, transcript: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    found = _json(capsys, "export", transcript, "--format", name, "-o", out)
    assert (found["written"], found["bytes"]) == (str(out), out.stat().st_size)
    if name == "jsonl":
        assert out.read_bytes() == transcript.read_bytes()
