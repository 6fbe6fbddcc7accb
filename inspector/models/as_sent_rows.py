"""A request beside the records it was made of: what was sent as stored, changed, cleared, merged, dropped, injected.

No Qt: a worker builds the rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from compaction.conversation import Conversation
from compaction.diagnosis.model import Violation
from compaction.request.wire import Dropped, Origin, WireMessage, WireRequest
from compaction.transcript.kinds import CLEARED_MARKER, RecordKind
from compaction.transcript.preview import preview_of

PREVIEW = 160


class Change(Enum):
    """What the client did with a block on its way from the file to the request."""

    SAME = "as stored"
    CHANGED = "changed"
    CLEARED = "cleared"
    RENDERED = "rendered"
    INJECTED = "injected"
    DROPPED = "dropped"
    MERGED = "merged"
    NOTE = "note"


SIGNS: dict[Change, str] = {
    Change.SAME: "",
    Change.CHANGED: "≠",
    Change.CLEARED: "⌫",
    Change.RENDERED: "✎",
    Change.INJECTED: "＋",
    Change.DROPPED: "✖",
    Change.MERGED: "⇄",
    Change.NOTE: "·",
}

MEANINGS: dict[Change, str] = {
    Change.SAME: "sent as stored",
    Change.CHANGED: "sent in another form",
    Change.CLEARED: "content replaced by the cleared marker",
    Change.RENDERED: "text made by the client from a record",
    Change.INJECTED: "put in by the client; no record holds it",
    Change.DROPPED: "in the file, not sent",
    Change.MERGED: "one message made of several records",
    Change.NOTE: "",
}


@dataclass(slots=True, eq=False)
class SentRow:
    """One row: a message, one of its blocks, something dropped, or a note.

    Attributes:
        change: what happened to it.
        message, block: place in the request; -1 where it has none.
        record, position: place in the file; position is the index in `message.content`, -1 for the whole record.
        line: 1-based line of the record, 0 without one.
        role: of the message.
        stored, sent: the block on either side, None where there is none.
        text: what happened, in words.
        violations: rules of the API that this place breaks.
        children: the blocks of a message.
    """

    change: Change
    message: int = -1
    block: int = -1
    record: int = -1
    position: int = -1
    line: int = 0
    role: str = ""
    stored: Mapping[str, Any] | None = None
    sent: Mapping[str, Any] | None = None
    text: str = ""
    violations: list[Violation] = field(default_factory=list)
    children: list[SentRow] = field(default_factory=list)

    @property
    def is_message(self) -> bool:
        """Whether the row stands for a whole message."""
        return self.message >= 0 and self.block < 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """A request with its rows.

    Attributes:
        request: as assembled.
        rows: notes, messages and dropped content in order.
        counts: blocks by what happened to them.
        violations: every rule broken, in the order of the rules.
    """

    request: WireRequest
    rows: tuple[SentRow, ...]
    counts: Mapping[Change, int]
    violations: tuple[Violation, ...]


def compare(conversation: Conversation, request: WireRequest, violations: list[Violation]) -> Comparison:
    """Lay a request beside the records of its conversation."""
    by_place: dict[tuple[int, int], list[Violation]] = {}
    placeless: list[Violation] = []
    for violation in violations:
        for place in violation.places:
            by_place.setdefault(place, []).append(violation)
        if not violation.places:
            placeless.append(violation)
    rows: list[SentRow] = _notes(request, placeless)
    counts: dict[Change, int] = {}
    messages = [
        _message_row(conversation, number, message, by_place) for number, message in enumerate(request.messages)
    ]
    for row in messages:
        for child in row.children:
            counts[child.change] = counts.get(child.change, 0) + 1
    dropped = [_dropped_row(conversation, item) for item in request.dropped]
    counts[Change.DROPPED] = len(dropped)
    counts[Change.MERGED] = sum(row.change is Change.MERGED for row in messages)
    rows += _in_order(messages, dropped)
    return Comparison(request, tuple(rows), counts, tuple(violations))


def _notes(request: WireRequest, placeless: list[Violation]) -> list[SentRow]:
    rows = [SentRow(Change.NOTE, text=violation.message, violations=[violation]) for violation in placeless]
    for name, value in (("system prompt", request.system), ("tool definitions", request.tools)):
        if value is None:
            text = f"The transcript does not hold the {name}."
            rows.append(SentRow(Change.NOTE, text=text))
        elif value:
            words = f"{name}: {len(value):,} {'entry' if len(value) == 1 else 'entries'}"
            rows.append(SentRow(Change.NOTE, text=words, sent={name: value}))
    params = {**({"thinking": request.thinking} if request.thinking else {}), **request.params}
    if params:
        rows.append(SentRow(Change.NOTE, text=f"parameters: {', '.join(params)}", sent={"parameters": params}))
    for item in request.unaccounted:
        line = item.get("line")
        rows.append(SentRow(Change.NOTE, text=str(item.get("message", "")), line=line if isinstance(line, int) else 0))
    return rows


def _message_row(
    conversation: Conversation,
    number: int,
    message: WireMessage,
    violations: Mapping[tuple[int, int], list[Violation]],
) -> SentRow:
    children = [
        _block_row(conversation, number, position, message.role, block, origin)
        for position, (block, origin) in enumerate(zip(message.content, message.origins, strict=True))
    ]
    for child in children:
        child.violations = violations.get((number, child.block), [])
    records = list(dict.fromkeys(child.record for child in children if child.record >= 0))
    row = SentRow(
        Change.MERGED if len(records) > 1 else Change.SAME,
        message=number,
        role=message.role,
        record=records[0] if records else -1,
        line=int(conversation.transcript.line[records[0]]) if records else 0,
        violations=violations.get((number, -1), []),
        children=children,
    )
    if len(records) > 1:
        lines = [int(conversation.transcript.line[record]) for record in records]
        row.text = f"merged from {len(records):,} records, {lines_text(lines)}"
    elif children and not records:
        row.change = Change.INJECTED
        row.text = MEANINGS[Change.INJECTED]
    return row


def _block_row(
    conversation: Conversation, message: int, block: int, role: str, sent: Mapping[str, Any], origin: Origin | None
) -> SentRow:
    row = SentRow(Change.INJECTED, message, block, role=role, sent=sent, text=MEANINGS[Change.INJECTED])
    if origin is None:
        return row
    row.record, row.line, row.position = origin.record, origin.line, origin.block
    stored = stored_block(conversation, origin.record, origin.block)
    row.stored = stored
    if origin.block < 0:
        row.change = Change.RENDERED
    elif stored is None:
        row.change = Change.CHANGED
    elif _equal(stored, sent):
        row.change = Change.SAME
    elif sent.get("content") == CLEARED_MARKER and stored.get("content") != CLEARED_MARKER:
        row.change = Change.CLEARED
    else:
        row.change = Change.CHANGED
    row.text = _words(row)
    return row


def _words(row: SentRow) -> str:
    if row.change is Change.SAME:
        return ""
    if row.change is Change.CHANGED and row.stored is not None and row.sent is not None:
        names = [name for name in {**row.stored, **row.sent} if row.stored.get(name) != row.sent.get(name)]
        return f"sent with another {', '.join(sorted(names))}"
    return MEANINGS[row.change]


def _dropped_row(conversation: Conversation, dropped: Dropped) -> SentRow:
    stored = stored_block(conversation, dropped.record, dropped.block)
    return SentRow(
        Change.DROPPED,
        record=dropped.record,
        position=dropped.block,
        line=int(conversation.transcript.line[dropped.record]),
        stored=stored,
        text=dropped.reason,
    )


def _in_order(messages: list[SentRow], dropped: list[SentRow]) -> list[SentRow]:
    """Dropped content at its place in the file: inside a message between its blocks, or between two messages."""
    waiting = deque(sorted(dropped, key=lambda row: (row.record, row.position)))
    last_stored = max((number for number, row in enumerate(messages) if row.record >= 0), default=-1)
    rows: list[SentRow] = []
    for number, message in enumerate(messages):
        if message.record >= 0:
            while waiting and waiting[0].record < message.record:
                rows.append(waiting.popleft())
            _drop_inside(message, waiting)
        elif number > last_stored:
            rows += waiting
            waiting.clear()
        rows.append(message)
    return [*rows, *waiting]


def _drop_inside(message: SentRow, waiting: deque[SentRow]) -> None:
    """Move dropped content that lies between the first and the last record of a message to its children."""
    last = max(child.record for child in message.children)
    children: list[SentRow] = []
    for child in message.children:
        while waiting and child.record >= 0 and _place(waiting[0]) < _place(child) and waiting[0].record <= last:
            children.append(waiting.popleft())
        children.append(child)
    while waiting and waiting[0].record <= last:
        children.append(waiting.popleft())
    message.children = children


def _place(row: SentRow) -> tuple[int, int]:
    return row.record, row.position


def stored_block(conversation: Conversation, record: int, position: int) -> Mapping[str, Any] | None:
    """The block at a position of a record's content; for -1 what the record itself holds."""
    payload = conversation.transcript.payload(record)
    if position < 0:
        attachment = payload.get("attachment")
        return attachment if isinstance(attachment, dict) else payload
    content = conversation.transcript.message(record).get("content")
    if isinstance(content, str):
        return {"type": "text", "text": content} if position == 0 else None
    if isinstance(content, list) and position < len(content) and isinstance(content[position], dict):
        found: Mapping[str, Any] = content[position]
        return found
    return None


