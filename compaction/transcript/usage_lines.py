from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from compaction.progress import Progress
from compaction.transcript.claude_code import ClaudeCode
from compaction.transcript.columns import RECORD
from compaction.transcript.formats import Format, Position
from compaction.transcript.index import SYNTHETIC_MODEL, Batch, Index, KeyMemory, milliseconds
from compaction.transcript.kinds import KIND_OF_TYPE, Flag, RecordKind
from compaction.transcript.records import Block, Message, Record
from compaction.transcript.source import Source, read_chunks
from compaction.transcript.transcript import Transcript, open_transcript

_RESULT, _EMBEDDED = b'"tool_result"', b'"agent_progress"'
_WANTED = (b'"usage"', b'"cost-state"')
_HEAD = 2_000
"""Bytes at the beginning of a line in which a tool_result's type stands, if it is one."""


class _Message(Message, gc=False):
    """A message without its content."""

    content: str | list[Block] | None = msgspec.field(default=None, name="(not read)")


class _Record(Record, gc=False):
    """A record without the content of its message and its place in the chain."""

    uuid: str | None = msgspec.field(default=None, name="(not read)")
    parentUuid: str | msgspec.UnsetType | None = msgspec.field(default=msgspec.UNSET, name="(not read either)")  # noqa: N815
    message: _Message | None = None


_DECODER = msgspec.json.Decoder(_Record)


class UsageLines(ClaudeCode):
    """Reads only the lines with usage and with the client's own totals, and of these only what accounting needs.

    The words are looked for in whole chunks, so other lines cost nothing but the search. Offsets stay those of the
    file; record and line numbers do not, chain and content are not read, and damage in a line left out is not seen:
    for sums over many files, not for showing a session.
    """

    def index(self, source: Source, index: Index, at: Position, progress: Progress) -> Iterator[None]:
        size = source.size()
        progress.total, progress.unit = size, "bytes"
        carried: list[bytes] = []
        for chunk in read_chunks(source, at.offset, size):
            progress.check()
            end = chunk.rfind(b"\n") + 1
            if not end:
                carried.append(chunk)
                continue
            self._whole_lines(b"".join([*carried, chunk]) if carried else chunk, index, at)
            carried = [chunk[end:]] if end < len(chunk) else []
            progress.done = at.offset
        at.complete = index.lengths()
        tail = b"".join(carried)
        at.pending = len(tail)
        if any(word in tail for word in _WANTED) and _matters(tail, 0, len(tail)):
            self._one_by_one([tail], index, Position(at.offset, at.lines), last=True)
        progress.done = size
        yield from ()

    def _whole_lines(self, data: bytes, index: Index, at: Position) -> None:
        """Index what matters in some whole lines; `data` may go on behind them."""
        end_of_lines = data.rfind(b"\n") + 1
        view = memoryview(data)
        records: list[Record] = []
        offsets: list[int] = []
        lengths: list[int] = []
        decode, base = _DECODER.decode, at.offset
        for start, end in _spans(data, end_of_lines):
            if not _matters(data, start, end):
                continue
            try:
                records.append(decode(view[start:end]))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                _add(index, records, offsets, lengths)
                records, offsets, lengths = [], [], []
                batch = Batch()
                self._recover(data[start:end].rstrip(b"\r"), index, batch, base + start, 0, last=False)
                index.add(batch)
                continue
            offsets.append(base + start)
            lengths.append(end - start)
        _add(index, records, offsets, lengths)
        at.offset += end_of_lines


def _add(index: Index, records: list[Record], offsets: list[int], lengths: list[int]) -> None:
    """`Index.add` without what is not read: chain, content, versions, line numbers."""
    if not records:
        return
    messages = [r.message for r in records]
    index.add_usage(index.records.length, messages)
    keys = KeyMemory()
    rows = np.zeros(len(records), RECORD)
    types = [r.type if r.data is None or r.data.type is None else f"{r.type}/{r.data.type}" for r in records]
    rows["offset"], rows["length"] = offsets, lengths
    rows["message_key"] = keys.of([m.id if m is not None else None for m in messages])
    rows["request_key"] = keys.of([r.requestId for r in records])
    rows["timestamp_ms"] = milliseconds([r.timestamp for r in records])
    rows["flags"] = [
        (Flag.SIDECHAIN if r.isSidechain else 0)
        | (Flag.SYNTHETIC if m is not None and m.model == SYNTHETIC_MODEL else 0)
        for r, m in zip(records, messages, strict=True)
    ]
    rows["agent"] = index.agents.of([r.agentId or (r.data.agentId if r.data is not None else None) for r in records])
    rows["session"] = index.sessions.of([r.sessionId for r in records])
    rows["type"] = index.types.of(types)
    rows["model"] = index.models.of([m.model if m is not None else None for m in messages])
    rows["kind"] = [KIND_OF_TYPE.get(r.type, RecordKind.UNKNOWN) for r in records]
    rows["first_block"] = index.blocks.length
    index.records.extend(rows)


def _spans(data: bytes, limit: int) -> list[tuple[int, int]]:
    """Start and end of the whole lines that hold one of the words, in order."""
    found: dict[int, int] = {}
    for word in _WANTED:
        place = data.find(word, 0, limit)
        while place >= 0:
            end = data.find(b"\n", place)
            found[data.rfind(b"\n", 0, place) + 1] = end
            place = data.find(word, end, limit)
    return sorted(found.items())


def _matters(data: bytes, start: int, end: int) -> bool:
    """Whether a line that holds one of the words can hold a response's usage."""
    # The quotes make these patterns match names and values of the JSON only: inside a text they are escaped. A result's
    # own usage (of a subagent) is a copy for the window.
    return data.find(_RESULT, start, min(start + _HEAD, end)) < 0 or data.find(_EMBEDDED, start, end) >= 0


def open_usage_lines(path: str | Path, progress: Progress | None = None) -> Transcript:
    """Open an input for accounting alone; other formats than Claude Code's are read in full.

    Raises:
        InputUnreadable: it cannot be opened or read.
        Cancelled: `progress.cancel()` was called.
    """
    return open_transcript(path, progress, _narrowed)


def _narrowed(found: Format) -> Format:
    return UsageLines() if type(found) is ClaudeCode else found
