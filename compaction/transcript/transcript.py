from __future__ import annotations

import copy
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from compaction.progress import Progress
from compaction.transcript.columns import USAGE_ITERATIONS, USAGE_NESTED, USAGE_STOP_REASON_NULL
from compaction.transcript.damage import Damage
from compaction.transcript.formats import Format, Position, format_of
from compaction.transcript.index import Boundary, Index
from compaction.transcript.kinds import RecordKind
from compaction.transcript.preview import preview_of
from compaction.transcript.source import BytesSource, FileSource, Source, is_stream, read_stream

_CACHE_BYTES = 48 << 20
_CACHE_RECORDS = 4096


@dataclass(frozen=True, slots=True)
class RecordedUsage:
    """The `usage` of one record as it stands there, in tokens (transcript-format.md §5); no rule applied yet.

    Attributes:
        cache_creation: the flat field; `cache_write_5m`, `cache_write_1h`: the nested split, None when it is missing.
        thinking_tokens: None when not recorded.
        iterations: the raw `usage.iterations` objects, () when there are fewer than two.
        stop_reason_null: the record's `stop_reason` is null, so `output_tokens` may be a placeholder.
    """

    input_tokens: int
    output_tokens: int
    cache_read: int
    cache_creation: int
    cache_write_5m: int | None
    cache_write_1h: int | None
    thinking_tokens: int | None
    web_search_requests: int
    web_fetch_requests: int
    speed: str
    geo: str
    service_tier: str
    iterations: tuple[dict[str, Any], ...]
    stop_reason_null: bool


@dataclass(frozen=True, slots=True)
class AppendResult:
    """What `Transcript.append_new` found.

    Attributes:
        first: the first record that is new or changed (a last line that was incomplete before).
        records: the number of records now.
        bytes_read: bytes read for it.
        replaced: the file became shorter or another file: nothing was read, open it anew.
    """

    first: int
    records: int
    bytes_read: int
    replaced: bool


