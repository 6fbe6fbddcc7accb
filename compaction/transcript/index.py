from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt
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
from compaction.transcript.records import AGENT_LINK, Block, CompactMetadata, Message, Record, Usage

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
_TEXT_BLOCK = int(BlockType.TEXT)
_THINKING_BLOCK = int(BlockType.THINKING)
_TOOL_USE_BLOCK = int(BlockType.TOOL_USE)
_TOOL_RESULT_BLOCK = int(BlockType.TOOL_RESULT)
_IMAGE_BLOCK = int(BlockType.IMAGE)
_USE_BLOCKS = (_TOOL_USE_BLOCK, int(BlockType.SERVER_TOOL_USE))
_RESULT_BLOCKS = (_TOOL_RESULT_BLOCK, int(BlockType.SERVER_TOOL_RESULT))
_EMPTY_BLOCKS = (_TEXT_BLOCK, _THINKING_BLOCK, _TOOL_RESULT_BLOCK)
_ASSISTANT = int(RecordKind.ASSISTANT)
_SYSTEM = int(RecordKind.SYSTEM)
_ATTACHMENT = int(RecordKind.ATTACHMENT)
_PROGRESS = int(RecordKind.PROGRESS)
_DAMAGED = int(RecordKind.DAMAGED)
_UNKNOWN = int(RecordKind.UNKNOWN)
SYSTEM_FLAGS = {
    "compact_boundary": _COMPACT_BOUNDARY,
    "microcompact_boundary": _MICROCOMPACT_BOUNDARY,
    "api_error": _API_SYSTEM_ERROR,
}
"""The flag of a system record, by its subtype."""
_I32 = 2**31 - 1
SYNTHETIC_MODEL = "<synthetic>"
"""`message.model` of a message that the client wrote itself (transcript-format.md §10)."""


def key_of(text: str) -> int:
    """The 64-bit key of an id string (xxh3_64); 0 is kept for "absent"."""
    try:
        return xxhash.xxh3_64_intdigest(text.encode()) or 1
    except UnicodeEncodeError:
        return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass")) or 1


class KeyMemory(dict[Any, int]):
    """`key_of` remembered while one batch is indexed: an id is mostly named twice, by its record and by its child."""

    def __init__(self) -> None:
        super().__init__({None: 0, msgspec.UNSET: 0})

    def __missing__(self, text: str) -> int:
        key = self[text] = key_of(text)
        return key

    def of(self, ids: Sequence[Any]) -> npt.NDArray[np.uint64]:
        """The keys of many ids (str, None or UNSET)."""
        for text in set(ids).difference(self):
            self[text] = key_of(text)
        return np.fromiter(map(self.__getitem__, ids), np.uint64, len(ids))


class HasUsage(Protocol):
    """What `Index.add_usage` needs of a message."""

    @property
    def usage(self) -> Usage | None: ...

    @property
    def stop_reason(self) -> str | None: ...


class _BlockKinds(dict[str, int]):
    """`block_type_of` as plain integers, remembered."""

    def __missing__(self, name: str) -> int:
        kind = self[name] = int(block_type_of(name))
        return kind


BLOCK_KIND = _BlockKinds()
"""The `BlockType` of a content block's `type`, as a plain integer."""


@dataclass(slots=True)
class Batch:
    """Records in file order, with their places: offsets and lengths in bytes, 1-based lines, the caller's flags.

    `extras` is empty when no record has any.
    """

    records: list[Record] = field(default_factory=list)
    offsets: Any = field(default_factory=list)
    lengths: Any = field(default_factory=list)
    lines: Any = field(default_factory=list)
    extras: list[int] = field(default_factory=list)

    def append(self, record: Record, offset: int, length: int, line: int, extra: int = 0) -> None:
        """Add one record to a batch whose places are lists."""
        self.records.append(record)
        self.offsets.append(offset)
        self.lengths.append(length)
        self.lines.append(line)
        self.extras.append(extra)


