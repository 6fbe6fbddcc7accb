"""What `test_killed` kills: a process that applies and exports one session over and over.

`python -m tests.unit.export.killed_child SESSION FOLDER` reads lines "write" or "cli" from standard input. For each it
starts a copy of itself that works until it is killed, prints that copy's id, and waits for its end.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from compaction.cli.main import main as command
from compaction.conversation import open_session
from compaction.export.formats import FORMATS, ExportOptions
from compaction.export.transcripts import write_plan
from compaction.strategies.inputs import strategy_input
from compaction.strategies.registry import STRATEGIES, preview

NAMES = ("microcompact-time", "auto-compact", "context-collapse")
LATER_MS = 2 * 3_600_000
"""After the newest record, so that the time-based MicroCompact applies."""


def main() -> None:
    """Serve the requests; see the module's text."""
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    session = open_session(source)
    transcript = session.transcript
    given = strategy_input(session.conversation, now_ms=int(transcript.timestamp_ms.max()) + LATER_MS)
    plans = [preview(STRATEGIES[name], given, STRATEGIES[name].settings_type()) for name in NAMES]
    plans = [plan for plan in plans if plan.applies]
    for number, line in enumerate(sys.stdin):
        process = os.fork()
        if process:
            print(process, flush=True)
            os.waitpid(process, 0)
            print("ended", flush=True)
            continue
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        for turn in range(1_000_000):
            stem = f"{number}-{turn}"
            if line.strip() == "cli":
                output = str(folder / f"{stem}-compact.jsonl")
                command(
                    ["compact", str(source), "--strategy", "microcompact-time", "--set", "enabled=true", "-o", output]
                )
                command(["export", str(source), "--format", "html", "-o", str(folder / f"{stem}.html")])
                continue
            for plan in plans:
                write_plan(folder / f"{stem}-{plan.strategy}.jsonl", transcript, plan, source=source)
            for name, form in FORMATS.items():
                form.write(session, folder / f"{stem}-{name}{form.suffix}", ExportOptions())
        os._exit(0)


if __name__ == "__main__":
    main()
