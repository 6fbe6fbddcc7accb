"""Preview of every strategy on a long session (issue "The workbench", section "Must hold"): 150 ms to a new result."""

from __future__ import annotations

import argparse
import time
from statistics import median

from tests.bench.baseline import decode_every_line
from tests.bench.table import Table

MESSAGES = 5_000
RESULT_CHARACTERS = 60
"""Small results, so that so many messages fit into one window without a compaction."""


def previews(path: str) -> dict[str, float]:
    """Milliseconds to prepare a session once ("") and to preview each strategy on it, median of three."""
    from compaction.cli.strategy_options import add_situation, settings_for, situation
    from compaction.conversation import open_session
    from compaction.strategies.registry import STRATEGIES, preview

    parser = argparse.ArgumentParser()
    add_situation(parser)
    conversation = open_session(path).conversation
    before = time.perf_counter()
    _, given = situation(parser.parse_args([]), conversation)
    milliseconds = {"": (time.perf_counter() - before) * 1000}
    for name, strategy in STRATEGIES.items():
        settings = settings_for(strategy, [], named=True)
        times = []
        for _ in range(3):
            before = time.perf_counter()
            preview(strategy, given, settings)
            times.append((time.perf_counter() - before) * 1000)
        milliseconds[name] = median(times)
    return milliseconds


def run(table: Table) -> None:
    """Every strategy of the registry on one session of 5,000 messages that was never compacted."""
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
    table.heading(f"Preview: {records:,} messages, {path.stat().st_size / 1e6:.1f} MB")
    table.fact("decoding every line with orjson", table.child(decode_every_line, path).seconds * 1000, "ms")
    milliseconds = table.child(previews, path).result
    table.fact("the session made ready, once", milliseconds.pop(""), "ms")
    for name, value in milliseconds.items():
        table.within(f"preview of {name}", value, 150, "ms")
