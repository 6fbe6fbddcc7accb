from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from compaction.catalogue.masking import mask_secrets
from compaction.cli.output import print_line
from compaction.conversation.usage import context_of_iterations
from compaction.errors import UsageError
from compaction.transcript import BlockType, Flag, RecordKind, Transcript, open_transcript
from compaction.transcript.following import Follower, Happening, What

HELP = "print one line for each thing that happens in a session while it is written"
_POLL_SECONDS = 0.25
_TEXT_CHARACTERS = 160


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """FILE, how much of what is there already, when to stop."""
    parser.add_argument("file", metavar="FILE", help="a session's transcript")
    parser.add_argument("-n", "--last", type=int, default=10, metavar="N", help="begin N records before the end")
    parser.add_argument("--idle", type=float, default=0.0, metavar="SECONDS", help="stop after this long without news")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


@dataclass(frozen=True, slots=True)
class Event:
    """One line of output.

    Attributes:
        event: record, or what happened to the file (see `following.What`).
        time: ISO 8601 as recorded, "" unknown; line: 1-based, 0 for an event of the file.
        type: prompt, answer, thinking, tool_use, tool_result, or the record's type.
        context: tokens of the response's context as recorded, None where the record has none.
        running: a tool call whose result is not there yet.
    """

    event: str
    time: str
    line: int
    type: str
    tool: str
    text: str
    agent_id: str
    context: int | None
    running: bool


def run(args: argparse.Namespace) -> int:
    """Follow until the reader stops us (or --idle); the file may grow, shrink, be replaced, renamed or deleted."""
    if args.file == "-":
        raise UsageError("standard input cannot be followed", "name a file")
    main = Follower(open_transcript(args.file))
    followers: list[tuple[Follower, str, list[int]]] = [(main, "", [max(0, len(main.transcript) - max(0, args.last))])]
    for path in main.agent_files:
        agent = Follower(open_transcript(path))
        followers.append((agent, path.stem.removeprefix("agent-"), [len(agent.transcript)]))
    _print(_new_records(main.transcript, followers[0][2], ""), args.json)
    quiet_since = time.monotonic()
    while not args.idle or time.monotonic() - quiet_since < args.idle:
        news = [event for follower in list(followers) for event in _poll(follower, followers)]
        if news:
            quiet_since = time.monotonic()
        _print(news, args.json)
        time.sleep(_POLL_SECONDS)
    return 0


def _poll(followed: tuple[Follower, str, list[int]], followers: list[tuple[Follower, str, list[int]]]) -> list[Event]:
    follower, agent, printed = followed
    step = follower.poll()
    events: list[Event] = []
    for happening in step.happenings:
        if happening.what is What.APPENDED:
            continue
        if happening.what in (What.TRUNCATED, What.REPLACED, What.RETURNED):
            printed[0] = len(step.transcript)
        if happening.what is What.SUBAGENT:
            if agent:
                continue  # the main session's follower tells it
            new = Follower(open_transcript(happening.path))
            followers.append((new, happening.path.stem.removeprefix("agent-"), [0]))
        events.append(_event_of_file(happening, agent))
    events += _new_records(step.transcript, printed, agent)
    return events


def _event_of_file(happening: Happening, agent: str) -> Event:
    text = f"{happening.path}{': ' if happening.reason else ''}{happening.reason}"
    return Event(happening.what.value, "", 0, "", "", text, agent, None, False)


def _new_records(t: Transcript, printed: list[int], agent: str) -> list[Event]:
    """The events of the records not told yet; a last line that is still being written waits."""
    events: list[Event] = []
    answered = set(t.block_key[t.block_type == BlockType.TOOL_RESULT].tolist()) if printed[0] < len(t) else set()
    while printed[0] < len(t) and int(t.offset[printed[0]]) < t.whole_lines_end:
        events += _events_of_record(t, printed[0], agent, answered)
        printed[0] += 1
    return events


_NAMES = {BlockType.THINKING: "thinking", BlockType.TOOL_USE: "tool_use", BlockType.TOOL_RESULT: "tool_result"}


def _events_of_record(t: Transcript, record: int, agent: str, answered: set[int]) -> Iterator[Event]:
    stamp = int(t.timestamp_ms[record])
    moment = datetime.fromtimestamp(stamp / 1000, UTC).isoformat(timespec="seconds") if stamp else ""
    agent = agent or t.agent_id(record)
    line = int(t.line[record])
    if t.kind[record] not in (RecordKind.USER, RecordKind.ASSISTANT):
        yield Event("record", moment, line, t.type_name(record), "", _clean(t.preview(record)), agent, None, False)
        return
    context = _context(t, record)
    spoken = "answer" if t.kind[record] == RecordKind.ASSISTANT else "prompt"
    if t.flags[record] & Flag.COMPACT_SUMMARY:
        spoken = "summary"
    for block in t.blocks_of(record):
        kind = BlockType(int(t.block_type[block]))
        name = _NAMES.get(kind, spoken if kind is BlockType.TEXT else kind.name.lower())
        running = kind is BlockType.TOOL_USE and int(t.block_key[block]) not in answered
        text = _clean(t.block_preview(block, _TEXT_CHARACTERS))
        yield Event("record", moment, line, name, t.block_tool(block), text, agent, context, running)


def _context(t: Transcript, record: int) -> int | None:
    usage = t.usage(record)
    if usage is None:
        return None
    whole = usage.input_tokens + usage.cache_read + usage.cache_creation
    return context_of_iterations(usage.iterations) or whole or None


def _clean(text: str) -> str:
    return mask_secrets(text)[:_TEXT_CHARACTERS]


def _print(events: list[Event], as_json: bool) -> None:
    for event in events:
        if as_json:
            # ASCII, so that a lone surrogate of the session cannot stop the output.
            sys.stdout.write(json.dumps(asdict(event)) + "\n")
        else:
            print_line(_as_text(event))
    if events:
        sys.stdout.flush()


def _as_text(event: Event) -> str:
    if event.event != "record":
        return f"-- {event.event}  {event.text}"
    parts = [event.time[11:19] or "        ", f"{event.line:>6}", event.type]
    if event.agent_id:
        parts.insert(2, f"[{event.agent_id[:8]}]")
    if event.text:
        parts.append(event.text)
    if event.running:
        parts.append("(running)")
    if event.context is not None:
        parts.append(f"(context {event.context:,})")
    return "  ".join(parts)
