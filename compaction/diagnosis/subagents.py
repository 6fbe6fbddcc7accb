"""Answers of sub-agents that a session lost but the sub-agents' own files still hold (api-rules.md G6)."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from compaction.conversation import Conversation, Session
from compaction.diagnosis.view import text_of
from compaction.errors import CompactoscopeError
from compaction.transcript import RecordKind


class SubagentAnswers:
    """The last words of each sub-agent, by the id of the call that started it; files are read when first asked for."""

    def __init__(self, session: Session | None) -> None:
        self._session = session

    @cached_property
    def _conversations(self) -> dict[str, Conversation]:
        found: dict[str, Conversation] = {}
        for file in self._session.subagents if self._session is not None else ():
            if file.kind != "subagent" or not file.tool_use_id:
                continue
            try:
                found[file.tool_use_id] = file.open()
            except CompactoscopeError:
                continue  # not readable, so it holds nothing that could be used; the session view shows the error
        return found

    def answer(self, tool_use_id: str) -> str:
        """The text of the sub-agent's last reply, "" when there is no file or no reply in it."""
        conversation = self._conversations.get(tool_use_id)
        if conversation is None:
            return ""
        t = conversation.transcript
        for record in np.flatnonzero(t.kind == RecordKind.ASSISTANT)[::-1]:
            words = text_of(t.message(int(record)).get("content"))
            if words.strip():
                return words
        return ""
