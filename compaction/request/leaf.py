"""Which record a client continues from when it resumes a session (transcript-format.md §6, clients.md)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from compaction.request.rows import LoadedRows


def choose_leaf(rows: LoadedRows) -> int:
    """The slot of the leaf by the profile's rule, −1 when the client has nothing to continue."""
    alive = [row for row in range(rows.limit) if rows.alive(row)]
    rule = rows.profile.leaf
    if rule == "newest_of_all":
        return _newest(rows, alive)
    # In a subagent's own file every record is a sidechain record; there it is the conversation.
    main = [row for row in alive if rows.conversation.main[row]]
    if rule == "newest_of_main":
        return _newest(rows, main)
    return _checkpoint(rows, main)


def _newest(rows: LoadedRows, candidates: Iterable[int]) -> int:
    """The row with the latest timestamp; of equal ones the first in the file."""
    best, at = -1, -1
    for row in candidates:
        time = rows.time(row)
        if time > at:
            best, at = row, time
    return best


def _checkpoint(rows: LoadedRows, main: list[int]) -> int:
    if not main:
        return -1
    last = main[-1]
    checkpoint, explicit = _last_prompt(rows, last)
    if explicit and checkpoint is None:
        return -1  # the person rewound to before the first message
    row = checkpoint if explicit and checkpoint is not None and checkpoint >= 0 else _named_leaf(rows, last)
    seen: set[int] = set()
    while row >= 0 and not rows.speaks(row):
        if row in seen:
            return -1
        seen.add(row)
        row = rows.parent(row)
    return row if row >= 0 else -1


def _last_prompt(rows: LoadedRows, last: int) -> tuple[int | None, bool]:
    """The slot the last `last-prompt` record names (None: none) and whether the person chose it (a rewind).

    A choice holds only until the next record of the conversation is written.
    """
    t = rows.transcript
    if "last-prompt" not in t.type_names:
        return None, False
    records = np.flatnonzero(t.type_number[: rows.limit] == t.type_names.index("last-prompt"))
    if not len(records) or int(records[-1]) < rows.content(last):
        return None, False
    payload = t.payload(int(records[-1]))
    leaf = payload.get("leafUuid")
    chosen = payload.get("explicit") is True or payload.get("rewound") is True
    return (None if leaf is None else rows.slot_of_uuid(leaf)), chosen


def _named_leaf(rows: LoadedRows, last: int) -> int:
    """`last-prompt.leafUuid` while it holds, else the last row of the file.

    A boundary written after it makes it void; a row that continues past it (or past its parallel batch) wins.
    """
    t = rows.transcript
    if not t.leaf_key or t.leaf_record >= rows.limit or any(b > t.leaf_record for b in rows.boundaries()):
        return last
    named = rows.slot_of_key(t.leaf_key)
    if named < 0 or named == last:
        return last
    caller = _caller_of(rows, named)
    batch = rows.message_key(caller) if caller >= 0 else 0
    row = last
    seen: set[int] = set()
    while row >= 0 and row not in seen:
        beside = batch and row != caller and rows.message_key(row) == batch and rows.calls(row)
        if row == named or beside:
            return last
        seen.add(row)
        row = rows.parent(row)
    return named


def _caller_of(rows: LoadedRows, row: int) -> int:
    """The row with the call that `row` answers or hangs beside (its parent, over attachments), −1 for none."""
    for _ in range(rows.limit):
        if row < 0 or not rows.rides(row):
            break
        row = rows.parent(row)
    if row >= 0 and rows.is_result(row):
        row = rows.parent(row)
    return row if row >= 0 and rows.calls(row) else -1
