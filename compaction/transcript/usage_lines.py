from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from compaction.progress import Progress
from compaction.transcript.claude_code import ClaudeCode
from compaction.transcript.formats import Format, Position
from compaction.transcript.index import Batch, Index
from compaction.transcript.records import Block, Message, Record
from compaction.transcript.transcript import Transcript, open_transcript

_RESULT, _EMBEDDED, _USAGE = b'"tool_result"', b'"agent_progress"', b'"usage"'
_NEEDED = (b'"type":"user"', b'"cost-state"', b'"compact_boundary"', b'"type": "user"')
_HEAD, _TAIL = 2_000, 3_000
"""Bytes at the beginning and end of a line in which these words nearly always stand; looked through first."""


class _Message(Message, gc=False):
    """A message without its content."""

    content: str | list[Block] | None = msgspec.field(default=None, name="(not read)")


class _Record(Record, gc=False):
    """A record without the content of its message."""

    message: _Message | None = None


_DECODER = msgspec.json.Decoder(_Record)


class UsageLines(ClaudeCode):
    """Reads only what accounting needs: usage, the client's own totals, prompts and compactions; no content blocks.

    Tool results, file history and most progress are three quarters of a session's bytes and carry no usage of their
    own. Line numbers and offsets stay those of the file, record numbers do not, and
    damage in a line left out is not seen: for sums over many files, not for showing a session.
    """

    def _lines(self, lines: list[bytes], index: Index, at: Position, returns: bool) -> None:
        chosen = np.array([n for n, line in enumerate(lines) if _matters(line)], np.int64)
        try:
            records: list[Record] = [_DECODER.decode(lines[n]) for n in chosen.tolist()]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._one_by_one(lines, index, at, last=False)
            return
        lengths = np.fromiter(map(len, lines), np.int64, len(lines))
        ends = np.cumsum(lengths + 1)
        offsets = at.offset + ends - lengths - 1
        if returns:
            lengths -= np.fromiter((line[-1:] == b"\r" for line in lines), np.int64, len(lines))
        index.add(Batch(records, offsets[chosen], lengths[chosen], at.lines + 1 + chosen))
        at.offset += int(ends[-1]) if len(ends) else 0
        at.lines += len(lines)


def _matters(line: bytes) -> bool:
    # The quotes make these patterns match names and values of the JSON only: inside a text they are escaped.
    if line.find(_RESULT, 0, _HEAD) < 0:
        if line.find(_USAGE, -_TAIL) >= 0:
            return True
        if _RESULT not in line:
            return _USAGE in line or any(word in line for word in _NEEDED)
    return _EMBEDDED in line


def open_usage_lines(path: str | Path, progress: Progress | None = None) -> Transcript:
    """Open an input for accounting alone; other formats than Claude Code's are read in full.

    Raises:
        InputUnreadable: it cannot be opened or read.
        Cancelled: `progress.cancel()` was called.
    """
    return open_transcript(path, progress, _narrowed)


def _narrowed(found: Format) -> Format:
    return UsageLines() if type(found) is ClaudeCode else found
