from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

NEVER_SENT = frozenset(
    {"command_permissions", "structured_output", "prompt_snapshot", "hook_cancelled", "hook_system_message"}
)
"""Kinds of attachment that are bookkeeping of the client (transcript-format.md 9, partly inferred there)."""

_TEXT_KEYS = ("content", "text", "addedLines", "addedBlocks", "prompt", "snippet", "files", "todos", "items")
"""Fields that hold the text which is sent, over all kinds; the others repeat it for the window or are bookkeeping."""


def attachment_text(payload: Mapping[str, Any]) -> str:
    """The text that an attachment record adds to the request, "" when it adds none.

    Clients from 2.1.237 on record the exact text (`rendered`); before, the fields that carry it are joined.
    """
    attachment = payload.get("attachment")
    if not isinstance(attachment, Mapping):
        return ""
    rendered = payload.get("rendered", attachment.get("rendered"))
    if rendered is not None:
        return "\n".join(_strings(rendered))
    if attachment.get("type") in NEVER_SENT:
        return ""
    return "\n".join(text for key in _TEXT_KEYS for text in _strings(attachment.get(key)))


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    """Every text of a nested value but images' data; as deep as such records go."""
    if isinstance(value, str):
        yield value
    elif depth < 8 and isinstance(value, list):
        for item in value:
            yield from _strings(item, depth + 1)
    elif depth < 8 and isinstance(value, Mapping):
        for key, item in value.items():
            if key not in ("type", "source", "uuid", "id", "role"):
                yield from _strings(item, depth + 1)
