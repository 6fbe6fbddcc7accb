from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import xxhash

from compaction.transcript.columns import (
    BLOCK,
    RECORD,
    USAGE,
    USAGE_ITERATIONS,
    USAGE_NESTED,
    USAGE_STOP_REASON_NULL,
    Names,
    Table,
)
from compaction.transcript.damage import Damage
from compaction.transcript.kinds import (
    CLEARED_MARKER,
    KIND_OF_TYPE,
    BlockFlag,
    BlockType,
    Flag,
    RecordKind,
    block_type_of,
)
from compaction.transcript.records import AGENT_LINK, Block, CompactMetadata, Record, Usage

_BATCH = 16384
# Plain integers: combining IntFlag members costs a microsecond each, and this runs for every record.
_API_ERROR = int(Flag.API_ERROR)
_API_SYSTEM_ERROR = int(Flag.API_SYSTEM_ERROR)
_COMPACT_BOUNDARY = int(Flag.COMPACT_BOUNDARY)
_COMPACT_SUMMARY = int(Flag.COMPACT_SUMMARY)
_HAS_LOGICAL_PARENT = int(Flag.HAS_LOGICAL_PARENT)
_HAS_USAGE = int(Flag.HAS_USAGE)
_META = int(Flag.META)
_MICROCOMPACT_BOUNDARY = int(Flag.MICROCOMPACT_BOUNDARY)
_PARENT_NULL = int(Flag.PARENT_NULL)
_SIDECHAIN = int(Flag.SIDECHAIN)
_STOP_REASON_NULL = int(Flag.STOP_REASON_NULL)
_STRING_CONTENT = int(Flag.STRING_CONTENT)
_SYNTHETIC = int(Flag.SYNTHETIC)
_TOOL_RESULT = int(Flag.TOOL_RESULT)
_TOOL_USE = int(Flag.TOOL_USE)
_VISIBLE_IN_TRANSCRIPT_ONLY = int(Flag.VISIBLE_IN_TRANSCRIPT_ONLY)
_BLOCK_CLEARED = int(BlockFlag.CLEARED)
_BLOCK_EMPTY = int(BlockFlag.EMPTY)
_BLOCK_ERROR = int(BlockFlag.ERROR)
_BLOCK_HAS_IMAGE = int(BlockFlag.HAS_IMAGE)
_BLOCK_LIST_RESULT = int(BlockFlag.LIST_RESULT)
_BLOCK_STRING = int(BlockFlag.STRING)
_I32 = 2**31 - 1
SYNTHETIC_MODEL = "<synthetic>"
"""`message.model` of a message that the client wrote itself (transcript-format.md §10)."""


def key_of(text: str) -> int:
    """The 64-bit key of an id string (xxh3_64); 0 is kept for "absent"."""
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass")) or 1


@dataclass(frozen=True, slots=True)
class Boundary:
    """A compaction record's own figures (transcript-format.md §7).

    Attributes:
        record: its number.
        micro: a `microcompact_boundary` instead of a `compact_boundary`.
        trigger: "auto", "manual" or "".
        pre_tokens, post_tokens, tokens_saved: recorded tokens, None where the record does not say.
    """

    record: int
    micro: bool
    trigger: str
    pre_tokens: int | None
    post_tokens: int | None
    tokens_saved: int | None


