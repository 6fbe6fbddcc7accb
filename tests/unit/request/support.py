"""A session written record by record, and short views of the requests made of it."""

from __future__ import annotations

import json
from typing import Any

from compaction.conversation import Conversation, build_conversation
from compaction.request import WireRequest, assemble
from compaction.transcript import transcript_from_bytes

NEW, MIDDLE, OLD = "2.1.332", "2.0.76", "1.0.128"
GENERATIONS = (NEW, MIDDLE, OLD)


class Story:
    """Builds a transcript; every record's parent is the one before it unless `parent` says otherwise."""

    def __init__(self, version: str = NEW) -> None:
        self.version = version
        self.rows: list[str] = []
        self.last: str | None = None
        self.seconds = 0

    def raw(self, record: dict[str, Any]) -> None:
        self.rows.append(json.dumps(record))

    def add(self, uuid: str, kind: str, *, parent: str | None = "", seconds: int = 10, **fields: Any) -> str:
        self.seconds += seconds
        self.raw(
            {
                "parentUuid": self.last if parent == "" else parent,
                "isSidechain": False,
                "type": kind,
                "uuid": uuid,
                "sessionId": "00000000-0000-4000-8000-000000000001",
                "version": self.version,
                "cwd": "/project",
                "timestamp": f"2026-08-01T{self.seconds // 3600:02d}:{self.seconds // 60 % 60:02d}:"
                f"{self.seconds % 60:02d}.000Z",
                **fields,
            }
        )
        self.last = uuid
        return uuid

    def user(self, uuid: str, content: Any, **fields: Any) -> str:
        return self.add(uuid, "user", message={"role": "user", "content": content}, **fields)

    def result(self, uuid: str, call: str, content: Any = "output", **fields: Any) -> str:
        block = {"type": "tool_result", "tool_use_id": call, "content": content}
        return self.user(uuid, [block], **fields)

    def assistant(self, uuid: str, response: str, *blocks: dict[str, Any], **fields: Any) -> str:
        model = fields.pop("model", "claude-sonnet-4-6")
        usage = fields.pop("usage", {"input_tokens": 10, "output_tokens": 5})
        message = {
            "id": response,
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": list(blocks),
            "stop_reason": None,
            "usage": usage,
        }
        return self.add(uuid, "assistant", message=message, **fields)

    def attachment(self, uuid: str, attachment: dict[str, Any], **fields: Any) -> str:
        return self.add(uuid, "attachment", attachment=attachment, **fields)

    def system(self, uuid: str, subtype: str, **fields: Any) -> str:
        return self.add(uuid, "system", subtype=subtype, **fields)

    def conversation(self) -> Conversation:
        return build_conversation(transcript_from_bytes(("\n".join(self.rows) + "\n").encode()))

    def request(self, client: str = NEW, at: int | None = None, **options: Any) -> WireRequest:
        return assemble(self.conversation(), client, at, **options)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(identifier: str, name: str = "Bash", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": identifier, "name": name, "input": given or {"command": "true"}}


def thinking(signature: str = "sig") -> dict[str, Any]:
    return {"type": "thinking", "thinking": "hm", "signature": signature}


def shape(request: WireRequest) -> list[str]:
    """One string a message: `user: text, tool_result a`."""
    return [f"{m.role}: {', '.join(_short(block) for block in m.content)}" for m in request.messages]


def _short(block: dict[str, Any]) -> str:
    if block["type"] == "text":
        return repr(block["text"])
    if block["type"] == "tool_use":
        return f"call {block['id']}"
    if block["type"] == "tool_result":
        return f"result {block['tool_use_id']}"
    return str(block["type"])
