"""Damage a valid session in any of the ways that files are damaged, mend it: valid, stable, nothing reachable lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from compaction.conversation import Conversation, build_conversation
from compaction.diagnosis import check_request, diagnose, plan_repair
from compaction.diagnosis.case import Case, open_case
from compaction.request import assemble, generations
from compaction.transcript import RecordKind, transcript_from_bytes
from tests.generator import FAULTS, Session
from tests.generator.faults import relink_parent
from tests.unit.request_samples import (
    CODE_CALL,
    MCP_CALL,
    MCP_RESULT,
    REFERENCE,
    SERVER_CALL,
    SERVER_RESULT,
    answer,
    call,
    image,
    marked,
    png,
    text,
    thought,
)

VERSIONS = ("1.0.60", "2.0.42", "2.1.9", "2.1.40", "2.1.120", "2.1.217", "2.1.232")
CLIENTS = ("", "1.0.128", "2.0.76", "2.1.332")
Damage = tuple[str, float, float]
"""A kind, where it strikes and where a new parent is taken from, both as a share of the file."""


@st.composite
def sessions(draw: st.DrawFn, forks: float = 0.0) -> Session:
    """A valid generated session of 3 to 12 rounds (the object, so that a failure prints its few numbers)."""
    return Session(
        seed=draw(st.integers(0, 10_000)),
        version=draw(st.sampled_from(VERSIONS)),
        rounds=draw(st.integers(3, 12)),
        prompt_every=draw(st.integers(2, 5)),
        parallel=0.5,
        result_characters=80,
        persisted=0,
        subagents=draw(st.integers(0, 1)),
        compactions=draw(st.integers(0, 1)),
        forks=forks,
        api_errors=0.05,
    )


def conversation_of(data: bytes) -> Conversation:
    return build_conversation(transcript_from_bytes(data))


def relink(data: bytes, line: int, share: float) -> bytes:
    """The record's parent becomes another record of the file, of the main conversation."""
    found = [_record(part) for part in data.splitlines()]
    uuids = [r["uuid"] for r in found if "uuid" in r and not r.get("isSidechain")]
    if not uuids:
        return data
    return relink_parent(data, line, parent=uuids[int(share * (len(uuids) - 1))])


def compaction_at(data: bytes, line: int, share: float) -> bytes:
    """A compaction between two lines, wherever that is: what hung on the line before hangs on the summary."""
    lines = data.splitlines(keepends=True)
    before = next((r for r in map(_record, reversed(lines[: line - 1])) if "uuid" in r), None)
    if before is None:
        return data
    names = ("sessionId", "version", "cwd", "userType", "timestamp")
    envelope = {name: before[name] for name in names if name in before} | {"isSidechain": False}
    boundary: dict[str, Any] = {
        **envelope,
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "b0b0b0b0-0000-4000-8000-000000000001",
        "parentUuid": None,
        "logicalParentUuid": before["uuid"],
        "compactMetadata": {"trigger": "auto", "preTokens": 168_000},
    }
    summary = {
        **envelope,
        "type": "user",
        "uuid": "c0c0c0c0-0000-4000-8000-000000000001",
        "parentUuid": boundary["uuid"],
        "isCompactSummary": True,
        "message": {"role": "user", "content": "Summary: so far."},
    }
    old, new = (f'"parentUuid":"{u}"'.encode() for u in (before["uuid"], summary["uuid"]))
    middle = [json.dumps(record).encode() + b"\n" for record in (boundary, summary)]
    return b"".join([*lines[: line - 1], *middle, *(part.replace(old, new) for part in lines[line - 1 :])])


def _record(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}  # damaged before
    return found if isinstance(found, dict) else {}


