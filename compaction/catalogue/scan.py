from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import orjson

from compaction.catalogue.discovery import place_of
from compaction.catalogue.fingerprint import (
    NOTHING,
    Change,
    Fingerprint,
    prefix_of,
    signed,
    tail_of,
    what_changed,
)
from compaction.catalogue.masking import mask_secrets
from compaction.catalogue.passages import Passage, passages_of, storable
from compaction.catalogue.pricing import prices_for
from compaction.catalogue.responses import ScannedResponse, responses_of
from compaction.errors import InputUnreadable
from compaction.transcript.kinds import BlockFlag, BlockType, Flag, RecordKind
from compaction.transcript.preview import preview_of
from compaction.transcript.transcript import Transcript, transcript_from_bytes

SLICE_BYTES = 8 << 20
"""Read, understood and stored at once: bounds the memory of a worker, and what a killed indexer has to do again."""

TITLE_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class ScanJob:
    """One slice of one file, for a worker process.

    Attributes:
        transcript_id: its row, 0 for a file that the catalogue does not know.
        bytes, mtime_ns: what discovery's stat said.
        start, newlines: where the slice begins, and the line feeds before it.
        known: the fingerprint to check before believing growth, None when there is nothing to check.
        summary: wanted for the catalogue; text: wanted for the search.
        prices: which prices to compute costs with (`pricing.price_fingerprint`).
    """

    path: str
    transcript_id: int
    bytes: int
    mtime_ns: int
    start: int
    newlines: int
    known: Fingerprint | None
    summary: bool
    text: bool
    prices: str = ""

    @property
    def work_bytes(self) -> int:
        """Bytes that are still to be read of the file."""
        return self.bytes - self.start


@dataclass(slots=True)
class Summary:
    """What a slice adds to its file's row. Texts are "" and lists empty where the slice says nothing."""

    session_ids: list[str] = field(default_factory=list)
    agent_id: str = ""
    project: str = ""
    branch: str = ""
    custom_title: str = ""
    ai_title: str = ""
    first_prompt: str = ""
    versions: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    first_ms: int = 0
    last_ms: int = 0
    lines: int = 0
    records: int = 0
    damaged: int = 0
    messages: int = 0
    compactions: int = 0
    api_errors: int = 0
    tool_errors: int = 0
    lineage_key: int = 0
    responses: list[ScannedResponse] = field(default_factory=list)


@dataclass(slots=True)
class SliceResult:
    """What a worker found in one slice.

    Attributes:
        start: where it really began: 0 when the file turned out to be rewritten.
        end, newlines: where the next slice begins.
        finished: the file has no further whole line.
        problem: why the file could not be read, "" when it could; then nothing else holds.
        bytes_read: bytes read from the file for it.
    """

    job: ScanJob
    start: int = 0
    end: int = 0
    newlines: int = 0
    finished: bool = True
    problem: str = ""
    bytes_read: int = 0
    fingerprint: Fingerprint = NOTHING
    summary: Summary | None = None
    passages: list[Passage] | None = None