@dataclass(slots=True)
class Index:
    """The columns of a transcript while they are filled: records, blocks, usage, interned names, damage."""

    records: Table = field(default_factory=lambda: Table(RECORD, 1024))
    blocks: Table = field(default_factory=lambda: Table(BLOCK, 1024))
    usage: Table = field(default_factory=lambda: Table(USAGE, 256))
    types: Names = field(default_factory=Names)
    versions: Names = field(default_factory=Names)
    models: Names = field(default_factory=Names)
    tools: Names = field(default_factory=Names)
    words: Names = field(default_factory=Names)
    sessions: Names = field(default_factory=lambda: Names(2**32 - 1))
    agents: Names = field(default_factory=lambda: Names(2**32 - 1))
    damage: list[Damage] = field(default_factory=list)
    boundaries: list[Boundary] = field(default_factory=list)
    agent_of_result: dict[int, str] = field(default_factory=dict)
    agent_of_tool_use: dict[int, str] = field(default_factory=dict)
    leaf_key: int = 0
    leaf_record: int = -1
    _record_rows: list[tuple[Any, ...]] = field(default_factory=list)
    _times: list[str | None] = field(default_factory=list)
    _block_rows: list[tuple[Any, ...]] = field(default_factory=list)
    _usage_rows: list[tuple[Any, ...]] = field(default_factory=list)
    _keys: dict[str, int] = field(default_factory=dict)

    @property
    def pending(self) -> int:
        """Rows added but not yet flushed into the columns."""
        return len(self._record_rows)

    def add(self, record: Record, offset: int, length: int, line: int, extra: int = 0) -> None:
        """Append one record; `offset` and `length` in bytes, `line` 1-based, `extra` flags of the caller."""
        if len(self._record_rows) >= _BATCH:
            self.flush()
        number = self.records.length + len(self._record_rows)
        kind = KIND_OF_TYPE.get(record.type, RecordKind.UNKNOWN)
        flags = extra
        if record.isSidechain:
            flags |= _SIDECHAIN
        if record.isMeta:
            flags |= _META
        if record.isCompactSummary:
            flags |= _COMPACT_SUMMARY
        if record.isVisibleInTranscriptOnly:
            flags |= _VISIBLE_IN_TRANSCRIPT_ONLY
        if record.isApiErrorMessage:
            flags |= _API_ERROR
        if record.logicalParentUuid is not None:
            flags |= _HAS_LOGICAL_PARENT
        parent = record.parentUuid
        if parent is None:
            flags |= _PARENT_NULL
        agent = record.agentId
        model = ""
        message_key = 0
        first_block = self.blocks.length + len(self._block_rows)
        message = record.message
        if message is not None:
            model = message.model or ""
            if model == SYNTHETIC_MODEL:
                flags |= _SYNTHETIC
            if message.id is not None:
                message_key = self._recent_key(message.id)
            if message.usage is not None:
                flags |= _HAS_USAGE
                if message.stop_reason is None:
                    flags |= _STOP_REASON_NULL
                self._add_usage(number, message.usage, message.stop_reason is None)
            if message.content is not None:
                flags |= self._add_content(number, message.content)
        type_name = record.type
        if kind is not RecordKind.USER and kind is not RecordKind.ASSISTANT:
            type_name = self._other(number, kind, record)
            flags |= _system_flags(kind, record)
            if kind is RecordKind.PROGRESS and record.data is not None:
                agent = agent or record.data.agentId
                if record.parentToolUseID and agent:
                    self.agent_of_tool_use.setdefault(key_of(record.parentToolUseID), agent)
        elif flags & _TOOL_RESULT and len(record.toolUseResult) > 1:
            self._link_agent(bytes(record.toolUseResult))
        self._times.append(record.timestamp)
        self._record_rows.append(
            (
                offset,
                length,
                line,
                key_of(record.uuid) if record.uuid is not None else 0,
                key_of(parent) if isinstance(parent, str) else 0,
                message_key,
                self._recent_key(record.requestId) if record.requestId is not None else 0,
                0,
                first_block,
                flags,
                self.agents.number(agent) if agent else 0,
                self.sessions.number(record.sessionId) if record.sessionId else 0,
                self.types.number(type_name),
                self.versions.number(record.version) if record.version else 0,
                self.models.number(model) if model else 0,
                kind,
            )
        )

    def add_damaged(self, offset: int, length: int, line: int) -> None:
        """Append bytes that are no record; they are shown, counted and kept in exports."""
        if len(self._record_rows) >= _BATCH:
            self.flush()
        self._times.append(None)
        first_block = self.blocks.length + len(self._block_rows)
        self._record_rows.append(
            (offset, length, line, 0, 0, 0, 0, 0, first_block, 0, 0, 0, 0, 0, 0, RecordKind.DAMAGED)
        )

    def flush(self) -> None:
        """Move what was added into the columns."""
        start = self.records.length
        self.records.extend(self._record_rows)
        self.blocks.extend(self._block_rows)
        self.usage.extend(self._usage_rows)
        if self._times:
            self.records.view()["timestamp_ms"][start:] = _milliseconds(self._times)
        self._record_rows.clear()
        self._block_rows.clear()
        self._usage_rows.clear()
        self._times.clear()

    def lengths(self) -> tuple[int, ...]:
        """How much is in it, for `cut`; everything added must have been flushed."""
        return (
            self.records.length,
            self.blocks.length,
            self.usage.length,
            len(self.damage),
            len(self.boundaries),
            self.leaf_key,
            self.leaf_record,
        )

    def cut(self, lengths: tuple[int, ...]) -> None:
        """Forget what was added after `lengths()`: the rows of a last line that has grown meanwhile."""
        self.records.length, self.blocks.length, self.usage.length = lengths[:3]
        del self.damage[lengths[3] :]
        del self.boundaries[lengths[4] :]
        self.leaf_key, self.leaf_record = lengths[5:]

    def _recent_key(self, text: str) -> int:
        """`key_of` with a small memory: the records of one response repeat the same ids."""
        key = self._keys.get(text)
        if key is None:
            if len(self._keys) > 64:
                self._keys.clear()
            key = self._keys[text] = key_of(text)
        return key

    def _other(self, number: int, kind: RecordKind, record: Record) -> str:
        if kind is RecordKind.SYSTEM and record.subtype:
            if record.subtype in ("compact_boundary", "microcompact_boundary"):
                self._add_boundary(number, record)
            return f"system/{record.subtype}"
        if kind is RecordKind.ATTACHMENT and record.attachment is not None and record.attachment.type:
            return f"attachment/{record.attachment.type}"
        if kind is RecordKind.PROGRESS and record.data is not None and record.data.type:
            return f"progress/{record.data.type}"
        if record.leafUuid and record.type == "last-prompt":
            self.leaf_key, self.leaf_record = key_of(record.leafUuid), number
        return record.type

    def _add_boundary(self, number: int, record: Record) -> None:
        micro = record.subtype == "microcompact_boundary"
        figures = (record.microcompactMetadata if micro else record.compactMetadata) or CompactMetadata()
        self.boundaries.append(
            Boundary(number, micro, figures.trigger or "", figures.preTokens, figures.postTokens, figures.tokensSaved)
        )

    def _link_agent(self, result: bytes) -> None:
        """Remember which subagent answered the tool_use of the record just added (transcript-format.md §8)."""
        if b'"agentId"' not in result:
            return
        try:
            agent = AGENT_LINK.decode(result).agentId
        except (msgspec.DecodeError, UnicodeDecodeError):
            return  # a result of another shape that only mentions the word
        key = self._block_rows[-1][2] if self._block_rows else 0
        if agent and key:
            self.agent_of_result[int(key)] = agent

    def _add_usage(self, number: int, usage: Usage, stop_reason_null: bool) -> None:
        nested = usage.cache_creation
        server = usage.server_tool_use
        details = usage.output_tokens_details
        flags = USAGE_STOP_REASON_NULL if stop_reason_null else 0
        if nested is not None:
            flags |= USAGE_NESTED
        if usage.iterations is not None and len(usage.iterations) > 1:
            flags |= USAGE_ITERATIONS
        self._usage_rows.append(
            (
                number,
                _i32(usage.input_tokens),
                _i32(usage.output_tokens),
                _i32(usage.cache_read_input_tokens),
                _i32(usage.cache_creation_input_tokens),
                _i32(nested.ephemeral_5m_input_tokens) if nested is not None else -1,
                _i32(nested.ephemeral_1h_input_tokens) if nested is not None else -1,
                _i32(details.thinking_tokens, -1) if details is not None else -1,
                min(_i32(server.web_search_requests), 65535) if server is not None else 0,
                min(_i32(server.web_fetch_requests), 65535) if server is not None else 0,
                self.words.number(usage.speed) if usage.speed else 0,
                self.words.number(usage.inference_geo) if usage.inference_geo else 0,
                self.words.number(usage.service_tier) if usage.service_tier else 0,
                flags,
            )
        )

    def _add_content(self, number: int, content: str | list[Block]) -> int:
        if isinstance(content, str):
            flag = _BLOCK_STRING | (0 if content else _BLOCK_EMPTY)
            self._block_rows.append((number, min(len(content), _I32), 0, 0, 0, BlockType.TEXT, flag))
            return _STRING_CONTENT
        flags = 0
        for position, block in enumerate(content):
            kind = block_type_of(block.type)
            if kind is BlockType.TOOL_USE:
                flags |= _TOOL_USE
            elif kind is BlockType.TOOL_RESULT:
                flags |= _TOOL_RESULT
            self._block_rows.append(self._block_row(number, min(position, 65535), kind, block))
        return flags

    def _block_row(self, number: int, position: int, kind: BlockType, block: Block) -> tuple[Any, ...]:
        chars, flags, key, tool = 0, 0, 0, 0
        if kind is BlockType.TEXT:
            chars = len(block.text or "")
        elif kind is BlockType.THINKING:
            chars = len(block.thinking or "")
        elif kind in (BlockType.TOOL_USE, BlockType.SERVER_TOOL_USE):
            chars = len(block.input)
            key = key_of(block.id) if block.id is not None else 0
            tool = self.tools.number(block.name or "")
        elif kind in (BlockType.TOOL_RESULT, BlockType.SERVER_TOOL_RESULT):
            key = key_of(block.tool_use_id) if block.tool_use_id is not None else 0
            chars, flags = _result(block)
        if chars == 0 and kind in (BlockType.TEXT, BlockType.THINKING, BlockType.TOOL_RESULT):
            flags |= _BLOCK_EMPTY if not flags & _BLOCK_HAS_IMAGE else 0
        if kind is BlockType.IMAGE:
            flags |= _BLOCK_HAS_IMAGE
        if block.is_error:
            flags |= _BLOCK_ERROR
        return (number, min(chars, _I32), key, tool, position, kind, flags)


