from __future__ import annotations

from pathlib import Path

from compaction.progress import Progress
from compaction.transcript.claude_code import ClaudeCode
from compaction.transcript.formats import Format, Position
from compaction.transcript.index import Index
from compaction.transcript.transcript import Transcript, open_transcript

_USAGE = b'"usage"'
_BULK = (b'"tool_result"', b'"file-history-', b'"bash_progress"', b'"hook_progress"')


class UsageLines(ClaudeCode):
    """Reads only the lines that accounting needs: usage, the client's own totals, prompts and compactions.

    Three quarters of a session's bytes are tool results, file history and progress without any usage; finding that out
    costs a tenth of decoding them. Line numbers and offsets stay those of the file, record numbers do not, and damage
    in a line left out is not seen: for sums over many files, not for showing a session.
    """

    def _line(self, line: bytes, index: Index, at: Position, *, last: bool) -> None:
        if not last and _USAGE not in line and any(word in line for word in _BULK):
            at.lines += 1
            at.offset += len(line) + 1
            return
        super()._line(line, index, at, last=last)


def open_usage_lines(path: str | Path, progress: Progress | None = None) -> Transcript:
    """Open an input for accounting alone; other formats than Claude Code's are read in full.

    Raises:
        InputUnreadable: it cannot be opened or read.
        Cancelled: `progress.cancel()` was called.
    """
    return open_transcript(path, progress, _narrowed)


def _narrowed(found: Format) -> Format:
    return UsageLines() if type(found) is ClaudeCode else found
