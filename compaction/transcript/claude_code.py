from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import orjson

from compaction.progress import Progress
from compaction.transcript.damage import Damage, decode_object, take_apart
from compaction.transcript.formats import Position
from compaction.transcript.index import DAMAGED_RECORD, Batch, Index
from compaction.transcript.kinds import Flag
from compaction.transcript.records import DECODER, from_object
from compaction.transcript.source import Source, read_chunks

_PUBLISH_AFTER = (2_000, 20_000, 200_000)
"""Records after which a partial model is worth showing: each shows ten times more than the one before, so that all
rebuilds together cost less than the last."""


_LINES = 400
"""Lines decoded before they are indexed: enough to spread the cost of a batch, few enough that their texts are freed
while still in the processor's cache (measured: 30 % faster than whole chunks)."""


class ClaudeCode:
    """Claude Code's JSONL: one record a line (transcript-format.md §2). Takes every input, however damaged."""

    name = "claude-code"
    title = "Claude Code session (JSONL)"
    message_path: tuple[str, ...] = ("message",)

    def recognises(self, head: bytes, source: Source) -> bool:
        return True

    def index(self, source: Source, index: Index, at: Position, progress: Progress) -> Iterator[None]:
        size = source.size()
        progress.total, progress.unit = size, "bytes"
        marks = iter(_PUBLISH_AFTER)
        mark = next(marks, None)
        carried: list[bytes] = []
        for chunk in read_chunks(source, at.offset, size):
            progress.check()
            lines = chunk.split(b"\n")
            if len(lines) == 1:
                carried.append(chunk)
                continue
            if carried:
                carried.append(lines[0])
                lines[0] = b"".join(carried)
                carried = []
            last = lines.pop()
            for start in range(0, len(lines), _LINES):
                self._lines(lines[start : start + _LINES], index, at, b"\r" in chunk)
            if last:
                carried.append(last)
            progress.done = at.offset
            while mark is not None and index.records.length >= mark:
                mark = next(marks, None)
                if mark is None or index.records.length < mark:
                    yield
        at.complete = index.lengths()
        tail = b"".join(carried)
        at.pending = len(tail)
        if tail:
            # A last line without its ending: shown as far as it goes, and read again when the file has grown.
            self._one_by_one([tail], index, Position(at.offset, at.lines), last=True)
        progress.done = size

    def _lines(self, lines: list[bytes], index: Index, at: Position, returns: bool) -> None:
        """Index whole lines: all at once, or one by one when a line among them is odd."""
        try:
            records = list(map(DECODER.decode, lines))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._one_by_one(lines, index, at, last=False)
            return
        lengths = np.fromiter(map(len, lines), np.int64, len(lines))
        offsets = at.offset + np.cumsum(lengths + 1) - lengths - 1
        at.offset += int(lengths.sum()) + len(lines)
        if returns:
            lengths -= np.fromiter((line[-1:] == b"\r" for line in lines), np.int64, len(lines))
        index.add(Batch(records, offsets, lengths, np.arange(at.lines + 1, at.lines + 1 + len(lines))))
        at.lines += len(lines)

    def _one_by_one(self, lines: list[bytes], index: Index, at: Position, *, last: bool) -> None:
        batch = Batch()
        for line in lines:
            at.lines += 1
            offset = at.offset
            at.offset += len(line) + 1
            if line[-1:] == b"\r":
                line = line[:-1]
            try:
                batch.append(DECODER.decode(line), offset, len(line), at.lines)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self._recover(line, index, batch, offset, at.lines, last=last)
        index.add(batch)

    def _recover(self, line: bytes, index: Index, batch: Batch, offset: int, number: int, *, last: bool) -> None:
        pieces, kind = take_apart(line, last=last)
        recovered = lost = 0
        for piece in pieces:
            length = piece.end - piece.start
            if piece.value is None:
                lost += length
                batch.append(DAMAGED_RECORD, offset + piece.start, length, number)
            else:
                recovered += 1
                batch.append(from_object(piece.value), offset + piece.start, length, number, Flag.LENIENT)
        if kind:
            index.damage.append(Damage(number, kind, recovered, lost, offset, len(line)))

    def decode(self, data: bytes, number: int, role: str) -> dict[str, Any]:
        value = decode_any(data)
        return value if isinstance(value, dict) else {}

    def document(self, source: Source) -> dict[str, Any]:
        return {}


def decode_any(data: bytes) -> Any:
    """The JSON value of some bytes: strict first, then leniently; None when it is no JSON at all."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        try:
            return decode_object(data)[0]
        except ValueError:
            return None
