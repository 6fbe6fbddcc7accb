"""What the detail pane shows of a selection, prepared without Qt so that a worker can do it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from compaction.conversation import Conversation
from compaction.progress import Progress
from compaction.transcript import BlockType, RecordKind
from inspector.rendering.blocks import parts_of_block
from inspector.rendering.parts import Code, Fields, Heading, Note, Part, Tone
from inspector.rendering.pieces import Surroundings
from inspector.rendering.records import parts_of_record
from inspector.rendering.visible_text import bytes_text

WORKER_BYTES = 64 * 1024
"""Selections of more bytes than this are decoded in a worker."""

MANY_BYTES = 256 * 1024
"""Most bytes of the records shown together for a response, round or epoch."""

MANY_RECORDS = 120
"""Most records shown together."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is to be shown: one block, one record, or several records under a title.

    Attributes:
        conversation: whose numbers `records` and `block` are.
        records: the first ones in file order; at least one.
        block: row of the block table, -1 for whole records.
        title: heading for several records, "" for one.
        total, last: how many records were selected and the last of them; `records` has fewer when they are too many.
    """

    conversation: Conversation
    records: tuple[int, ...]
    block: int = -1
    title: str = ""
    total: int = 1
    last: int = -1

    @property
    def size(self) -> int:
        """Bytes of the records."""
        length = self.conversation.transcript.length
        return sum(int(length[record]) for record in self.records[:MANY_RECORDS])


@dataclass(frozen=True, slots=True)
class Prepared:
    """The decoded content of a subject.

    Attributes:
        headline: what it is, in one line.
        parts: for the rich view.
        value: decoded JSON for the tree; `name` is its root's name.
        left_out: records that are not shown because there are too many.
    """

    subject: Subject
    headline: str
    parts: tuple[Part, ...]
    value: Any
    name: str
    left_out: int = 0


def prepare(subject: Subject, progress: Progress | None = None) -> Prepared:
    """Decode a subject and make its parts; checks `progress` for each record."""
    conversation = subject.conversation
    transcript = conversation.transcript
    if subject.block >= 0:
        block = transcript.block(subject.block)
        parts = parts_of_block(block, surroundings_of(conversation, subject.block))
        position = int(transcript.block_position[subject.block])
        return Prepared(subject, headline(subject), tuple(parts), block, f"content[{position}]")
    if len(subject.records) == 1:
        record = subject.records[0]
        return Prepared(
            subject,
            headline(subject),
            tuple(record_parts(conversation, record)),
            _value(conversation, record),
            f"line {int(transcript.line[record]):,}",
        )
    return _prepare_many(subject, progress)


def _prepare_many(subject: Subject, progress: Progress | None) -> Prepared:
    conversation, transcript = subject.conversation, subject.conversation.transcript
    parts: list[Part] = []
    values: list[Any] = []
    used = 0
    for record in subject.records:
        if progress is not None:
            progress.check()
        size = int(transcript.length[record])
        if values and (used + size > MANY_BYTES or len(values) >= MANY_RECORDS):
            break
        used += size
        line = f"line {int(transcript.line[record]):,}"
        parts.append(Note(f"{line} · {transcript.type_name(record)} {_time(conversation, record)}".strip()))
        parts += record_parts(conversation, record)
        values.append(_value(conversation, record))
    left_out = max(subject.total, len(subject.records)) - len(values)
    if left_out:
        parts.append(Note(f"{left_out:,} more records are not shown here; select them in the tree.", Tone.WARNING))
    return Prepared(subject, headline(subject), tuple(parts), values, subject.title or "records", left_out)


def record_parts(conversation: Conversation, record: int) -> list[Part]:
    """The parts of one record, or what is known of a damaged one."""
    transcript = conversation.transcript
    if transcript.kind[record] == RecordKind.DAMAGED:
        return damaged_parts(conversation, record)
    blocks = transcript.blocks_of(record)
    by_position = {int(transcript.block_position[block]): block for block in blocks}
    payload = transcript.payload(record)

    def around(position: int) -> Surroundings:
        block = by_position.get(position, -1)
        return surroundings_of(conversation, block) if block >= 0 else Surroundings(_role(payload))

    return parts_of_record(payload, around)


def damaged_parts(conversation: Conversation, record: int) -> list[Part]:
    """A damaged record: what is wrong with its line, and its bytes as text."""
    transcript = conversation.transcript
    line = int(transcript.line[record])
    parts: list[Part] = [Heading("damaged record", f"line {line:,}", Tone.ERROR)]
    for damage in transcript.damage:
        if damage.line == line:
            kind = damage.kind.replace("_", " ")
            parts.append(Note(f"{kind}: {damage.lost_bytes:,} bytes lost.", Tone.ERROR))
            parts.append(Fields((("recovered", str(damage.recovered)),)))
    return [*parts, Note("The bytes as they are in the file:"), Code(raw_text(conversation, (record,))[0])]


def surroundings_of(conversation: Conversation, block: int) -> Surroundings:
    """Role, tool and recorded result around a block, through its pair."""
    transcript = conversation.transcript
    record = int(transcript.block_record[block])
    payload = transcript.payload(record)
    kind = int(transcript.block_type[block])
    pair = int(conversation.pair[block])
    if kind == BlockType.TOOL_RESULT:
        call = transcript.block(pair) if pair >= 0 else {}
        given = call.get("input")
        return Surroundings(
            role=_role(payload),
            tool_name=str(call.get("name") or ""),
            tool_input=given if isinstance(given, dict) else None,
            tool_use_result=payload.get("toolUseResult"),
        )
    result = None
    if kind == BlockType.TOOL_USE and pair >= 0:
        result = transcript.payload(int(transcript.block_record[pair])).get("toolUseResult")
    return Surroundings(role=_role(payload), tool_use_result=result)


def headline(subject: Subject) -> str:
    """One line: what is shown and where it stands."""
    conversation, transcript = subject.conversation, subject.conversation.transcript
    record = subject.records[0]
    if len(subject.records) > 1:
        last = subject.last if subject.last >= 0 else subject.records[-1]
        lines = f"lines {int(transcript.line[record]):,} to {int(transcript.line[last]):,}"
        count = max(subject.total, len(subject.records))
        return f"{subject.title or 'selection'} · {lines} · {count:,} records"
    words = [transcript.type_name(record), f"line {int(transcript.line[record]):,}"]
    if subject.block >= 0:
        blocks = transcript.blocks_of(record)
        words.append(f"block {int(transcript.block_position[subject.block]) + 1} of {len(blocks)}")
    words += [_time(conversation, record), transcript.model(record), bytes_text(int(transcript.length[record]))]
    return " · ".join(word for word in words if word)


def raw_text(conversation: Conversation, records: Sequence[int]) -> tuple[str, int]:
    """The records' bytes as text, one record a line, and how many places are not valid UTF-8.

    Such places are shown as replacement characters; the file keeps its bytes.
    """
    transcript = conversation.transcript
    data = b"\n".join(transcript.record_bytes(record) for record in records)
    try:
        return data.decode("utf-8"), 0
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
        return text, text.count("\ufffd") - data.count("\ufffd".encode())


def _value(conversation: Conversation, record: int) -> Any:
    payload = conversation.transcript.payload(record)
    if not payload and conversation.transcript.kind[record] == RecordKind.DAMAGED:
        return raw_text(conversation, (record,))[0]
    return payload


def _role(payload: dict[str, Any]) -> str:
    message = payload.get("message")
    role = message.get("role") if isinstance(message, dict) else None
    return str(role or payload.get("type") or "")


def _time(conversation: Conversation, record: int) -> str:
    milliseconds = int(conversation.transcript.timestamp_ms[record])
    if not milliseconds:
        return ""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
