"""Small invented sessions in client format, written by hand so that each fault is in plain sight."""

from __future__ import annotations

import json
from typing import Any

from compaction.conversation import Conversation, build_conversation
from compaction.transcript import transcript_from_bytes

Json = dict[str, Any]


class Lines:
    """A session under construction: each record hangs on the one before unless `parent` says otherwise."""

    def __init__(self, version: str = "2.1.120") -> None:
        self.version = version
        self.records: list[Json] = []
        self.last: str | None = None

    def add(self, kind: str, uuid: str, parent: str | None = "", **fields: Any) -> Lines:
        number = len(self.records)
        record = {
            "parentUuid": self.last if parent == "" else parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/work/sea",
            "sessionId": "11111111-2222-4333-8444-555555555555",
            "version": self.version,
            "type": kind,
            "uuid": uuid,
            "timestamp": f"2026-09-01T08:{number // 60:02}:{number % 60:02}.000Z",
            **fields,
        }
        self.records.append(record)
        self.last = uuid
        return self

    def user(self, uuid: str, content: Any, parent: str | None = "", **fields: Any) -> Lines:
        return self.add("user", uuid, parent, message={"role": "user", "content": content}, **fields)

    def result(self, uuid: str, call: str, content: Any = "fine", parent: str | None = "", **fields: Any) -> Lines:
        block = {"type": "tool_result", "tool_use_id": call, "content": content}
        return self.user(uuid, [block], parent, toolUseResult={"stdout": "fine"}, **fields)

    def assistant(self, uuid: str, message: str, *blocks: Json, parent: str | None = "", **fields: Any) -> Lines:
        model = fields.pop("model", "claude-opus-4-6")
        content = {"id": message, "type": "message", "role": "assistant", "model": model, "content": list(blocks)}
        usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
        return self.add("assistant", uuid, parent, message={**content, "usage": usage, "stop_reason": None}, **fields)

    def call(self, uuid: str, message: str, identity: str, parent: str | None = "", **value: Any) -> Lines:
        block = {"type": "tool_use", "id": identity, "name": "Bash", "input": value or {"command": identity}}
        return self.assistant(uuid, message, block, parent=parent)

    def say(self, uuid: str, message: str, text: str = "So it is.", parent: str | None = "") -> Lines:
        return self.assistant(uuid, message, {"type": "text", "text": text}, parent=parent)

    def compaction(self, boundary: str, summary: str, **metadata: Any) -> Lines:
        given = {"trigger": "auto", "preTokens": 168_000, **metadata}
        self.add(
            "system", boundary, None, subtype="compact_boundary", content="Conversation compacted",
            logicalParentUuid=self.last, compactMetadata=given,
        )  # fmt: skip
        return self.user(summary, "Summary: the tables are half done.", isCompactSummary=True)

    def data(self) -> bytes:
        return b"".join(json.dumps(r).encode() + b"\n" for r in self.records)

    def conversation(self) -> Conversation:
        return conversation_of(self.data())


def conversation_of(data: bytes, name: str = "<sample>") -> Conversation:
    return build_conversation(transcript_from_bytes(data, name))
