from __future__ import annotations

from enum import IntEnum, IntFlag


class RecordKind(IntEnum):
    """What a transcript record is (transcript-format.md §4)."""

    USER = 0
    ASSISTANT = 1
    SYSTEM = 2
    ATTACHMENT = 3
    PROGRESS = 4
    SUMMARY = 5
    FILE_HISTORY = 6
    QUEUE = 7
    SESSION_STATE = 8
    API_REQUEST = 9
    COST_STATE = 10
    UNKNOWN = 11
    DAMAGED = 12


class Flag(IntFlag):
    """Facts about one record that the tree, the chain and the accounting read without decoding it."""

    SIDECHAIN = 1 << 0
    META = 1 << 1
    COMPACT_SUMMARY = 1 << 2
    VISIBLE_IN_TRANSCRIPT_ONLY = 1 << 3
    API_ERROR = 1 << 4
    SYNTHETIC = 1 << 5
    """`message.model` is `<synthetic>`: written by the client, no API call."""
    STRING_CONTENT = 1 << 6
    COMPACT_BOUNDARY = 1 << 7
    MICROCOMPACT_BOUNDARY = 1 << 8
    STOP_REASON_NULL = 1 << 9
    HAS_USAGE = 1 << 10
    TOOL_USE = 1 << 11
    TOOL_RESULT = 1 << 12
    PARENT_NULL = 1 << 13
    """`parentUuid` is present and null: a root of the chain."""
    LENIENT = 1 << 14
    """Decoded by the fall-back ladder (lone surrogate, invalid UTF-8, odd types), not by the fast path."""
    HAS_LOGICAL_PARENT = 1 << 15
    API_SYSTEM_ERROR = 1 << 16
    """`system/api_error`: an attempt that failed and was retried."""


class BlockType(IntEnum):
    """What a content block is (api.md; transcript-format.md §4)."""

    TEXT = 0
    THINKING = 1
    REDACTED_THINKING = 2
    TOOL_USE = 3
    TOOL_RESULT = 4
    IMAGE = 5
    DOCUMENT = 6
    SERVER_TOOL_USE = 7
    SERVER_TOOL_RESULT = 8
    OTHER = 9


class BlockFlag(IntFlag):
    """Facts about one content block."""

    ERROR = 1 << 0
    """`is_error` of a tool_result."""
    CLEARED = 1 << 1
    """The result's content is the cleared marker of MicroCompact (compaction.md §4)."""
    HAS_IMAGE = 1 << 2
    EMPTY = 1 << 3
    """No text at all (a thinking block with a signature only, an empty text)."""
    STRING = 1 << 4
    """The message's content is a plain string; this row stands for it."""
    LIST_RESULT = 1 << 5
    """A tool_result whose content is a list of blocks."""


CLEARED_MARKER = "[Old tool result content cleared]"
"""What MicroCompact puts in place of a cleared result (compaction.md §4)."""

KIND_OF_TYPE: dict[str, RecordKind] = {
    "user": RecordKind.USER,
    "assistant": RecordKind.ASSISTANT,
    "system": RecordKind.SYSTEM,
    "attachment": RecordKind.ATTACHMENT,
    "progress": RecordKind.PROGRESS,
    "summary": RecordKind.SUMMARY,
    "file-history-snapshot": RecordKind.FILE_HISTORY,
    "file-history-delta": RecordKind.FILE_HISTORY,
    "queue-operation": RecordKind.QUEUE,
    "api-request": RecordKind.API_REQUEST,
    "api-request-shape": RecordKind.API_REQUEST,
    "api-request-blob": RecordKind.API_REQUEST,
    "cost-state": RecordKind.COST_STATE,
    **dict.fromkeys(
        (
            "last-prompt",
            "ai-title",
            "custom-title",
            "agent-name",
            "agent-color",
            "agent-setting",
            "pr-link",
            "tag",
            "mode",
            "permission-mode",
            "atis-latch",
            "bridge-session",
            "worktree-state",
            "frame-link",
            "tools-used",
            "started",
            "result",
        ),
        RecordKind.SESSION_STATE,
    ),
}
"""Record types known from transcript-format.md §4 and clients.md; anything else is UNKNOWN and kept as it is."""

CHAINED_KINDS = (
    RecordKind.USER,
    RecordKind.ASSISTANT,
    RecordKind.SYSTEM,
    RecordKind.ATTACHMENT,
    RecordKind.PROGRESS,
)
"""Kinds that are links of the parent chain (transcript-format.md §6)."""

_BLOCK_TYPES: dict[str, BlockType] = {
    "text": BlockType.TEXT,
    "thinking": BlockType.THINKING,
    "redacted_thinking": BlockType.REDACTED_THINKING,
    "tool_use": BlockType.TOOL_USE,
    "tool_result": BlockType.TOOL_RESULT,
    "image": BlockType.IMAGE,
    "document": BlockType.DOCUMENT,
    "server_tool_use": BlockType.SERVER_TOOL_USE,
    "mcp_tool_use": BlockType.SERVER_TOOL_USE,
}


def block_type_of(name: str) -> BlockType:
    """The `BlockType` of a content block's `type`; `*_tool_result` of server tools are SERVER_TOOL_RESULT."""
    found = _BLOCK_TYPES.get(name)
    if found is not None:
        return found
    return BlockType.SERVER_TOOL_RESULT if name.endswith("_tool_result") else BlockType.OTHER
