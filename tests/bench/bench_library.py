"""The library over the files of a real home folder's size: cold, warm, one file changed, search, memory."""

from __future__ import annotations

import multiprocessing
import os
import random
import re
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.table import Table

FILES = 3_142
QUANTILES = ((0.0, 4e3), (0.5, 105e3), (0.9, 654e3), (0.99, 5.4e6), (1.0, 7.6e6))
"""Share of the files and size in bytes: p50 105 KB, p90 654 KB, p99 5.4 MB; one more of `BIGGEST` bytes."""
BIGGEST = 87_000_000
PROCESSES = os.cpu_count() or 1


def make_library(table: Table) -> Path:
    """The generated files, made once; each is a beginning of one long session with ids of its own."""
    count = max(20, round(FILES * table.scale))
    folder = table.folder / f"library-{count}"
    if (folder / "complete").exists():
        return folder
    biggest = round(BIGGEST * table.scale)
    template = table.session("library-template", seed=3, records=round(90_000 * max(table.scale, 0.1))).read_bytes()
    session_id = re.search(rb'"sessionId":"([0-9a-f-]{36})"', template)
    first_uuid = re.search(rb'"uuid":"([0-9a-f-]{36})"', template)
    assert session_id
    assert first_uuid
    draw = random.Random(1)
    for number in range(count):
        size = biggest if number == count - 1 else _size((number + 0.5) / count)
        data = template[: template.rfind(b"\n", 0, size) + 1] or template[: template.find(b"\n", size) + 1]
        for old in (session_id.group(1), first_uuid.group(1)):
            data = data.replace(old, f"{draw.getrandbits(32):08x}".encode() + old[8:])
        data = data.replace(b'"id":"msg_01', b'"id":"msg_%02d' % (number % 100)).replace(
            b'"req_011', b'"req_%03d' % (number % 1000)
        )
        project = folder / "projects" / f"-project-{number % 40}"
        project.mkdir(parents=True, exist_ok=True)
        (project / f"s{number}.jsonl").write_bytes(data)
    (folder / "complete").write_bytes(b"")
    return folder


def _size(share: float) -> int:
    for (low, small), (high, large) in pairwise(QUANTILES):
        if share <= high:
            return int(small * (large / small) ** ((share - low) / (high - low)))
    return int(QUANTILES[-1][1])


def _files(folder: str) -> list[str]:
    return [str(p) for p in Path(folder, "projects").rglob("*.jsonl")]


def decode_lines(paths: list[str]) -> int:
    """Decode every line of some files with orjson; the lines."""
    import orjson

    lines = 0
    for path in paths:
        with open(path, "rb") as file:
            for line in file:
                orjson.loads(line)
                lines += 1
    return lines


def decode_all(folder: str) -> int:
    """Every line of the library, on as many processes as the indexer has."""
    paths = sorted(_files(folder), key=os.path.getsize, reverse=True)
    parts = [paths[n :: PROCESSES * 8] for n in range(PROCESSES * 8)]
    with ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("spawn")) as pool:
        return sum(pool.map(decode_lines, parts))


def stat_all(folder: str) -> float:
    """Median seconds of one stat per file."""
    paths = _files(folder)
    seconds = []
    for _ in range(5):
        before = time.perf_counter()
        for path in paths:
            os.stat(path)
        seconds.append(time.perf_counter() - before)
    return median(seconds)


class Memory(threading.Thread):
    """Samples the proportional memory of this process and its children, MB."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0.0
        self._stop_wanted = threading.Event()

    def run(self) -> None:
        while not self._stop_wanted.wait(0.1):
            pids = [os.getpid(), *(p.pid for p in multiprocessing.active_children() if p.pid)]
            self.peak = max(self.peak, sum(map(_proportional, pids)))

    def finish(self) -> float:
        """The peak so far; sampling ends."""
        self._stop_wanted.set()
        self.join()
        return self.peak


def _proportional(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0  # the worker has just ended
    found = re.search(r"^Pss:\s+(\d+)", text, re.MULTILINE)
    return int(found.group(1)) / 1024 if found else 0.0


def index_new(folder: str, data: str) -> float:
    """Seconds of the first refresh with an empty data folder, every session's facts and nothing else."""
    from compaction.catalogue.database import open_catalogue
    from compaction.catalogue.indexer import refresh

    _empty(data)
    catalogue = open_catalogue(folder=Path(data))
    before = time.perf_counter()
    refresh(catalogue, [Path(folder, "projects")], text=False, findings=False)
    seconds = time.perf_counter() - before
    catalogue.close()
    return seconds


def _empty(folder: str) -> None:
    for file in Path(folder).glob("*"):
        file.unlink()