class Transcript:
    """One opened input: its bytes, an index of its records in columns, and payloads decoded when asked for.

    Columns (numpy, one entry a record): `offset`, `length` (bytes), `line` (1-based), `kind` (`RecordKind`), `flags`
    (`Flag`), `timestamp_ms` (0 = none), `uuid_key`, `parent_key`, `message_key`, `request_key` (xxh3 of the id, 0 =
    absent), `first_block`, `session_number`, `version_number`, `model_number`, `agent_number`, `type_number` (into
    `session_names` …). One entry a content block: `block_record`, `block_position`, `block_type`, `block_chars`,
    `block_key`, `block_flags`, `block_tool_number`. `usage_table` holds the recorded usage (`columns.USAGE`).

    Reading never changes the input. Rows never change once published, except those of an incomplete last line.
    """

    def __init__(self, source: Source, path: Path | None, format_: Format) -> None:
        self.source = source
        self.path = path
        self.name = source.name
        self.format = format_
        self.format_name = format_.name
        self.size = 0
        self.line_count = 0
        self.complete = False
        self._at = Position()
        self._index = Index()
        self._inode = _identity(path)
        self._cache: OrderedDict[int, dict[str, Any]] = OrderedDict()
        self._cache_bytes = 0
        self._lock = threading.Lock()
        self._document: dict[str, Any] | None = None
        self._publish()

    def _publish(self) -> None:
        index = self._index
        records, blocks = index.records.view(), index.blocks.view()
        self.records = records
        self.offset: npt.NDArray[np.int64] = records["offset"]
        self.length: npt.NDArray[np.int32] = records["length"]
        self.line: npt.NDArray[np.int32] = records["line"]
        self.kind: npt.NDArray[np.uint8] = records["kind"]
        self.flags: npt.NDArray[np.uint32] = records["flags"]
        self.timestamp_ms: npt.NDArray[np.int64] = records["timestamp_ms"]
        self.uuid_key: npt.NDArray[np.uint64] = records["uuid_key"]
        self.parent_key: npt.NDArray[np.uint64] = records["parent_key"]
        self.message_key: npt.NDArray[np.uint64] = records["message_key"]
        self.request_key: npt.NDArray[np.uint64] = records["request_key"]
        self.first_block: npt.NDArray[np.int32] = records["first_block"]
        self.session_number: npt.NDArray[np.uint32] = records["session"]
        self.agent_number: npt.NDArray[np.uint32] = records["agent"]
        self.type_number: npt.NDArray[np.uint16] = records["type"]
        self.version_number: npt.NDArray[np.uint16] = records["version"]
        self.model_number: npt.NDArray[np.uint16] = records["model"]
        self.block_record: npt.NDArray[np.int32] = blocks["record"]
        self.block_position: npt.NDArray[np.uint16] = blocks["position"]
        self.block_type: npt.NDArray[np.uint8] = blocks["type"]
        self.block_chars: npt.NDArray[np.int32] = blocks["chars"]
        self.block_key: npt.NDArray[np.uint64] = blocks["key"]
        self.block_flags: npt.NDArray[np.uint8] = blocks["flags"]
        self.block_tool_number: npt.NDArray[np.uint16] = blocks["tool"]
        self.usage_table = index.usage.view()
        self._usage_row: dict[int, int] | None = None
        self.damage: list[Damage] = list(index.damage)
        self.boundaries: list[Boundary] = list(index.boundaries)
        self.leaf_key, self.leaf_record = index.leaf_key, index.leaf_record
        self.type_names: list[str] = index.types.names
        self.session_names: list[str] = index.sessions.names
        self.version_names: list[str] = index.versions.names
        self.model_names: list[str] = index.models.names
        self.agent_names: list[str] = index.agents.names
        self.tool_names: list[str] = index.tools.names
        self.word_names: list[str] = index.words.names
        self.agent_of_result = index.agent_of_result
        self.agent_of_tool_use = index.agent_of_tool_use
        self.line_count = self._at.lines + (1 if self._at.pending else 0)
        self._count = len(records)

    def _read(self, progress: Progress) -> Iterator[None]:
        for _ in self.format.index(self.source, self._index, self._at, progress):
            self.size = self.source.size()
            self._publish()
            yield
        self.size = self.source.size()
        self.complete = True
        self._publish()

    def _snapshot(self) -> Transcript:
        """This moment's columns under an object of their own; shares the buffers, the source and the cache."""
        return copy.copy(self)

    def snapshot(self) -> Transcript:
        """The same state under an object of its own: `append_new` on it leaves this one as it is for its readers."""
        return self._snapshot()

    @property
    def whole_lines_end(self) -> int:
        """Offset in bytes behind the last whole line that was read; an unfinished last line begins here."""
        return self._at.offset

    @property
    def read_end(self) -> int:
        """Offset in bytes behind everything that was read."""
        return self._at.offset + self._at.pending

    def append_new(self, progress: Progress | None = None) -> AppendResult:
        """Read what was appended since the last read, and only that (plus an incomplete last line, again).

        Raises:
            InputUnreadable: the file is gone or cannot be read.
        """
        size = self.source.size()
        if _identity(self.path) != self._inode or size < self._at.offset + self._at.pending:
            return AppendResult(self._count, self._count, 0, True)
        if size == self._at.offset + self._at.pending:
            return AppendResult(self._count, self._count, 0, False)
        if self.format_name != "claude-code":
            return AppendResult(self._count, self._count, 0, True)
        before = getattr(self.source, "bytes_read", 0)
        first = self._at.complete[0]
        self._index.cut(self._at.complete)
        self._forget(first)
        for _ in self._read(progress or Progress()):
            pass
        read = getattr(self.source, "bytes_read", 0) - before
        return AppendResult(first, self._count, read, False)

    def __len__(self) -> int:
        return self._count

    def type_name(self, record: int) -> str:
        """The record's type with its subtype: `user`, `system/compact_boundary`, `attachment/task_reminder` …"""
        return self.type_names[int(self.type_number[record])]

    def session(self, record: int) -> str:
        """`sessionId`, "" when absent."""
        return self.session_names[int(self.session_number[record])]

    def version(self, record: int) -> str:
        """The client's version that wrote the record, "" when absent."""
        return self.version_names[int(self.version_number[record])]

    def model(self, record: int) -> str:
        """`message.model`, "" when absent."""
        return self.model_names[int(self.model_number[record])]

    def agent_id(self, record: int) -> str:
        """The subagent that wrote the record, "" for the main thread."""
        return self.agent_names[int(self.agent_number[record])]

    def record_bytes(self, record: int) -> bytes:
        """The record's bytes exactly as in the file, without its line ending."""
        return self.source.read(int(self.offset[record]), int(self.length[record]))

    def raw(self, start: int, end: int) -> bytes:
        """The input's bytes from offset `start` up to `end`."""
        return self.source.read(start, end - start)

    def payload(self, record: int) -> dict[str, Any]:
        """The record's decoded object, `{}` for damaged bytes. Shared and cached: copy before changing it."""
        with self._lock:
            found = self._cache.get(record)
            if found is not None:
                self._cache.move_to_end(record)
                return found
        if self.kind[record] == RecordKind.DAMAGED:
            return {}
        value = self.format.decode(self.record_bytes(record), record, "")
        length = int(self.length[record])
        if length > _CACHE_BYTES // 4:
            return value
        with self._lock:
            self._cache[record] = value
            self._cache_bytes += length
            while self._cache_bytes > _CACHE_BYTES or len(self._cache) > _CACHE_RECORDS:
                old, _ = self._cache.popitem(last=False)
                self._cache_bytes -= int(self.length[old]) if old < self._count else 0
        return value

    def _forget(self, first: int) -> None:
        with self._lock:
            for record in [r for r in self._cache if r >= first]:
                del self._cache[record]
                self._cache_bytes -= int(self.length[record])

    def message(self, record: int) -> dict[str, Any]:
        """The record's API message, `{}` when it has none."""
        value = self.payload(record).get("message")
        return value if isinstance(value, dict) else {}

    def _text(self, record: int, name: str) -> str:
        value = self.payload(record).get(name)
        return value if isinstance(value, str) else ""

    def uuid(self, record: int) -> str:
        """`uuid`, "" when absent (`messages[3]` in a Messages-API request)."""
        return self._text(record, "uuid")

    def parent_uuid(self, record: int) -> str:
        """`parentUuid`, "" when absent or null."""
        return self._text(record, "parentUuid")

    def message_id(self, record: int) -> str:
        """`message.id`, "" when absent."""
        value = self.message(record).get("id")
        return value if isinstance(value, str) else ""

    def request_id(self, record: int) -> str:
        """`requestId`, "" when absent."""
        return self._text(record, "requestId")

    def preview(self, record: int, limit: int = 200) -> str:
        """One line of plain text that tells the record from its neighbours, at most `limit` characters."""
        if self.kind[record] == RecordKind.DAMAGED:
            data = self.source.read(int(self.offset[record]), min(int(self.length[record]), limit))
            return preview_of(data.decode("utf-8", "replace"), limit)
        return preview_of(self.payload(record), limit)

    def block_preview(self, block: int, limit: int = 200) -> str:
        """One line of plain text for a content block."""
        return preview_of(self.block(block), limit)

    def blocks_of(self, record: int) -> range:
        """The rows of the record's content blocks; a string content is one TEXT row."""
        start = int(self.first_block[record])
        end = int(self.first_block[record + 1]) if record + 1 < self._count else len(self.block_record)
        return range(start, end)

    def block_tool(self, block: int) -> str:
        """The tool's name of a tool_use or server_tool_use, "" otherwise."""
        return self.tool_names[int(self.block_tool_number[block])]

    def block(self, block: int) -> dict[str, Any]:
        """The decoded content block; a string content as `{"type": "text", "text": …}`."""
        content = self.message(int(self.block_record[block])).get("content")
        if isinstance(content, str):
            return {"type": "text", "text": content}
        position = int(self.block_position[block])
        if isinstance(content, list) and position < len(content) and isinstance(content[position], dict):
            return dict(content[position])
        return {}

    def usage(self, record: int) -> RecordedUsage | None:
        """The usage stored on the record, None when it has none."""
        if self._usage_row is None:
            rows = self.usage_table["record"].tolist()
            self._usage_row = {number: row for row, number in enumerate(rows)}
        row = self._usage_row.get(record)
        return None if row is None else self.usage_at(row)

    def usage_at(self, row: int) -> RecordedUsage:
        """Row `row` of `usage_table` as an object."""
        line = self.usage_table[row]
        flags = int(line["flags"])
        nested = bool(flags & USAGE_NESTED)
        return RecordedUsage(
            input_tokens=int(line["input"]),
            output_tokens=int(line["output"]),
            cache_read=int(line["cache_read"]),
            cache_creation=int(line["cache_creation"]),
            cache_write_5m=int(line["write_5m"]) if nested else None,
            cache_write_1h=int(line["write_1h"]) if nested else None,
            thinking_tokens=int(line["thinking"]) if line["thinking"] >= 0 else None,
            web_search_requests=int(line["web_search"]),
            web_fetch_requests=int(line["web_fetch"]),
            speed=self.word_names[line["speed"]],
            geo=self.word_names[line["geo"]],
            service_tier=self.word_names[line["tier"]],
            iterations=self._iterations(int(line["record"])) if flags & USAGE_ITERATIONS else (),
            stop_reason_null=bool(flags & USAGE_STOP_REASON_NULL),
        )

    def _iterations(self, record: int) -> tuple[dict[str, Any], ...]:
        usage = self.message(record).get("usage")
        found = usage.get("iterations") if isinstance(usage, dict) else None
        return tuple(i for i in found if isinstance(i, dict)) if isinstance(found, list) else ()

    @property
    def document(self) -> dict[str, Any]:
        """What stands beside the messages in a Messages-API request (model, system, tools …); {} for a session."""
        if self._document is None:
            self._document = self.format.document(self.source)
        return self._document


