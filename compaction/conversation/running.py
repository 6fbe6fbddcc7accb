from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compaction.transcript import BlockType, Flag, RecordKind

if TYPE_CHECKING:
    from compaction.conversation.conversation import Conversation


def running_calls(conversation: Conversation) -> frozenset[int]:
    """The tool_use blocks that may still be at work: calls of the newest response of the main thread without a result,
    when no prompt and no compaction came after them (then they were given up).

    Meaningful only for a session that is being written; in a finished one these calls were cut off.
    """
    t = conversation.transcript
    waiting = np.array(conversation.uses_without_result, np.int64)
    if not len(waiting):
        return frozenset()
    assistant = np.flatnonzero((t.kind == RecordKind.ASSISTANT) & conversation.main)
    newest = int(assistant[-1]) if len(assistant) else -1
    if newest < 0:
        return frozenset()
    after = slice(newest + 1, len(t))
    asked = (t.kind[after] == RecordKind.USER) & ((t.flags[after] & (Flag.TOOL_RESULT | Flag.META)) == 0)
    cut = (t.flags[after] & (Flag.COMPACT_BOUNDARY | Flag.COMPACT_SUMMARY)) != 0
    if bool(((asked | cut) & conversation.main[after]).any()):
        return frozenset()
    mine = conversation.response_of[t.block_record[waiting]] == conversation.response_of[newest]
    calls = t.block_type[waiting] == BlockType.TOOL_USE
    return frozenset(waiting[mine & calls].tolist())
