from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from compaction.progress import Progress
from compaction.transcript.claude_code import decode_any
from compaction.transcript.formats import Position
from compaction.transcript.index import DAMAGED_RECORD, Batch, Index
from compaction.transcript.kinds import Flag
from compaction.transcript.records import from_object
from compaction.transcript.source import Source


class _Body(msgspec.Struct):
    messages: list[msgspec.Raw]


_BODY = msgspec.json.Decoder(_Body)
_DECODER = json.JSONDecoder(strict=False)
_SPACE = " \t\r\n"
_LINE = re.compile(rb'\{\s*"(?:type|uuid|parentUuid|isSidechain|sessionId|leafUuid|messageId)"\s*:')
"""How a session's records begin and a request never does."""


class MessagesApi:
    """A Messages-API request body: one JSON object with `messages` and optionally `system`, `tools`, `model`.

    Each message is a record; its parent is the message before it, since the API knows only one line of messages.
    """

    name = "messages-api"
    title = "Messages API request (JSON)"
    message_path: tuple[str, ...] = ()

    def recognises(self, head: bytes, source: Source) -> bool:
        start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
        if not start.startswith(b"{") or _LINE.match(start):
            return False  # the first line is a record
        if b'"messages"' not in head and source.size() <= len(head):
            return False
        if b"\n" in start and source.size() > len(head) and _is_object(start):
            return False  # a whole object and more follows: lines, not one document
        return message_spans(source.read(0, source.size())) is not None

    def index(self, source: Source, index: Index, at: Position, progress: Progress) -> Iterator[None]:
        data = source.read(0, source.size())
        progress.total, progress.unit = len(data), "bytes"
        line, counted = 1, 0
        batch = Batch()
        for number, (start, end) in enumerate(message_spans(data) or []):
            progress.check()
            progress.done = start
            line += data.count(b"\n", counted, start)
            counted = start
            payload = self.decode(data[start:end], number, "")
            extra = 0 if payload else Flag.LENIENT
            known = payload.get("type") in ("user", "assistant", "system")
            batch.append(from_object(payload) if known else DAMAGED_RECORD, start, end - start, line, extra)
        at.offset = len(data)
        at.lines = data.count(b"\n") + (0 if data.endswith(b"\n") or not data else 1)
        index.add(batch)
        at.complete = index.lengths()
        yield

    def decode(self, data: bytes, number: int, role: str) -> dict[str, Any]:
        message = decode_any(data)
        if not isinstance(message, dict):
            return {}
        return {
            "type": message.get("role"),
            "uuid": f"messages[{number}]",
            "parentUuid": f"messages[{number - 1}]" if number else None,
            "message": {"id": f"messages[{number}]", **message} if message.get("role") == "assistant" else message,
        }

    def document(self, source: Source) -> dict[str, Any]:
        value = decode_any(source.read(0, source.size()))
        return {k: v for k, v in value.items() if k != "messages"} if isinstance(value, dict) else {}


def _is_object(head: bytes) -> bool:
    return isinstance(decode_any(head.split(b"\n", 1)[0]), dict)


def message_spans(data: bytes) -> list[tuple[int, int]] | None:
    """The byte spans of the items of the document's `messages`; None when it has no such list."""
    try:
        count = len(_BODY.decode(data).messages)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = decode_any(data)
        if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
            return None
        count = len(value["messages"])
    try:
        return _spans_in(data.decode("utf-8", "surrogateescape"), count)
    except (ValueError, RecursionError, IndexError):
        return None  # nested too deeply or damaged inside: shown line by line instead


def _spans_in(text: str, count: int) -> list[tuple[int, int]]:
    """Walk the top-level members to `messages`, then its items: exact spans, whatever the spacing."""
    at = text.index("{") + 1
    while True:
        at = _skip(text, at, _SPACE + ",")
        name, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at, _SPACE) + 1, _SPACE)
        if name == "messages":
            break
        _, at = _DECODER.raw_decode(text, at)
    spans: list[tuple[int, int]] = []
    offset = characters = 0
    at += 1
    for _ in range(count):
        at = _skip(text, at, _SPACE + ",")
        _, end = _DECODER.raw_decode(text, at)
        offset += len(text[characters:at].encode("utf-8", "surrogateescape"))
        length = len(text[at:end].encode("utf-8", "surrogateescape"))
        spans.append((offset, offset + length))
        offset, characters, at = offset + length, end, end
    return spans


def _skip(text: str, at: int, what: str) -> int:
    while text[at] in what:
        at += 1
    return at
