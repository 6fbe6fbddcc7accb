"""Small sessions as records, for the accounting tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from compaction.conversation import Conversation, build_conversation
from compaction.transcript import Transcript, transcript_from_bytes

SESSION = "5b0c6f5e-0000-4000-8000-000000000001"


class SessionBuilder:
    """Writes records of one session as Claude Code would, each continuing the one before."""

    def __init__(self, version: str = "2.1.50", model: str = "claude-sonnet-4-6", session: str = SESSION) -> None:
        self.version, self.model, self.session = version, model, session
        self.records: list[dict[str, Any]] = []
        self.seconds = 0
        self._last: str | None = None

    def _add(self, kind: str, **fields: Any) -> dict[str, Any]:
        self.seconds += 1
        minutes, seconds = divmod(self.seconds, 60)
        hours, minutes = divmod(minutes, 60)
        record = {
            "parentUuid": self._last, "isSidechain": False, "sessionId": self.session, "version": self.version,
            "type": kind, "uuid": f"{self.session}-{len(self.records):04d}",
            "timestamp": f"2026-11-02T{hours:02d}:{minutes:02d}:{seconds:02d}.000Z", **fields,
        }  # fmt: skip
        self._last = record["uuid"]
        self.records.append(record)
        return record

    def prompt(self, text: str, **fields: Any) -> dict[str, Any]:
        return self._add("user", message={"role": "user", "content": text}, **fields)

    def result(self, use: str, content: Any) -> dict[str, Any]:
        block = {"type": "tool_result", "tool_use_id": use, "content": content}
        return self._add("user", message={"role": "user", "content": [block]})

    def answer(
        self, identity: str, *blocks: dict[str, Any], request: str | None = None, stop: str | None = "end_turn",
        model: str = "", final_only_last: bool = False, **usage: Any,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """One response, a record a block, with the same usage on each."""
        added = []
        for number, block in enumerate(blocks or ({"type": "text", "text": "ok"},)):
            last = number == max(0, len(blocks) - 1)
            reason = stop if last or not final_only_last else None
            message = {"id": identity, "type": "message", "role": "assistant", "model": model or self.model,
                       "content": [block], "stop_reason": reason, "usage": usage}  # fmt: skip
            extra = {} if request is None else {"requestId": request}
            added.append(self._add("assistant", message=message, **extra))
        return added

    def boundary(self, trigger: str, pre: int, summary: str) -> None:
        self._last = None
        self._add("system", subtype="compact_boundary", content="Conversation compacted",
                  compactMetadata={"trigger": trigger, "preTokens": pre})  # fmt: skip
        self._add("user", isCompactSummary=True, isVisibleInTranscriptOnly=True,
                  message={"role": "user", "content": summary})  # fmt: skip

    def state(self, **fields: Any) -> dict[str, Any]:
        record = {"type": "cost-state", "sessionId": self.session, **fields}
        self.records.append(record)
        return record

    def wait(self, seconds: int) -> None:
        self.seconds += seconds

    def bytes(self) -> bytes:
        return lines(self.records)

    def transcript(self, name: str = "<memory>") -> Transcript:
        return transcript_from_bytes(self.bytes(), name)

    def conversation(self) -> Conversation:
        return build_conversation(self.transcript())


def lines(records: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(r, ensure_ascii=False).encode() + b"\n" for r in records)


def usage(input: int = 0, output: int = 0, read: int = 0, written: int = 0, **more: Any) -> dict[str, Any]:
    return {"input_tokens": input, "output_tokens": output, "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written, **more}  # fmt: skip


def text(words: int) -> dict[str, Any]:
    return {"type": "text", "text": "word " * words}


def call(identity: str, command: str = "ls -la", name: str = "Bash") -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": name, "input": {"command": command}}