KINDS: dict[str, Callable[[bytes, int, float], bytes]] = {
    "drop": lambda data, line, _: FAULTS["drop_record"](data, line),
    "duplicate": lambda data, line, _: FAULTS["duplicate_record"](data, line),
    "reorder": lambda data, line, _: FAULTS["reorder_record"](data, line),
    "cut": lambda data, line, _: FAULTS["cut_last_line"](data, line),
    "splice": lambda data, line, _: FAULTS["splice"](data, line),
    "lose_parent": lambda data, line, _: FAULTS["relink_parent"](data, line),
    "glue": lambda data, line, _: FAULTS["two_records_on_one_line"](data, line),
    "pad": lambda data, line, _: FAULTS["nul_padding"](data, line),
    "surrogate": lambda data, line, _: FAULTS["lone_surrogate"](data, line),
    "escape": lambda data, line, _: FAULTS["invalid_escape"](data, line),
    "relink": relink,
    "compact": compaction_at,
}
ANY = st.tuples(st.sampled_from(sorted(KINDS)), st.floats(0, 1), st.floats(0, 1))


def damaged(data: bytes, damages: list[Damage]) -> bytes:
    for kind, where, other in damages:
        count = data.count(b"\n")
        if count > 3:
            data = KINDS[kind](data, 2 + int(where * (count - 3)), other)
    return data


def reachable(case: Case) -> set[str]:
    """What the request of a session holds: calls and visible texts, without characters that a repair replaces."""
    found: set[str] = set()
    for message in case.view.request.messages:
        for block in message.content:
            if block.get("type") == "tool_use":
                found.add(f"call {block.get('id')}")
            if block.get("type") == "text" and str(block.get("text")).strip():
                found.add("".join(c for c in str(block["text"]) if c.isascii()))
    return found


def refused_by_any_client(conversation: Conversation) -> list[str]:
    """What the API would refuse of the pairs and texts that each client generation sends."""
    return [
        f"{client.version}: {violation.api_error}"
        for client in generations()
        for violation in check_request(assemble(conversation, client.version, model="claude-opus-4-6"))
        if violation.severity == "error" and violation.rule in PAIRING
    ]


UNMENDABLE = ("compaction_thrash",)
"""No edit of a transcript helps against it (case 24)."""
PAIRING = ("R01", "R02", "R03", "R04", "R05", "R11", "R12", "R13")


def result_ids(conversation: Conversation) -> set[str]:
    """The tool ids that the file's main conversation holds a result of."""
    t = conversation.transcript
    blocks = [t.block(b) for b in range(len(t.block_record)) if conversation.main[t.block_record[b]]]
    return {str(b.get("tool_use_id")) for b in blocks if b.get("type") == "tool_result"}


@given(sessions(forks=0.2), st.lists(ANY, min_size=1, max_size=3), st.sampled_from(CLIENTS))
def test_any_damage_is_mended_to_a_valid_and_stable_session(
    session: Session, damages: list[Damage], client: str
) -> None:
    """G4: no error is left, a second repair changes nothing, no client generation sends what the API refuses; G2."""
    broken = conversation_of(damaged(session.to_bytes(), damages))
    plan = plan_repair(broken, client)
    assert [f.message for f in plan.findings_after if f.severity == "error" and f.code not in UNMENDABLE] == []
    mended = conversation_of(b"".join(plan.chunks()))
    assert not plan_repair(mended, plan.client).changes_anything
    if plan.changes_anything:
        assert refused_by_any_client(mended) == []
    touched = {change.record for change in plan.changes}
    kept = {mended.transcript.record_bytes(r) for r in range(len(mended.transcript))}
    for record in range(len(broken.transcript)):
        if record not in touched and broken.transcript.kind[record] != RecordKind.DAMAGED:
            assert broken.transcript.record_bytes(record) in kept


@given(sessions(), st.lists(ANY.filter(lambda d: d[0] != "relink"), min_size=1, max_size=2))
def test_nothing_reachable_is_lost_that_the_file_still_holds(session: Session, damages: list[Damage]) -> None:
    """G8: the same reachable content or more; G6: a recorded result is never lost to a stand-in."""
    broken = conversation_of(damaged(session.to_bytes(), damages))
    plan = plan_repair(broken, "2.1.332")
    mended = conversation_of(b"".join(plan.chunks()))
    before, after = (reachable(open_case(c, "2.1.332")) for c in (broken, mended))
    joined = "\n".join(sorted(after))
    assert {text for text in before - after if text not in joined} == set()
    assert result_ids(broken) <= result_ids(mended) | _as_text(plan.changes)