def _result(block: Block) -> tuple[int, int]:
    content = block.content
    if isinstance(content, str):
        return len(content), _BLOCK_CLEARED if content == CLEARED_MARKER else 0
    if not isinstance(content, list):
        return 0, 0
    flags = _BLOCK_LIST_RESULT
    chars = 0
    for item in content:
        chars += len(item.text or "")
        if item.type in ("image", "document"):
            flags |= _BLOCK_HAS_IMAGE
    if len(content) == 1 and content[0].text == CLEARED_MARKER:
        flags |= _BLOCK_CLEARED
    return chars, flags


def _system_flags(kind: RecordKind, record: Record) -> int:
    if kind is not RecordKind.SYSTEM:
        return 0
    return {
        "compact_boundary": _COMPACT_BOUNDARY,
        "microcompact_boundary": _MICROCOMPACT_BOUNDARY,
        "api_error": _API_SYSTEM_ERROR,
    }.get(record.subtype or "", 0)


def _i32(value: int | None, missing: int = 0) -> int:
    return missing if value is None else max(-_I32, min(value, _I32))


def _milliseconds(times: list[str | None]) -> Any:
    """ISO 8601 times as milliseconds since 1970 (UTC); 0 where there is none or it cannot be read."""
    texts = [t[:-1] if t is not None and t[-1:] == "Z" else t or "NaT" for t in times]
    usual = len("2026-08-01T10:00:56.123")
    try:
        if any(len(text) != usual and text != "NaT" for text in texts):
            raise ValueError("an unusual form among them")
        stamps = np.array(texts, "datetime64[ms]")
    except ValueError:
        stamps = np.array([_one_time(t) for t in times], "datetime64[ms]")
    return np.where(np.isnat(stamps), 0, stamps.astype("<i8"))


def _one_time(text: str | None) -> np.datetime64:
    try:
        moment = datetime.fromisoformat(text or "")
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
        return np.datetime64(moment, "ms")
    except (ValueError, OverflowError):
        return np.datetime64("NaT", "ms")
