"""A setting changed in Compare (issue "The workbench", "Must hold"): 150 ms to a result, the GUI thread free."""

from __future__ import annotations

from tests.bench import workbench_run
from tests.bench.baseline import decode_every_line
from tests.bench.bench_preview import MESSAGES, RESULT_CHARACTERS
from tests.bench.table import Table


def run(table: Table) -> None:
    """The comparison of a session of 5,000 messages in the real window: a spin box is stepped, the result awaited."""
    records = max(200, round(MESSAGES * table.scale))
    path = table.session(
        "long",
        seed=3,
        records=records,
        compactions=0,
        result_characters=RESULT_CHARACTERS,
        parallel=0.1,
        images=0.0,
        subagents=0,
        persisted=0,
    )
    table.heading(f"Workbench: {records:,} messages, {path.stat().st_size / 1e6:.1f} MB")
    table.fact("decoding every line with orjson", table.child(decode_every_line, path).seconds * 1000, "ms")
    seen = table.child(workbench_run.change_settings, path).result
    table.fact("first comparison of every strategy", seen["first_comparison_ms"], "ms")
    table.within("changed setting to result, median of 15", seen["result_ms"], 150, "ms")
    table.fact("changed setting to result, worst of 15", seen["worst_result_ms"], "ms")
    table.fact("of it waited for further key presses", seen["debounce_ms"], "ms")
    table.within("GUI thread's own work at once, worst", seen["busy_ms"], 16, "ms")
    table.within("heartbeat of 1 ms late while previewing, 99 % of beats", seen["late_99_ms"], 16, "ms")
    table.fact("heartbeat late while previewing, worst", seen["late_worst_ms"], "ms")
    table.fact("heartbeat late in the idle window, worst", seen["idle_worst_ms"], "ms")
