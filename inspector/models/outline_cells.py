"""What a row of the tree says: texts, icon, marks. Made only for rows that are painted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from compaction.conversation import DANGLING, Conversation
from compaction.transcript import BlockFlag, BlockType, Flag, RecordKind
from compaction.transcript.preview import preview_of
from inspector.models.outline_rows import Kind, index_of, kind_of, source_of
from inspector.models.outline_structure import OutlineStructure
from inspector.theme import Role

if TYPE_CHECKING:
    from inspector.models.outline import OutlineModel

PREVIEW_CHARACTERS = 200
HEAVY_RECORD = 2_000_000
"""Bytes above which a record is not decoded for its preview: the painting of a page stays under a frame."""
TALKING_BLOCKS = 4
JOINT = " · "
"""Between the facts of a row."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A fact worth seeing, as glyph and words: colour is never the only channel."""

    glyph: str
    text: str
    role: Role = "muted"


@dataclass(slots=True)
class RowCells:
    """Everything painted in one row.

    Attributes:
        texts, tips: one for each column.
        icon, role: SVG name and text colour of the first cell.
        band: number of the API round whose colour the row carries, 0 = none.
        header: an epoch or API-round row.
        share: of the context recorded last in its epoch, 0 to 1; −1 unknown.
        pairs: numbers that a tool_use and its tool_result share, with whether this is the tool_use.
        marks: what the flags column says.
    """

    icon: str
    texts: list[str]
    tips: list[str] = field(default_factory=lambda: [""] * 6)
    role: Role = "text"
    band: int = 0
    header: bool = False
    share: float = -1.0
    pairs: tuple[tuple[int, bool], ...] = ()
    marks: list[Mark] = field(default_factory=list)


ICONS = {
    RecordKind.USER: "user",
    RecordKind.ASSISTANT: "assistant",
    RecordKind.SYSTEM: "info",
    RecordKind.ATTACHMENT: "attachment",
    RecordKind.PROGRESS: "progress",
    RecordKind.SUMMARY: "summary",
    RecordKind.FILE_HISTORY: "snapshot",
    RecordKind.QUEUE: "queue",
    RecordKind.SESSION_STATE: "state",
    RecordKind.API_REQUEST: "request",
    RecordKind.COST_STATE: "cost",
    RecordKind.UNKNOWN: "unknown",
    RecordKind.DAMAGED: "damage",
}
BLOCK_ICONS = {
    BlockType.TEXT: "text",
    BlockType.THINKING: "thinking",
    BlockType.REDACTED_THINKING: "lock",
    BlockType.TOOL_USE: "tool",
    BlockType.TOOL_RESULT: "result",
    BlockType.IMAGE: "image",
    BlockType.DOCUMENT: "document",
    BlockType.SERVER_TOOL_USE: "tool",
    BlockType.SERVER_TOOL_RESULT: "result",
    BlockType.OTHER: "unknown",
}


def describe_row(model: OutlineModel, node: int) -> RowCells:
    """The cells of a node."""
    kind, index, source = kind_of(node), index_of(node), source_of(node)
    if kind is Kind.SUBAGENT:
        return _subagent(model, index)
    if kind is Kind.NOTE:
        reason = model.rows.failed.get(index)
        text = f"Cannot be read: {reason}" if reason else "Reading…"
        return RowCells("error" if reason else "clock", ["", text, "", "", "", ""], role="error" if reason else "muted")
    structure = model.rows.structures[source]
    if kind is Kind.EPOCH:
        return _epoch(structure, index)
    if kind is Kind.GROUP:
        return _group(structure, index)
    if kind is Kind.BLOCK:
        return _block(structure, index)
    if kind is Kind.THREAD:
        return _thread(structure, index)
    return _message(structure, index)


