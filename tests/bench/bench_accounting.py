"""Usage and cost over much data (issue "Accounting", section "Must hold")."""

from __future__ import annotations

import time
from pathlib import Path

from tests.bench.baseline import decode_every_line, warm
from tests.bench.table import Table

FILES = 35
FILE_RECORDS = 4_000
RESULT_CHARACTERS = 3_000
"""A record of the real files is 3.7 KB at the mean (transcript-format.md: 864 MB in some 230,000 records)."""


def decode_folder(folder: str) -> int:
    """Decode every line of every session below a folder; the number of lines."""
    return sum(decode_every_line(str(path)) for path in sorted(Path(folder).rglob("*.jsonl")))


def cost_of_folder(folder: str) -> float:
    """Seconds to count and price every session below a folder, each response once (imports not counted)."""
    from compaction.accounting.cost import cost_state
    from compaction.cli.cost import price_book, read_usage

    before = time.perf_counter()
    cost_state(read_usage([folder]).settle(), price_book().set(""))
    return time.perf_counter() - before


def run(table: Table) -> None:
    """350 MB of sessions cost no more than twice decoding them."""
    count = max(1, round(FILES * table.scale))
    paths = [_session(table, number) for number in range(count)]
    folder = table.folder / f"accounting-{count}"
    folder.mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(paths):
        link = folder / f"{number:03}.jsonl"
        if not link.exists():
            link.hardlink_to(path)
        warm(str(path))
    size = sum(path.stat().st_size for path in paths) / 1e6
    table.heading(f"Accounting: {count} sessions, {size:,.0f} MB")
    decoded = table.child(decode_folder, folder, best_of=2)
    counted = table.child(cost_of_folder, folder, best_of=2)
    table.compare("usage and cost of all", counted.result, decoded.seconds, 2.0)
    table.fact("memory without mapped pages", counted.own_peak_megabytes, "MB")


def _session(table: Table, number: int) -> Path:
    version = ("1.0.128", "2.0.76", "2.1.12", "2.1.92", "2.1.217")[number % 5]
    return table.session(
        "cost", seed=number, version=version, records=FILE_RECORDS, result_characters=RESULT_CHARACTERS
    )