def _identity(path: Path | None) -> tuple[int, int]:
    if path is None:
        return (0, 0)
    try:
        found = path.stat()
    except OSError:
        return (-1, -1)
    return (found.st_dev, found.st_ino)


def read_snapshots(
    path: str | Path, progress: Progress | None = None, refine: Callable[[Format], Format] | None = None
) -> Iterator[Transcript]:
    """Open an input and yield it as it grows: after 2,000, 20,000 and 200,000 records, and once complete.

    Each yielded transcript is usable on its own; the last has `complete` set.

    Args:
        refine: may put a narrower reader of the format found in its place (`usage_lines`).

    Raises:
        InputUnreadable: it cannot be opened or read.
        Cancelled: `progress.cancel()` was called.
    """
    if str(path) == "-":
        transcript = _start(BytesSource(sys.stdin.buffer.read(), "<standard input>"), None, refine)
    else:
        found = Path(path)
        if is_stream(found):
            transcript = _start(BytesSource(read_stream(found), str(found)), None, refine)
        else:
            transcript = _start(FileSource(found), found, refine)
    for _ in transcript._read(progress or Progress()):
        yield transcript._snapshot()
    yield transcript


def _start(source: Source, path: Path | None, refine: Callable[[Format], Format] | None = None) -> Transcript:
    found = format_of(source)
    return Transcript(source, path, refine(found) if refine is not None else found)


def open_transcript(
    path: str | Path, progress: Progress | None = None, refine: Callable[[Format], Format] | None = None
) -> Transcript:
    """Open and index an input completely; "-" is standard input. `refine` as in `read_snapshots`.

    Raises:
        InputUnreadable: it cannot be opened or read.
        Cancelled: `progress.cancel()` was called.
    """
    *_, last = read_snapshots(path, progress, refine)
    return last


def transcript_from_bytes(data: bytes, name: str = "<memory>") -> Transcript:
    """Index bytes that are in memory."""
    source = BytesSource(data, name)
    return transcript_of(source, format_of(source))


def transcript_of(source: Source, reader: Format) -> Transcript:
    """Index a source completely with a given reader."""
    transcript = Transcript(source, None, reader)
    for _ in transcript._read(Progress()):
        pass
    return transcript
