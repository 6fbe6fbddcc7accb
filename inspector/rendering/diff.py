"""Rows of an edit: context, removed and added lines with their line numbers."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

ALIGN_LIMIT = 2_000_000
"""Most line pairs that are aligned (lines before × lines after); beyond it all is shown removed, then added."""

CONTEXT_LINES = 3


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One row of an edit.

    Attributes:
        sign: " " context, "-" removed, "+" added, "@" a gap or a note.
        old_line, new_line: 1-based line numbers, 0 where the row has none.
        text: the line without its sign and line ending.
    """

    sign: str
    old_line: int
    new_line: int
    text: str


def rows_of_patch(hunks: object) -> list[DiffRow]:
    """Rows of a recorded `toolUseResult.structuredPatch`; hunks of another shape are left out."""
    rows: list[DiffRow] = []
    for hunk in hunks if isinstance(hunks, list) else []:
        if not isinstance(hunk, Mapping) or not isinstance(hunk.get("lines"), list):
            continue
        old_line, new_line = _number(hunk.get("oldStart")), _number(hunk.get("newStart"))
        rows.append(DiffRow("@", 0, 0, f"line {old_line:,} → line {new_line:,}"))
        for line in hunk["lines"]:
            sign, text = (str(line)[:1] or " "), str(line)[1:]
            if sign == "-":
                rows.append(DiffRow("-", old_line, 0, text))
                old_line += 1
            elif sign == "+":
                rows.append(DiffRow("+", 0, new_line, text))
                new_line += 1
            elif sign == "\\":
                rows.append(DiffRow("@", 0, 0, text.strip()))
            else:
                rows.append(DiffRow(" ", old_line, new_line, text))
                old_line += 1
                new_line += 1
    return rows


def rows_of_texts(before: str, after: str, context: int = CONTEXT_LINES) -> list[DiffRow]:
    """Rows that turn `before` into `after`, compared by lines; long equal runs are folded into a "@" row."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) * len(new) > ALIGN_LIMIT:
        return [
            DiffRow("@", 0, 0, f"{len(old):,} and {len(new):,} lines: too many to align"),
            *_run("-", old, 0),
            *_run("+", new, 0),
        ]
    rows: list[DiffRow] = []
    operations = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for number, (operation, old_start, old_end, new_start, new_end) in enumerate(operations):
        if operation == "equal":
            first, last = number == 0, number == len(operations) - 1
            rows += _folded_equal(old, old_start, old_end, new_start, 0 if first else context, 0 if last else context)
            continue
        rows += _run("-", old[old_start:old_end], old_start)
        rows += _run("+", new[new_start:new_end], new_start)
    return rows


def renumbered(rows: Sequence[DiffRow], recorded: Sequence[DiffRow]) -> list[DiffRow]:
    """Rows of an edit's own texts with the line numbers of its recorded patch.

    The recorded patch knows where in the file the edit is, but its lines have their leading tabs changed into spaces
    (measured), so its texts are not what the model wrote.
    """
    own = next((row for row in rows if row.sign in "+-"), None)
    there = next((row for row in recorded if row.sign in "+-"), None)
    if own is None or there is None or own.sign != there.sign:
        return list(rows)
    shift = (there.old_line or there.new_line) - (own.old_line or own.new_line)
    return [
        replace(
            row,
            old_line=row.old_line + shift if row.old_line else 0,
            new_line=row.new_line + shift if row.new_line else 0,
        )
        for row in rows
    ]


def counts(rows: Iterable[DiffRow]) -> tuple[int, int]:
    """How many lines are added and removed."""
    added = removed = 0
    for row in rows:
        added += row.sign == "+"
        removed += row.sign == "-"
    return added, removed


def _folded_equal(
    old: Sequence[str], old_start: int, old_end: int, new_start: int, head: int, tail: int
) -> list[DiffRow]:
    """Equal lines: the first `head` and the last `tail` are shown, the rest is counted."""
    shift = new_start - old_start
    length = old_end - old_start

    def equal(start: int, end: int) -> list[DiffRow]:
        return [DiffRow(" ", index + 1, index + shift + 1, old[index]) for index in range(start, end)]

    if head == 0:
        tail = tail or CONTEXT_LINES
    if length <= head + tail + 1:
        return equal(old_start, old_end)
    fold = DiffRow("@", 0, 0, f"{length - head - tail:,} equal lines")
    return [*equal(old_start, old_start + head), fold, *equal(old_end - tail, old_end)]


def _run(sign: str, lines: Sequence[str], start: int) -> list[DiffRow]:
    if sign == "-":
        return [DiffRow("-", start + index + 1, 0, line) for index, line in enumerate(lines)]
    return [DiffRow("+", 0, start + index + 1, line) for index, line in enumerate(lines)]


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 1
