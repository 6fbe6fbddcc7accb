"""Following a session while it is written: like a fresh load after every step, at the cost of what was appended."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest

from compaction.conversation import Conversation
from compaction.errors import InputUnreadable
from compaction.transcript import open_transcript, transcript_from_bytes
from compaction.transcript.following import TAIL_BYTES, Follower, What
from compaction.transcript.transcript import Transcript
from tests.generator import Session, SessionBuilder
from tests.support import corpus_files, needs_shared

COLUMNS = (
    *("offset", "length", "line", "kind", "flags", "timestamp_ms", "uuid_key", "parent_key", "message_key"),
    *("first_block", "block_record", "block_position", "block_type", "block_chars", "block_key", "block_flags"),
)


def same(followed: Transcript, fresh: Transcript) -> None:
    """Everything a model shows of both is equal."""
    assert len(followed) == len(fresh)
    assert followed.line_count == fresh.line_count
    for column in COLUMNS:
        assert np.array_equal(getattr(followed, column), getattr(fresh, column)), column
    assert followed.damage == fresh.damage
    assert followed.boundaries == fresh.boundaries
    assert followed.leaf_key == fresh.leaf_key
    for record in range(len(fresh)):
        assert followed.type_name(record) == fresh.type_name(record)
        assert followed.session(record) == fresh.session(record)
        assert followed.model(record) == fresh.model(record)
        assert followed.record_bytes(record) == fresh.record_bytes(record)
    for block in range(len(fresh.block_key)):
        assert followed.block_tool(block) == fresh.block_tool(block)
    assert np.array_equal(followed.usage_table, fresh.usage_table)


def same_structure(followed: Transcript, fresh: Transcript) -> None:
    """The conversation built on both is the same."""
    mine, other = Conversation(followed), Conversation(fresh)
    for name in ("parent", "thread", "response_of", "round_of", "epoch_of", "pair"):
        assert np.array_equal(getattr(mine, name), getattr(other, name)), name
    assert mine.epochs == other.epochs
    assert mine.compactions == other.compactions
    assert mine.leaf == other.leaf
    assert np.array_equal(mine.response_context, other.response_context)


def grow(path: Path, data: bytes, cuts: list[int], *, structure: bool = False) -> int:
    """Grow a file in cuts, comparing after each step; returns the bytes read for it."""
    path.write_bytes(data[: cuts[0]])
    follower = Follower(open_transcript(path))
    read = 0
    for start, end in zip(cuts, [*cuts[1:], len(data)], strict=True):
        with path.open("ab") as file:
            file.write(data[start:end])
        step = follower.poll()
        read += step.bytes_read
        assert [h.what for h in step.happenings] == [What.APPENDED]
        assert step.transcript is follower.transcript
        fresh = transcript_from_bytes(data[:end])
        same(step.transcript, fresh)
        if structure:
            same_structure(step.transcript, fresh)
    return read


@pytest.mark.parametrize(("seed", "version"), [(0, "2.1.217"), (1, "2.1.12"), (2, "1.0.128"), (3, "2.1.332")])
def test_thirty_random_cuts_give_what_a_fresh_load_gives(tmp_path: Path, seed: int, version: str) -> None:
    """issue 7: cuts in the middle of lines and of UTF-8 characters; the reading cost is that of the appended bytes."""
    data = Session(seed=seed, version=version, rounds=15, compactions=1).write(tmp_path / "whole.jsonl").read_bytes()
    data = data.replace(b"the ", "thé € 🌊 ".encode())
    cuts = sorted(random.Random(seed).sample(range(1, len(data)), 30))
    assert any(data[cut - 1] >= 0x80 and 0x80 <= data[cut] < 0xC0 for cut in range(1, len(data)))
    read = grow(tmp_path / "live.jsonl", data, cuts, structure=True)
    assert read <= len(data) - cuts[0] + 30 * TAIL_BYTES


def test_cuts_inside_one_character_and_between_every_byte(tmp_path: Path) -> None:
    line = '{"type":"user","uuid":"a","message":{"role":"user","content":"é€🌊"}}\n'.encode()
    grow(tmp_path / "live.jsonl", line * 2, list(range(1, len(line) * 2)))


def test_an_unfinished_long_line_is_not_read_again(tmp_path: Path) -> None:
    line = b'{"type":"user","message":{"role":"user","content":"' + b"x" * 2_000_000 + b'"}}\n'
    cuts = list(range(1000, len(line), 100_000))
    assert grow(tmp_path / "live.jsonl", line, cuts) <= len(line) + len(cuts) * TAIL_BYTES


@needs_shared
def test_real_sessions_grow_like_a_fresh_load(tmp_path: Path) -> None:
    for number, path in enumerate(corpus_files()[::12]):
        data = path.read_bytes()[:400_000]
        cuts = sorted(random.Random(number).sample(range(1, len(data)), 6))
        grow(tmp_path / f"{number}.jsonl", data, cuts)


def test_nothing_new_costs_no_read(tmp_path: Path) -> None:
    path = Session(rounds=3).write(tmp_path / "s.jsonl")
    follower = Follower(open_transcript(path))
    step = follower.poll()
    assert (step.first, step.happenings, step.bytes_read) == (len(step.transcript), (), 0)


def test_what_was_shown_before_stays_as_it_was(tmp_path: Path) -> None:
    """A view may still draw the old state while the new one is being made."""
    data = Session(rounds=6).write(tmp_path / "whole.jsonl").read_bytes()
    cut = data.find(b"\n", len(data) // 2) + 1
    path = tmp_path / "live.jsonl"
    path.write_bytes(data[:cut])
    follower = Follower(open_transcript(path))
    old = follower.transcript
    with path.open("ab") as file:
        file.write(data[cut:])
    new = follower.poll().transcript
    same(old, transcript_from_bytes(data[:cut]))
    same(new, transcript_from_bytes(data))


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"", What.TRUNCATED), (b'{"type":"user"}\n', What.TRUNCATED)],
)
def test_truncation_is_noticed(tmp_path: Path, content: bytes, what: What) -> None:
    path = Session(rounds=3).write(tmp_path / "s.jsonl")
    follower = Follower(open_transcript(path))
    path.write_bytes(content)
    step = follower.poll()
    assert [h.what for h in step.happenings] == [what]
    same(step.transcript, transcript_from_bytes(content))


def test_a_longer_file_written_in_place_is_no_growth(tmp_path: Path) -> None:
    path = Session(rounds=3).write(tmp_path / "s.jsonl")
    follower = Follower(open_transcript(path))
    other = Session(seed=9, rounds=9).write(tmp_path / "other.jsonl").read_bytes()
    path.write_bytes(other)
    step = follower.poll()
    assert [h.what for h in step.happenings] == [What.TRUNCATED]
    same(step.transcript, transcript_from_bytes(other))


def test_replacement_is_noticed_and_followed(tmp_path: Path) -> None:
    path = Session(rounds=3).write(tmp_path / "s.jsonl")
    follower = Follower(open_transcript(path))
    other = Session(seed=9, rounds=4).write(tmp_path / "other.jsonl")
    data = other.read_bytes()
    os.replace(other, path)
    assert [h.what for h in follower.poll().happenings] == [What.REPLACED]
    with path.open("ab") as file:
        file.write(b'{"type":"user"}\n')
    step = follower.poll()
    assert [h.what for h in step.happenings] == [What.APPENDED]
    same(step.transcript, transcript_from_bytes(data + b'{"type":"user"}\n'))


def test_a_renamed_file_is_followed_under_its_new_name(tmp_path: Path) -> None:
    path = Session(rounds=3, subagents=0).write(tmp_path / "s.jsonl")
    data = path.read_bytes()
    follower = Follower(open_transcript(path))
    moved = path.rename(tmp_path / "other.jsonl")
    step = follower.poll()
    assert [(h.what, h.path) for h in step.happenings] == [(What.RENAMED, moved)]
    with moved.open("ab") as file:
        file.write(b'{"type":"user"}\n')
    step = follower.poll()
    assert [h.what for h in step.happenings] == [What.APPENDED]
    same(step.transcript, transcript_from_bytes(data + b'{"type":"user"}\n'))
    assert step.transcript.path == moved


def test_a_deleted_file_stays_readable_is_told_once_and_may_return(tmp_path: Path) -> None:
    path = Session(rounds=3, subagents=0).write(tmp_path / "s.jsonl")
    data = path.read_bytes()
    follower = Follower(open_transcript(path))
    path.unlink()
    assert [h.what for h in follower.poll().happenings] == [What.DELETED]
    assert follower.poll().happenings == ()
    assert follower.transcript.record_bytes(0) == data.split(b"\n")[0]
    path.write_bytes(data * 2)
    step = follower.poll()
    assert [h.what for h in step.happenings] == [What.RETURNED]
    assert len(step.transcript) == 2 * len(transcript_from_bytes(data))


@pytest.mark.parametrize("version", ["2.0.44", "2.1.217"])
def test_subagents_are_told_as_they_start(tmp_path: Path, version: str) -> None:
    """Both layouts of transcript-format.md §1: beside the session (2.0.28 … 2.0.60) and nested (2.1.2 on)."""
    made = Session(version=version, rounds=12, subagents=2).write(tmp_path / "made" / "s.jsonl")
    live = tmp_path / "live" / "s.jsonl"
    live.parent.mkdir()
    live.write_bytes(made.read_bytes())
    (live.parent / "agent-00000000.jsonl").write_bytes(b'{"type":"user","sessionId":"another"}\n')
    follower = Follower(open_transcript(live))
    assert follower.agent_files == ()
    others = sorted(p for p in made.parent.rglob("agent-*.jsonl"))
    assert len(others) == 2
    for path in others:
        place = live.parent / path.relative_to(made.parent)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.read_bytes())
        assert [(h.what, h.path) for h in follower.poll().happenings] == [(What.SUBAGENT, place)]
    assert len(follower.agent_files) == 2


def test_input_in_memory_cannot_be_followed() -> None:
    with pytest.raises(InputUnreadable):
        Follower(transcript_from_bytes(b"{}\n"))


def test_a_builder_session_that_ends_in_a_running_call_grows(tmp_path: Path) -> None:
    builder = SessionBuilder()
    builder.prompt("hello")
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"\n".join(builder.lines) + b"\n")
    follower = Follower(open_transcript(path))
    before = len(builder.lines)
    builder.assistant("hi")
    with path.open("ab") as file:
        file.write(b"\n".join(builder.lines[before:]) + b"\n")
    assert follower.poll().first == before
