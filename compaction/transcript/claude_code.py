from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import orjson

from compaction.progress import Progress
from compaction.transcript.damage import Damage, decode_object, take_apart
from compaction.transcript.formats import Position
from compaction.transcript.index import Index
from compaction.transcript.kinds import Flag
from compaction.transcript.records import DECODER, from_object
from compaction.transcript.source import Source, read_chunks

_PUBLISH_AFTER = (2_000, 20_000, 200_000)
"""Records after which a partial model is worth showing: each shows ten times more than the one before, so that all
rebuilds together cost less than the last."""


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
            for line in lines:
                self._line(line, index, at, last=False)
                if mark is not None and index.records.length + index.pending >= mark:
                    mark = next(marks, None)
                    index.flush()
                    yield
            if last:
                carried.append(last)
            progress.done = at.offset
        index.flush()
        at.complete = index.lengths()
        tail = b"".join(carried)
        at.pending = len(tail)
        if tail:
            # A last line without its ending: shown as far as it goes, and read again when the file has grown.
            self._line(tail, index, Position(at.offset, at.lines), last=True)
            index.flush()
        progress.done = size

    def _line(self, line: bytes, index: Index, at: Position, *, last: bool) -> None:
        at.lines += 1
        offset = at.offset
        at.offset += len(line) + 1
        if line[-1:] == b"\r":
            line = line[:-1]
        try:
            record = DECODER.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._recover(line, index, offset, at.lines, last=last)
            return
        index.add(record, offset, len(line), at.lines)

    def _recover(self, line: bytes, index: Index, offset: int, number: int, *, last: bool) -> None:
        pieces, kind = take_apart(line, last=last)
        recovered = kept = 0
        for piece in pieces:
            if piece.value is None:
                index.add_damaged(offset + piece.start, piece.end - piece.start, number)
                continue
            recovered += 1
            kept += piece.end - piece.start
            index.add(from_object(piece.value), offset + piece.start, piece.end - piece.start, number, Flag.LENIENT)
        if kind:
            lost = sum(piece.end - piece.start for piece in pieces if piece.value is None)
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
