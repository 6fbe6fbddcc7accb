"""Opening a big session in the real window (issue "Open a session", section "Must hold")."""

from __future__ import annotations

import time

from tests.bench import window_run
from tests.bench.baseline import decode_every_line, warm
from tests.bench.table import Table


def run(table: Table) -> None:
    """One million records: first rows, memory, scrolling."""
    path = table.session("million", seed=1, records=max(1000, round(1_000_000 * table.scale)))
    size = path.stat().st_size / 1e6
    table.heading(f"Window: {path.name}, {size:,.0f} MB")
    warm(str(path))
    decoded = table.child(decode_every_line, path, best_of=2)
    empty = min(table.child(window_run.start_up, time.time()).result for _ in range(2))
    opened = table.child(window_run.open_file, path, time.time())
    seen = opened.result
    table.fact("start-up to the painted start page", empty, "s")
    table.fact("rows shown", seen["rows"], "")
    table.compare("first rows painted, less start-up", seen["first_rows"] - empty, decoded.seconds, 1.5)
    table.compare("all rows, less start-up", seen["complete"] - empty, decoded.seconds)
    table.within("memory of the window without mapped pages", opened.own_peak_megabytes, 0.3 * size + 150, "MB")
    table.fact("memory with mapped pages", opened.peak_megabytes, "MB")
    table.within("scrolling by a page, median of 200", seen["page_ms"], 16, "ms")
    table.within("scrolling by a page, worst of 200", seen["worst_page_ms"], 16, "ms")
    table.fact("longest gap of the GUI thread while loading", seen["longest_gap_ms"], "ms")
