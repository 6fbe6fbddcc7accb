from __future__ import annotations

import argparse
import sys
import time

from compaction.cli.output import print_json, print_line, warn
from compaction.cli.summariser_options import add_summariser, summariser_from
from compaction.conversation import open_session
from compaction.strategies.inputs import strategy_input
from compaction.summaries.session_memory import SessionMemory, extract_memory, find_memory, session_id_of

HELP = "the session's memory: show it, or bring it up to date in our own data folder (--update)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `compactoscope memory`."""
    parser.add_argument("file", help="a session transcript")
    parser.add_argument("--update", action="store_true", help="extract what is new since the last time and keep it")
    add_summariser(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Show the memory; exit code 1 when there is none and no update was asked for."""
    conversation = open_session(args.file).conversation
    if args.update:
        given = strategy_input(conversation, now_ms=time.time_ns() // 1_000_000, summariser=summariser_from(args))
        memory: SessionMemory | None = extract_memory(given.view, given.summariser)
    else:
        memory = find_memory(conversation)
    if args.json:
        print_json(
            {
                "session_id": session_id_of(conversation),
                "memory": memory.text if memory is not None else None,
                "file": str(memory.path) if memory is not None else None,
                "last_summarised_uuid": memory.last_summarised_uuid if memory is not None else None,
                "source": memory.source if memory is not None else None,
                "empty": memory is None or memory.is_empty_template,
            }
        )
    elif memory is not None:
        for line in memory.text.splitlines():
            print_line(line)
        warn(f"{memory.source}: {memory.path}")
    if memory is None:
        warn("compactoscope: this session has no memory yet; --update makes one")
        return 1
    sys.stdout.flush()
    return 0
