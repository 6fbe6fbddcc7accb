"""The indexer: incremental, resumable, one pass over changed bytes, nothing written but the catalogue (issue 7)."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from compaction.catalogue import scan
from compaction.catalogue.database import Catalogue, open_catalogue
from compaction.catalogue.indexer import refresh
from compaction.catalogue.sessions import list_sessions
from compaction.errors import Cancelled, UsageError
from compaction.progress import Progress
from tests.generator import Session
from tests.unit.catalogue.support import content, every_fault, make_library


@pytest.fixture
def catalogue(own_data_folder: Path) -> Iterator[Catalogue]:
    opened = open_catalogue(folder=own_data_folder)
    yield opened
    opened.close()


def index(catalogue: Catalogue, folder: Path, **wishes: bool) -> dict[str, int]:
    report = refresh(catalogue, [folder], processes=1, **{"findings": False, **wishes})
    assert not report.problems
    return {
        "indexed": report.indexed,
        "unchanged": report.unchanged,
        "removed": report.removed,
        "renamed": report.renamed,
    }


def fresh(folder: Path, place: Path) -> dict[str, list[dict[str, object]]]:
    """What a new catalogue says about a folder."""
    opened = open_catalogue(folder=place)
    try:
        index(opened, folder)
        return content(opened)
    finally:
        opened.close()


def test_a_session_is_described_by_its_records(tmp_path: Path, catalogue: Catalogue) -> None:
    [path] = make_library(tmp_path, 1, rounds=20, subagents=1)
    index(catalogue, tmp_path / "projects")
    [entry] = list_sessions(catalogue)
    assert entry.path == str(path)
    assert entry.bytes == path.stat().st_size
    assert entry.lines == path.read_bytes().count(b"\n")
    assert entry.title
    assert entry.project.startswith("/")
    assert entry.models
    assert entry.versions == ("1.0.128",)
    assert entry.first_ms < entry.last_ms
    assert entry.context_tokens is not None
    assert entry.series[-1] <= max(entry.series)


@pytest.mark.parametrize("slice_bytes", [1 << 10, 8 << 20])
def test_a_file_grown_in_random_cuts_is_catalogued_like_a_fresh_one(
    tmp_path: Path, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch, slice_bytes: int
) -> None:
    monkeypatch.setattr(scan, "SLICE_BYTES", slice_bytes)
    whole = Session(seed=5, version="2.1.217", rounds=25, compactions=2, images=0.0).write(
        tmp_path / "made" / "s.jsonl"
    )
    data = whole.read_bytes()
    live = tmp_path / "projects" / "-p" / "s.jsonl"
    live.parent.mkdir(parents=True)
    cuts = sorted(random.Random(7).sample(range(1, len(data)), 30))
    start = 0
    for end in [*cuts, len(data)]:
        with live.open("ab") as file:
            file.write(data[start:end])
        start = end
        index(catalogue, tmp_path / "projects")
    monkeypatch.setattr(scan, "SLICE_BYTES", 8 << 20)
    assert content(catalogue) == fresh(tmp_path / "projects", tmp_path / "other")


@pytest.mark.parametrize("fault", every_fault("cut_last_line", "invalid_utf8", "splice", "nul_padding"))
def test_a_damaged_file_in_slices_is_catalogued_like_a_whole_one(
    tmp_path: Path, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    Session(seed=3, rounds=8, subagents=0, faults=(fault,)).write(tmp_path / "projects" / "-p" / "s.jsonl")
    monkeypatch.setattr(scan, "SLICE_BYTES", 1 << 10)
    index(catalogue, tmp_path / "projects")
    monkeypatch.setattr(scan, "SLICE_BYTES", 8 << 20)
    assert content(catalogue) == fresh(tmp_path / "projects", tmp_path / "other")


def test_growth_is_read_from_the_old_end_only(tmp_path: Path, catalogue: Catalogue) -> None:
    [path] = make_library(tmp_path, 1, rounds=30)
    data = path.read_bytes()
    cut = data.rfind(b"\n", 0, len(data) * 9 // 10) + 1
    path.write_bytes(data[:cut])
    index(catalogue, tmp_path / "projects")
    with path.open("ab") as file:
        file.write(data[cut:])
    report = refresh(catalogue, [tmp_path / "projects"], findings=False)
    assert report.indexed == 1
    assert report.bytes_read == len(data) - cut


def test_a_warm_start_reads_no_file_and_writes_nothing(
    tmp_path: Path, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_library(tmp_path, 6)
    index(catalogue, tmp_path / "projects")
    opened: list[str] = []
    statements: list[str] = []
    real_open = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *rest, **more: opened.append(str(path)) or real_open(path, *rest, **more)
    )
    sa.event.listen(catalogue.engine, "before_cursor_execute", lambda c, cur, s, *rest: statements.append(s))
    counts = index(catalogue, tmp_path / "projects")
    assert counts["indexed"] == 0
    assert counts["unchanged"] >= 6
    assert opened == []
    assert not [s for s in statements if s.split()[0] in ("INSERT", "UPDATE", "DELETE")]
    assert len(statements) < 10, "the queries of a warm start do not grow with the files"


def test_a_rewritten_file_is_read_anew(tmp_path: Path, catalogue: Catalogue) -> None:
    [path] = make_library(tmp_path, 1)
    index(catalogue, tmp_path / "projects")
    other = Session(seed=99, version="2.1.217", rounds=40, subagents=0).write(tmp_path / "made" / "s.jsonl")
    path.write_bytes(other.read_bytes())
    assert index(catalogue, tmp_path / "projects")["indexed"] == 1
    assert content(catalogue) == fresh(tmp_path / "projects", tmp_path / "other")


def test_a_truncated_file_is_read_anew(tmp_path: Path, catalogue: Catalogue) -> None:
    [path] = make_library(tmp_path, 1, rounds=20)
    index(catalogue, tmp_path / "projects")
    data = path.read_bytes()
    path.write_bytes(data[: data.rfind(b"\n", 0, len(data) // 2) + 1])
    index(catalogue, tmp_path / "projects")
    assert content(catalogue) == fresh(tmp_path / "projects", tmp_path / "other")


def test_a_renamed_file_is_recognised_and_not_read(tmp_path: Path, catalogue: Catalogue) -> None:
    paths = make_library(tmp_path, 2, subagents=0)
    index(catalogue, tmp_path / "projects")
    moved = paths[0].parent.parent / "-elsewhere" / paths[0].name
    moved.parent.mkdir()
    paths[0].rename(moved)
    report = refresh(catalogue, [tmp_path / "projects"], findings=False)
    assert (report.indexed, report.removed, report.renamed, report.bytes_read) == (0, 0, 1, 0)
    assert {e.path for e in list_sessions(catalogue)} == {str(moved), str(paths[1])}


def test_a_removed_file_is_forgotten_with_its_text(tmp_path: Path, catalogue: Catalogue) -> None:
    paths = make_library(tmp_path, 2, subagents=0)
    index(catalogue, tmp_path / "projects")
    paths[0].unlink()
    assert index(catalogue, tmp_path / "projects")["removed"] == 1
    assert content(catalogue) == fresh(tmp_path / "projects", tmp_path / "other")


def test_a_missing_folder_forgets_nothing(tmp_path: Path, catalogue: Catalogue) -> None:
    """An unplugged disk is no reason to lose the catalogue of what is on it."""
    make_library(tmp_path, 2)
    index(catalogue, tmp_path / "projects")
    before = len(list_sessions(catalogue))
    (tmp_path / "projects").rename(tmp_path / "away")
    report = refresh(catalogue, [tmp_path / "projects"], findings=False)
    assert report.removed == 0
    assert report.problems == [f"{tmp_path / 'projects'}: there is no such folder"]
    assert len(list_sessions(catalogue)) == before


def test_a_forked_copy_costs_nothing_twice(tmp_path: Path, catalogue: Catalogue) -> None:
    """transcript-format.md §6: copies share uuid and message.id; the session id is another."""
    [path] = make_library(tmp_path, 1, subagents=0)
    copy = path.with_name("copy.jsonl")
    copy.write_bytes(
        path.read_bytes().replace(path.stem.encode(), b"copy").replace(b'"sessionId":"', b'"sessionId":"f')
    )
    index(catalogue, tmp_path / "projects")
    entries = list_sessions(catalogue)
    assert len(entries) == 2
    from compaction.catalogue.sessions import totals_of

    together = totals_of(catalogue, [e.id for e in entries])
    assert together.responses == entries[0].own.responses
    assert together.cost_usd == pytest.approx(entries[0].own.cost_usd)
    assert sorted(bool(e.forked_from) for e in entries) == [False, True]


def test_subagents_stand_under_their_session(tmp_path: Path, catalogue: Catalogue) -> None:
    make_library(tmp_path, 4, rounds=20, subagents=2)
    index(catalogue, tmp_path / "projects")
    entries = list_sessions(catalogue)
    assert len(entries) == 4
    with_files = [e for e in entries if e.versions[0] >= "2.0"]
    assert all(e.subagents for e in with_files)
    assert all(e.total.responses > e.own.responses for e in with_files)


def test_a_cancelled_index_goes_on_from_where_it_was(tmp_path: Path, catalogue: Catalogue) -> None:
    make_library(tmp_path, 4)
    progress = Progress()

    class Stop(Progress):
        def check(self) -> None:
            if self.done:
                self.cancel()
            super().check()

    progress = Stop()
    monkey = pytest.MonkeyPatch()
    monkey.setattr("compaction.catalogue.indexer._BATCH_BYTES", 1)
    try:
        with pytest.raises(Cancelled):
            refresh(catalogue, [tmp_path / "projects"], progress, findings=False, processes=1)
    finally:
        monkey.undo()
    assert len(content(catalogue)["transcript"]) > 0
    index(catalogue, tmp_path / "projects")
    assert content(catalogue) == fresh(tmp_path / "projects", tmp_path / "other")


def test_the_search_text_can_follow_later(tmp_path: Path, catalogue: Catalogue) -> None:
    make_library(tmp_path, 2)
    index(catalogue, tmp_path / "projects", text=False)
    assert content(catalogue)["passage"] == []
    report = refresh(catalogue, [tmp_path / "projects"], findings=False)
    assert report.indexed == 0
    assert content(catalogue) == fresh(tmp_path / "projects", tmp_path / "other")


def test_an_unfinished_last_line_waits_for_its_end(tmp_path: Path, catalogue: Catalogue) -> None:
    [path] = make_library(tmp_path, 1, subagents=0)
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    index(catalogue, tmp_path / "projects")
    assert list_sessions(catalogue)[0].damaged == 0
    path.write_bytes(data)
    index(catalogue, tmp_path / "projects")
    assert content(catalogue) == fresh(tmp_path / "projects", tmp_path / "other")


def test_a_file_that_cannot_be_read_is_a_problem_and_stops_nothing(tmp_path: Path, catalogue: Catalogue) -> None:
    make_library(tmp_path, 1)
    (tmp_path / "projects" / "-p").mkdir()
    (tmp_path / "projects" / "-p" / "x.jsonl").symlink_to(tmp_path / "projects" / "-p")
    report = refresh(catalogue, [tmp_path / "projects"], findings=False)
    assert [p for p in report.problems if "x.jsonl" in p]
    assert len(list_sessions(catalogue)) == 1


def test_originals_and_their_folders_stay_as_they_are(tmp_path: Path, catalogue: Catalogue) -> None:
    make_library(tmp_path, 2)

    def picture() -> dict[str, tuple[int, int]]:
        found = {}
        for path in sorted((tmp_path / "projects").rglob("*")):
            found[str(path)] = (path.stat().st_size, path.stat().st_mtime_ns)
        return found

    before = picture()
    index(catalogue, tmp_path / "projects")
    assert picture() == before


def test_other_prices_give_other_costs_everywhere(tmp_path: Path, catalogue: Catalogue, own_data_folder: Path) -> None:
    """The person's own price file holds for the library too; a change of it is noticed."""
    make_library(tmp_path, 2, subagents=0)
    index(catalogue, tmp_path / "projects")
    before = {e.path: e.own.cost_usd for e in list_sessions(catalogue)}
    rates = dict.fromkeys(("input", "output", "cache_read", "cache_write_5m", "cache_write_1h"), 1000.0)
    models = sorted({model for e in list_sessions(catalogue) for model in e.models})
    (own_data_folder / "config").mkdir()
    (own_data_folder / "config" / "prices.json").write_text(json.dumps({"rows": [{"models": models, **rates}]}))
    index(catalogue, tmp_path / "projects")
    after = {e.path: e.own for e in list_sessions(catalogue)}
    for path, own in after.items():
        assert own.cost_usd == pytest.approx(own.tokens * 1000 / 1e6)
        assert own.cost_usd > before[path]
    assert index(catalogue, tmp_path / "projects")["indexed"] == 0
    (own_data_folder / "config" / "prices.json").write_text("no prices")
    with pytest.raises(UsageError, match="price file"):
        index(catalogue, tmp_path / "projects")
