"""index, sessions, search and follow as programs: keys and exit codes of cli.md."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from compaction.cli.main import main
from tests.generator import Session, SessionBuilder, Tool
from tests.support import ROOT, SHARED, needs_shared
from tests.unit.catalogue.library import KEY, build


def document(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


@pytest.fixture
def library(tmp_path: Path, own_data_folder: Path) -> Path:
    build(tmp_path / "projects")
    return tmp_path / "projects"


def test_index_tells_what_it_did(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = document(capsys, "index", str(library))
    assert (first["indexed"], first["unchanged"], first["removed"]) == (2, 0, 0)
    assert first["seconds"] >= 0
    second = document(capsys, "index", str(library))
    assert (second["indexed"], second["unchanged"], second["bytes_read"]) == (0, 2, 0)
    next(library.rglob("bakery.jsonl")).unlink()
    assert document(capsys, "index", str(library))["removed"] == 1


def test_index_finds_the_clients_folder_by_itself(
    library: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(library.parent))
    assert document(capsys, "index")["indexed"] == 2


def test_index_without_any_folder_is_bad_usage(
    tmp_path: Path, own_data_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "none"))
    assert main(["index"]) == 2
    assert "no folder" in capsys.readouterr().err


def test_sessions_has_the_keys_of_the_specification(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document(capsys, "index", str(library))
    found = document(capsys, "sessions")["sessions"]
    assert [Path(s["file"]).stem for s in found] == ["bakery", "harbour"], "the one used last comes first"
    keys = {
        "session_id",
        "file",
        "title",
        "project",
        "models",
        "responses",
        "tokens",
        "cost_usd",
        "compactions",
        "findings",
        "context",
    }
    assert keys <= set(found[0])
    harbour = found[1]
    assert harbour["project"] == "/home/someone/harbour"
    assert harbour["models"] == ["claude-sonnet-4-5"]
    assert harbour["responses"] == 2
    assert harbour["tokens"] > 0
    assert harbour["cost_usd"] > 0
    assert harbour["context"] > 0
    assert harbour["findings"] is not None
    assert found[0]["compactions"] == 1


def test_sessions_filters_and_prints_a_table(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document(capsys, "index", str(library))
    assert len(document(capsys, "sessions", "--project", "bakery")["sessions"]) == 1
    assert len(document(capsys, "sessions", "--limit", "1")["sessions"]) == 1
    assert len(document(capsys, "sessions", "--since", "2026-08-01")["sessions"]) == 1
    assert len(document(capsys, "sessions", "--until", "2026-08-01")["sessions"]) == 1
    assert main(["sessions"]) == 0
    assert "2 sessions" in capsys.readouterr().out
    assert main(["sessions", "--since", "yesterday"]) == 2


def test_sessions_without_a_catalogue_says_what_to_do(
    own_data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sessions", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["sessions"] == []
    assert "compactoscope index" in captured.err
    assert not own_data_folder.exists()


def test_search_has_the_keys_of_the_specification(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document(capsys, "index", str(library))
    hits = document(capsys, "search", "Brouwershaven")["hits"]
    assert len(hits) == 1
    assert {"session_id", "file", "line", "snippet"} <= set(hits[0])
    with open(hits[0]["file"], "rb") as file:
        assert b"Brouwershaven" in file.read().split(b"\n")[hits[0]["line"] - 1]
    assert main(["search", "station"]) == 0
    text = capsys.readouterr().out
    assert KEY not in text
    assert "1 hit in 1 session" in text
    assert main(["search", "--", "-nothing"]) == 2


def test_follow_prints_one_line_for_each_event(tmp_path: Path) -> None:
    builder = SessionBuilder("2.1.217", name="live")
    builder.prompt("Please look")
    path = builder.write(tmp_path)
    before = len(builder.lines)
    process = subprocess.Popen(
        [sys.executable, "-m", "inspector", "follow", str(path), "--json", "--idle", "20"],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        first = json.loads(process.stdout.readline())
        assert (first["event"], first["type"], first["text"]) == ("record", "prompt", "Please look")
        call = builder.assistant("I look", tools=[Tool("Bash", {"command": "ls"})], results=[None])
        before = append(path, builder, before)
        assert [(e["type"], e["tool"], e["running"]) for e in events(process, 2)] == [
            ("answer", "", False),
            ("tool_use", "Bash", True),
        ]
        builder.result(call.tools[0], "nothing")
        half = builder.lines[-1][:30]
        with path.open("ab") as file:
            file.write(half)
        time.sleep(0.6)
        with path.open("ab") as file:
            file.write(builder.lines[-1][30:] + b"\n")
        [result] = events(process, 1)
        assert (result["type"], result["text"]) == ("tool_result", "nothing")
        path.unlink()
        assert events(process, 1)[0]["event"] == "deleted"
    finally:
        process.kill()
        process.communicate()


def append(path: Path, builder: SessionBuilder, before: int) -> int:
    with path.open("ab") as file:
        file.write(b"".join(line + b"\n" for line in builder.lines[before:]))
    return len(builder.lines)


def events(process: subprocess.Popen[str], count: int) -> list[dict[str, Any]]:
    assert process.stdout is not None
    found: list[dict[str, Any]] = []
    while len(found) < count:
        event = json.loads(process.stdout.readline())
        if event["type"] not in ("last-prompt", "file-history-snapshot"):
            found.append(event)
    return found


def test_follow_stops_when_nothing_happens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = SessionBuilder("2.1.217")
    builder.prompt("Please look")
    builder.assistant("I look")
    assert main(["follow", str(builder.write(tmp_path)), "--idle", "0.3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in lines if "look" in line] == ["prompt", "answer"]


def test_follow_of_nothing_is_unreadable_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["follow", str(tmp_path / "none.jsonl")]) == 3
    assert main(["follow", "-"]) == 2


def test_the_librarys_total_is_that_of_the_cost_command(
    tmp_path: Path, own_data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Subagents in every layout, agent_progress copies, and a forked copy: each response counts once in both."""
    folder = tmp_path / "projects"
    for number, version in enumerate(("1.0.128", "2.0.44", "2.1.12", "2.1.217")):
        Session(seed=number, version=version, rounds=15, subagents=2).write(folder / f"p{number}" / f"s{number}.jsonl")
    whole = (folder / "p3" / "s3.jsonl").read_bytes()
    (folder / "p3" / "fork.jsonl").write_bytes(whole[: whole.rfind(b"\n", 0, len(whole) // 2) + 1])
    document(capsys, "index", str(folder), "--no-findings")
    sessions = document(capsys, "sessions")
    cost = document(capsys, "cost", str(folder))
    assert sessions["total_usd"] == pytest.approx(cost["total_usd"])
    assert sessions["total_responses"] == cost["responses"]


@needs_shared
def test_the_librarys_total_is_that_of_the_cost_command_on_real_sessions(
    own_data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document(capsys, "index", str(SHARED / "corpus"), "--no-findings", "--no-text")
    sessions = document(capsys, "sessions")
    cost = document(capsys, "cost", str(SHARED / "corpus"))
    assert sessions["total_usd"] == pytest.approx(cost["total_usd"])
    assert sessions["total_responses"] == cost["responses"]
