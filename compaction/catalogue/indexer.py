from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from compaction.catalogue.database import Catalogue
from compaction.catalogue.discovery import FoundFile, find_transcripts
from compaction.catalogue.examine import Examination, ExamineJob, apply_examinations, examine_all
from compaction.catalogue.fingerprint import Change, Fingerprint, what_changed
from compaction.catalogue.pricing import price_fingerprint, prices_for
from compaction.catalogue.responses import MESSAGE_KEYS
from compaction.catalogue.scan import ScanJob, SliceResult, scan_all
from compaction.catalogue.store import PRICES, UNLINKED, apply_slices, facts_of, in_parts, link, remove, set_fact
from compaction.catalogue.tables import FOLDER, TRANSCRIPT
from compaction.catalogue.workers import AHEAD, Workers
from compaction.errors import Cancelled
from compaction.progress import Progress

_T = TRANSCRIPT
_BATCH_BYTES = 4 << 20
"""Small files go to a worker together until they are this long: handing over a task costs more than reading one."""

_STORE_SECONDS = 0.1
"""Results wait for each other at most so long: a transaction for each batch would take longer than its rows, and what
waits when the last file is read is stored while the other processors have nothing to do."""

_FACTS_AHEAD = 12
"""Batches handed out for each worker while facts are read: they are read quickly, and what comes of them is small."""

_STORE_TEXT_BYTES = 8 << 20
"""… and text only until there is this much of it: it stays in memory while it waits."""

_NOT_EXAMINED = _T.c.kind.in_(("main", "subagent")) & (_T.c.examined_bytes != _T.c.bytes) & (_T.c.bytes > 0)


@dataclass(slots=True)
class IndexReport:
    """What a refresh did.

    Attributes:
        indexed: files read (new, grown, rewritten); unchanged: files left alone; removed: files that are gone;
        renamed: files found again under another name, not read again.
        examined: files diagnosed.
        bytes_read: bytes read for catalogue and text.
        problems: one sentence for each file or folder that could not be read.
    """

    indexed: int = 0
    unchanged: int = 0
    removed: int = 0
    renamed: int = 0
    examined: int = 0
    bytes_read: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Known:
    """What the catalogue has of a file; as little as deciding needs, since a warm start loads it for every file."""

    id: int
    bytes: int
    mtime_ns: int


def refresh(
    catalogue: Catalogue,
    folders: Sequence[Path],
    progress: Progress | None = None,
    *,
    text: bool = True,
    findings: bool = True,
    processes: int | None = None,
) -> IndexReport:
    """Bring the catalogue up to date with some folders.

    Files that are as the catalogue knows them cost one stat each and nothing is read or written. Three passes: every
    changed file's facts, then its text, then its findings; what is read is committed several times a second, so killing
    it loses only what was read since, stopping it not even that, and the next refresh goes on from there.

    Args:
        folders: roots to look into; single files are allowed.
        text: also bring the full text up to date; findings: also diagnose changed files (reads them whole).
        processes: worker processes, default one a processor.

    Raises:
        Cancelled: `progress.cancel()` was called; what was done stays.
        CatalogueBusy, CatalogueFull, CatalogueDamaged, CatalogueUnreachable.
    """
    progress = progress or Progress()
    report = IndexReport()
    roots = [os.path.abspath(folder) for folder in folders]
    progress.text = "looking for sessions"
    prices = f"{price_fingerprint()} {MESSAGE_KEYS}"
    prices_for(prices)  # here, so that an unreadable price file is told before any work
    plan = _compare(catalogue, roots, prices, report)
    with _old_objects_left_alone(), Workers(processes or os.cpu_count() or 1) as workers:
        changed = bool(plan.changed or plan.gone or plan.renamed)
        if changed:
            folder_ids = _note_folders(catalogue, roots, prices)
            _store_moves(catalogue, plan, report)
            jobs = _first_jobs(catalogue, plan, text, prices)
            _scan_files(catalogue, jobs, folder_ids, workers, progress, report)
        if changed or plan.unlinked:
            _link(catalogue)
        if text and (changed or plan.text_behind):
            _scan_files(catalogue, _text_jobs(catalogue, roots), {}, workers, progress, report)
        if findings and (changed or plan.findings_behind):
            _examine_files(catalogue, roots, workers, progress, report)
        report.problems += [f"{path}: the process that read it was killed twice" for path in workers.deadly]
    progress.text = "done"
    return report