def _epoch(structure: OutlineStructure, index: int) -> RowCells:
    conversation = structure.conversation
    epoch = conversation.epochs[index]
    first, end = int(structure.epoch_first[index]), int(structure.epoch_end[index])
    heads = (int(structure.group_first[first]), int(structure.group_end[end - 1])) if end > first else (0, 0)
    rounds = structure.group_round[first:end]
    rounds = rounds[rounds > 0]
    parts = []
    if epoch.boundary_record >= 0:
        moved = f" {epoch.pre_tokens:,} → " if epoch.pre_tokens is not None else ""
        after = f"{epoch.post_tokens:,} tokens" if epoch.post_tokens is not None else "tokens" if moved else ""
        parts.append(f"after a compaction ({epoch.kind}){moved}{after}".rstrip("→ "))
    else:
        parts.append("from the start")
    day = _day(conversation, epoch.first_record)
    if day:
        parts.insert(0, day)
    if len(rounds):
        parts.append(f"API rounds {rounds[0]:,}–{rounds[-1]:,}" if len(rounds) > 1 else f"API round {rounds[0]:,}")
    context = int(structure.epoch_context[index])
    if context:
        parts.append(f"context at its end {context:,} (recorded)")
    tokens = structure.tokens_between(*heads)
    cells = RowCells(
        "epoch",
        [f"Epoch {index + 1}", JOINT.join(parts), f"≈{tokens:,}", "", _clock(conversation, epoch.first_record), ""],
        header=True,
    )
    _set_marks(cells, _problem_marks(structure, *heads))
    return cells


def _group(structure: OutlineStructure, index: int) -> RowCells:
    conversation = structure.conversation
    number, epoch = int(structure.group_round[index]), int(structure.group_epoch[index])
    first, end = int(structure.group_first[index]), int(structure.group_end[index])
    tokens = structure.tokens_between(first, end)
    record = int(structure.heads[first])
    if number == 0:
        cells = RowCells("more", ["Opening", _opening(structure, first, end), "", "", "", ""])
    else:
        found = conversation.round(number)
        context = conversation.round_context(number)
        parts = _tools(structure, first)
        if context:
            parts.append(f"context {context:,}")
        parts.append(conversation.response_model(found.response) or "model unknown")
        cells = RowCells("round", [f"API round {number:,}", JOINT.join(parts), "", "", "", ""], band=number)
        cells.tips[1] = f"Context recorded for the request of this round: {context:,} tokens" if context else ""
    cells.header = True
    cells.texts[4] = _clock(conversation, record)
    _set_tokens(cells, structure, tokens, epoch)
    _set_marks(cells, _problem_marks(structure, first, end))
    return cells


def _opening(structure: OutlineStructure, first: int, end: int) -> str:
    """The first prompt among the heads, else how many records there are."""
    t = structure.conversation.transcript
    for head in range(first, min(end, first + 200)):
        record = int(structure.heads[head])
        if t.kind[record] == RecordKind.USER and not t.flags[record] & Flag.META:
            return _preview(structure, record)
    return f"{end - first:,} records"


_NAME_CHARACTERS = 80
"""Of a tool's name in a row: it comes from the file, so it may be of any length, with line breaks and escapes."""


def _tools(structure: OutlineStructure, head: int) -> list[str]:
    t = structure.conversation.transcript
    names = Counter(t.block_tool(block) for block in structure.blocks(head)[:200] if t.block_tool(block))
    shown = {preview_of(name, _NAME_CHARACTERS): count for name, count in names.items()}
    return [", ".join(f"{name} ×{count}" if count > 1 else name for name, count in shown.items())] if shown else []


def _message(structure: OutlineStructure, record: int) -> RowCells:
    conversation = structure.conversation
    t = conversation.transcript
    head = int(structure.head_of[record])
    members = [int(r) for r in structure.members(head)]
    kind = RecordKind(int(t.kind[record]))
    blocks = structure.blocks(head)
    icon, title = _title(structure, record, kind, blocks)
    preview = "  ".join(_block_preview(structure, b) for b in blocks[:TALKING_BLOCKS]) if blocks else ""
    cells = RowCells(icon, [title, preview[:PREVIEW_CHARACTERS] or _preview(structure, record), "", "", "", ""])
    cells.band = int(conversation.round_of[record])
    cells.texts[4] = _clock(conversation, record)
    lines = f"line {t.line[record]:,}" if len(members) == 1 else f"{len(members)} records from line {t.line[record]:,}"
    cells.tips[0] = f"{t.type_name(record)} · {lines}"
    if blocks:
        _set_tokens(cells, structure, int(structure.head_tokens[head]), int(conversation.epoch_of[record]))
    cells.pairs = tuple(_pair(structure, b) for b in blocks if structure.pair_number[b])
    marks = _finding_marks(structure, members)
    marks += [mark for member in members for mark in record_marks(structure, member)]
    marks += [mark for block in blocks[:64] for mark in block_marks(structure, block)]
    if kind in (RecordKind.PROGRESS, RecordKind.SESSION_STATE, RecordKind.QUEUE, RecordKind.FILE_HISTORY):
        cells.role = "muted"
    if kind is RecordKind.DAMAGED:
        cells.role = "error"
    _set_marks(cells, marks)
    return cells


