from __future__ import annotations

import json
from typing import Any

import msgspec


class InnerBlock(msgspec.Struct, gc=False):
    """A block inside a tool_result's list content."""

    type: str = ""
    text: str | None = None


class Block(msgspec.Struct, gc=False):
    """The fields of a content block that the index reads."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    tool_use_id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw(b"")
    content: str | list[InnerBlock] | None = None
    is_error: bool | None = None


class CacheCreation(msgspec.Struct, gc=False):
    """The nested split of cache writes by lifetime, tokens."""

    ephemeral_5m_input_tokens: int | None = None
    ephemeral_1h_input_tokens: int | None = None


class ServerToolUse(msgspec.Struct, gc=False):
    """Requests of server-side tools."""

    web_search_requests: int | None = None
    web_fetch_requests: int | None = None


class OutputDetails(msgspec.Struct, gc=False):
    """What the output tokens were."""

    thinking_tokens: int | None = None


class Usage(msgspec.Struct, gc=False):
    """`message.usage` (transcript-format.md §5)."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation: CacheCreation | None = None
    server_tool_use: ServerToolUse | None = None
    output_tokens_details: OutputDetails | None = None
    speed: str | None = None
    inference_geo: str | None = None
    service_tier: str | None = None
    iterations: list[msgspec.Raw] | None = None


class Message(msgspec.Struct, gc=False):
    """The API message of a user or assistant record."""

    id: str | None = None
    role: str | None = None
    model: str | None = None
    content: str | list[Block] | None = None
    stop_reason: str | None = None
    usage: Usage | None = None


class TypedData(msgspec.Struct, gc=False):
    """`attachment` or `data` of a progress record: only its type and agent are indexed."""

    type: str | None = None
    agentId: str | None = None


class CompactMetadata(msgspec.Struct, gc=False):
    """`compactMetadata` / `microcompactMetadata` (transcript-format.md §7)."""

    trigger: str | None = None
    preTokens: int | None = None
    postTokens: int | None = None
    tokensSaved: int | None = None


class Record(msgspec.Struct, gc=False):
    """The fields of one line that the tree, the chain and the accounting need (transcript-format.md §3)."""

    type: str = ""
    subtype: str | None = None
    uuid: str | None = None
    parentUuid: str | msgspec.UnsetType | None = msgspec.UNSET
    logicalParentUuid: str | None = None
    isSidechain: bool | None = None
    isMeta: bool | None = None
    isCompactSummary: bool | None = None
    isVisibleInTranscriptOnly: bool | None = None
    isApiErrorMessage: bool | None = None
    timestamp: str | None = None
    sessionId: str | None = None
    version: str | None = None
    agentId: str | None = None
    requestId: str | None = None
    leafUuid: str | None = None
    parentToolUseID: str | None = None
    message: Message | None = None
    attachment: TypedData | None = None
    data: TypedData | None = None
    compactMetadata: CompactMetadata | None = None
    microcompactMetadata: CompactMetadata | None = None
    toolUseResult: msgspec.Raw = msgspec.Raw(b"")


class AgentLink(msgspec.Struct):
    """The part of `toolUseResult` that names the subagent which answered (transcript-format.md §8)."""

    agentId: str | None = None


AGENT_LINK = msgspec.json.Decoder(AgentLink)
DECODER = msgspec.json.Decoder(Record)
"""Decodes a line straight into a `Record`, skipping everything else at memory speed."""

_I32 = 2**31 - 1


def from_object(value: dict[str, Any]) -> Record:
    """A `Record` from a decoded object whatever its fields hold: what has an unexpected type counts as absent.

    The reference of the fast path: for every line both give the same record (property-tested).
    """
    record = Record(
        type=_text(value, "type") or "",
        parentUuid=_text(value, "parentUuid") if "parentUuid" in value else msgspec.UNSET,
        message=_message(value.get("message")),
        attachment=_typed(value.get("attachment")),
        data=_typed(value.get("data")),
        compactMetadata=_metadata(value.get("compactMetadata")),
        microcompactMetadata=_metadata(value.get("microcompactMetadata")),
        toolUseResult=_agent_link(value.get("toolUseResult")),
    )
    for name in _TEXTS:
        setattr(record, name, _text(value, name))
    for name in _BOOLEANS:
        flag = value.get(name)
        setattr(record, name, flag if isinstance(flag, bool) else None)
    return record


