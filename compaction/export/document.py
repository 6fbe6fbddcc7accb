"""A session as a readable document: headings, messages and blocks in order, before any markup."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from compaction.accounting.attachments import attachment_text
from compaction.conversation import Conversation
from compaction.strategies.parts import is_client_text
from compaction.transcript import Flag, RecordKind

Role = Literal["user", "assistant", "client", "summary", "boundary"]
BlockKind = Literal["text", "thinking", "call", "result", "image", "other"]


@dataclass(frozen=True, slots=True)
class DocumentBlock:
    """One block: `title` names the tool or kind; `text` is plain text; `failed` marks an error result.

    An image has its base64 data in `text` and its media type in `title`.
    """

    kind: BlockKind
    text: str
    title: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    """One message, or the mark of a compaction.

    Attributes:
        role: who speaks; `client` is text that the client put in, `boundary` a compaction.
        round: API round, 0 before the first response of its stretch.
        line: of its first record, 1-based.
        time: as recorded, "" when absent.
        title: one line for a heading.
    """

    role: Role
    round: int
    line: int
    time: str
    title: str
    blocks: tuple[DocumentBlock, ...]


def document_entries(conversation: Conversation, end: int | None = None) -> Iterator[DocumentEntry]:
    """The main thread in file order, pieces of one response as one entry.

    Args:
        end: stop before this record (None: all).
    """
    t = conversation.transcript
    end = len(t) if end is None else end
    waiting: list[int] = []
    for record in range(end):
        if not conversation.main[record] and t.format_name == "claude-code":
            continue
        if waiting and _same_response(conversation, waiting[-1], record):
            waiting.append(record)
            continue
        if waiting:
            yield _entry(conversation, waiting)
        waiting = []
        if _shown(conversation, record):
            waiting = [record]
    if waiting:
        yield _entry(conversation, waiting)


def _shown(conversation: Conversation, record: int) -> bool:
    t = conversation.transcript
    if t.kind[record] in (RecordKind.USER, RecordKind.ASSISTANT):
        return True
    if t.kind[record] == RecordKind.SYSTEM:
        return bool(int(t.flags[record]) & (Flag.COMPACT_BOUNDARY | Flag.MICROCOMPACT_BOUNDARY))
    return t.kind[record] == RecordKind.ATTACHMENT and bool(attachment_text(t.payload(record)).strip())


def _same_response(conversation: Conversation, one: int, other: int) -> bool:
    response = int(conversation.response_of[one])
    return response >= 0 and response == int(conversation.response_of[other])


def _entry(conversation: Conversation, records: list[int]) -> DocumentEntry:
    t = conversation.transcript
    first = records[0]
    payload = t.payload(first)
    stamp = payload.get("timestamp")
    role = _role(conversation, first)
    blocks = tuple(block for record in records for block in _blocks(conversation, record))
    return DocumentEntry(
        role=role,
        round=int(conversation.round_of[first]),
        line=int(t.line[first]),
        time=stamp if isinstance(stamp, str) else "",
        title=_title(conversation, first, role),
        blocks=blocks,
    )


def _role(conversation: Conversation, record: int) -> Role:
    t = conversation.transcript
    flags = int(t.flags[record])
    if t.kind[record] == RecordKind.SYSTEM:
        return "boundary"
    if flags & Flag.COMPACT_SUMMARY:
        return "summary"
    if t.kind[record] == RecordKind.ASSISTANT:
        return "assistant"
    if t.kind[record] == RecordKind.ATTACHMENT or flags & (Flag.META | Flag.TOOL_RESULT):
        return "client"
    return "client" if is_client_text(t.preview(record)) else "user"


def _title(conversation: Conversation, record: int, role: Role) -> str:
    t = conversation.transcript
    if role == "boundary":
        details = t.payload(record).get("compactMetadata") or t.payload(record).get("microcompactMetadata")
        details = details if isinstance(details, dict) else {}
        before = details.get("preTokens")
        size = f", {before:,} tokens before" if isinstance(before, int) else ""
        what = "Tool results cleared" if int(t.flags[record]) & Flag.MICROCOMPACT_BOUNDARY else "Conversation compacted"
        return f"{what} ({details.get('trigger', 'unknown trigger')}{size})"
    if role == "assistant":
        return f"Assistant ({t.model(record)})" if t.model(record) else "Assistant"
    if role == "client":
        return "Tool results" if int(t.flags[record]) & Flag.TOOL_RESULT else f"Client ({t.type_name(record)})"
    return "Summary of the conversation so far" if role == "summary" else "User"


def _blocks(conversation: Conversation, record: int) -> Iterator[DocumentBlock]:
    t = conversation.transcript
    if t.kind[record] == RecordKind.ATTACHMENT:
        yield DocumentBlock("text", attachment_text(t.payload(record)))
        return
    for number in t.blocks_of(record):
        block = t.block(number)
        if block.get("type") == "tool_result":
            use = int(conversation.pair[number])
            yield from _result(block, t.block_tool(use) if use >= 0 else "")
        else:
            yield _block(block)


def _block(block: dict[str, Any]) -> DocumentBlock:
    kind = block.get("type")
    if kind == "text":
        return DocumentBlock("text", _text(block.get("text")))
    if kind == "thinking":
        return DocumentBlock("thinking", _text(block.get("thinking")), "Thinking")
    if kind == "redacted_thinking":
        return DocumentBlock("thinking", "", "Thinking (redacted)")
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        return DocumentBlock("call", readable_json(block.get("input", {})), _text(block.get("name")))
    source = block.get("source")
    if kind == "image" and isinstance(source, dict) and source.get("type") == "base64":
        return DocumentBlock("image", _text(source.get("data")), _text(source.get("media_type")))
    return DocumentBlock("other", readable_json(block), _text(kind))


def _result(block: dict[str, Any], tool: str) -> Iterator[DocumentBlock]:
    content, failed = block.get("content"), block.get("is_error") is True
    title = f"{tool} result" if tool else "Result without its call"
    if not isinstance(content, list):
        yield DocumentBlock("result", _text(content), title, failed)
        return
    for item in content:
        inner = _block(item) if isinstance(item, dict) else DocumentBlock("other", str(item))
        yield inner if inner.kind == "image" else DocumentBlock("result", inner.text, title, failed)


def readable_json(value: Any) -> str:
    """JSON for people: indented, non-ASCII as it is."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def safe_utf8(text: str) -> bytes:
    """UTF-8 of a text whose lone surrogates become the replacement character: a document has to be readable."""
    return (
        text.encode("utf-8", "replace")
        if text.isascii()
        else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")
    )
