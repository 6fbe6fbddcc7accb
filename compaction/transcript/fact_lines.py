from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from compaction.progress import Progress
from compaction.transcript.claude_code import ClaudeCode
from compaction.transcript.columns import BLOCK, RECORD
from compaction.transcript.formats import Position
from compaction.transcript.index import (
    BLOCK_KIND,
    SYNTHETIC_MODEL,
    SYSTEM_FLAGS,
    Index,
    KeyMemory,
    milliseconds,
)
from compaction.transcript.kinds import KIND_OF_TYPE, BlockFlag, BlockType, Flag, RecordKind
from compaction.transcript.records import TypedData, Usage
from compaction.transcript.source import Source
from compaction.transcript.transcript import Transcript, transcript_of

_TOGETHER = 400
"""Records whose columns are made at once: enough to spread the cost of a batch over small files."""

_PIECE_BYTES = 512 << 10
"""Decoded at once: so much, with the objects that come of it, stays in a processor's own cache."""

# Plain integers: this runs for every record and block (see `index`).
_KIND = {name: int(kind) for name, kind in KIND_OF_TYPE.items()}
_UNKNOWN = int(RecordKind.UNKNOWN)
_USES = (int(BlockType.TOOL_USE), int(BlockType.SERVER_TOOL_USE))
_TOOL_RESULT = int(BlockType.TOOL_RESULT)
_ERROR = int(BlockFlag.ERROR)
_HAS_RESULT = int(Flag.TOOL_RESULT)
_SIDECHAIN, _META, _COMPACT_SUMMARY = int(Flag.SIDECHAIN), int(Flag.META), int(Flag.COMPACT_SUMMARY)
_API_ERROR, _PARENT_NULL, _SYNTHETIC = int(Flag.API_ERROR), int(Flag.PARENT_NULL), int(Flag.SYNTHETIC)


class _Block(msgspec.Struct, gc=False):
    """A content block without its content."""

    type: str = ""
    name: str | None = None
    is_error: bool | None = None


class _Message(msgspec.Struct, gc=False):
    id: str | None = None
    model: str | None = None
    content: str | list[_Block] | None = None
    stop_reason: str | None = None
    usage: Usage | None = None


class _Record(msgspec.Struct, gc=False):
    type: str = ""
    subtype: str | None = None
    parentUuid: str | msgspec.UnsetType | None = msgspec.UNSET  # noqa: N815
    isSidechain: bool | None = None  # noqa: N815
    isMeta: bool | None = None  # noqa: N815
    isCompactSummary: bool | None = None  # noqa: N815
    isApiErrorMessage: bool | None = None  # noqa: N815
    timestamp: str | None = None
    sessionId: str | None = None  # noqa: N815
    version: str | None = None
    agentId: str | None = None  # noqa: N815
    requestId: str | None = None  # noqa: N815
    message: _Message | None = None
    data: TypedData | None = None


_DECODER = msgspec.json.Decoder(_Record)


class Part(NamedTuple):
    """What was read of one of several files, or slices of files.

    Attributes:
        first, end: the numbers of its records in the common transcript.
        whole: every line of it is one valid record; otherwise nothing of it was read, and it needs the full reader.
    """

    first: int
    end: int
    whole: bool