_TEXTS = (
    "subtype",
    "uuid",
    "logicalParentUuid",
    "timestamp",
    "sessionId",
    "version",
    "agentId",
    "requestId",
    "leafUuid",
    "parentToolUseID",
)
_BOOLEANS = ("isSidechain", "isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")


def _text(value: dict[str, Any], name: str) -> str | None:
    found = value.get(name)
    return found if isinstance(found, str) else None


def _count(value: dict[str, Any], name: str) -> int | None:
    found = value.get(name)
    if isinstance(found, bool):
        return None
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    return found if isinstance(found, int) and -_I32 <= found <= _I32 else None


def _typed(value: Any) -> TypedData | None:
    return TypedData(_text(value, "type"), _text(value, "agentId")) if isinstance(value, dict) else None


def _metadata(value: Any) -> CompactMetadata | None:
    if not isinstance(value, dict):
        return None
    return CompactMetadata(
        _text(value, "trigger"), _count(value, "preTokens"), _count(value, "postTokens"), _count(value, "tokensSaved")
    )


def _agent_link(value: Any) -> msgspec.Raw:
    agent = value.get("agentId") if isinstance(value, dict) else None
    return (
        msgspec.Raw(msgspec.json.encode({"agentId": agent}))
        if isinstance(agent, str) and _clean(agent)
        else msgspec.Raw(b"")
    )


def _clean(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in text)


def _message(value: Any) -> Message | None:
    if not isinstance(value, dict):
        return None
    content = value.get("content")
    blocks: str | list[Block] | None = None
    if isinstance(content, str):
        blocks = content
    elif isinstance(content, list):
        blocks = [_block(item) for item in content]
    return Message(
        id=_text(value, "id"),
        role=_text(value, "role"),
        model=_text(value, "model"),
        content=blocks,
        stop_reason=_text(value, "stop_reason"),
        usage=_usage(value.get("usage")),
    )


def _block(value: Any) -> Block:
    if not isinstance(value, dict):
        return Block()
    content = value.get("content")
    inner: str | list[InnerBlock] | None = None
    if isinstance(content, str):
        inner = content
    elif isinstance(content, list):
        inner = [InnerBlock(_text(i, "type") or "", _text(i, "text")) for i in content if isinstance(i, dict)]
    error = value.get("is_error")
    return Block(
        type=_text(value, "type") or "",
        text=_text(value, "text"),
        thinking=_text(value, "thinking"),
        id=_text(value, "id"),
        tool_use_id=_text(value, "tool_use_id"),
        name=_text(value, "name"),
        input=_raw(value["input"]) if "input" in value else msgspec.Raw(b""),
        content=inner,
        is_error=error if isinstance(error, bool) else None,
    )


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value, separators=(",", ":")).encode())


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    nested = value.get("cache_creation")
    server = value.get("server_tool_use")
    details = value.get("output_tokens_details")
    iterations = value.get("iterations")
    return Usage(
        input_tokens=_count(value, "input_tokens"),
        output_tokens=_count(value, "output_tokens"),
        cache_read_input_tokens=_count(value, "cache_read_input_tokens"),
        cache_creation_input_tokens=_count(value, "cache_creation_input_tokens"),
        cache_creation=CacheCreation(
            _count(nested, "ephemeral_5m_input_tokens"), _count(nested, "ephemeral_1h_input_tokens")
        )
        if isinstance(nested, dict)
        else None,
        server_tool_use=ServerToolUse(_count(server, "web_search_requests"), _count(server, "web_fetch_requests"))
        if isinstance(server, dict)
        else None,
        output_tokens_details=OutputDetails(_count(details, "thinking_tokens")) if isinstance(details, dict) else None,
        speed=_text(value, "speed"),
        inference_geo=_text(value, "inference_geo"),
        service_tier=_text(value, "service_tier"),
        iterations=[msgspec.Raw(b"{}")] * len(iterations) if isinstance(iterations, list) else None,
    )
