"""Damage of lines (transcript-format.md §2, api-rules.md G12)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from compaction.diagnosis.case import Case
from compaction.diagnosis.model import Finding, Repair, Severity
from compaction.transcript import RecordKind, Transcript
from compaction.transcript.damage import Damage

REWRITE = "one_record_per_line"

_TEXTS = {
    "nul_padding": "a run of NUL bytes",
    "spliced_record": "the beginning of one record with another record written into it",
    "two_records_one_line": "several records without a line break between them",
    "blank_line": "nothing",
    "truncated_last_line": "the beginning of a record: the file ends inside it",
    "not_an_object": "JSON that is no record",
    "invalid_utf8": "bytes that are no UTF-8",
    "invalid_json": "bytes that are no JSON",
    "invalid_escape": "a backslash that escapes nothing",
    "byte_order_mark": "a byte order mark before the first record",
    "nested_too_deeply": "a value nested more deeply than readers go",
}
CODES = tuple(_TEXTS)
_CAUSES = {
    "nul_padding": "The file system had reserved the block when the machine or the program went down.",
    "spliced_record": "Two processes wrote to the file at the same time.",
    "two_records_one_line": "A resumed session appended without a line break (2.0.76 to 2.1.17).",
    "truncated_last_line": "The program ended, or the file was copied, while the line was being written.",
    "byte_order_mark": "An editor saved the file.",
}


def damaged_lines(case: Case) -> Iterator[Finding]:
    """One finding for each damaged line; an error when clients that read line by line lose a message with it."""
    for damage in case.transcript.damage:
        yield _finding(case, damage)


def records_on_line(t: Transcript, line: int) -> range:
    """The records of a line, damaged stretches among them; lines ascend, so this is a binary search."""
    return range(int(np.searchsorted(t.line, line, "left")), int(np.searchsorted(t.line, line, "right")))


def _finding(case: Case, damage: Damage) -> Finding:
    records = list(records_on_line(case.transcript, damage.line))
    sound = [r for r in records if case.transcript.kind[r] != RecordKind.DAMAGED]
    severity = _severity(case, damage, sound)
    stubs = sum(case.transcript.kind[r] == RecordKind.DAMAGED for r in records)
    details = {
        "recovered": damage.recovered,
        "lost_bytes": damage.lost_bytes,
        "offset": damage.offset,
        "uuids": [case.transcript.uuid(r) for r in sound],
    }
    if damage.kind == "spliced_record":
        details["lost_stub"] = int(stubs)
    mend = Repair(
        REWRITE,
        "Write each whole record on a line of its own and leave out the rest, which the report keeps",
        default=severity != "info" and damage.kind != "invalid_utf8",
        reason="nothing that can be read is lost, and nothing is guessed",
    )
    lost = f", {damage.lost_bytes:,} bytes belong to none" if damage.lost_bytes else ""
    return Finding(
        code=damage.kind,
        rule="",
        severity=severity,
        message=f"Line {damage.line} holds {_TEXTS.get(damage.kind, damage.kind)}: "
        f"{damage.recovered} records recovered{lost}.",
        lines=(damage.line,),
        records=tuple(sound),
        repairs=(mend,),
        why=_CAUSES.get(damage.kind, ""),
        clients=_clients(damage.kind) if severity == "error" else {},
        details=details,
    )


def _clients(kind: str) -> dict[str, str]:
    """What the generations do with such a line (measured with the real clients)."""
    lost = "skips the line: its records are lost"
    if kind == "byte_order_mark":
        return {"1.0.128": lost, "2.0.76": "reads the line", "2.1.332": "reads the line"}
    newest = "reads the first record of the line" if kind == "two_records_one_line" else lost
    return {"1.0.128": lost, "2.0.76": lost, "2.1.332": newest}


def _severity(case: Case, damage: Damage, sound: list[int]) -> Severity:
    if damage.kind in ("blank_line", "nested_too_deeply"):
        return "info"  # measured: all three generations read past it
    if damage.kind == "invalid_utf8":
        return "warning"  # clients read such bytes as U+FFFD: the record is not lost
    if any(case.conversation.chained[r] for r in sound):
        return "error"
    return "warning"