class _PartsSource:
    """Several pieces of memory as if they followed each other, without copying them together."""

    name = "<parts>"

    def __init__(self, parts: Sequence[bytes]) -> None:
        self.parts = parts
        self.starts = list(accumulate(map(len, parts), initial=0))

    def size(self) -> int:
        return self.starts[-1]

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset`, at most to the end of the part: no record goes on in the next one."""
        number = bisect_right(self.starts, offset) - 1
        if number >= len(self.parts):
            return b""
        start = offset - self.starts[number]
        return self.parts[number][start : start + length]


class FactLines(ClaudeCode):
    """Reads whole lines of several files at once, and of each record only what a catalogue tells of its session.

    A home folder holds thousands of small files: columns made file by file would cost more than decoding. Left out are
    the content of blocks, the ids of parents and of tool calls, boundaries' own figures and links to subagents; of the
    content blocks only calls and results are listed. `uuid_key` is 0 throughout, `parent_key` 1 where a record names
    a parent. Line numbers begin at 1 in every part.
    """

    def __init__(self) -> None:
        self.parts: list[Part] = []

    def index(self, source: Source, index: Index, at: Position, progress: Progress) -> Iterator[None]:
        assert isinstance(source, _PartsSource)
        waiting = _Waiting()
        for start, data in zip(source.starts, source.parts, strict=False):
            pieces = _pieces(data)
            if len(pieces) > 1:
                # It is read in steps that may be undone: what waits of other parts must not be undone with it.
                waiting.move_to(index)
            before, first, line = index.lengths(), index.records.length + len(waiting.records), 1
            whole = True
            for piece in pieces:
                whole = waiting.add(data[piece], start + piece.start, line)
                if not whole:
                    break
                line += len(waiting.lines[-1])
                if len(waiting.records) >= _TOGETHER:
                    waiting.move_to(index)
            if not whole and len(pieces) > 1:
                waiting = _Waiting()
                index.cut(before)
            self.parts.append(Part(first, index.records.length + len(waiting.records), whole))
        waiting.move_to(index)
        at.offset = source.size()
        at.complete = index.lengths()
        yield from ()


@dataclass(slots=True)
class _Waiting:
    """Decoded records whose columns are not made yet; places in bytes and lines, an array a part."""

    records: list[_Record] = field(default_factory=list)
    offsets: list[npt.NDArray[np.int64]] = field(default_factory=list)
    lengths: list[npt.NDArray[np.int64]] = field(default_factory=list)
    lines: list[npt.NDArray[np.int64]] = field(default_factory=list)

    def add(self, data: bytes, start: int, line: int) -> bool:
        """Decode whole lines that begin at offset `start` with line number `line`; all of them, or none and False when
        one of them is odd."""
        ends = _line_feeds(data)
        if not _between_objects(data, ends):
            return False
        try:
            # What is skipped is checked as JSON but not as UTF-8.
            if not data.isascii():
                data.decode()
            records = _DECODER.decode_lines(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        if len(records) != len(ends):
            return False
        starts = np.concatenate(([0], ends[:-1] + 1))
        self.records += records
        self.offsets.append(start + starts)
        self.lengths.append(ends - starts)
        self.lines.append(np.arange(line, line + len(ends)))
        return True

    def move_to(self, index: Index) -> None:
        """Append the columns of the records to an index."""
        records = self.records
        if not records:
            return
        start = index.records.length
        messages = [r.message for r in records]
        keys = KeyMemory()
        index.add_usage(start, messages)
        count = len(records)
        rows = np.zeros(count, RECORD)
        rows["first_block"], block_flags = _add_blocks(start, messages, index)
        rows["offset"] = np.concatenate(self.offsets)
        rows["length"] = np.concatenate(self.lengths)
        rows["line"] = np.concatenate(self.lines)
        parents = [r.parentUuid for r in records]
        rows["parent_key"] = [parent is not None and parent is not msgspec.UNSET for parent in parents]
        rows["message_key"] = keys.of([m.id if m is not None else None for m in messages])
        rows["request_key"] = keys.of([r.requestId for r in records])
        rows["timestamp_ms"] = milliseconds([r.timestamp for r in records])
        models = [m.model if m is not None else None for m in messages]
        rows["flags"] = _flags(records, parents) | block_flags
        if SYNTHETIC_MODEL in models:
            rows["flags"][[model == SYNTHETIC_MODEL for model in models]] |= _SYNTHETIC
        rows["agent"] = index.agents.of(
            [r.agentId or (r.data.agentId if r.data is not None else None) for r in records]
        )
        rows["session"] = index.sessions.of([r.sessionId for r in records])
        rows["type"] = index.types.of(
            [
                r.type if r.data is None or not r.data.type or r.type != "progress" else f"progress/{r.data.type}"
                for r in records
            ]
        )
        rows["version"] = index.versions.of([r.version for r in records])
        rows["model"] = index.models.of(models)
        rows["kind"] = np.frombuffer(bytes([_KIND.get(r.type, _UNKNOWN) for r in records]), np.uint8)
        index.records.extend(rows)
        self.records, self.offsets, self.lengths, self.lines = [], [], [], []


def _pieces(data: bytes) -> list[slice]:
    """The part in pieces of whole lines; none for an empty one."""
    found: list[slice] = []
    start = 0
    while start < len(data):
        end = len(data)
        if end - start > _PIECE_BYTES * 3 // 2:
            end = data.rfind(b"\n", start, start + _PIECE_BYTES) + 1 or data.find(b"\n", start) + 1 or end
        found.append(slice(start, end))
        start = end
    return found


def _line_feeds(data: bytes) -> npt.NDArray[np.int64]:
    """Where the line feeds are; asking for one after the other takes a third of the time of counting them."""
    found: list[int] = []
    find = data.find
    at = find(b"\n")
    while at >= 0:
        found.append(at)
        at = find(b"\n", at + 1)
    return np.array(found, np.int64)


def _between_objects(data: bytes, ends: npt.NDArray[np.int64]) -> bool:
    """Whether every line feed stands behind a closing brace and before an opening one, or at the end.

    Such a line feed is never inside an object, so that as many objects as lines are one on every line.
    """
    octets = np.frombuffer(data, np.uint8)
    if not len(ends) or ends[-1] != len(data) - 1:
        return False
    behind, before = octets[ends - 1], octets[ends[:-1] + 1]
    return bool(octets[0] == ord("{") and (behind == ord("}")).all() and (before == ord("{")).all())


def _flags(records: list[_Record], parents: list[str | msgspec.UnsetType | None]) -> npt.NDArray[np.uint32]:
    flags = np.zeros(len(records), np.uint32)
    for flag, values in (
        (_SIDECHAIN, [r.isSidechain for r in records]),
        (_PARENT_NULL, [parent is None for parent in parents]),
    ):
        if True in values:
            flags[np.array(values, bool)] |= flag
    # What few records have is looked at together.
    for position, r in enumerate(records):
        if r.isMeta or r.isCompactSummary or r.isApiErrorMessage or r.subtype is not None:
            system = SYSTEM_FLAGS.get(r.subtype or "", 0) if r.type == "system" else 0
            flags[position] |= (
                (_META if r.isMeta else 0)
                | (_COMPACT_SUMMARY if r.isCompactSummary else 0)
                | (_API_ERROR if r.isApiErrorMessage else 0)
                | system
            )
    return flags


def _add_blocks(
    start: int, messages: list[_Message | None], index: Index
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
    """List the tool calls and results; returns each record's first block and the flag of records with a result."""
    contents = [m.content if m is not None and isinstance(m.content, list) else () for m in messages]
    blocks = list(chain.from_iterable(contents))
    kinds = np.frombuffer(bytes([BLOCK_KIND[b.type] for b in blocks]), np.uint8)
    results = kinds == _TOOL_RESULT
    uses = (kinds == _USES[0]) | (kinds == _USES[1])
    chosen = np.flatnonzero(results | uses)
    positions = np.repeat(np.arange(len(contents)), list(map(len, contents)))
    rows = np.zeros(len(chosen), BLOCK)
    rows["record"] = positions[chosen] + start
    rows["type"] = kinds[chosen]
    rows["tool"][uses[chosen]] = index.tools.of([blocks[n].name for n in np.flatnonzero(uses).tolist()])
    rows["flags"][results[chosen]] = [_ERROR if blocks[n].is_error else 0 for n in np.flatnonzero(results).tolist()]
    flags = np.zeros(len(messages), np.uint32)
    flags[positions[results]] = _HAS_RESULT
    first_block = index.blocks.length + np.searchsorted(positions[chosen], np.arange(len(messages)))
    index.blocks.extend(rows)
    return first_block, flags


def read_facts(parts: Sequence[bytes]) -> tuple[Transcript, list[Part]]:
    """Read whole lines of several files into one transcript, as far as a catalogue needs it (`FactLines`).

    Args:
        parts: bytes of Claude Code files, each from the beginning of a line to behind the end of one.
    """
    reader = FactLines()
    return transcript_of(_PartsSource(parts), reader), reader.parts