def _title(structure: OutlineStructure, record: int, kind: RecordKind, blocks: list[int]) -> tuple[str, str]:
    t = structure.conversation.transcript
    flags, name = int(t.flags[record]), t.type_name(record)
    subtype = name.partition("/")[2].replace("_", " ")
    if flags & (Flag.COMPACT_BOUNDARY | Flag.MICROCOMPACT_BOUNDARY):
        return ("boundary" if flags & Flag.COMPACT_BOUNDARY else "micro"), subtype.capitalize()
    if flags & Flag.COMPACT_SUMMARY:
        return "summary", "Compaction summary"
    if kind is RecordKind.USER:
        results = [b for b in blocks if int(t.block_type[b]) == BlockType.TOOL_RESULT]
        if results and len(results) == len(blocks):
            tools = {_tool_of(structure, b) for b in results}
            return "result", f"Tool result · {', '.join(sorted(tools))}" if tools != {""} else "Tool result"
        return ("eye", "User (meta)") if flags & Flag.META else ("user", "User")
    if kind is RecordKind.ASSISTANT:
        return "assistant", "Assistant (synthetic)" if flags & Flag.SYNTHETIC else "Assistant"
    words = {
        RecordKind.SYSTEM: "System",
        RecordKind.ATTACHMENT: "Attachment",
        RecordKind.PROGRESS: "Progress",
        RecordKind.SUMMARY: "Title of a session",
        RecordKind.DAMAGED: "Damaged",
        RecordKind.QUEUE: "Queue",
        RecordKind.API_REQUEST: "API request",
        RecordKind.COST_STATE: "Cost state",
    }
    icon = "hook" if "hook" in name else "micro" if "microcompact" in name else ICONS[kind]
    if kind in words:
        return icon, f"{words[kind]} · {subtype}" if subtype else words[kind]
    return icon, name.replace("-", " ").replace("_", " ").capitalize() or "Record without a type"


def _block(structure: OutlineStructure, block: int) -> RowCells:
    conversation = structure.conversation
    t = conversation.transcript
    record = int(t.block_record[block])
    kind = BlockType(int(t.block_type[block]))
    tool = _tool_of(structure, block)
    names = {
        BlockType.REDACTED_THINKING: "redacted_thinking",
        BlockType.OTHER: str(t.block(block).get("type") or "block"),
    }
    title = names.get(kind, kind.name.lower()) + (f" · {tool}" if tool else "")
    cells = RowCells(BLOCK_ICONS[kind], [title, _block_preview(structure, block), "", "", "", ""])
    cells.band = int(conversation.round_of[record])
    cells.pairs = (_pair(structure, block),) if structure.pair_number[block] else ()
    cells.tips[0] = (
        f"{title} · block {t.block_position[block]} of line {t.line[record]:,} · {t.block_chars[block]:,} characters"
    )
    _set_tokens(cells, structure, int(structure.block_tokens[block]), int(conversation.epoch_of[record]))
    _set_marks(cells, block_marks(structure, block))
    return cells


def _pair(structure: OutlineStructure, block: int) -> tuple[int, bool]:
    kind = int(structure.conversation.transcript.block_type[block])
    return int(structure.pair_number[block]), kind in (BlockType.TOOL_USE, BlockType.SERVER_TOOL_USE)


def pair_label(number: int, calls: bool) -> str:
    """The pair mark: an arrow away from the tool_use, one back at the tool_result, and the number they share."""
    return f"{'→' if calls else '←'}{number}"


def _tool_of(structure: OutlineStructure, block: int) -> str:
    """The tool's name of a tool_use, and of a tool_result by its pair."""
    conversation = structure.conversation
    partner = int(conversation.pair[block])
    other = conversation.transcript.block_tool(partner) if partner >= 0 else ""
    return preview_of(conversation.transcript.block_tool(block) or other, _NAME_CHARACTERS)


