from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

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
from compaction.catalogue.responses import FilePart, ScannedResponses, responses_of
from compaction.catalogue.totals import FileTotals
from compaction.errors import InputUnreadable
from compaction.transcript.claude_code import ClaudeCode
from compaction.transcript.fact_lines import read_facts
from compaction.transcript.formats import format_of
from compaction.transcript.index import SYNTHETIC_MODEL, key_of
from compaction.transcript.kinds import BlockFlag, BlockType, Flag, RecordKind
from compaction.transcript.preview import preview_of
from compaction.transcript.source import BytesSource
from compaction.transcript.transcript import Transcript, transcript_from_bytes

SLICE_BYTES = 8 << 20
"""Read, understood and stored at once: bounds the memory of a worker, and what a killed indexer has to do again."""

TITLE_CHARACTERS = 200

# Plain integers: a member of an enumeration takes longer to combine than a small file's column.
_DAMAGED, _USER, _ASSISTANT = int(RecordKind.DAMAGED), int(RecordKind.USER), int(RecordKind.ASSISTANT)
_PARENT_NULL = int(Flag.PARENT_NULL)
_ERRORS = int(Flag.API_ERROR | Flag.API_SYSTEM_ERROR)
_BOUNDARIES = int(Flag.COMPACT_BOUNDARY | Flag.MICROCOMPACT_BOUNDARY)
_ROOT_SUMMARY = int(Flag.COMPACT_SUMMARY | Flag.PARENT_NULL)
_NOT_ASKED = int(Flag.META | Flag.COMPACT_SUMMARY | Flag.TOOL_RESULT)
_ERROR, _TOOL_RESULT = int(BlockFlag.ERROR), int(BlockType.TOOL_RESULT)


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
    """What a slice adds to its file's row. Texts are "" and lists empty where the slice says nothing; all are storable
    in a database. `totals` are of the slice's responses alone."""

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
    responses: ScannedResponses = field(default_factory=ScannedResponses)
    totals: FileTotals = field(default_factory=FileTotals)


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


@dataclass(slots=True)
class _Slice:
    """A slice that was read: its bytes without a leading line feed, and the line feeds in the file before them."""

    result: SliceResult
    data: bytes = b""
    lines_before: int = 0

    @property
    def job(self) -> ScanJob:
        return self.result.job


def scan_all(jobs: Sequence[ScanJob]) -> list[SliceResult]:
    """Read a slice of each of some files; runs in a worker process, touches no database and writes nothing.

    Where only the catalogue's facts are wanted, small files are understood together (`fact_lines`).
    """
    slices = [_read(job) for job in jobs]
    readable = [s for s in slices if not s.result.problem]
    left = _facts_together([s for s in readable if s.job.summary and not s.job.text])
    for one in [*left, *(s for s in readable if s.job.text)]:
        _understand(one)
    return [s.result for s in slices]