def scan(job: ScanJob) -> SliceResult:
    """Read one slice of a file; runs in a worker process, touches no database and writes nothing."""
    result = SliceResult(job, job.start, job.start, job.newlines)
    try:
        descriptor = os.open(job.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError as error:
        result.problem = f"cannot be read: {error.strerror or error}"
        return result
    try:
        _scan_open(descriptor, job, result)
    except OSError as error:
        result.problem = f"cannot be read: {error.strerror or error}"
    except InputUnreadable as error:
        result.problem = error.cause
    finally:
        os.close(descriptor)
    return result


def _scan_open(descriptor: int, job: ScanJob, result: SliceResult) -> None:
    if job.known is not None and what_changed(descriptor, job.bytes, job.known, job.start) is Change.REWRITTEN:
        result.start, result.newlines = 0, 0
    data, result.finished = read_whole_lines(descriptor, result.start, job.bytes)
    result.bytes_read = len(data)
    result.end = result.start + len(data)
    lines_before = result.newlines
    result.newlines += data.count(b"\n")
    head_bytes, head_hash = prefix_of(descriptor)
    result.fingerprint = Fingerprint(head_bytes, head_hash, tail_of(descriptor, result.end))
    transcript = transcript_from_bytes(_after_line_end(data, result.start), job.path)
    if data[:1] == b"\n" and result.start:
        lines_before += 1
    if job.summary:
        result.summary = summarise(transcript, lines_before, job)
    if job.text:
        result.passages = list(passages_of(transcript, lines_before))


def _after_line_end(data: bytes, start: int) -> bytes:
    """The slice without the line feed that ends a last line which was read before it had one."""
    return data[1:] if start and data[:1] == b"\n" else data


def read_whole_lines(descriptor: int, start: int, size: int) -> tuple[bytes, bool]:
    """About `SLICE_BYTES` from `start`, cut after the last line feed (more when one line is longer), and whether the
    file has no further whole line.

    At the end of the file a last line without its line feed is taken when it is a whole JSON object (a final newline is
    often missing, transcript-format.md §2) and left for later when it is not: it is still being written.
    """
    parts: list[bytes] = []
    at = start
    while at < size:
        more = os.pread(descriptor, min(SLICE_BYTES, size - at), at)
        if not more:
            break
        at += len(more)
        cut = more.rfind(b"\n") + 1
        if at >= size:
            whole = b"".join([*parts, more])
            end = len(whole) - len(more) + cut if cut else 0
            return (whole, True) if _is_object(whole[end:]) else (whole[:end], True)
        if cut:
            return b"".join([*parts, more[:cut]]), False
        parts.append(more)
    return b"", True


def _is_object(line: bytes) -> bool:
    if not line.rstrip().endswith(b"}"):
        return False
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


def summarise(transcript: Transcript, lines_before: int, job: ScanJob) -> Summary:
    """What a slice says about its session; payloads are decoded only where a title, project or prompt is looked for."""
    found = Summary()
    count = len(transcript)
    found.lines = lines_before + transcript.line_count
    found.records = count - int((transcript.kind == RecordKind.DAMAGED).sum())
    if not count:
        return found
    kinds, flags = transcript.kind, transcript.flags
    found.damaged = len(transcript.damage)
    found.messages = int(((kinds == RecordKind.USER) | (kinds == RecordKind.ASSISTANT)).sum())
    stamps = transcript.timestamp_ms[transcript.timestamp_ms > 0]
    if len(stamps):
        found.first_ms, found.last_ms = int(stamps.min()), int(stamps.max())
    found.session_ids = [n for n in transcript.session_names if n]
    last = int(transcript.session_number[np.flatnonzero(transcript.session_number)[-1]]) if found.session_ids else 0
    found.session_ids.sort(key=lambda name: name != transcript.session_names[last])
    found.versions = [n for n in transcript.version_names if n]
    found.models = [n for n in transcript.model_names if n and n != "<synthetic>"]
    found.tools = sorted(n for n in transcript.tool_names if n)
    found.agent_id = next((n for n in transcript.agent_names if n), "") if place_of(job.path).agent_id else ""
    found.api_errors = int(((flags & (Flag.API_ERROR | Flag.API_SYSTEM_ERROR)) != 0).sum())
    found.tool_errors = int(
        ((transcript.block_type == BlockType.TOOL_RESULT) & ((transcript.block_flags & BlockFlag.ERROR) != 0)).sum()
    )
    found.compactions = _recorded_compactions(transcript)
    chained = np.flatnonzero(transcript.uuid_key)
    found.lineage_key = signed(int(transcript.uuid_key[chained[0]])) if len(chained) else 0
    _read_texts(transcript, found)
    found.responses = responses_of(transcript, lines_before, job.path, prices_for(job.prices))
    return found


def _recorded_compactions(transcript: Transcript) -> int:
    """Compactions that records tell of: boundaries, and a summary that begins a new root without one (§7)."""
    flags = transcript.flags
    boundaries = (flags & (Flag.COMPACT_BOUNDARY | Flag.MICROCOMPACT_BOUNDARY)) != 0
    legacy = (flags & (Flag.COMPACT_SUMMARY | Flag.PARENT_NULL)) == (Flag.COMPACT_SUMMARY | Flag.PARENT_NULL)
    return int(boundaries.sum() + legacy.sum())


_LOOKED_AT = 200
"""Records decoded at most when a prompt, a project or a branch is looked for in a slice that has none."""


def _read_texts(transcript: Transcript, found: Summary) -> None:
    chained = np.flatnonzero(transcript.uuid_key)
    found.project = next((t for t in _members(transcript, chained[:_LOOKED_AT], "cwd")), "")
    found.branch = next((t for t in _members(transcript, chained[::-1][:_LOOKED_AT], "gitBranch")), "")
    names = {"custom-title": "customTitle", "ai-title": "aiTitle"}
    for number, name in enumerate(transcript.type_names):
        if name in names:
            newest = np.flatnonzero(transcript.type_number == number)[::-1][:1]
            text = next((t for t in _members(transcript, newest, names[name])), "")
            setattr(found, name.replace("-", "_"), _title(text))
    excluded = Flag.META | Flag.COMPACT_SUMMARY | Flag.TOOL_RESULT
    prompts = np.flatnonzero((transcript.kind == RecordKind.USER) & ((transcript.flags & excluded) == 0))
    for record in prompts[:_LOOKED_AT].tolist():
        text = preview_of(transcript.payload(record), TITLE_CHARACTERS)
        if text and not text.startswith(("<", "Caveat:", "[Request interrupted")):
            found.first_prompt = _title(text)
            return


def _members(transcript: Transcript, records: npt.NDArray[np.int64], name: str) -> Iterator[str]:
    for record in records.tolist():
        value = transcript.payload(record).get(name)
        if isinstance(value, str) and value:
            yield storable(value)


def _title(text: str) -> str:
    return mask_secrets(storable(preview_of(text, TITLE_CHARACTERS)))


def scan_all(jobs: list[ScanJob]) -> list[SliceResult]:
    """`scan` for a batch of small files."""
    return [scan(job) for job in jobs]
