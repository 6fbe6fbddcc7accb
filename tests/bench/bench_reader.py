"""Opening a big session without a window: first records, everything, structure, one more record, memory."""

from __future__ import annotations

import time
from typing import Any

from tests.bench.baseline import decode_every_line, warm
from tests.bench.table import Table


def open_whole(path: str) -> dict[str, Any]:
    """Open a session step by step as the window does; seconds to the first records and to all of them."""
    from compaction.conversation.session import open_session_snapshots

    before = time.perf_counter()
    first, records = 0.0, 0
    for session in open_session_snapshots(path):
        records = len(session.conversation.transcript)
        first = first or time.perf_counter() - before
    return {"first": first, "all": time.perf_counter() - before, "records": records}


def append_one(path: str) -> float:
    """Seconds until one appended record is in the transcript and its structure (the file grows by one line)."""
    from compaction.conversation import build_conversation
    from compaction.transcript import open_transcript

    transcript = open_transcript(path)
    build_conversation(transcript)
    with open(path, "rb+") as file:
        line = transcript.record_bytes(len(transcript) - 1) + b"\n"
        end = file.seek(0, 2)
        file.write(line)
        file.flush()
        before = time.perf_counter()
        transcript.append_new()
        seconds = time.perf_counter() - before
        file.truncate(end)
    return seconds


def run(table: Table) -> None:
    """One million records (issue "Open a session", section "Must hold")."""
    path = table.session("million", seed=1, records=max(1000, round(1_000_000 * table.scale)))
    size = path.stat().st_size / 1e6
    table.heading(f"Reader: {path.name}, {size:,.0f} MB")
    warm(str(path))
    decoded = table.child(decode_every_line, path, best_of=2)
    opened = table.child(open_whole, path, best_of=2)
    table.fact("records", opened.result["records"], "")
    table.compare("first records", opened.result["first"], decoded.seconds, 1.5)
    table.compare("all records and their structure", opened.result["all"], decoded.seconds)
    table.within("memory without mapped pages", opened.own_peak_megabytes, 0.3 * size + 150, "MB")
    table.fact("memory with mapped pages", opened.peak_megabytes, "MB")
    appended = table.child(append_one, path)
    table.fact("one appended record read", appended.result * 1000, "ms")