DAMAGED_RECORD = Record(type="\0damaged")
"""Stands for bytes that are no record; they are shown, counted and kept in exports."""
_KIND = {name: int(kind) for name, kind in KIND_OF_TYPE.items()} | {DAMAGED_RECORD.type: _DAMAGED}


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

    def add(self, batch: Batch) -> None:
        """Append a batch of records in file order; column by column, because a loop over records is several times
        slower than one comprehension a column."""
        records = batch.records
        if not records:
            return
        start = self.records.length
        keys = KeyMemory()
        types = [r.type for r in records]
        kinds = [_KIND.get(t, _UNKNOWN) for t in types]
        messages = [r.message for r in records]
        flags = self._flags(records, messages, batch.extras)
        first_block, content_flags, result_keys = self._add_blocks(start, messages, keys)
        flags |= content_flags
        self.add_usage(start, messages)
        flags |= self._others(start, records, kinds, types, keys, result_keys)
        rows = np.zeros(len(records), RECORD)
        rows["offset"] = batch.offsets
        rows["length"] = batch.lengths
        rows["line"] = batch.lines
        rows["uuid_key"] = keys.of([r.uuid for r in records])
        rows["parent_key"] = keys.of([r.parentUuid for r in records])
        rows["message_key"] = keys.of([m.id if m is not None else None for m in messages])
        rows["request_key"] = keys.of([r.requestId for r in records])
        rows["timestamp_ms"] = milliseconds([r.timestamp for r in records])
        rows["first_block"] = first_block
        rows["flags"] = flags
        rows["agent"] = self.agents.of([r.agentId or (r.data.agentId if r.data is not None else None) for r in records])
        rows["session"] = self.sessions.of([r.sessionId for r in records])
        rows["type"] = self.types.of(types)
        rows["version"] = self.versions.of([r.version for r in records])
        rows["model"] = self.models.of([m.model if m is not None else None for m in messages])
        rows["kind"] = kinds
        self.records.extend(rows)

    def _flags(self, records: list[Record], messages: list[Message | None], extras: list[int]) -> npt.NDArray[Any]:
        flags = np.array(extras, np.uint32) if extras else np.zeros(len(records), np.uint32)
        for flag, values in (
            (_SIDECHAIN, [r.isSidechain for r in records]),
            (_META, [r.isMeta for r in records]),
            (_COMPACT_SUMMARY, [r.isCompactSummary for r in records]),
            (_VISIBLE_IN_TRANSCRIPT_ONLY, [r.isVisibleInTranscriptOnly for r in records]),
            (_API_ERROR, [r.isApiErrorMessage for r in records]),
            (_HAS_LOGICAL_PARENT, [r.logicalParentUuid is not None for r in records]),
            (_PARENT_NULL, [r.parentUuid is None for r in records]),
            (_SYNTHETIC, [m is not None and m.model == SYNTHETIC_MODEL for m in messages]),
            (_HAS_USAGE, [m is not None and m.usage is not None for m in messages]),
            (
                _STOP_REASON_NULL,
                [m is not None and m.usage is not None and m.stop_reason is None for m in messages],
            ),
        ):
            if any(values):
                flags[np.array(values, bool)] |= flag
        return flags

    def _add_blocks(
        self, start: int, messages: list[Message | None], keys: KeyMemory
    ) -> tuple[list[int], npt.NDArray[Any], dict[int, int]]:
        """Append the content blocks; returns each record's first block, content flags, and the key of each record's
        last tool_result."""
        rows: list[tuple[int, int, int, int, int, int, int]] = []
        first_block: list[int] = []
        flags = np.zeros(len(messages), np.uint32)
        result_keys: dict[int, int] = {}
        base = self.blocks.length
        for position, message in enumerate(messages):
            first_block.append(base + len(rows))
            content = None if message is None else message.content
            if content is None:
                continue
            if isinstance(content, str):
                flag = _BLOCK_STRING if content else _BLOCK_STRING | _BLOCK_EMPTY
                rows.append((start + position, min(len(content), _I32), 0, 0, 0, 0, flag))
                flags[position] = _STRING_CONTENT
                continue
            for place, block in enumerate(content):
                kind = BLOCK_KIND[block.type]
                row = self._block_row(start + position, place if place < 65536 else 65535, kind, block, keys)
                rows.append(row)
                if kind == _TOOL_USE_BLOCK:
                    flags[position] |= _TOOL_USE
                elif kind == _TOOL_RESULT_BLOCK:
                    flags[position] |= _TOOL_RESULT
                    result_keys[position] = row[2]
        self.blocks.extend(rows)
        return first_block, flags, result_keys

    def _block_row(
        self, number: int, place: int, kind: int, block: Block, keys: KeyMemory
    ) -> tuple[int, int, int, int, int, int, int]:
        chars = flags = key = tool = 0
        if kind == _TEXT_BLOCK:
            chars = len(block.text or "")
        elif kind == _THINKING_BLOCK:
            chars = len(block.thinking or "")
        elif kind in _USE_BLOCKS:
            chars = len(block.input)
            key = keys[block.id]
            tool = self.tools.number(block.name or "")
        elif kind in _RESULT_BLOCKS:
            key = keys[block.tool_use_id]
            chars, flags = _result(block)
        if chars == 0 and kind in _EMPTY_BLOCKS and not flags & _BLOCK_HAS_IMAGE:
            flags |= _BLOCK_EMPTY
        if kind == _IMAGE_BLOCK:
            flags |= _BLOCK_HAS_IMAGE
        if block.is_error:
            flags |= _BLOCK_ERROR
        return (number, chars if chars < _I32 else _I32, key, tool, place, kind, flags)

    def add_usage(self, start: int, messages: Sequence[HasUsage | None]) -> None:
        """Append the usage of messages whose records are numbered from `start`."""
        found = [
            (start + position, m.usage, m.stop_reason is None)
            for position, m in enumerate(messages)
            if m is not None and m.usage is not None
        ]
        if not found:
            return
        usages = [usage for _, usage, _ in found]
        nested = [u.cache_creation for u in usages]
        server = [u.server_tool_use for u in usages]
        details = [u.output_tokens_details for u in usages]
        rows = np.zeros(len(found), USAGE)
        rows["record"] = [number for number, _, _ in found]
        rows["input"] = _counts([u.input_tokens or 0 for u in usages])
        rows["output"] = _counts([u.output_tokens or 0 for u in usages])
        rows["cache_read"] = _counts([u.cache_read_input_tokens or 0 for u in usages])
        rows["cache_creation"] = _counts([u.cache_creation_input_tokens or 0 for u in usages])
        rows["write_5m"] = _counts([-1 if n is None else n.ephemeral_5m_input_tokens or 0 for n in nested])
        rows["write_1h"] = _counts([-1 if n is None else n.ephemeral_1h_input_tokens or 0 for n in nested])
        rows["thinking"] = -1
        # What few sessions have is left out where the whole batch has none of it.
        if any(details):
            rows["thinking"] = _counts(
                [-1 if d is None or d.thinking_tokens is None else d.thinking_tokens for d in details]
            )
        if any(server):
            for name, counts in (
                ("web_search", [0 if s is None else s.web_search_requests or 0 for s in server]),
                ("web_fetch", [0 if s is None else s.web_fetch_requests or 0 for s in server]),
            ):
                rows[name] = np.minimum(_counts(counts), 65535)
        rows["speed"] = self.words.of([u.speed for u in usages])
        rows["geo"] = self.words.of([u.inference_geo for u in usages])
        rows["tier"] = self.words.of([u.service_tier for u in usages])
        rows["flags"] = [
            (USAGE_STOP_REASON_NULL if null else 0)
            | (USAGE_NESTED if u.cache_creation is not None else 0)
            | (USAGE_ITERATIONS if u.iterations is not None and len(u.iterations) > 1 else 0)
            for _, u, null in found
        ]
        self.usage.extend(rows)

    def _others(
        self,
        start: int,
        records: list[Record],
        kinds: list[int],
        types: list[str],
        keys: KeyMemory,
        result_keys: dict[int, int],
    ) -> npt.NDArray[Any]:
        """What only some records need: type names with subtypes, boundaries, links to subagents, the leaf."""
        flags = np.zeros(len(records), np.uint32)
        for position, key in result_keys.items():
            result = records[position].toolUseResult
            if len(result) > 1 and key:
                self._link_agent(bytes(result), key)
        for position, kind in enumerate(kinds):
            if kind <= _ASSISTANT:
                continue
            record = records[position]
            types[position] = self._type_name(start + position, kind, record)
            if kind == _SYSTEM:
                flags[position] = SYSTEM_FLAGS.get(record.subtype or "", 0)
            elif kind == _PROGRESS and record.data is not None and record.data.agentId and record.parentToolUseID:
                self.agent_of_tool_use.setdefault(keys[record.parentToolUseID], record.data.agentId)
        return flags

    def _type_name(self, number: int, kind: int, record: Record) -> str:
        if kind == _SYSTEM and record.subtype:
            if record.subtype in ("compact_boundary", "microcompact_boundary"):
                self._add_boundary(number, record)
            return f"system/{record.subtype}"
        if kind == _ATTACHMENT and record.attachment is not None and record.attachment.type:
            return f"attachment/{record.attachment.type}"
        if kind == _PROGRESS and record.data is not None and record.data.type:
            return f"progress/{record.data.type}"
        if record.leafUuid and record.type == "last-prompt":
            self.leaf_key, self.leaf_record = key_of(record.leafUuid), number
        return "" if kind == _DAMAGED else record.type

    def _add_boundary(self, number: int, record: Record) -> None:
        micro = record.subtype == "microcompact_boundary"
        figures = (record.microcompactMetadata if micro else record.compactMetadata) or CompactMetadata()
        self.boundaries.append(
            Boundary(number, micro, figures.trigger or "", figures.preTokens, figures.postTokens, figures.tokensSaved)
        )

    def _link_agent(self, result: bytes, key: int) -> None:
        """Remember which subagent answered a tool_use (transcript-format.md §8)."""
        if b'"agentId"' not in result:
            return
        try:
            agent = AGENT_LINK.decode(result).agentId
        except (msgspec.DecodeError, UnicodeDecodeError):
            return  # a result of another shape that only mentions the word
        if agent:
            self.agent_of_result[key] = agent

    def lengths(self) -> tuple[int, ...]:
        """How much is in it, for `cut`."""
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


