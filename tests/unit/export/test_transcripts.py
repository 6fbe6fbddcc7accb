"""Plans and edits as new transcripts: checked against the original, lineage, a warning for a live session."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from compaction.errors import NothingWritten
from compaction.export.journal import Journal
from compaction.export.transcripts import write_edits, write_plan
from compaction.export.verify import transcript_check
from compaction.transcript import transcript_from_bytes
from compaction.transcript.edits import RemoveRecord, ReplaceRecord
from tests.generator.builder import SessionBuilder
from tests.unit.strategies.sessions import bash, given_for, plan_of, session

STEPS = [(bash(f"step {n}"), f"output {n} " * 60) for n in range(8)]


def test_a_plan_is_written_with_its_lineage(tmp_path: Path) -> None:
    given = given_for(session(STEPS))
    plan = plan_of("microcompact-time", given, keep_recent=2)
    journal = Journal(tmp_path / "journal")
    written = write_plan(tmp_path / "out.jsonl", given.conversation.transcript, plan, journal=journal, at=None)
    assert written.warnings == ()
    lineage = written.entry.lineage
    assert (lineage["strategy"], lineage["settings"]["keep_recent"], lineage["edits"]) == ("microcompact-time", 2, 6)
    assert (lineage["tokens_before"], lineage["tokens_after"]) == (plan.tokens_before, plan.tokens_after)


def test_a_live_session_is_copied_with_a_warning(tmp_path: Path) -> None:
    builder = SessionBuilder("2.1.39", start=round(time.time() * 1000) - 5_000)
    builder.now = round(time.time() * 1000) - 90_000
    builder.prompt("go")
    builder.now = round(time.time() * 1000) - 3_000
    builder.system("informational", content="now")
    transcript = transcript_from_bytes(builder.to_bytes())
    written = write_edits(tmp_path / "out", transcript, (), operation="export", journal=Journal(tmp_path / "journal"))
    assert "being written right now" in written.warnings[0]


def test_the_second_look_finds_every_kind_of_difference(tmp_path: Path) -> None:
    transcript = transcript_from_bytes(session(STEPS).to_bytes())
    lines = transcript.source.read(0, 1 << 30).splitlines(keepends=True)
    path = tmp_path / "written"
    changed = lines[3].strip()[:-1] + b',"extra":1}'
    check = transcript_check(transcript, [ReplaceRecord(3, changed)])
    path.write_bytes(b"".join([*lines[:3], changed + b"\n", *lines[4:]]))
    check(path)
    for wrong in (
        b"".join(lines),
        b"".join([*lines[:3], changed + b"\n", *lines[4:-1]]),
        b"".join([*lines[:3], changed + b"\n", *lines[4:], lines[-1]]),
        b"",
    ):
        path.write_bytes(wrong)
        with pytest.raises(NothingWritten, match="re-read"):
            check(path)


def test_a_broken_chain_is_never_named_done(tmp_path: Path) -> None:
    transcript = transcript_from_bytes(session(STEPS).to_bytes())
    with pytest.raises(NothingWritten, match="without their parent"):
        write_edits(
            tmp_path / "out",
            transcript,
            (RemoveRecord(4),),
            operation="repair",
            journal=Journal(tmp_path / "journal"),
        )
    assert not (tmp_path / "out").exists()
