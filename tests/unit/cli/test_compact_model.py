"""`compact --summariser anthropic`: described first, sent only with --yes, applied and written (issue 8)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from compaction.cli.main import main
from compaction.conversation import open_session
from compaction.resources import resource
from compaction.summaries.audit import recorded_summary
from tests.unit.summaries.loopback import Api, error, serving, stream

SAMPLE = str(resource("sample", "tide-tables.jsonl"))


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Api]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
    monkeypatch.setenv("COMPACTOSCOPE_DATA", str(tmp_path / "own"))
    with serving() as found:
        yield found


def command(api: Api, out: Path, *more: str) -> list[str]:
    given = ["compact", SAMPLE, "--strategy", "auto-compact", "-o", str(out), "--json"]
    return [*given, "--summariser", "anthropic", "--base-url", api.url, *more]


def test_without_yes_nothing_is_sent_and_nothing_is_written(
    api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    assert main(command(api, out)) == 1
    said = capsys.readouterr().err
    assert "--yes" in said
    assert "cost, cache cold: $" in said
    assert api.requests == []
    assert not out.exists()


def test_with_yes_the_models_summary_is_in_the_written_session(
    api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    api.replies = [stream()]
    assert main(command(api, out, "--yes", "--model", "claude-opus-5-5")) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["written"] == str(out)
    assert len(api.requests) == 1
    assert api.requests[0]["body"]["model"] == "claude-opus-5-5"
    telemetry = document["telemetry"]
    assert telemetry["compaction_output_tokens"] == 300
    assert telemetry["compaction_cache_read_tokens"] == 1000
    conversation = open_session(out).conversation
    newest = conversation.epochs[-1]
    summary = recorded_summary(conversation, newest.boundary_record)
    assert "1. Primary Request and Intent:\n- build it" in summary
    assert "<analysis>" not in summary


def test_the_prompt_can_be_another_for_one_run(api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Summarise as a sailor would.")
    api.replies = [stream()]
    assert main(command(api, tmp_path / "out.jsonl", "--yes", "--prompt", str(prompt))) == 0
    assert "Summarise as a sailor would." in json.dumps(api.requests[0]["body"]["messages"][-1])
    assert main(command(api, tmp_path / "two.jsonl", "--yes", "--prompt", str(tmp_path / "none"))) == 3
    assert "prompt" in capsys.readouterr().err


def test_a_failed_summary_writes_nothing_and_says_why(
    api: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    api.replies = [error(401, "authentication_error", "invalid x-api-key")]
    assert main(command(api, out, "--yes")) == 1
    said = capsys.readouterr().err
    assert "401" in said
    assert "keyring" in said
    assert not out.exists()
