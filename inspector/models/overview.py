"""A session on one page: its figures and the short tables of the overview. No Qt; made in a worker thread."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from compaction.conversation import Conversation, Session
from compaction.progress import Progress
from compaction.transcript import BlockFlag, BlockType, Flag, RecordKind
from compaction.transcript.preview import preview_of
from inspector.models.outline_structure import Mask, OutlineStructure
from inspector.theme import Role

MOST_LINES = 8
_BEGINNING = 300
"""Characters of a record that are at hand: the view shows what it has room for."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure with its name; `role` is the text colour of the figure."""

    name: str
    value: str
    tip: str = ""
    role: Role = "text"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table: its cells, the record it leads to (−1 none), and its part of the largest line (0 to 1)."""

    cells: tuple[str, ...]
    record: int = -1
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class Table:
    """A short table; `more` lines were left out. `empty` is what it says without lines."""

    title: str
    icon: str
    headers: tuple[str, ...]
    lines: tuple[Line, ...]
    empty: str = ""
    more: int = 0


@dataclass(frozen=True, slots=True)
class Overview:
    """What the page shows: the row of figures, the facts of the file, and the tables."""

    figures: tuple[Fact, ...]
    file: tuple[Fact, ...]
    tables: tuple[Table, ...]


def overview_of(session: Session, progress: Progress | None = None) -> Overview:
    """Everything the overview says of a session, from the columns; no payload is decoded but a few previews."""
    structure = OutlineStructure(session.conversation)
    if progress is not None:
        progress.check()
    structure.prepare()
    tables = (
        _worth(structure),
        _compactions(session.conversation),
        _tools(structure),
        _largest(structure),
        _types(session.conversation),
    )
    return Overview(_figures(session, structure), _file(session), tables)


def _figures(session: Session, structure: OutlineStructure) -> tuple[Fact, ...]:
    c = session.conversation
    t = c.transcript
    calls = int((t.block_type == BlockType.TOOL_USE).sum())
    orphans = len(c.uses_without_result) + len(c.results_without_use)
    prompts = int(((t.kind == RecordKind.USER) & ((t.flags & (Flag.TOOL_RESULT | Flag.META)) == 0) & c.main).sum())
    return (
        Fact("Records", f"{len(t):,}", f"on {t.line_count:,} lines"),
        Fact("Prompts", f"{prompts:,}", "user records that are neither tool results nor meta"),
        Fact("API rounds", f"{c.round_count:,}", f"{c.response_count:,} responses with those of sidechains"),
        Fact("Tool calls", f"{calls:,}", f"{orphans:,} orphans" if orphans else "each has its result"),
        _compacted(c),
        Fact(
            "Subagents", f"{len(session.subagents) + len(c.thread_roots) - 1:,}", "files beside it and sidechains in it"
        ),
        Fact("Damaged lines", f"{len(t.damage):,}", "", "error" if t.damage else "text"),
        Fact("Duration", _duration(c), "from the first record with a time to the last"),
    )


def _compacted(conversation: Conversation) -> Fact:
    """How many compactions there were, and of which kinds: not each of them is recorded, or has a summary."""
    kinds = [compaction.kind for compaction in conversation.compactions]
    silent = kinds.count("silent")
    counts = (
        (sum(kind not in ("micro", "silent") for kind in kinds), "with a summary"),
        (kinds.count("micro"), "that only cleared results"),
        (silent, "without a record, seen by the fall of the context"),
    )
    words = ", ".join(f"{count:,} {kind}" for count, kind in counts if count)
    return Fact("Compactions" + (f", {silent:,} of them silent" if silent else ""), f"{len(kinds):,}", words)


def _file(session: Session) -> tuple[Fact, ...]:
    t = session.transcript
    path = str(t.path) if t.path is not None else t.name
    return (
        Fact("File", path),
        Fact("Size", f"{t.size:,} bytes", f"format {t.format_name}"),
        Fact("Models", ", ".join(_names(t.model_number, t.model_names)) or "none recorded"),
        Fact("Client versions", ", ".join(_names(t.version_number, t.version_names)) or "none recorded"),
        Fact("Session ids", ", ".join(_names(t.session_number, t.session_names)) or "none recorded"),
        Fact("Time", _span(session.conversation)),
    )


def _names(numbers: np.ndarray, names: list[str]) -> list[str]:
    unique, first = np.unique(numbers, return_index=True)
    found = [names[int(number)] for number in unique[np.argsort(first)] if names[int(number)]]
    return found if len(found) <= MOST_LINES else [*found[:MOST_LINES], f"{len(found) - MOST_LINES} more"]


def _times(c: Conversation) -> tuple[datetime, datetime] | None:
    stamps = c.transcript.timestamp_ms
    known = stamps[stamps > 0]
    if not len(known):
        return None
    try:
        first, last = (datetime.fromtimestamp(int(value) / 1000).astimezone() for value in (known.min(), known.max()))
    except (OverflowError, OSError, ValueError):
        return None  # outside the calendar: no time that could be shown
    return first, last


def _span(c: Conversation) -> str:
    times = _times(c)
    return f"{times[0]:%Y-%m-%d %H:%M} to {times[1]:%Y-%m-%d %H:%M %Z}" if times is not None else "none recorded"


def _duration(c: Conversation) -> str:
    times = _times(c)
    if times is None:
        return "unknown"
    length: timedelta = times[1] - times[0]
    hours, minutes = length.seconds // 3600, length.seconds // 60 % 60
    if length.days:
        return f"{length.days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {length.seconds % 60} s"


def _worth(structure: OutlineStructure) -> Table:
    """What F8 walks through, by kind, with the first of each."""
    c = structure.conversation
    t = c.transcript
    kinds: list[tuple[str, Mask | list[int]]] = [
        ("✖ failed tools", t.block_record[(t.block_flags & BlockFlag.ERROR) != 0].tolist()),
        ("✖ API errors", (t.flags & (Flag.API_ERROR | Flag.API_SYSTEM_ERROR)) != 0),
        (
            "∅ tool_use without tool_result",
            t.block_record[c.uses_without_result].tolist() if c.uses_without_result else [],
        ),
        (
            "∅ tool_result without tool_use",
            t.block_record[c.results_without_use].tolist() if c.results_without_use else [],
        ),
        ("≡ second results", t.block_record[c.duplicate_results].tolist() if c.duplicate_results else []),
        ("⚠ damaged", structure.damaged_lines),
        ("⋔ branches", [fork.parent for fork in c.branches]),
        ("↯ missing parents", list(c.dangling)),
        ("✂ cleared results", t.block_record[(t.block_flags & BlockFlag.CLEARED) != 0].tolist()),
    ]
    lines = []
    for name, found in kinds:
        records = np.flatnonzero(found) if isinstance(found, np.ndarray) else np.array(found, np.int64)
        if len(records):
            first = int(records.min())
            lines.append(Line((name, f"{len(records):,}", f"line {t.line[first]:,}"), first))
    return Table(
        "Worth looking at", "warning", ("What", "How many", "First"), tuple(lines), "Nothing out of the ordinary."
    )


def _compactions(c: Conversation) -> Table:
    lines = []
    for compaction in c.compactions:
        before, after = compaction.context_before, compaction.context_after
        freed = f"{before - after:,}" if before is not None and after is not None else "unknown"
        change = f"{_tokens(before)} → {_tokens(after)}"
        round_ = f"{compaction.round:,}" if compaction.round else "–"
        lines.append(Line((compaction.kind, round_, f"{compaction.line:,}", change, freed), compaction.record))
    headers = ("Kind", "After round", "Line", "Context (recorded)", "Freed")
    return _cut(Table("Compactions", "boundary", headers, tuple(lines), "The session was never compacted."))


def _tokens(value: int | None) -> str:
    return f"{value:,}" if value is not None else "unknown"


def _tools(structure: OutlineStructure) -> Table:
    c = structure.conversation
    t = c.transcript
    uses = np.flatnonzero((t.block_type == BlockType.TOOL_USE) & (t.block_tool_number > 0))
    size = len(t.tool_names)
    numbers = t.block_tool_number[uses]
    partner = c.pair[uses]
    answered = partner >= 0
    results = partner[answered]
    calls = np.bincount(numbers, minlength=size)
    failed = np.bincount(numbers[answered], weights=(t.block_flags[results] & BlockFlag.ERROR) != 0, minlength=size)
    own, of_results = structure.block_tokens[uses], structure.block_tokens[results]
    tokens = np.bincount(numbers, own, size) + np.bincount(numbers[answered], of_results, size)
    order = [int(n) for n in np.argsort(-tokens, kind="stable") if calls[n]]
    largest = float(tokens.max()) if len(order) else 1.0
    first = {int(n): int(t.block_record[uses[place]]) for place, n in reversed(list(enumerate(numbers)))}
    lines = [
        Line(
            (preview_of(t.tool_names[n], 80), f"{int(calls[n]):,}", f"{int(failed[n]):,}", f"≈{int(tokens[n]):,}"),
            first[n],
            float(tokens[n]) / max(1.0, largest),
        )
        for n in order
    ]
    headers = ("Tool", "Calls", "Failed", "Tokens with results")
    return _cut(Table("Tools", "tool", headers, tuple(lines), "No tool was called."))


def _largest(structure: OutlineStructure) -> Table:
    t = structure.conversation.transcript
    tokens = structure.record_tokens
    order = np.argsort(-tokens, kind="stable")[:MOST_LINES]
    largest = float(tokens[order[0]]) if len(order) else 1.0
    lines = []
    for record in map(int, order):
        if tokens[record]:
            round_ = int(structure.conversation.round_of[record])
            heavy = t.length[record] > 2_000_000
            preview = f"({t.length[record] / 1e6:,.1f} MB)" if heavy else t.preview(record, _BEGINNING)
            cells = (f"≈{int(tokens[record]):,}", f"{round_:,}" if round_ else "–", f"{t.line[record]:,}", preview)
            lines.append(Line(cells, record, float(tokens[record]) / max(1.0, largest)))
    headers = ("Tokens", "Round", "Line", "Begins with")
    return Table("Largest records", "chart", headers, tuple(lines), "No record has content.")


def _types(c: Conversation) -> Table:
    t = c.transcript
    counts = np.bincount(t.type_number, minlength=len(t.type_names))
    sizes = np.bincount(t.type_number, weights=t.length, minlength=len(t.type_names))
    order = [int(n) for n in np.argsort(-counts, kind="stable") if counts[n]]
    _, first = np.unique(t.type_number, return_index=True)
    begins = {int(t.type_number[place]): int(place) for place in first}
    largest = float(sizes.max()) if len(order) else 1.0
    lines = [
        Line(
            (t.type_names[n] or "(none)", f"{int(counts[n]):,}", f"{int(sizes[n]):,}"),
            begins[n],
            float(sizes[n]) / max(1.0, largest),
        )
        for n in order
    ]
    return _cut(Table("Record types", "queue", ("Type", "Records", "Bytes"), tuple(lines), "The file has no records."))


def _cut(table: Table) -> Table:
    if len(table.lines) <= MOST_LINES:
        return table
    kept = table.lines[:MOST_LINES]
    return Table(table.title, table.icon, table.headers, kept, table.empty, len(table.lines) - MOST_LINES)