def index(folder: str, data: str, text: bool, findings: bool) -> dict[str, Any]:
    """One refresh as `compactoscope index` does it: seconds, peak memory of all its processes, what was done.

    Reading the memory ten times a second takes some time of its own.
    """
    from compaction.catalogue.database import open_catalogue
    from compaction.catalogue.indexer import refresh

    memory = Memory()
    memory.start()
    catalogue = open_catalogue(folder=Path(data))
    before = time.perf_counter()
    report = refresh(catalogue, [Path(folder, "projects")], text=text, findings=findings)
    seconds = time.perf_counter() - before
    catalogue.close()
    return {"seconds": seconds, "megabytes": memory.finish(), "indexed": report.indexed, "unchanged": report.unchanged,
            "examined": report.examined, "bytes_read": report.bytes_read}  # fmt: skip


def warm(folder: str, data: str) -> float:
    """Median seconds of a refresh that finds nothing changed."""
    from compaction.catalogue.database import open_catalogue
    from compaction.catalogue.indexer import refresh

    catalogue = open_catalogue(folder=Path(data))
    seconds = []
    for _ in range(7):
        before = time.perf_counter()
        report = refresh(catalogue, [Path(folder, "projects")], findings=False)
        seconds.append(time.perf_counter() - before)
        assert report.indexed == 0
    catalogue.close()
    return median(seconds)


def change_one(folder: str, data: str) -> dict[str, float]:
    """Seconds of a refresh after one line was appended to one file, and the bytes read for it."""
    from compaction.catalogue.database import open_catalogue
    from compaction.catalogue.indexer import refresh

    path = sorted(_files(folder))[0]
    catalogue = open_catalogue(folder=Path(data))
    original = Path(path).read_bytes()
    line = original[original.rfind(b"\n", 0, -1) + 1 :]
    seconds, read = [], []
    try:
        for _ in range(5):
            with open(path, "ab") as file:
                file.write(line)
            before = time.perf_counter()
            report = refresh(catalogue, [Path(folder, "projects")], findings=False)
            seconds.append(time.perf_counter() - before)
            read.append(report.bytes_read)
    finally:
        Path(path).write_bytes(original)
        refresh(catalogue, [Path(folder, "projects")], findings=False)
        catalogue.close()
    return {"seconds": median(seconds), "bytes": max(read), "line": len(line)}


def search_some(data: str) -> dict[str, float]:
    """Median and worst seconds of searches for words that are everywhere, somewhere and nowhere."""
    from compaction.catalogue.database import open_catalogue
    from compaction.catalogue.search import search

    catalogue = open_catalogue(folder=Path(data))
    seconds = []
    for query in ("harbour", "tide gauge", '"tide gauge"', "margin number", "nowhereatall", "tid* -gauge"):
        before = time.perf_counter()
        search(catalogue, query, limit=50)
        seconds.append(time.perf_counter() - before)
    catalogue.close()
    return {"median": median(seconds), "worst": max(seconds)}


def run(table: Table) -> None:
    """Issue "All sessions at hand, and live ones followed", section "Must hold"."""
    folder = make_library(table)
    paths = _files(str(folder))
    size = sum(map(os.path.getsize, paths))
    table.heading(f"Library: {len(paths):,} files, {size / 2**20:,.0f} MiB, {PROCESSES} processes")
    data = folder / "data"
    decode_lines(paths)  # the page cache is warm for both sides
    decoded = table.child(decode_all, folder, best_of=2)
    cold = min(table.child(index_new, folder, data).result for _ in range(2))
    table.compare("cold catalogue, every session's facts", cold, decoded.seconds, 2.0)
    _empty(str(data))
    facts = table.child(index, folder, data, False, False)
    table.within("memory of the indexer and its workers", facts.result["megabytes"], 300, "MB")
    text = table.child(index, folder, data, True, False)
    table.fact("then the full text", text.result["seconds"], "s")
    table.within("memory with the full text", text.result["megabytes"], 300, "MB")
    findings = table.child(index, folder, data, True, True)
    table.fact("then the findings", findings.result["seconds"], "s")
    table.within("memory with the findings", findings.result["megabytes"], 300, "MB")
    table.fact("catalogue on disk", sum(f.stat().st_size for f in data.iterdir()) / 1e6, "MB")
    statted = table.child(stat_all, folder)
    table.compare("warm start", table.child(warm, folder, data).result, statted.result, 3.0)
    changed = table.child(change_one, folder, data)
    table.fact("one file grown by a line", changed.result["seconds"] * 1000, "ms")
    table.compare("bytes read for it (catalogue and text)", changed.result["bytes"], changed.result["line"], 1.0, "B")
    found = table.child(search_some, data)
    table.fact("search, median", found.result["median"] * 1000, "ms")
    table.fact("search, worst", found.result["worst"] * 1000, "ms")