def _equal(stored: Mapping[str, Any], sent: Mapping[str, Any]) -> bool:
    """Whether a block was sent as it is stored; cache markers are no content."""
    if stored is sent:
        return True
    if "cache_control" in stored:
        return {name: value for name, value in stored.items() if name != "cache_control"} == sent
    return stored == sent


def absence(conversation: Conversation, record: int, at: int | None) -> str:
    """Why a record has no place in the request of a round (None: the next one), one sentence."""
    transcript = conversation.transcript
    if at is not None and record >= conversation.round(at).first_record:
        return "It was written after this request."
    if transcript.kind[record] not in (RecordKind.USER, RecordKind.ASSISTANT, RecordKind.ATTACHMENT):
        return "It is bookkeeping of the client: no request holds it."
    if int(conversation.thread[record]) > 0:
        return "It belongs to a subagent, which sends requests of its own."
    epoch = conversation.round(at).epoch if at is not None else len(conversation.epochs) - 1
    boundary = conversation.epochs[epoch].boundary_record
    if int(conversation.epoch_of[record]) < epoch and boundary >= 0:
        return f"It lies before the compact boundary on line {int(transcript.line[boundary]):,}."
    if not bool(conversation.on_chain[record]):
        return "It lies beside the parent chain: another branch was continued."
    return "The client leaves it out."


def side_text(block: Mapping[str, Any] | None, place: str) -> str:
    """One side of a row: where, what type, and a preview."""
    if block is None:
        return place
    kind = str(block.get("type") or "record")
    preview = preview_of(block, PREVIEW)
    return " · ".join(word for word in (place, kind, preview) if word)


def lines_text(lines: list[int]) -> str:
    """Line numbers for a person: "line 12", "lines 12–14, 20"."""
    ordered = sorted(set(lines))
    runs: list[list[int]] = []
    for line in ordered:
        if runs and line == runs[-1][1] + 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    words = [f"{first:,}" if first == last else f"{first:,}–{last:,}" for first, last in runs[:6]]
    more = ", …" if len(runs) > 6 else ""
    return f"{'line' if len(ordered) == 1 else 'lines'} {', '.join(words)}{more}"
