"""The writer: whole or not at all, never over something else, journalled, undoable only while unchanged."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from compaction.errors import Cancelled, NothingWritten, UsageError
from compaction.export.journal import Journal
from compaction.export.liveness import liveness
from compaction.export.writer import write_new_file
from compaction.progress import Progress


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


def test_a_new_file_appears_whole_and_the_journal_names_hash_and_lineage(tmp_path: Path, journal: Journal) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(b"original\n")
    done = write_new_file(
        tmp_path / "out.jsonl", [b"a", b"b\n"], operation="compact", journal=journal, source=source, lineage={"s": 1}
    )
    assert (tmp_path / "out.jsonl").read_bytes() == b"ab\n"
    (entry,) = journal.entries()
    assert entry == done.entry
    assert (entry.state, entry.size, entry.sha256, entry.lineage) == ("done", 3, done.sha256, {"s": 1})
    assert len(entry.source_sha256) == 64
    assert entry.source_size == 9
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.jsonl", "journal", "out.jsonl"]


def test_an_existing_file_is_never_replaced_unasked(tmp_path: Path, journal: Journal) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"mine")
    os.utime(target, (1, 1))
    with pytest.raises(NothingWritten, match="exists"):
        write_new_file(target, [b"x"], operation="export", journal=journal)
    assert target.read_bytes() == b"mine"
    assert journal.entries() == []
    write_new_file(target, [b"x"], operation="export", journal=journal, overwrite=True)
    assert target.read_bytes() == b"x"


def test_the_original_is_refused_as_output_even_through_a_link(tmp_path: Path, journal: Journal) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(b"original")
    (tmp_path / "link").symlink_to(source)
    for name in ("in.jsonl", "link"):
        with pytest.raises(UsageError, match="original itself"):
            write_new_file(tmp_path / name, [b"x"], operation="repair", journal=journal, source=source, overwrite=True)
    assert source.read_bytes() == b"original"


def test_a_session_being_written_is_not_replaced_even_on_request(tmp_path: Path, journal: Journal) -> None:
    target = tmp_path / "live.jsonl"
    target.write_bytes(b"growing")
    with pytest.raises(NothingWritten, match="being written right now"):
        write_new_file(target, [b"x"], operation="compact", journal=journal, overwrite=True)
    assert target.read_bytes() == b"growing"


@pytest.mark.parametrize(("name", "reason"), [(".", "is a folder"), ("no/such/out", "does not exist")])
def test_impossible_targets_are_named(tmp_path: Path, journal: Journal, name: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        write_new_file(tmp_path / name, [b"x"], operation="export", journal=journal)


def test_a_failed_check_leaves_no_file_and_a_reason_in_the_journal(tmp_path: Path, journal: Journal) -> None:
    def check(path: Path) -> None:
        assert path.read_bytes() == b"x"
        raise NothingWritten("differs")

    with pytest.raises(NothingWritten, match="differs"):
        write_new_file(tmp_path / "out", [b"x"], operation="export", journal=journal, check=check)
    assert not (tmp_path / "out").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["journal"]
    assert [(e.state, e.note) for e in journal.entries()] == [("failed", "differs")]


def test_an_error_of_the_chunks_and_a_cancel_leave_nothing(tmp_path: Path, journal: Journal) -> None:
    def broken() -> Iterator[bytes]:
        yield b"half"
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError):
        write_new_file(tmp_path / "out", broken(), operation="export", journal=journal)
    progress = Progress()
    progress.cancel()
    with pytest.raises(Cancelled):
        write_new_file(tmp_path / "out", [b"x"], operation="export", journal=journal, progress=progress)
    assert [p.name for p in tmp_path.iterdir()] == ["journal"]
    assert {e.state for e in journal.entries()} == {"failed"}


def test_a_full_disk_says_so_and_leaves_nothing(
    tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    real = os.fsync
    calls = iter([real, full])

    def second_fails(descriptor: int) -> None:
        next(calls, real)(descriptor)

    monkeypatch.setattr(os, "fsync", second_fails)
    with pytest.raises(NothingWritten, match="No space left"):
        write_new_file(tmp_path / "out", [b"x"], operation="export", journal=journal)
    assert [p.name for p in tmp_path.iterdir()] == ["journal"]


def test_a_crash_leaves_an_intent_that_the_next_start_lists_and_tidies(tmp_path: Path, journal: Journal) -> None:
    entry = journal.begin("compact", tmp_path / "out")
    Path(entry.temporary).write_bytes(b"half")
    (tmp_path / "journal" / "broken.json").write_text("{")
    assert Journal(tmp_path / "journal").unfinished() == [entry]
    journal.settle(entry)
    assert journal.unfinished() == []
    assert not Path(entry.temporary).exists()


def test_undo_removes_our_file_only_while_it_is_what_we_wrote(tmp_path: Path, journal: Journal) -> None:
    first = write_new_file(tmp_path / "a", [b"x"], operation="export", journal=journal)
    second = write_new_file(tmp_path / "b", [b"x"], operation="export", journal=journal)
    (tmp_path / "b").write_bytes(b"edited since")
    assert journal.undo(first.entry).state == "undone"
    assert not (tmp_path / "a").exists()
    with pytest.raises(NothingWritten, match="changed"):
        journal.undo(second.entry)
    assert (tmp_path / "b").read_bytes() == b"edited since"
    with pytest.raises(NothingWritten, match="nothing to undo"):
        journal.undo(journal.entry(first.entry.id) or first.entry)


def test_an_original_that_grew_meanwhile_is_reported(tmp_path: Path, journal: Journal) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(b"1\n")

    def growing() -> Iterator[bytes]:
        yield b"1\n"
        source.write_bytes(b"1\n2\n")

    done = write_new_file(tmp_path / "out", growing(), operation="compact", journal=journal, source=source)
    assert "2 to 4 bytes" in done.warnings[0]


def test_liveness_by_age_growth_and_newest_record(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"12345")
    now = time.time()
    assert liveness(path, now).live
    os.utime(path, (now - 100, now - 100))
    assert not liveness(path, now).live
    assert not liveness(path, now, newest_record=now - 60, known_size=5).live
    assert "newest record" in liveness(path, now, newest_record=now - 3).reason
    assert "4 to 5 bytes" in liveness(path, now, known_size=4).reason
    assert not liveness(tmp_path / "absent", now).live