def _read(job: ScanJob) -> _Slice:
    result = SliceResult(job, job.start, job.start, job.newlines)
    try:
        descriptor = os.open(job.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError as error:
        result.problem = f"cannot be read: {error.strerror or error}"
        return _Slice(result)
    try:
        return _read_open(descriptor, job, result)
    except OSError as error:
        result.problem = f"cannot be read: {error.strerror or error}"
    finally:
        os.close(descriptor)
    return _Slice(result)


def _read_open(descriptor: int, job: ScanJob, result: SliceResult) -> _Slice:
    if job.known is not None and what_changed(descriptor, job.bytes, job.known, job.start) is Change.REWRITTEN:
        result.start, result.newlines = 0, 0
    data, result.finished = read_whole_lines(descriptor, result.start, job.bytes)
    result.bytes_read = len(data)
    result.end = result.start + len(data)
    head_bytes, head_hash = prefix_of(descriptor)
    result.fingerprint = Fingerprint(head_bytes, head_hash, tail_of(descriptor, result.end))
    if result.start and data[:1] == b"\n":
        # It ends a last line that was read before it had its line feed.
        return _Slice(result, data[1:], result.newlines + 1)
    return _Slice(result, data, result.newlines)


def _facts_together(slices: Sequence[_Slice]) -> list[_Slice]:
    """Summarise the slices whose lines are all valid Claude Code records; returns the others."""
    left: list[_Slice] = []
    chosen: list[_Slice] = []
    for one in slices:
        (chosen if isinstance(format_of(BytesSource(one.data, one.job.path)), ClaudeCode) else left).append(one)
    if not chosen:
        return left
    transcript, read = read_facts([s.data if s.data[-1:] in (b"\n", b"") else s.data + b"\n" for s in chosen])
    whole = [number for number, part in enumerate(read) if part.whole]
    parts = [
        FilePart(chosen[n].job.path, read[n].first, read[n].end, read[n].end - read[n].first, chosen[n].lines_before)
        for n in whole
    ]
    if parts:
        summaries = summarise(transcript, parts, chosen[0].job.prices)
        for number, part, summary in zip(whole, parts, summaries, strict=True):
            one = chosen[number]
            one.result.summary = summary
            one.result.newlines = one.lines_before + part.lines - (one.data[-1:] not in (b"\n", b""))
    return left + [s for s in chosen if s.result.summary is None]


def _understand(one: _Slice) -> None:
    """Read a slice in full: for its text, and where a line of it is odd."""
    one.result.newlines = one.lines_before + one.data.count(b"\n")
    try:
        transcript = transcript_from_bytes(one.data, one.job.path)
    except InputUnreadable as error:
        one.result.problem = error.cause
        return
    if one.job.summary:
        part = FilePart(one.job.path, 0, len(transcript), transcript.line_count, one.lines_before)
        one.result.summary = summarise(transcript, [part], one.job.prices)[0]
    if one.job.text:
        one.result.passages = list(passages_of(transcript, one.lines_before))


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


def summarise(transcript: Transcript, parts: Sequence[FilePart], prices: str) -> list[Summary]:
    """What each part says about its session; payloads are decoded only where a title, project or prompt is looked for.

    Args:
        prices: which prices to compute costs with (`pricing.price_fingerprint`).
    """
    found = [_summary_of(transcript, part) for part in parts]
    for summary, responses in zip(found, responses_of(transcript, parts, prices_for(prices)), strict=True):
        summary.responses, summary.totals = responses
    return found


def _summary_of(transcript: Transcript, part: FilePart) -> Summary:
    found = Summary(lines=part.lines_before + part.lines)
    here = slice(part.first, part.end)
    kinds, flags = transcript.kind[here], transcript.flags[here]
    if not len(kinds):
        return found
    found.records = len(kinds) - int(np.count_nonzero(kinds == _DAMAGED))
    # Only a transcript that was read in full has damaged lines, and it holds one part alone.
    found.damaged = len(transcript.damage)
    found.messages = int(np.count_nonzero(kinds == _USER) + np.count_nonzero(kinds == _ASSISTANT))
    stamps = transcript.timestamp_ms[here]
    stamps = stamps[stamps > 0]
    if len(stamps):
        found.first_ms, found.last_ms = int(stamps.min()), int(stamps.max())
    sessions = transcript.session_number[here]
    found.session_ids = _names(transcript.session_names, sessions)
    if found.session_ids:
        last = storable(transcript.session_names[int(sessions[np.flatnonzero(sessions)[-1]])])
        found.session_ids.sort(key=lambda name: name != last)
    found.versions = _names(transcript.version_names, transcript.version_number[here])
    models = _names(transcript.model_names, transcript.model_number[here])
    found.models = [name for name in models if name != SYNTHETIC_MODEL]
    if place_of(part.path).agent_id:
        found.agent_id = next(iter(_names(transcript.agent_names, transcript.agent_number[here])), "")
    found.api_errors = int(np.count_nonzero(flags & _ERRORS))
    found.compactions = _recorded_compactions(flags)
    blocks = slice(*np.searchsorted(transcript.block_record, (part.first, part.end)).tolist())
    found.tools = sorted(_names(transcript.tool_names, transcript.block_tool_number[blocks]))
    failed = (transcript.block_flags[blocks] & _ERROR) != 0
    found.tool_errors = int(np.count_nonzero((transcript.block_type[blocks] == _TOOL_RESULT) & failed))
    _read_texts(transcript, here, found)
    return found


def _names(names: Sequence[str], numbers: npt.NDArray[Any]) -> list[str]:
    """The names that some numbers stand for, in the order they appear and storable; without the empty one."""
    return [storable(names[number]) for number in dict.fromkeys(numbers.tolist()) if names[number]]


def _recorded_compactions(flags: npt.NDArray[np.uint32]) -> int:
    """Compactions that records tell of: boundaries, and a summary that begins a new root without one (§7)."""
    summaries = np.count_nonzero((flags & _ROOT_SUMMARY) == _ROOT_SUMMARY)
    return int(np.count_nonzero(flags & _BOUNDARIES) + summaries)


_LOOKED_AT = 200
"""Records decoded at most when a prompt, a project or a branch is looked for in a slice that has none."""


def _read_texts(transcript: Transcript, here: slice, found: Summary) -> None:
    first = here.start
    in_a_chain = (transcript.parent_key[here] != 0) | ((transcript.flags[here] & _PARENT_NULL) != 0)
    chained = first + np.flatnonzero(in_a_chain)
    uuid = next(_members(transcript, chained[:1], "uuid"), "")
    found.lineage_key = signed(key_of(uuid)) if uuid else 0
    found.project = next((t for t in _members(transcript, chained[:_LOOKED_AT], "cwd")), "")
    found.branch = next((t for t in _members(transcript, chained[::-1][:_LOOKED_AT], "gitBranch")), "")
    names = {"custom-title": "customTitle", "ai-title": "aiTitle"}
    for number, name in enumerate(transcript.type_names):
        if name in names:
            newest = first + np.flatnonzero(transcript.type_number[here] == number)[::-1][:1]
            text = next((t for t in _members(transcript, newest, names[name])), "")
            setattr(found, name.replace("-", "_"), _title(text))
    asked = (transcript.kind[here] == _USER) & ((transcript.flags[here] & _NOT_ASKED) == 0)
    for record in (first + np.flatnonzero(asked)[:_LOOKED_AT]).tolist():
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
