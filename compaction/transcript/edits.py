"""Changes to a transcript as data, and the new file that they make: everything untouched stays byte-identical."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.transcript.document_edits import SetMember, with_members

if TYPE_CHECKING:
    from compaction.transcript.transcript import Transcript

_CHUNK = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ReplaceRecord:
    """Record `record` becomes `data` (one JSON line without its line ending)."""

    record: int
    data: bytes


@dataclass(frozen=True, slots=True)
class InsertRecord:
    """`data` becomes a line of its own behind record `after` (-1: before the first); several keep their order."""

    after: int
    data: bytes


@dataclass(frozen=True, slots=True)
class RemoveRecord:
    """Record `record` goes, with its line ending when it was alone on its line."""

    record: int


Edit = ReplaceRecord | InsertRecord | RemoveRecord | SetMember


@dataclass(frozen=True, slots=True)
class _Change:
    """All edits of one place: what the record becomes (None: stays), whether it goes, what follows it."""

    replacement: bytes | None
    removed: bool
    inserted: tuple[bytes, ...]


def apply_edits(t: Transcript, edits: Iterable[Edit], *, keep_damage: bool = True) -> Iterator[bytes]:
    """The bytes of the whole new file, in chunks of about a megabyte.

    In a Messages-API document the records are the items of `messages`, and commas take the place of line endings.
    Records without an edit, their line endings and (with `keep_damage`) whatever lies between records come out
    byte-identical. With `keep_damage=False` bytes that belong to no record are left out and records that shared a
    line get lines of their own. Inserted lines take the line ending of their neighbour.

    Raises:
        ValueError: an edit names no record, two edits contradict each other, or data holds a line ending.
    """
    edits = list(edits)
    members = [e for e in edits if isinstance(e, SetMember)]
    changes = _group(t, (e for e in edits if not isinstance(e, SetMember)))
    if t.format_name == "messages-api":
        whole = _in_document(t, changes)
        return _in_chunks(with_members(whole, members) if members else whole)
    if members:
        raise ValueError(f"a session file has no member {members[0].name!r} to set")
    pieces = _kept_whole(t, changes) if keep_damage else _records_only(t, changes)
    return _in_chunks(pieces)


def _group(t: Transcript, edits: Iterable[ReplaceRecord | InsertRecord | RemoveRecord]) -> dict[int, _Change]:
    """Edits by record, checked."""
    lines = t.format_name != "messages-api"
    replaced: dict[int, bytes] = {}
    removed: set[int] = set()
    inserted: dict[int, list[bytes]] = {}
    for edit in edits:
        place = edit.after if isinstance(edit, InsertRecord) else edit.record
        if not (-1 if isinstance(edit, InsertRecord) else 0) <= place < len(t):
            raise ValueError(f"edit of record {place}: the transcript has {len(t)}")
        if lines and not isinstance(edit, RemoveRecord) and (b"\n" in edit.data or b"\r" in edit.data):
            raise ValueError(f"edit of record {place}: a record is one line")
        if isinstance(edit, InsertRecord):
            inserted.setdefault(place, []).append(edit.data)
        elif place in replaced or place in removed:
            raise ValueError(f"two edits of record {place}")
        elif isinstance(edit, RemoveRecord):
            removed.add(place)
        else:
            replaced[place] = edit.data
    places = sorted({*replaced, *removed, *inserted})
    return {p: _Change(replaced.get(p), p in removed, tuple(inserted.get(p, ()))) for p in places}


def _kept_whole(t: Transcript, changes: dict[int, _Change]) -> Iterator[bytes]:
    """The file with the changes put in; the bytes between changed places are copied as they are."""
    position = 0
    for place, change in changes.items():
        if place < 0:
            if t.raw(0, 3) == _BYTE_ORDER_MARK:
                yield _BYTE_ORDER_MARK
                position = 3
            ending = _line_ending(t, int(t.offset[0]) + int(t.length[0])) if len(t) else b""
            for data in change.inserted:
                yield data + (ending or b"\n")
            continue
        start = int(t.offset[place])
        stop = start + int(t.length[place])
        ending = _line_ending(t, stop)
        yield from _copy(t, position, start)
        position = stop
        if change.removed:
            own_line = start == 0 or t.raw(start - 1, start) == b"\n"
            if change.inserted and not own_line:
                yield ending or b"\n"
            yield from (data + (ending or b"\n") for data in change.inserted)
            if ending and (own_line or change.inserted):
                position = stop + len(ending)
            continue
        yield t.record_bytes(place) if change.replacement is None else change.replacement
        if change.inserted:
            yield ending or b"\n"
            yield from (data + (ending or b"\n") for data in change.inserted)
            position = stop + len(ending)
    yield from _copy(t, position, t.size)


def _in_document(t: Transcript, changes: dict[int, _Change]) -> Iterator[bytes]:
    """A Messages-API document with the items of its `messages` changed.

    The bytes between two kept items stay; an item that goes takes the comma and space before it (the first one:
    after it), an item that comes in brings a comma.
    """
    if not len(t):
        yield from _copy(t, 0, t.size)
        return
    nothing = _Change(None, False, ())
    stops = [int(o) + int(n) for o, n in zip(t.offset.tolist(), t.length.tolist(), strict=True)]
    yield from _copy(t, 0, int(t.offset[0]))
    empty = True
    for data in changes.get(-1, nothing).inserted:
        yield data if empty else b"," + data
        empty = False
    for record in range(len(t)):
        change = changes.get(record, nothing)
        if not change.removed:
            if not empty:
                between = t.raw(stops[record - 1], int(t.offset[record])) if record else b","
                yield between
            yield t.record_bytes(record) if change.replacement is None else change.replacement
            empty = False
        for data in change.inserted:
            yield data if empty else b"," + data
            empty = False
    yield from _copy(t, stops[-1], t.size)


def _records_only(t: Transcript, changes: dict[int, _Change]) -> Iterator[bytes]:
    """One line per sound record, with the changes put in; what belongs to no record is left out."""
    from compaction.transcript.kinds import RecordKind

    nothing = _Change(None, False, ())
    if -1 in changes:
        yield from (data + b"\n" for data in changes[-1].inserted)
    for record in range(len(t)):
        change = changes.get(record, nothing)
        ending = _line_ending(t, int(t.offset[record]) + int(t.length[record])) or b"\n"
        if change.replacement is not None:
            yield change.replacement + ending
        elif not change.removed and t.kind[record] != RecordKind.DAMAGED:
            yield t.record_bytes(record) + ending
        yield from (data + ending for data in change.inserted)


def _line_ending(t: Transcript, stop: int) -> bytes:
    """The line ending that starts at byte `stop`, or b"" when something else or nothing follows."""
    following = t.raw(stop, stop + 2)
    if following[:1] == b"\n":
        return b"\n"
    return following if following == b"\r\n" else b""


def _copy(t: Transcript, start: int, stop: int) -> Iterator[bytes]:
    for position in range(start, stop, _CHUNK):
        yield t.raw(position, min(stop, position + _CHUNK))


def _in_chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in fewer, larger pieces: one write call per megabyte instead of one per record."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _CHUNK:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)
