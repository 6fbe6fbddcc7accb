"""Mended sessions and the real clients: all three generations resume them, and what they send breaks no rule."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compaction.conversation import Conversation, open_session
from compaction.diagnosis import check_request, plan_repair
from compaction.request.wire import WireMessage, WireRequest
from tests.interop.test_request_lab import VERSIONS, clients, sent
from tests.support import case_folders, needs_shared
from tests.unit.session_samples import Lines

__all__ = ["clients"]

Json = dict[str, Any]

pytestmark = [pytest.mark.lab, pytest.mark.slow, needs_shared, pytest.mark.usefixtures("clients")]

SESSIONS = [folder for folder in case_folders() if (folder / "input.jsonl").exists()]


def mended(conversation: Conversation, folder: Path, client: str = "") -> Path:
    """The mended session under a new session id; the records keep the old id inside, as clients allow."""
    plan = plan_repair(conversation, client)
    path = folder / f"{uuid.uuid4()}.jsonl"
    path.write_bytes(b"".join(plan.chunks()))
    return path


def errors_in(messages: list[Json]) -> list[str]:
    """The API rules that a request breaks."""
    wire = [WireMessage(m["role"], m["content"], [None] * len(m["content"])) for m in messages]
    request = WireRequest(client="messages-api", at=None, messages=wire, model="claude-haiku-4-5")
    return [f"{v.code} at {v.path}" for v in check_request(request) if v.severity == "error"]


def ids_in(messages: list[Json], kind: str) -> list[str]:
    return [b["id"] for m in messages for b in m["content"] if b["type"] == kind]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("folder", SESSIONS, ids=[f.name for f in SESSIONS])
def test_every_mended_case_is_resumed_and_breaks_no_rule(folder: Path, version: str, tmp_path: Path) -> None:
    path = mended(open_session(folder / "input.jsonl").conversation, tmp_path)
    messages = sent(version, path)
    assert messages, "the client sent nothing"
    # The summary request that a full session starts with ends the conversation with the client's own instruction.
    assert errors_in(messages) == []


def interrupted() -> Lines:
    lines = Lines().user("u1", "Go.").call("a1", "m1", "x1").call("a2", "m1", "x2").result("r1", "x1")
    return lines.user("u2", "[Request interrupted by user]").user("u3", "Again.").call("a3", "m2", "x3").say("a4", "m3")


def cut_by_compaction() -> Lines:
    lines = Lines().user("u1", "Go.").call("a1", "m1", "x1").call("a2", "m2", "x2").compaction("b1", "s1")
    return lines.result("r1", "x1").result("r2", "x2").user("u2", "On.").say("a3", "m3")


def broken_chain() -> Lines:
    lines = Lines().user("u1", "Go.").say("a1", "m1").user("u2", "More.", parent="lost").call("a2", "m2", "x1")
    return lines.result("r1", "x1").say("a3", "m3").user("u3", "And?", parent="u3").say("a4", "m4")


def blank_and_orphaned() -> Lines:
    lines = Lines().user("u1", "Go.").say("a1", "m1", " ").user("u2", "So?").call("a2", "m2", "x1")
    return lines.result("r1", "x1").result("r9", "zz", "lost call").say("a3", "m3", "\n").user("u3", "On.")


def beside_the_chain() -> Lines:
    lines = Lines().user("u1", "Go.").call("a1", "m1", "x1").call("a2", "m1", "x2")
    lines.result("r1", "x1", parent="a1").result("r2", "x2", parent="a2")
    return lines.say("a3", "m2").user("u2", "So?")


KINDS: tuple[Callable[[], Lines], ...] = (interrupted, cut_by_compaction, broken_chain, blank_and_orphaned)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_variations_of_the_cases_are_resumed_whole(kind: Callable[[], Lines], version: str, tmp_path: Path) -> None:
    messages = sent(version, mended(kind().conversation(), tmp_path))
    assert messages
    assert errors_in(messages) == []
    calls = ids_in(messages, "tool_use")
    assert set(calls) == {"x1", "x2", "x3"} & _calls(kind())


def _calls(lines: Lines) -> set[str]:
    return {
        block["id"]
        for record in lines.records
        if record["type"] == "assistant"
        for block in record["message"]["content"]
        if block["type"] == "tool_use"
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_results_beside_the_chain_reach_old_clients_once_they_are_chained(version: str, tmp_path: Path) -> None:
    messages = sent(version, mended(beside_the_chain().conversation(), tmp_path, "2.0.76"))
    assert messages
    assert ids_in(messages, "tool_use") == ["x1", "x2"]
    assert errors_in(messages) == []