def _counts(values: list[int]) -> npt.NDArray[np.int64]:
    """Token counts as an array, clamped to what a column holds (a hostile file may claim any integer)."""
    try:
        # Not np.clip: its own checks take longer than the work on a batch.
        return np.minimum(np.maximum(np.fromiter(values, np.int64, len(values)), -_I32), _I32)
    except OverflowError:
        return np.array([max(-_I32, min(v, _I32)) for v in values], np.int64)


_EPOCH = "1970-01-01T00:00:00.000Z"
"""A time as the client writes it, and what stands for one that is missing."""


def milliseconds(times: list[str | None]) -> Any:
    """ISO 8601 times as milliseconds since 1970 (UTC); 0 where there is none or it cannot be read."""
    stamps = _usual_times([_EPOCH if t is None else t for t in times])
    if stamps is None:
        stamps = np.array([_one_time(t) for t in times], "datetime64[ms]")
    return np.where(np.isnat(stamps), 0, stamps.astype("<i8"))


def _usual_times(texts: list[str]) -> npt.NDArray[Any] | None:
    """Times of which each has the form of `_EPOCH`, read together; None when one has another."""
    if not texts or set(map(len, texts)) != {len(_EPOCH)}:
        return None
    characters = "".join(texts)
    # An array of bytes forgets NUL characters at an end.
    if not characters.isascii() or "\0" in characters:
        return None
    rows = np.frombuffer(characters.encode(), np.uint8).reshape(len(texts), len(_EPOCH))
    if (rows[:, -1] != ord("Z")).any():
        return None
    try:
        # Without the letter: numpy reads every time as UTC, and warns of one that says so.
        return np.ascontiguousarray(rows[:, :-1]).view(f"S{len(_EPOCH) - 1}")[:, 0].astype("datetime64[ms]")
    except ValueError:
        return None


def _one_time(text: str | None) -> np.datetime64:
    try:
        moment = datetime.fromisoformat(text or "")
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
        return np.datetime64(moment, "ms")
    except (ValueError, OverflowError):
        return np.datetime64("NaT", "ms")
