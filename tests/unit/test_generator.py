"""The generator is an oracle for other tests, so its own claims are proved here with plain json."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.generator import FAULTS, Session, SessionBuilder, Tool, apply_faults

VERSIONS = ("1.0.31", "1.0.128", "2.0.40", "2.0.76", "2.1.12", "2.1.92", "2.1.217", "2.1.332")


def records(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def context_of(usage: dict[str, Any]) -> int:
    return int(usage["input_tokens"] + usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"])


@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(version: str) -> None:
    first = Session(seed=3, version=version, rounds=20).to_bytes()
    assert first == Session(seed=3, version=version, rounds=20).to_bytes()
    assert first != Session(seed=4, version=version, rounds=20).to_bytes()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_parent_was_written_before_its_child(version: str) -> None:
    seen: set[str] = set()
    for record in records(Session(seed=1, version=version, rounds=50, compactions=2).to_bytes()):
        if "uuid" in record:
            assert record["parentUuid"] is None or record["parentUuid"] in seen
            assert record["uuid"] not in seen
            seen.add(record["uuid"])


@pytest.mark.parametrize("version", VERSIONS)
def test_each_record_of_a_response_holds_one_block_and_shares_message_and_request_id(version: str) -> None:
    responses: dict[str, set[str]] = {}
    for record in records(Session(seed=1, version=version, rounds=50).to_bytes()):
        if record["type"] == "assistant":
            assert len(record["message"]["content"]) == 1
            responses.setdefault(record["message"]["id"], set()).add(record["requestId"])
    assert all(len(requests) == 1 for requests in responses.values())
    assert len(responses) >= 50


def test_context_grows_by_exactly_the_last_output_and_what_was_added() -> None:
    builder = SessionBuilder("2.1.217", system_tokens=10_000)
    builder.prompt("x" * 359)  # 100 tokens at 3.6 characters each
    first = builder.assistant("y" * 35, tools=[Tool("Bash", {"command": "ls"})], results=["z" * 719])  # 200 tokens
    second = builder.assistant("done")
    assert context_of(first.usage) == 10_100
    assert context_of(second.usage) == 10_100 + first.usage["output_tokens"] + 200
    assert second.usage["cache_read_input_tokens"] == context_of(first.usage)


@pytest.mark.parametrize("version", ["1.0.80", "2.1.217"])
def test_cache_creation_is_split_into_five_minutes_and_one_hour(version: str) -> None:
    for record in records(Session(version=version, rounds=10, hour_share=0.25).to_bytes()):
        if record["type"] == "assistant" and record["message"]["usage"]["output_tokens"]:
            usage = record["message"]["usage"]
            split = usage["cache_creation"]
            assert sum(split.values()) == usage["cache_creation_input_tokens"]


def test_stop_reason_is_where_each_version_writes_it() -> None:
    """transcript-format.md section 5: never in 2.1.12, on the last record in 2.1.92, on all from 2.1.200."""

    def shares(version: str) -> Counter[bool]:
        found = records(Session(version=version, rounds=30).to_bytes())
        return Counter(r["message"]["stop_reason"] is None for r in found if r["type"] == "assistant")

    assert shares("2.1.12")[False] == 0
    assert shares("2.1.92")[True] > 0
    assert shares("2.1.92")[False] > 0
    assert shares("2.1.217")[True] == 0


def test_compactions_leave_boundary_summary_and_preserved_messages_that_exist() -> None:
    found = records(Session(seed=5, version="2.1.217", rounds=80, compactions=3).to_bytes())
    known = {record["uuid"] for record in found if "uuid" in record}
    boundaries = [n for n, record in enumerate(found) if record.get("subtype") == "compact_boundary"]
    assert len(boundaries) == 3
    dropped = 0
    for number in boundaries:
        boundary, summary = found[number], found[number + 1]
        metadata = boundary["compactMetadata"]
        assert boundary["parentUuid"] is None
        assert summary["isCompactSummary"]
        assert summary["parentUuid"] == boundary["uuid"]
        assert metadata["preservedMessages"]["anchorUuid"] == summary["uuid"]
        assert set(metadata["preservedMessages"]["uuids"]) <= known
        dropped += metadata["preTokens"] - metadata["postTokens"]
        assert metadata["cumulativeDroppedTokens"] == dropped


def test_preserved_messages_never_cut_a_pair_or_a_response() -> None:
    builder = SessionBuilder("2.1.217")
    builder.prompt("Look")
    first = builder.assistant("One", tools=[Tool("Read"), Tool("Read")], results=["a", "b"])
    builder.compact(preserve=1)
    boundary = json.loads(builder.lines[-2])
    assert boundary["compactMetadata"]["preservedSegment"]["headUuid"] == first.uuids[0]


def test_pre_tokens_are_last_context_plus_output_plus_a_quarter_of_the_characters_after_it() -> None:
    """transcript-format.md section 7."""
    builder = SessionBuilder("2.1.217")
    builder.prompt("Hello")
    last = builder.assistant("Working", tools=[Tool("Bash", {"command": "ls"})], results=["r" * 400])
    builder.compact()
    boundary = json.loads(builder.lines[-2])
    expected = context_of(last.usage) + last.usage["output_tokens"] + 100
    assert boundary["compactMetadata"]["preTokens"] == expected


def test_before_2_0_76_a_compaction_is_a_new_root_without_a_boundary() -> None:
    found = records(Session(version="1.0.80", rounds=40, compactions=1).to_bytes())
    assert [r["parentUuid"] for r in found if r.get("isCompactSummary")] == [None]
    assert not [r for r in found if r.get("subtype") == "compact_boundary"]


def test_silent_and_marked_microcompaction_drop_the_context_by_the_cleared_results() -> None:
    for marked in (True, False):
        builder = SessionBuilder("2.1.14")
        builder.prompt("Look")
        for _ in range(4):
            last = builder.assistant(tools=[Tool("Read", {"file_path": "a"})], results=["c" * 3599])
        cleared = builder.microcompact(keep=1, marked=marked)
        after = builder.assistant("Done")
        # Three results of 1,000 tokens became placeholders of 9; the newest result was added.
        grown = context_of(after.usage) - context_of(last.usage) - last.usage["output_tokens"]
        assert len(cleared) == 3
        assert grown == 1000 - 3 * (1000 - 9)
        assert (b"microcompact_boundary" in builder.to_bytes()) is marked


def test_orphans_and_unanswered_calls_are_as_many_as_asked_for() -> None:
    found = records(Session(seed=2, rounds=60, orphan_results=2, unanswered_calls=3).to_bytes())
    blocks = [
        b for r in found if isinstance(r.get("message", {}).get("content"), list) for b in r["message"]["content"]
    ]
    calls = {b["id"] for b in blocks if b["type"] == "tool_use"}
    results = {b["tool_use_id"] for b in blocks if b["type"] == "tool_result"}
    assert len(results - calls) == 2
    assert len(calls - results) == 3


@pytest.mark.parametrize(
    ("version", "pattern"),
    [("2.0.40", "agent-*.jsonl"), ("2.1.12", "s/subagents/agent-*.jsonl"), ("2.1.332", "s/subagents/agent-*.jsonl")],
)
def test_subagents_lie_where_the_version_puts_them(version: str, pattern: str, tmp_path: Path) -> None:
    """transcript-format.md section 1."""
    main = Session(version=version, rounds=20, subagents=1).write(tmp_path / "s.jsonl")
    (agent,) = tmp_path.glob(pattern)
    inside = records(agent.read_bytes())
    assert all(r["isSidechain"] and r["agentId"] in agent.name for r in inside)
    assert {r["sessionId"] for r in inside} == {records(main.read_bytes())[-1]["sessionId"]} or version == "2.0.40"
    assert not any(r.get("isSidechain") for r in records(main.read_bytes()))


def test_subagents_of_1_0_are_sidechains_in_the_same_file_with_their_own_root(tmp_path: Path) -> None:
    main = Session(version="1.0.31", rounds=20, subagents=1).write(tmp_path / "s.jsonl")
    side = [r for r in records(main.read_bytes()) if r.get("isSidechain")]
    assert list(tmp_path.iterdir()) == [main]
    assert [r["parentUuid"] for r in side].count(None) == 1


def test_big_output_lies_in_tool_results_and_the_record_points_to_it(tmp_path: Path) -> None:
    main = Session(version="2.1.217", rounds=20, persisted=1).write(tmp_path / "s.jsonl")
    (file,) = (tmp_path / "s" / "tool-results").iterdir()
    assert file.name.encode() in main.read_bytes()


def test_the_number_of_lines_is_the_one_asked_for() -> None:
    assert sum(1 for _ in Session(records=1234).lines()) == 1234


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_every_fault_changes_the_file_and_is_repeatable(name: str) -> None:
    data = Session(rounds=6).to_bytes()
    damaged = apply_faults(data, [f"{name}@4"])
    assert damaged != data
    assert hashlib.sha256(damaged).digest() == hashlib.sha256(apply_faults(data, [f"{name}@4"])).digest()


def test_faults_strike_the_line_named_and_leave_the_others_alone() -> None:
    data = Session(rounds=6).to_bytes()
    lines = data.split(b"\n")
    for name in ("nul_padding", "invalid_utf8", "lone_surrogate", "line_separator", "relink_parent", "deep_nesting"):
        damaged = apply_faults(data, [f"{name}@5"]).split(b"\n")
        assert [n + 1 for n, line in enumerate(lines) if damaged[n] != line] == [5]
