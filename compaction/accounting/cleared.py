"""Results that were cleared in the file after the client had sent them: recorded usage still counts their content.

No client writes the cleared marker into a transcript (it clears in memory, and then its next usage shows it), so a
marker on record is an edit made afterwards, and usage recorded behind it is from before that edit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compaction.accounting.context import round_usage
from compaction.accounting.estimate import estimate_text_tokens
from compaction.accounting.models import TokenizerFamily
from compaction.conversation import Conversation
from compaction.transcript import CLEARED_MARKER, BlockFlag, BlockType

PERSISTED_CHARACTERS = 2_139
"""What the model sees of an output that was kept in a file of its own (transcript-format.md 10)."""
_SHORT_ANSWER = 200
"""Characters of the usual answer of a tool that changes a file, which its copy does not hold."""
_LINE_NUMBER = 7
"""Characters of the number that a file read puts before every line."""


def cleared_tokens(conversation: Conversation, until: int, family: TokenizerFamily) -> dict[int, float]:
    """Tokens that the recorded context of the response at record `until` still counts, by row of the block table.

    Estimated from the copies that the client keeps beside its results (`toolUseResult`), 0 where there is none. {} when
    nothing was cleared afterwards.
    """
    t = conversation.transcript
    marked = (t.block_type == BlockType.TOOL_RESULT) & ((t.block_flags & BlockFlag.CLEARED) != 0)
    rows = np.flatnonzero(marked & (t.block_record < until))
    rows = rows[conversation.main[t.block_record[rows]]]
    if not len(rows):
        return {}
    marker = estimate_text_tokens(CLEARED_MARKER, family)
    found = {int(row): max(0.0, _size(conversation, int(row), family) - marker) for row in rows}
    return _still_counted(conversation, found, until)


def _size(conversation: Conversation, row: int, family: TokenizerFamily) -> float:
    t = conversation.transcript
    copy = t.payload(int(t.block_record[row])).get("toolUseResult")
    return estimate_text_tokens(shown_text(copy), family)


def shown_text(copy: Any) -> str:
    """What the model saw of a result, from the copy that the client keeps of it ("" when that says nothing).

    Shapes: transcript-format.md 3; a text is an error, a list the content of an MCP result.
    """
    if isinstance(copy, str):
        return copy
    if isinstance(copy, list):
        return "\n".join(item["text"] for item in copy if isinstance(item, dict) and isinstance(item.get("text"), str))
    if not isinstance(copy, dict):
        return ""
    if "structuredPatch" in copy or "oldString" in copy:
        return " " * _SHORT_ANSWER
    if isinstance(copy.get("file"), dict):
        content = copy["file"].get("content")
        content = content if isinstance(content, str) else ""
        return content + "0" * (_LINE_NUMBER * (content.count("\n") + 1))
    if "stdout" in copy or "stderr" in copy:
        text = "\n".join(str(copy[key]) for key in ("stdout", "stderr") if copy.get(key))
        return text[:PERSISTED_CHARACTERS] if copy.get("persistedOutputPath") else text
    for key in ("content", "result"):
        if isinstance(copy.get(key), str):
            return str(copy[key])
    names = copy.get("filenames")
    if isinstance(names, list):
        return "\n".join(name for name in names if isinstance(name, str))
    return shown_text(copy.get("content")) if isinstance(copy.get("content"), list) else str(copy.get("results") or "")


def _still_counted(conversation: Conversation, found: dict[int, float], until: int) -> dict[int, float]:
    """The rows behind the last fall of the recorded context that most of what lies before it explains: a client that
    went on without that content shows it so. Falls at a compaction do not count: it may have kept the rows."""
    record_of = conversation.transcript.block_record
    first = max([int(record_of[min(found)]), *(e.boundary_record for e in conversation.epochs if e.kind != "silent")])
    records = conversation.round_first_records
    contexts = round_usage(conversation).context
    chosen = (records > first) & (records <= until) & conversation.on_chain[records] & (contexts > 0)
    records, contexts = records[chosen], contexts[chosen]
    falls = -np.diff(contexts)
    for place in np.flatnonzero(falls > 0)[::-1].tolist():
        behind = {row: tokens for row, tokens in found.items() if int(record_of[row]) > int(records[place])}
        before = sum(found.values()) - sum(behind.values())
        if before > 0 and int(falls[place]) > before / 2:
            return behind
    return found
