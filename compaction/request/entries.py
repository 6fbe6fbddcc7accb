"""The rows of a conversation with their decoded content: what the later steps reorder, drop and merge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from compaction.request.wire import Dropped, Json, Origin
from compaction.transcript import Transcript

THINKING_TYPES = ("thinking", "redacted_thinking")
SYNTHETIC_MODEL = "<synthetic>"


@dataclass(slots=True)
class Part:
    """One content block and where it comes from (None: the client made it)."""

    block: Json
    origin: Origin | None


@dataclass(slots=True)
class Entry:
    """One row: `role` is user, assistant, system or attachment; `payload` is shared with the decode cache."""

    role: str
    payload: Json
    record: int
    line: int
    parts: list[Part] = field(default_factory=list)
    response: str = ""
    model: str = ""

    def has(self, block_type: str) -> bool:
        """Whether one of the blocks has this type."""
        return any(part.block.get("type") == block_type for part in self.parts)

    @property
    def is_result(self) -> bool:
        """A user row with a tool_result."""
        return self.role == "user" and self.has("tool_result")

    @property
    def is_boundary(self) -> bool:
        """A compact boundary."""
        return self.role == "system" and self.payload.get("subtype") == "compact_boundary"

    @property
    def is_local_command(self) -> bool:
        """Output of a command that the client ran itself."""
        return self.role == "system" and self.payload.get("subtype") == "local_command"

    @property
    def is_client_error(self) -> bool:
        """The client's own message about a failed API call."""
        return self.payload.get("isApiErrorMessage") is True and self.model == SYNTHETIC_MODEL

    def calls(self) -> list[str]:
        """The ids of the tool calls of an assistant row."""
        if self.role != "assistant":
            return []
        return [text(p.block.get("id")) for p in self.parts if p.block.get("type") == "tool_use"]

    def answers(self) -> list[str]:
        """The tool_use ids that a user row answers."""
        if self.role != "user":
            return []
        return [text(p.block.get("tool_use_id")) for p in self.parts if p.block.get("type") == "tool_result"]

    def dropped(self, reason: str) -> Dropped:
        """The note that this whole row is not sent."""
        return Dropped(self.record, -1, reason)


def entry_of(transcript: Transcript, record: int) -> Entry:
    """The entry of one record. Content that is neither a string nor a list of objects gives no blocks."""
    payload = transcript.payload(record)
    role = text(payload.get("type"))
    line = int(transcript.line[record])
    entry = Entry(role, payload, record, line)
    message = payload.get("message")
    if role in ("user", "assistant") and isinstance(message, dict):
        entry.parts = parts_of(message.get("content"), record, line)
        entry.response = text(message.get("id"))
        entry.model = text(message.get("model"))
    return entry


def parts_of(content: Any, record: int, line: int) -> list[Part]:
    """The blocks of a message's content; a string is one text block."""
    if isinstance(content, str):
        return [Part({"type": "text", "text": content}, Origin(record, line, 0))]
    if not isinstance(content, list):
        return []
    parts = []
    for position, block in enumerate(content):
        if isinstance(block, str):
            block = {"type": "text", "text": block}
        if isinstance(block, dict):
            parts.append(Part(block, Origin(record, line, position)))
    return parts


def injected(role: str, block: Json) -> Entry:
    """An entry that the client makes; no record holds it."""
    return Entry(role, {}, -1, 0, [Part(block, None)], "", SYNTHETIC_MODEL if role == "assistant" else "")


def text_block(words: str) -> Json:
    """A text block."""
    return {"type": "text", "text": words}


def text(value: object) -> str:
    """`value` when it is a string, else ""."""
    return value if isinstance(value, str) else ""


def is_blank_text(block: Json) -> bool:
    """A text block without anything visible."""
    return block.get("type") == "text" and not text(block.get("text")).strip()