def _thread(structure: OutlineStructure, thread: int) -> RowCells:
    conversation = structure.conversation
    heads = structure.threads[thread]
    record = int(structure.heads[heads[0]])
    cells = RowCells("sidechain", [f"Sidechain {thread}", _preview(structure, record), "", "", "", ""])
    cells.band = int(conversation.round_of[record])
    cells.texts[4] = _clock(conversation, record)
    tokens = int(structure.head_tokens[np.array(heads)].sum())
    cells.texts[2] = f"≈{tokens:,}"
    _set_marks(cells, [Mark("⎇", f"{len(heads):,} messages of a subagent")])
    return cells


def _subagent(model: OutlineModel, number: int) -> RowCells:
    file = model.session.subagents[number - 1]
    kind = {"compaction": "Compaction request", "workflow": "Workflow agent"}.get(file.kind, "Subagent")
    details = [str(file.details[key]) for key in ("agentType", "description") if isinstance(file.details.get(key), str)]
    cells = RowCells("subagent", [f"{kind} {file.agent_id}", JOINT.join(details) or file.path.name, "", "", "", ""])
    cells.tips[1] = str(file.path)
    marks = []
    structure = model.rows.structures.get(number)
    if structure is not None:
        cells.texts[2] = f"≈{int(structure.block_tokens.sum()):,}"
        marks.append(Mark("⎇", f"{structure.count:,} records"))
    if file.tool_use_block < 0:
        marks.append(Mark("∅", "its call is not known", "warning"))
    if "unreadable" in file.details:
        marks.append(Mark("⚠", "its .meta.json is unreadable", "warning"))
    _set_marks(cells, marks)
    return cells


def record_marks(structure: OutlineStructure, record: int) -> list[Mark]:
    """What is to be said of a record itself."""
    conversation = structure.conversation
    t = conversation.transcript
    flags = int(t.flags[record])
    marks = []
    if flags & Flag.COMPACT_BOUNDARY:
        marks.append(Mark("◆", "compaction", "accent"))
    if flags & Flag.MICROCOMPACT_BOUNDARY:
        marks.append(Mark("◇", "microcompaction", "accent"))
    if flags & (Flag.API_ERROR | Flag.API_SYSTEM_ERROR):
        marks.append(Mark("✖", "API error", "error"))
    if structure.damaged_lines[record]:
        kinds = {d.kind.replace("_", " ") for d in t.damage if d.line == t.line[record]}
        marks.append(Mark("⚠", f"damaged: {', '.join(sorted(kinds)) or 'unreadable'}", "error"))
    if conversation.chained[record] and conversation.parent[record] == DANGLING:
        marks.append(Mark("↯", "parent is missing", "warning"))
    if structure.fork_heads[record]:
        marks.append(Mark("⋔", "branch", "warning"))
    if record == conversation.leaf:
        marks.append(Mark("◉", "leaf", "ok"))
    if flags & Flag.SIDECHAIN and not conversation.is_subagent_file:
        marks.append(Mark("⎇", "sidechain"))
    if flags & Flag.META:
        marks.append(Mark("·", "meta"))
    return marks


def block_marks(structure: OutlineStructure, block: int) -> list[Mark]:
    """What is to be said of a block itself."""
    conversation = structure.conversation
    t = conversation.transcript
    flags, kind = int(t.block_flags[block]), int(t.block_type[block])
    marks = []
    if flags & BlockFlag.ERROR:
        marks.append(Mark("✖", "error", "error"))
    if flags & BlockFlag.CLEARED:
        marks.append(Mark("✂", "cleared", "accent"))
    if block in conversation.running:
        marks.append(Mark("⋯", "running", "accent"))
    if structure.block_problems[block]:
        if kind in (BlockType.TOOL_USE, BlockType.SERVER_TOOL_USE):
            repeated = conversation.pair[block] >= 0
            marks.append(Mark("≡" if repeated else "∅", "repeated id" if repeated else "no result", "warning"))
        elif kind in (BlockType.TOOL_RESULT, BlockType.SERVER_TOOL_RESULT):
            if conversation.pair[block] < 0:
                marks.append(Mark("∅", "no tool_use", "error"))
            elif not flags & BlockFlag.ERROR or block in conversation.duplicate_results:
                marks.append(Mark("≡", "second result", "warning"))
    return marks


