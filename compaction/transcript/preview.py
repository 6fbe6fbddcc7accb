from __future__ import annotations

import re
from typing import Any

_TERMINAL_COLOURS = re.compile(r"\x1b\[[0-9;:?]*[A-Za-z]")
_KEYS = (
    "text",
    "thinking",
    "content",
    "summary",
    "lastPrompt",
    "aiTitle",
    "customTitle",
    "agentName",
    "rendered",
    "prompt",
    "output",
    "command",
    "operation",
    "hookName",
    "prUrl",
    "mode",
    "permissionMode",
    "durationMs",
    "id",
    "hash",
    "messageId",
)
"""Members that tell most about a record or block, the best first."""


def preview_of(value: Any, limit: int) -> str:
    """One line of plain text for a decoded record, block or text: whitespace collapsed, control characters shown as
    `·`, at most `limit` characters (with `…` when more was left out)."""
    text = _describe(value, limit * 4)
    if "\x1b" in text:
        text = _TERMINAL_COLOURS.sub("", text)
    line = " ".join(text[: limit * 4].split())
    if not line.isprintable():
        line = "".join(c if c.isprintable() else "·" for c in line)
    return line if len(line) <= limit else line[: max(limit - 1, 0)] + "…"


def _describe(value: Any, budget: int) -> str:
    if isinstance(value, str):
        return value[:budget]
    if isinstance(value, list):
        parts: list[str] = []
        size = 0
        for item in value:
            part = _describe(item, budget)
            parts.append(part)
            size += len(part)
            if size > budget:
                break
        return "  ".join(p for p in parts if p)
    if isinstance(value, dict):
        return _describe_object(value, budget)
    return "" if value is None else str(value)


def _describe_object(value: dict[str, Any], budget: int) -> str:
    message = value.get("message")
    if isinstance(message, dict) and "content" in message:
        return _describe(message["content"], budget)
    kind = value.get("type")
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        return f"{value.get('name', '')}  {_describe_input(value.get('input'), budget)}"
    if kind in ("image", "document"):
        source = value.get("source")
        media = source.get("media_type", "") if isinstance(source, dict) else ""
        return f"[{kind} {media}]".replace(" ]", "]")
    if kind == "tool_reference":
        return f"[tool {value.get('tool_name', '')}]"
    for inner in ("attachment", "data", "snapshot", "error"):
        if isinstance(value.get(inner), dict) and not isinstance(value.get("content"), str):
            return _describe_object(value[inner], budget)
    for key in _KEYS:
        found = value.get(key)
        if found:
            return _describe(found, budget)
    if kind in ("thinking", "redacted_thinking"):
        return "(thinking not recorded, signature only)"
    return ""


def _describe_input(value: Any, budget: int) -> str:
    """A tool's input: its most telling argument first."""
    if not isinstance(value, dict):
        return _describe(value, budget)
    for key in ("command", "file_path", "path", "pattern", "query", "url", "description", "prompt", "skill"):
        if isinstance(value.get(key), str):
            return str(value[key])[:budget]
    return "  ".join(f"{k}: {_describe(v, 200)}" for k, v in list(value.items())[:8])