@contextmanager
def _old_objects_left_alone() -> Iterator[None]:
    """What was there before is not looked through by Python's collector while rows by the thousand come and go."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@dataclass(slots=True)
class _Plan:
    """The difference between the folders and the catalogue; paths by root in `root_of`.

    `prices`: what the stored costs were computed with. `unlinked`, `text_behind` and `findings_behind`: an earlier
    refresh was stopped, or left that out.
    """

    changed: list[tuple[FoundFile, _Known | None]] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    renamed: list[tuple[int, str]] = field(default_factory=list)
    root_of: dict[str, str] = field(default_factory=dict)
    prices: str = ""
    unlinked: bool = False
    text_behind: bool = False
    findings_behind: bool = False


def _compare(catalogue: Catalogue, roots: Sequence[str], prices: str, report: IndexReport) -> _Plan:
    plan = _Plan()
    known = _known_files(catalogue, plan)
    if known and plan.prices != prices:
        # Every cost or key is another one now: begin anew, which happens after an update or an edit of the price file.
        _forget_everything(catalogue)
        plan, known = _Plan(), {}
    seen: set[str] = set()
    unlisted: list[str] = []
    for root in roots:
        before = len(report.problems)
        if not os.path.exists(root):
            report.problems.append(f"{root}: there is no such folder")
        for found in find_transcripts(root, report.problems) if os.path.exists(root) else ():
            path = found.path
            if path in seen:
                continue
            seen.add(path)
            have = known.get(path)
            if have is not None and have[1] == found.bytes and have[2] == found.mtime_ns:
                report.unchanged += 1
                continue
            plan.changed.append((found, _Known(*have) if have is not None else None))
            plan.root_of[path] = root
        unlisted += [problem.split(": ", 1)[0] for problem in report.problems[before:]]
    if len(seen) - len(plan.changed) < len(known):
        gone = {
            p: _Known(*k) for p, k in known.items() if p not in seen and _under(p, roots) and not _under(p, unlisted)
        }
        _match_renames(catalogue, plan, gone)
        plan.gone = [have.id for have in gone.values()]
    return plan


def _known_files(catalogue: Catalogue, plan: _Plan) -> dict[str, tuple[int, int, int]]:
    """Row id, size and time of every file we have, by path; plain tuples, since a warm start makes one for each."""
    columns = (_T.c.path, _T.c.id, _T.c.bytes, _T.c.mtime_ns, _T.c.text_bytes < _T.c.indexed_bytes, _NOT_EXAMINED)
    query = sa.select(*columns).where(_T.c.owner == catalogue.owner)
    with catalogue.reading() as connection:
        # The driver's own tuples: a Row object for each of some thousands would take as long as the query.
        rows = connection.execute(query).cursor.fetchall()
        facts = facts_of(connection, catalogue.owner)
    plan.unlinked = UNLINKED in facts
    plan.prices = facts.get(PRICES, "")
    plan.text_behind = any(row[4] for row in rows)
    plan.findings_behind = any(row[5] for row in rows)
    return {row[0]: row[1:4] for row in rows}


def _under(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)


def _match_renames(catalogue: Catalogue, plan: _Plan, gone: dict[str, _Known]) -> None:
    """Find files that only moved: the beginning, and the bytes before the indexed end, are those of a vanished file."""
    new = [found for found, have in plan.changed if have is None]
    if not new or not gone:
        return
    with catalogue.reading() as connection:
        vanished: dict[int, list[tuple[str, _Known, int, Fingerprint]]] = {}
        for part in in_parts([have.id for have in gone.values()]):
            columns = (_T.c.path, _T.c.indexed_bytes, _T.c.prefix_bytes, _T.c.prefix_hash, _T.c.tail_hash)
            for path, end, size, head, tail in connection.execute(sa.select(*columns).where(_T.c.id.in_(part))):
                if end and size:
                    vanished.setdefault(head, []).append((path, gone[path], end, Fingerprint(size, head, tail)))
    moved: dict[str, _Known] = {}
    for found in new:
        match = _same_content(found, vanished)
        if match is not None:
            old_path, old = match
            plan.renamed.append((old.id, found.path))
            moved[found.path] = old
            del gone[old_path]
    still_changed: list[tuple[FoundFile, _Known | None]] = []
    for found, have in plan.changed:
        now = moved.get(found.path, have)
        if now is None or (now.bytes, now.mtime_ns) != (found.bytes, found.mtime_ns):
            still_changed.append((found, now))
    plan.changed = still_changed


def _same_content(
    found: FoundFile, vanished: dict[int, list[tuple[str, _Known, int, Fingerprint]]]
) -> tuple[str, _Known] | None:
    try:
        descriptor = os.open(found.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError:
        return None  # the scan of this file reports why it cannot be read
    try:
        for number, candidates in vanished.items():
            for candidate in list(candidates):
                path, have, end, known = candidate
                if known.prefix_bytes > found.bytes or end > found.bytes:
                    continue
                if what_changed(descriptor, found.bytes + (end == found.bytes), known, end) is Change.GROWN:
                    vanished[number].remove(candidate)
                    return path, have
    finally:
        os.close(descriptor)
    return None


def _note_folders(catalogue: Catalogue, roots: Sequence[str], prices: str) -> dict[str, int]:
    with catalogue.writing() as connection:
        set_fact(connection, catalogue.owner, PRICES, prices)
        query = sa.select(FOLDER.c.path, FOLDER.c.id).where(FOLDER.c.owner == catalogue.owner)
        have: dict[str, int] = {row.path: row.id for row in connection.execute(query)}
        missing = [{"owner": catalogue.owner, "path": root} for root in roots if root not in have]
        if missing:
            connection.execute(sa.insert(FOLDER), missing)
            have = {row.path: row.id for row in connection.execute(query)}
    return have


def _store_moves(catalogue: Catalogue, plan: _Plan, report: IndexReport) -> None:
    if not plan.gone and not plan.renamed:
        return
    with catalogue.writing() as connection:
        remove(connection, plan.gone)
        for number, path in plan.renamed:
            connection.execute(sa.update(_T).where(_T.c.id == number).values(path=path))
    report.removed, report.renamed = len(plan.gone), len(plan.renamed)


def _forget_everything(catalogue: Catalogue) -> None:
    with catalogue.writing() as connection:
        remove(connection, connection.execute(sa.select(_T.c.id).where(_T.c.owner == catalogue.owner)).scalars().all())


def _link(catalogue: Catalogue) -> None:
    with catalogue.reading() as connection:
        wanted = UNLINKED in facts_of(connection, catalogue.owner)
    if wanted:
        with catalogue.writing() as connection:
            link(connection, catalogue.owner)


def _first_jobs(catalogue: Catalogue, plan: _Plan, text: bool, prices: str) -> list[tuple[ScanJob, str]]:
    """A job for each changed file, with its root; grown files begin at their old end."""
    rows: dict[int, Any] = {}
    with catalogue.reading() as connection:
        for part in in_parts([have.id for _, have in plan.changed if have is not None]):
            columns = (_T.c.id, _T.c.indexed_bytes, _T.c.indexed_newlines, _T.c.text_bytes)
            marks = (_T.c.prefix_bytes, _T.c.prefix_hash, _T.c.tail_hash)
            rows.update((r.id, r) for r in connection.execute(sa.select(*columns, *marks).where(_T.c.id.in_(part))))
    jobs: list[tuple[ScanJob, str]] = []
    for found, have in plan.changed:
        root = plan.root_of[found.path]
        if have is None:
            jobs.append((ScanJob(found.path, 0, found.bytes, found.mtime_ns, 0, 0, None, True, False, prices), root))
            continue
        row = rows[have.id]
        known = Fingerprint(row.prefix_bytes, row.prefix_hash, row.tail_hash)
        # A small growth is searched at once; where the text lags behind anyway, the text's own pass takes it.
        together = text and row.text_bytes == row.indexed_bytes and row.indexed_bytes > 0
        start, lines = row.indexed_bytes, row.indexed_newlines
        stat = (found.bytes, found.mtime_ns)
        jobs.append((ScanJob(found.path, have.id, *stat, start, lines, known, True, together, prices), root))
    return jobs


def _text_jobs(catalogue: Catalogue, roots: Sequence[str]) -> list[tuple[ScanJob, str]]:
    columns = (_T.c.path, _T.c.id, _T.c.indexed_bytes, _T.c.mtime_ns, _T.c.text_bytes, _T.c.text_newlines)
    query = sa.select(*columns).where(_T.c.owner == catalogue.owner, _T.c.text_bytes < _T.c.indexed_bytes)
    with catalogue.reading() as connection:
        return [
            (ScanJob(path, number, end, mtime_ns, start, lines, None, False, True), "")
            for path, number, end, mtime_ns, start, lines in connection.execute(query)
            if _under(path, roots)
        ]


def _scan_files(
    catalogue: Catalogue,
    jobs: list[tuple[ScanJob, str]],
    folder_ids: dict[str, int],
    workers: Workers,
    progress: Progress,
    report: IndexReport,
) -> None:
    """Read files slice by slice in worker processes and store what came of it."""
    if not jobs:
        return
    folder_of = {job.path: folder_ids[root] for job, root in jobs if root}
    facts = jobs[0][0].summary
    if facts:
        report.indexed += len(jobs)
    progress.done, progress.unit = 0, "bytes"
    progress.total = sum(job.bytes - job.start for job, _ in jobs)
    progress.text = "reading sessions" if facts else "reading text"

    waiting = _Waiting(catalogue, folder_of)

    def store(results: list[SliceResult]) -> list[list[ScanJob]]:
        for result in results:
            report.bytes_read += result.bytes_read
            progress.done += result.bytes_read
            if result.problem:
                report.problems.append(f"{result.job.path}: {result.problem}")
        return waiting.add(results)

    batches = _batches(sorted((job for job, _ in jobs), key=lambda job: job.work_bytes, reverse=True))
    try:
        workers.run(scan_all, batches, store, progress, _FACTS_AHEAD if facts else AHEAD)
    except Cancelled:
        waiting.store()
        raise
    waiting.store()


@dataclass(slots=True)
class _Waiting:
    """Results on their way into the catalogue, several batches in one transaction."""

    catalogue: Catalogue
    folder_of: dict[str, int]
    results: list[SliceResult] = field(default_factory=list)
    text_bytes: int = 0
    since: float = 0.0

    def add(self, results: list[SliceResult]) -> list[list[ScanJob]]:
        """Take results in; returns the slices to read next, of the files that go on."""
        if not self.results:
            self.since = time.monotonic()
        self.results += results
        self.text_bytes += sum(r.bytes_read for r in results if r.passages is not None)
        # A file's next slice is read once the one before is stored, so that its row stands where the next one begins.
        more = any(not r.finished for r in results)
        if more or self.text_bytes >= _STORE_TEXT_BYTES or time.monotonic() - self.since >= _STORE_SECONDS:
            return self.store()
        return []

    def store(self) -> list[list[ScanJob]]:
        """Put everything into the catalogue, in one transaction."""
        results, self.results, self.text_bytes = self.results, [], 0
        if not results:
            return []
        with self.catalogue.writing() as connection:
            stored = apply_slices(connection, self.catalogue.owner, self.folder_of, results)
        return [
            [_next_slice(r, stored[r.job.path])]
            for r in results
            if not r.finished and not r.problem and r.job.path in stored
        ]


def _next_slice(result: SliceResult, number: int) -> ScanJob:
    return replace(result.job, transcript_id=number, start=result.end, newlines=result.newlines, known=None)


def _batches(jobs: Iterable[ScanJob]) -> Iterator[list[ScanJob]]:
    batch: list[ScanJob] = []
    size = 0
    for job in jobs:
        batch.append(job)
        size += job.work_bytes + 4096
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _examine_files(
    catalogue: Catalogue, roots: Sequence[str], workers: Workers, progress: Progress, report: IndexReport
) -> None:
    query = sa.select(_T.c.id, _T.c.path, _T.c.bytes).where(_T.c.owner == catalogue.owner, _NOT_EXAMINED)
    with catalogue.reading() as connection:
        jobs = [ExamineJob(r.id, r.path, r.bytes) for r in connection.execute(query) if _under(r.path, roots)]
    if not jobs:
        return
    progress.done, progress.total, progress.unit = 0, sum(job.bytes for job in jobs), "bytes"
    progress.text = "diagnosing sessions"

    def store(results: list[Examination]) -> Iterator[list[ExamineJob]]:
        with catalogue.writing() as connection:
            apply_examinations(connection, results)
        report.examined += len(results)
        progress.done += sum(result.job.bytes for result in results)
        return iter(())

    jobs.sort(key=lambda job: -job.bytes)
    batches = _batches_of_examinations(jobs)
    workers.run(examine_all, batches, store, progress)


def _batches_of_examinations(jobs: Iterable[ExamineJob]) -> Iterator[list[ExamineJob]]:
    batch: list[ExamineJob] = []
    size = 0
    for job in jobs:
        batch.append(job)
        size += job.bytes
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
