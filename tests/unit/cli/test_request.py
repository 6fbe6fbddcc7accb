"""`compactoscope request` (cli.md)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compaction.cli.main import main
from tests.unit.request.support import Story, call, text, thinking


@pytest.fixture
def file(tmp_path: Path) -> Path:
    story = Story("2.1.220")
    story.user("u1", "go")
    story.assistant("a1", "m1", thinking(), model="claude-opus-4-8")
    story.assistant("a2", "m1", call("a"), model="claude-opus-4-8")
    story.result("r1", "a")
    story.assistant("a3", "m2", text("done"), model="claude-opus-4-8")
    story.result("r2", "gone")
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join(story.rows) + "\n", encoding="utf-8")
    return path


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["request", *arguments, "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_the_document_has_the_keys_of_the_contract(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, str(file), "--client", "1.0.128")
    assert {"client", "at", "verified", "messages", "unaccounted", "violations"} <= set(found)
    assert (found["client"], found["at"], found["verified"]) == ("1.0.128", None, "profile")
    assert [set(m) for m in found["messages"]] == [{"role", "content"}] * 6  # type: ignore[attr-defined]


def test_violations_are_those_of_the_assembled_request(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = printed(capsys, str(file), "--client", "1.0.128")["violations"]
    assert [(v["rule"], v["path"]) for v in old] == [("R02", "messages.4.content.0")]  # type: ignore[attr-defined]
    assert set(old[0]) == {"rule", "path", "message", "api_error"}  # type: ignore[index]
    assert printed(capsys, str(file))["violations"] == []


def test_at_names_the_round_and_its_model(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, str(file), "--at", "2")
    assert (found["at"], found["model"]) == (2, "claude-opus-4-8")
    assert [m["role"] for m in found["messages"]] == ["user", "assistant", "user"]  # type: ignore[attr-defined]


def test_the_client_that_wrote_the_session_goes_on_with_its_model_another_one_with_its_own(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = printed(capsys, str(file))
    assert own["model"] == "claude-opus-4-8"
    assert "signature" in json.dumps(own["messages"])
    other = printed(capsys, str(file), "--client", "2.1.332")
    assert other["model"] == "claude-sonnet-4-6"
    assert "signature" not in json.dumps(other["messages"])
    chosen = printed(capsys, str(file), "--client", "2.1.332", "--model", "claude-opus-4-8")
    assert "signature" in json.dumps(chosen["messages"])


def test_the_table_names_lines_and_violations(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["request", str(file), "--client", "1.0.128"]) == 0
    shown = capsys.readouterr().out
    assert "rebuilt by the client's rules" in shown
    assert "tool_use Bash a" in shown
    assert "R02 messages.4.content.0" in shown


@pytest.mark.parametrize("arguments", [["--at", "9"], ["--client", "newest"]])
def test_what_does_not_exist_is_a_usage_error(
    file: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["request", str(file), *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1
