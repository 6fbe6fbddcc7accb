"""Requests that the client recorded itself: rebuilt exactly and proven message by message (clients.md).

`api-request` names the request it extends (`base`), how many of its messages stay (`keep`) and the hashes of those it
appends (`tail`); `api-request-shape` holds system and tools; `api-request-blob` holds messages that no record holds as
such. A hash is the SHA-256 of the message as JSON with sorted keys, no spaces, `cache_control` removed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from compaction.conversation import Conversation
from compaction.request.entries import entry_of, text
from compaction.request.wire import Json, Origin, WireMessage, WireRequest
from compaction.transcript import RecordKind

_SURROGATE = re.compile("[\ud800-\udfff]")


def wire_hash(message: Json) -> str:
    """The client's hash of one wire message."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    if isinstance(content, str):
        blocks = [{"type": "text", "text": content}]
    plain = {**message, "content": [without_cache_control(b) for b in blocks]}
    words = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    # Lone surrogates are written as escapes (well-formed JSON.stringify), everything else as it is.
    words = _SURROGATE.sub(lambda m: f"\\u{ord(m.group()):04x}", words)
    return hashlib.sha256(words.encode()).hexdigest()


def without_cache_control(block: Any) -> Any:
    """The block without its cache marker; key order kept."""
    if not isinstance(block, dict) or "cache_control" not in block:
        return block
    return {key: value for key, value in block.items() if key != "cache_control"}


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One `api-request` record: `hashes` are those it appends to the first `keep` of `base`."""

    record: int
    line: int
    base: str
    keep: int
    hashes: list[str]
    shape: str
    params: Json
    source: str


class RecordedRequests:
    """Every recorded request of a transcript, by id; shapes and blobs by hash."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.requests: dict[str, RequestRecord] = {}
        self.blobs: dict[str, int] = {}
        self.shapes: dict[str, int] = {}
        t = conversation.transcript
        for record in np.flatnonzero(t.kind == RecordKind.API_REQUEST):
            self._add(int(record), t.payload(int(record)))

    def _add(self, record: int, payload: Json) -> None:
        kind = payload.get("type")
        if kind == "api-request-blob":
            self.blobs[text(payload.get("hash"))] = record
        elif kind == "api-request-shape":
            self.shapes[text(payload.get("shapeHash"))] = record
        elif kind == "api-request":
            keep, tail, params = payload.get("keep"), payload.get("tail"), payload.get("params")
            self.requests[text(payload.get("id"))] = RequestRecord(
                record,
                int(self.conversation.transcript.line[record]),
                text(payload.get("base")),
                keep if isinstance(keep, int) else 0,
                [text(h) for h in tail] if isinstance(tail, list) else [],
                text(payload.get("shapeHash")),
                params if isinstance(params, dict) else {},
                text(payload.get("querySource")),
            )

    def of_round(self, number: int) -> str:
        """The id of the request that led to API round `number`'s response, "" when none is recorded."""
        found = self.conversation.round(number)
        for record in self.conversation.response_records(found.response):
            if found.first_record <= record < found.end_record:
                reference = text(self.conversation.transcript.payload(record).get("requestRef"))
                if reference in self.requests:
                    return reference
        return ""

    def hashes(self, request: str) -> tuple[list[str], int]:
        """The hashes of all messages of a request, and how many of the first of them are lost with a missing base."""
        steps = []
        seen: set[str] = set()
        while request and request not in seen and request in self.requests:
            seen.add(request)
            steps.append(self.requests[request])
            request = self.requests[request].base
        out: list[str] = []
        lost = 0
        for step in reversed(steps):
            if step.keep > len(out) + lost:
                lost = step.keep - len(out)
            out = out[: max(0, step.keep - lost)] + step.hashes
        return out, lost

    def sends_system_turns(self, model: str) -> bool:
        """Whether a recorded request for `model` held a mid-conversation system message."""
        t = self.conversation.transcript
        system = {h for h, record in self.blobs.items() if _role(t.payload(record)) == "system"}
        return bool(system) and any(
            request.params.get("model") == model and not system.isdisjoint(request.hashes)
            for request in self.requests.values()
        )

    def shape(self, request: str) -> tuple[list[Json] | None, list[Json] | None]:
        """System blocks and tool definitions of a request, None where they are not recorded."""
        record = self.shapes.get(self.requests[request].shape)
        if record is None:
            return None, None
        shape = self.conversation.transcript.payload(record).get("shape")
        if not isinstance(shape, dict):
            return None, None
        return _blocks(shape.get("system")), _blocks(shape.get("tools"))

    def proven(self, request: str, rebuilt: WireRequest) -> WireRequest:
        """`rebuilt` (by the generation's rules) replaced by what the hashes prove was sent.

        A message that neither the rules, a blob nor a response accounts for keeps the rebuilt one in its place (or
        none) and is named in `unaccounted`; then the request is not `hash`-verified.
        """
        found = self.requests[request]
        hashes, lost = self.hashes(request)
        messages: list[WireMessage] = []
        unaccounted: list[Json] = []
        if lost:
            words = f"the first {lost} messages of the request stand in a request record that the file does not hold"
            unaccounted.append({"kind": "missing_base", "message": words, "line": found.line})
        candidates = _Candidates(self, rebuilt)
        for index, digest in enumerate(hashes):
            message = candidates.message(digest)
            if message is None:
                unaccounted.append(_unproven(index, digest, found.line))
                message = candidates.in_place(index)
            if message is not None:
                messages.append(message)
        system, tools = self.shape(request)
        if system is None and tools is None:
            words = "the system prompt and tools of this request are not in the file"
            unaccounted.append({"kind": "missing_shape", "message": words, "line": found.line, "hash": found.shape})
        params = {key: value for key, value in found.params.items() if key not in ("model", "thinking")}
        thinking = found.params.get("thinking")
        return WireRequest(
            client=rebuilt.client,
            at=rebuilt.at,
            messages=messages,
            model=text(found.params.get("model")) or rebuilt.model,
            system=system,
            tools=tools,
            thinking=thinking if isinstance(thinking, dict) else None,
            params=params,
            unaccounted=unaccounted,
            dropped=rebuilt.dropped,
            verified="profile" if any(u["kind"] != "missing_shape" for u in unaccounted) else "hash",
        )