def _as_text(changes: tuple[Any, ...]) -> set[str]:
    """Results that became text, because no call of them is in the file."""
    found: set[str] = set()
    for change in changes:
        if change.action == "replace" and b"[Result of an earlier" in (change.after or b""):
            content = json.loads(change.before)["message"]["content"]
            found |= {str(b.get("tool_use_id")) for b in content if b.get("type") == "tool_result"}
    return found


@given(sessions(forks=0.2), st.sampled_from(CLIENTS))
def test_a_valid_session_of_its_own_client_is_never_changed(session: Session, client: str) -> None:
    """G10: what is valid stays; for another client only what that client trips over is an error."""
    conversation = conversation_of(session.to_bytes())
    plan = plan_repair(conversation, client)
    errors = {f.code for f in plan.findings_before if f.severity == "error"}
    assert errors <= {"sibling_results_off_chain", "chain_through_progress", "result_not_first"}
    assert plan.changes_anything is bool(errors)


@given(st.binary(max_size=400))
def test_any_bytes_can_be_examined_and_mended(data: bytes) -> None:
    """Nothing in the input is fatal."""
    conversation = conversation_of(data)
    assert diagnose(conversation).client
    b"".join(plan_repair(conversation).chunks())


IDS = st.sampled_from(["a1", "a2", "a3", "bad:1", ""])
BLOCKS = st.one_of(
    st.sampled_from(["", "  ", "x", "y \ud83d", "z\0"]).map(text),
    st.builds(call, IDS, st.sampled_from(["Bash", "Read", "B" * 210])),
    st.builds(
        lambda identity, value: {**call(identity), "input": value}, IDS, st.sampled_from(['{"a":1}', '{"a', None])
    ),
    st.builds(answer, IDS, st.sampled_from(["ok", "", [png()], [text("t"), REFERENCE]]), is_error=st.booleans()),
    st.just({"type": "tool_result", "content": "n"}),
    st.builds(thought, st.just("q"), st.sampled_from(["SigA", "", "SigB"])),
    st.sampled_from([SERVER_CALL, SERVER_RESULT, MCP_CALL, MCP_RESULT, CODE_CALL]),
    st.just(image("")),
    st.builds(marked, st.sampled_from(["", "m"]), st.sampled_from(["5m", "1h"])),
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant"]), "content": st.lists(BLOCKS, max_size=4)},
    ),
    min_size=1,
    max_size=8,
)
MEMBERS = st.fixed_dictionaries(
    {"model": st.sampled_from(["claude-opus-4-6", "claude-haiku-4-5", "claude-opus-5-5", ""])},
    optional={
        "tools": st.sampled_from([None, [], [{"name": "Bash"}], [{"name": "Bash"}, {"name": "Bash"}]]),
        "thinking": st.sampled_from(["enabled", "disabled", "adaptive"]).map(lambda kind: {"type": kind}),
    },
)


@given(MEMBERS, MESSAGES, st.sampled_from([None, 1]))
def test_any_document_is_mended_to_a_valid_and_stable_one(
    members: dict[str, Any], messages: list[dict[str, Any]], indent: int | None
) -> None:
    """Every rule at once, in any mixture, pretty-printed or on one line."""
    conversation = conversation_of(json.dumps({**members, "messages": messages}, indent=indent).encode())
    plan = plan_repair(conversation)
    mended = b"".join(plan.chunks())
    assert [f.message for f in plan.findings_after if f.severity == "error"] == []
    assert json.loads(mended)["messages"]
    assert not plan_repair(conversation_of(mended)).changes_anything
