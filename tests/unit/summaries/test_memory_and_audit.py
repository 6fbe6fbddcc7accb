"""Session memory (compaction.md §8) and the audit of a summary (issue 8): offline, exact, kept in our own folder."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest

from compaction.cli.main import main
from compaction.conversation import Conversation, build_conversation
from compaction.strategies.inputs import strategy_input
from compaction.strategies.summariser import OfflineSummariser, Summary, SummaryTask
from compaction.summaries.audit import audit_recorded
from compaction.summaries.session_memory import (
    extract_memory,
    find_memory,
    is_empty_template,
    memory_path,
    merge_sections,
    sections_of,
    wait_for_extraction,
)
from compaction.transcript import transcript_from_bytes
from tests.unit.summaries.loopback import ANSWER, Api, serving, stream

SESSION = "11111111-2222-4333-8444-555555555555"


def record(kind: str, uuid: str, parent: str | None, **more: Any) -> dict[str, Any]:
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/proj",
        "sessionId": SESSION,
        "version": "2.1.332",
        "type": kind,
        "uuid": uuid,
        "timestamp": "2026-08-01T10:00:00.000Z",
        **more,
    }


def user(uuid: str, parent: str | None, content: Any, **more: Any) -> dict[str, Any]:
    return record("user", uuid, parent, message={"role": "user", "content": content}, **more)


def assistant(uuid: str, parent: str, message: str, block: dict[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": 1000, "output_tokens": 10}
    body = {"id": message, "type": "message", "role": "assistant", "model": "claude-opus-4-6", "content": [block]}
    return record("assistant", uuid, parent, message={**body, "stop_reason": "end_turn", "usage": usage})


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def read(path: str, identifier: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": identifier, "name": "Read", "input": {"file_path": path}}


def result(identifier: str, content: str, *, error: bool = False) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": identifier, "content": content, "is_error": error}]


FIRST = [
    user("u1", None, "Please add a tide table for Bergen"),
    assistant("a1", "u1", "m1", read("/proj/tides.py", "t1")),
    user("r1", "a1", result("t1", "def tide(): ...")),
    assistant("a2", "r1", "m2", text("We decided to use harmonic constituents instead of a lookup.")),
]
SECOND = [user("u2", "a2", "Now add Oslo"), assistant("a3", "u2", "m3", text("Oslo is added."))]


def data(records: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(r).encode() + b"\n" for r in records)


def conversation(records: list[dict[str, Any]]) -> Conversation:
    return build_conversation(transcript_from_bytes(data(records)))


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COMPACTOSCOPE_DATA", str(tmp_path / "own"))
    return tmp_path / "own"


class Recording(OfflineSummariser):
    """The offline summariser, remembering what it was given."""

    given: ClassVar[list[list[str]]] = []

    def summarise(self, task: SummaryTask) -> Summary:
        Recording.given.append([p.text for p in task.parts if p.text])
        return OfflineSummariser.summarise(self, task)


def test_an_update_reads_only_what_came_after_the_last_summarised_message() -> None:
    Recording.given.clear()
    first = conversation(FIRST)
    made = extract_memory(strategy_input(first, now_ms=0).view, Recording())
    assert made.last_summarised_uuid == "a2"
    both = conversation(FIRST + SECOND)
    again = extract_memory(strategy_input(both, now_ms=0).view, Recording())
    assert Recording.given[1] == ["Now add Oslo", "Oslo is added."]
    assert again.last_summarised_uuid == "a3"
    messages = sections_of(again.text)[6][1]
    assert messages == "- Please add a tide table for Bergen\n- Now add Oslo"
    assert find_memory(both) == again.__class__(again.text, "a3", "kept by Compactoscope", again.path)


def test_memory_has_the_nine_sections_and_lies_in_our_own_folder(own_folder: Path) -> None:
    made = extract_memory(strategy_input(conversation(FIRST), now_ms=0).view, OfflineSummariser())
    assert sorted(sections_of(made.text)) == list(range(1, 10))
    assert made.path == memory_path(SESSION)
    assert own_folder in made.path.parents
    assert "tides.py" in made.text


def test_a_hostile_session_id_cannot_leave_the_folder(own_folder: Path) -> None:
    assert memory_path("../../etc/passwd").parent == own_folder / "session-memory"


def test_the_empty_template_is_recognised_whatever_its_spacing() -> None:
    assert is_empty_template("  # Session memory\n\n\nNothing has been noted   yet.\n")
    assert is_empty_template("")
    assert not is_empty_template("# Session memory\n\n1. Request:\n- x")


def test_the_clients_own_memory_is_found_beside_the_transcript(tmp_path: Path) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(data(FIRST))
    folder = tmp_path / SESSION / "session-memory"
    folder.mkdir(parents=True)
    (folder / "summary.md").write_text("1. Goal:\n- tides")
    from compaction.conversation import open_session

    found = find_memory(open_session(path).conversation)
    assert found is not None
    assert (found.text, found.last_summarised_uuid) == ("1. Goal:\n- tides", "")


def test_a_running_extraction_is_waited_for_15_seconds_at_most(own_folder: Path) -> None:
    assert wait_for_extraction(SESSION)
    mark = memory_path(SESSION).with_suffix(".running")
    mark.parent.mkdir(parents=True)
    mark.write_text("1")
    clock = iter([0.0, 5.0, 14.9, 15.0])
    slept: list[float] = []
    assert not wait_for_extraction(SESSION, clock=lambda: next(clock), sleep=slept.append)
    assert len(slept) == 2
    old = time.time() - 3600
    os.utime(mark, (old, old))
    assert wait_for_extraction(SESSION, clock=lambda: 0.0)


def test_merging_keeps_bullets_once_and_replaces_the_present_moment() -> None:
    old = "Summary:\n\n1. Goal:\n- a\n- b\n\n8. Current Work:\n- old"
    new = "Summary:\n\n1. Goal:\n- b\n- c\n\n8. Current Work:\n- new"
    assert sections_of(merge_sections(old, new)) == {1: ("Goal", "- a\n- b\n- c"), 8: ("Current Work", "- new")}


BOUNDARY = record("system", "cb", None, subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 9})


def compacted(summary: str) -> Conversation:
    failed = [
        assistant("a2b", "a2", "m2b", read("/proj/gone.py", "t9")),
        user("r9", "a2b", result("t9", "File does not exist: gone.py", error=True)),
    ]
    after = [
        BOUNDARY,
        user("s", "cb", summary, isCompactSummary=True),
        assistant("a9", "s", "m9", read("/proj/tides.py", "t2")),
    ]
    return conversation(FIRST + failed + after)


def test_the_audit_says_what_a_summary_left_out_and_what_was_needed_again() -> None:
    c = compacted("The user wants a tide table for Bergen, please add it.")
    audit = audit_recorded(c, c.epochs[1].boundary_record)
    assert [(i.kind, i.present) for i in audit.items] == [
        ("user message", True),
        ("file", False),
        ("decision", False),
        ("file", False),
        ("error", False),
    ]
    (missed,) = audit.missed_and_needed
    assert (missed.text, missed.line, missed.needed_later) == ("/proj/tides.py", 2, (9,))


def test_a_fresh_summary_can_be_audited_against_the_same_sources() -> None:
    c = compacted("nothing")
    fresh = "tides.py and gone.py (File does not exist: gone.py): decided harmonic constituents instead of a lookup"
    audit = audit_recorded(c, c.epochs[1].boundary_record, fresh)
    assert [i.present for i in audit.items] == [False, True, True, True, True]
    assert audit.missed_and_needed == []


def test_memory_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(data(FIRST))
    assert main(["memory", str(path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["memory"] is None
    assert main(["memory", str(path), "--update", "--json"]) == 0
    assert "Bergen" in json.loads(capsys.readouterr().out)["memory"]
    assert main(["memory", str(path)]) == 0
    assert "Bergen" in capsys.readouterr().out


def test_a_model_is_asked_only_with_yes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
    path = tmp_path / "s.jsonl"
    path.write_bytes(data(FIRST))
    with serving() as api:
        command = ["memory", str(path), "--update", "--summariser", "anthropic", "--base-url", api.url]
        assert main(command) == 1
        said = capsys.readouterr().err
        assert "nothing was sent" in said
        assert "ANTHROPIC_API_KEY" in said
        assert "sk-ant-test" not in said
        assert api.requests == []
        api.replies = [stream()]
        assert main([*command, "--yes"]) == 0
        assert len(api.requests) == 1
        assert "build it" in capsys.readouterr().out
        check_sent(api)


def check_sent(api: Api) -> None:
    sent = api.requests[0]["body"]
    assert sent["model"] == "claude-opus-4-6"
    assert sent["messages"][0]["content"][0]["text"] == "Please add a tide table for Bergen"
    assert ANSWER not in json.dumps(sent)
