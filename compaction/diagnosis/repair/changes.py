"""What became of each record: the diff that a repair shows before it is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from compaction.diagnosis.repair.draft import Draft, Slot
from compaction.diagnosis.rules.damage import records_on_line
from compaction.transcript import RecordKind
from compaction.transcript.patching import has_value, read_value

Action = Literal["replace", "insert", "remove", "leave_out"]


@dataclass(frozen=True, slots=True)
class RecordChange:
    """What became of one record.

    Attributes:
        record, line: of the original; -1 and the line it will have for a new record.
        uuid: the record's uuid, "" when it has none.
        action: replace, insert, remove, or leave_out (damaged bytes that are in no record).
        before, after: the record's bytes without line ending; None where there is none.
        finding: the code of the finding that asked for it first.
        reason: why, one sentence each.
    """

    record: int
    line: int
    uuid: str
    action: Action
    before: bytes | None
    after: bytes | None
    finding: str
    reason: str


def record_changes(draft: Draft) -> Iterator[RecordChange]:
    """Every change of a draft against its original, by file position, then what was left out, then the members."""
    original = draft.original
    line = 0
    for slot in draft.all_slots():
        if slot.origin >= 0:
            line = int(original.line[slot.origin])
        change = _change(draft, slot, line)
        if change is not None:
            yield change
    if not draft.keep_damage:
        yield from _left_out(draft)
    for member in draft.members.values():
        yield RecordChange(-1, 0, "", "replace", None, None, "document", f"The request's own `{member.name}` changes.")


def _change(draft: Draft, slot: Slot, line: int) -> RecordChange | None:
    finding = slot.findings[0] if slot.findings else ""
    reason = " ".join(slot.reasons)
    if slot.origin < 0:
        if slot.removed or slot.data is None:
            return None
        return RecordChange(-1, line, _uuid_in(slot.data), "insert", None, slot.data, finding, reason)
    before = draft.original.record_bytes(slot.origin)
    uuid = draft.original.uuid(slot.origin)
    if slot.removed:
        return RecordChange(slot.origin, line, uuid, "remove", before, None, finding, reason)
    if slot.data is not None and slot.data != before:
        return RecordChange(slot.origin, line, uuid, "replace", before, slot.data, finding, reason)
    return None


def _uuid_in(data: bytes) -> str:
    return str(read_value(data, ("uuid",))) if has_value(data, ("uuid",)) else ""


def _left_out(draft: Draft) -> Iterator[RecordChange]:
    """Every stretch of bytes that is in no record of the new file (the side report of case 18)."""
    t = draft.original
    for damage in t.damage:
        taken = [(int(t.offset[r]), int(t.offset[r]) + int(t.length[r])) for r in _sound_records(draft, damage.line)]
        at, end = damage.offset, damage.offset + damage.length
        for start, stop in [*taken, (end, end)]:
            piece = t.raw(at, start)
            if piece.strip(b" \t\r\n"):
                yield RecordChange(-1, damage.line, "", "leave_out", piece, None, damage.kind, "In no whole record.")
            at = stop


def _sound_records(draft: Draft, line: int) -> list[int]:
    t = draft.original
    return [r for r in records_on_line(t, line) if t.kind[r] != RecordKind.DAMAGED]