def _problem_marks(structure: OutlineStructure, first: int, end: int) -> list[Mark]:
    found = structure.findings_between(first, end)
    marks = [Mark("⚕", _findings(found), "warning")] if found else []
    count = structure.problems_between(first, end)
    return [*marks, Mark("▲", f"{count:,} to look at", "warning")] if count else marks


def _finding_marks(structure: OutlineStructure, records: list[int]) -> list[Mark]:
    """The doctor's findings about the records of a row, in the colour of the worst."""
    found = [structure.findings[record] for record in records if record in structure.findings]
    if not found:
        return []
    severities = {severity for _, severity in found}
    role: Role = "error" if "error" in severities else "warning" if "warning" in severities else "muted"
    return [Mark("⚕", _findings(sum(count for count, _ in found)), role)]


def _findings(count: int) -> str:
    return "1 finding" if count == 1 else f"{count:,} findings"


def _set_marks(cells: RowCells, marks: Iterable[Mark]) -> None:
    order: dict[Role, int] = {"error": 0, "warning": 1, "accent": 2, "ok": 3}
    unique = list(dict.fromkeys(marks))
    unique.sort(key=lambda mark: order.get(mark.role, 9))
    cells.marks = unique
    chips = [pair_label(*pair) for pair in cells.pairs]
    cells.texts[5] = "  ".join([*chips, *(f"{mark.glyph} {mark.text}" for mark in unique)])
    said = [f"{'tool_use' if calls else 'tool_result'} of pair {number}" for number, calls in cells.pairs]
    hint = ["Ctrl+P goes to the other one"] if said else []
    cells.tips[5] = "\n".join([*said, *hint, *(mark.text for mark in unique)])


def _set_tokens(cells: RowCells, structure: OutlineStructure, tokens: int, epoch: int) -> None:
    cells.texts[2] = f"≈{tokens:,}"
    cells.tips[2] = f"{tokens:,} tokens, estimated from characters (compaction.md §2)"
    context = int(structure.epoch_context[epoch])
    if context:
        cells.share = tokens / context
        cells.texts[3] = f"{cells.share:.1%}" if cells.share >= 0.001 or not tokens else "<0.1%"
        cells.tips[3] = f"of {context:,} tokens, the context recorded last in its epoch; the part is estimated"


def _preview(structure: OutlineStructure, record: int) -> str:
    t = structure.conversation.transcript
    if t.length[record] > HEAVY_RECORD and t.kind[record] != RecordKind.DAMAGED:
        return f"({t.length[record] / 1e6:,.1f} MB)"
    return t.preview(record, PREVIEW_CHARACTERS)


def _block_preview(structure: OutlineStructure, block: int) -> str:
    t = structure.conversation.transcript
    if t.length[t.block_record[block]] > HEAVY_RECORD:
        return f"({t.block_chars[block]:,} characters)"
    return t.block_preview(block, PREVIEW_CHARACTERS)


def _local(conversation: Conversation, record: int) -> datetime | None:
    milliseconds = int(conversation.transcript.timestamp_ms[record])
    if not milliseconds:
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000).astimezone()
    except (OverflowError, OSError, ValueError):
        return None  # a timestamp outside the calendar is shown as none


def _clock(conversation: Conversation, record: int) -> str:
    moment = _local(conversation, record)
    # Not strftime: it imports a module on each call, and PySide's import hook makes that slow.
    return f"{moment.hour:02}:{moment.minute:02}:{moment.second:02}" if moment is not None else ""


def _day(conversation: Conversation, record: int) -> str:
    for candidate in range(record, min(record + 50, len(conversation.transcript))):
        moment = _local(conversation, candidate)
        if moment is not None:
            return f"{moment.year}-{moment.month:02}-{moment.day:02}"
    return ""


def moment_of(conversation: Conversation, record: int) -> str:
    """Date, local time and zone of a record, for the tool tip."""
    moment = _local(conversation, record)
    return f"{moment:%Y-%m-%d %H:%M:%S %Z}" if moment is not None else "no time recorded"