def _unproven(index: int, digest: str, line: int) -> Json:
    words = f"message {index} of the request has no blob and no record that gives its hash"
    return {"kind": "unproven_message", "message": words, "index": index, "hash": digest, "line": line}


def _role(payload: Json) -> str:
    message = payload.get("message")
    return text(message.get("role")) if isinstance(message, dict) else ""


def _blocks(value: object) -> list[Json] | None:
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return [without_cache_control(b) for b in value if isinstance(b, dict)] if isinstance(value, list) else None


class _Candidates:
    """Messages that the transcript offers for a hash: rebuilt ones, blobs, whole responses."""

    def __init__(self, recorded: RecordedRequests, rebuilt: WireRequest) -> None:
        self.recorded = recorded
        self.rebuilt = rebuilt.messages
        self.by_hash = {wire_hash({"role": m.role, "content": m.content}): m for m in self.rebuilt}
        self._responses: Iterator[tuple[str, WireMessage]] | None = None
        self._origins: dict[str, Origin] | None = None

    def message(self, digest: str) -> WireMessage | None:
        found = self.by_hash.get(digest)
        if found is None:
            found = self._from_blob(digest) or self._from_responses(digest)
            if found is not None:
                self.by_hash[digest] = found
        return found

    def in_place(self, index: int) -> WireMessage | None:
        """The rebuilt message at the same place, for lack of a proven one."""
        return self.rebuilt[index] if index < len(self.rebuilt) else None

    def _from_blob(self, digest: str) -> WireMessage | None:
        record = self.recorded.blobs.get(digest)
        if record is None:
            return None
        message = self.recorded.conversation.transcript.payload(record).get("message")
        if not isinstance(message, dict) or wire_hash(message) != digest:
            return None
        content = message.get("content")
        given: list[Any] = content if isinstance(content, list) else [{"type": "text", "text": text(content)}]
        blocks = [without_cache_control(b) for b in given if isinstance(b, dict)]
        return WireMessage(text(message.get("role")), blocks, [self._origin(block) for block in blocks])

    def _origin(self, block: Json) -> Origin | None:
        """Where a blob's block stands in the transcript, by its result's id or its text; None when injected."""
        if self._origins is None:
            pairs = ((b, o) for m in self.rebuilt for b, o in zip(m.content, m.origins, strict=True))
            self._origins = {_identity(b): o for b, o in pairs if o is not None}
        return self._origins.get(_identity(block))

    def _from_responses(self, digest: str) -> WireMessage | None:
        """Every response of the transcript as one message, tried once each."""
        if self._responses is None:
            self._responses = self._all_responses()
        for found, message in self._responses:
            self.by_hash.setdefault(found, message)
            if found == digest:
                return message
        return None

    def _all_responses(self) -> Iterator[tuple[str, WireMessage]]:
        conversation = self.recorded.conversation
        for response in range(conversation.response_count):
            records = conversation.response_records(response)
            for group in _by_request(conversation, records):
                parts = [part for record in group for part in entry_of(conversation.transcript, record).parts]
                blocks = [without_cache_control(part.block) for part in parts]
                message = WireMessage("assistant", blocks, [part.origin for part in parts])
                yield wire_hash({"role": "assistant", "content": blocks}), message


def _by_request(conversation: Conversation, records: Iterable[int]) -> list[list[int]]:
    """A response's records, split where a re-used `message.id` belongs to another request."""
    groups: dict[str, list[int]] = {}
    for record in records:
        groups.setdefault(text(conversation.transcript.payload(record).get("requestRef")), []).append(record)
    return list(groups.values())


def _identity(block: Json) -> str:
    if block.get("type") == "tool_result":
        return "result " + text(block.get("tool_use_id"))
    if block.get("type") == "tool_use":
        return "use " + text(block.get("id"))
    if block.get("type") == "text":
        return "text " + text(block.get("text")).strip()
    return json.dumps(block, sort_keys=True)
