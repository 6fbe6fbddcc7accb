from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from compaction.accounting.models import SYNTHETIC
from compaction.transcript import Flag, RecordKind, Transcript, key_of
from compaction.transcript.columns import USAGE_ITERATIONS, USAGE_NESTED, USAGE_STOP_REASON_NULL
from compaction.transcript.fact_lines import FactLines
from compaction.transcript.usage_lines import UsageLines

ROW = np.dtype(
    [
        ("message", "<u8"), ("request", "<u8"), ("instance", "<i8"), ("time", "<i8"), ("asked", "<i8"), ("file", "<i4"),
        ("record", "<i4"), ("usage", "<i4"), ("model", "<i4"), ("agent", "<i4"), ("session", "<i4"),
        ("input", "<i8"), ("output", "<i8"), ("cache_read", "<i8"), ("write_5m", "<i8"), ("write_1h", "<i8"),
        ("web", "<i4"), ("speed", "<i4"), ("geo", "<i4"), ("batch", "?"), ("unfinished", "?"), ("iterated", "?"),
        ("sidechain", "?"),
    ]
)  # fmt: skip
"""One usage as it stands on one record. Keys are xxh3 of the ids; `time` UTC milliseconds (0 unknown); `asked` the time
of the record before it, 0 where not all records were read; `usage` the row
of the transcript's usage table, −1 for usage inside an agent_progress record; `model` … `geo` numbers of interned
names; tokens by bucket; `unfinished`: the record's stop_reason is null; `instance`: see `mark_instances`."""

UNKNOWN_ADVISOR = "(advisor, not named)"
"""The model of an advisor's iteration whose record does not name it: unpriced."""

TOKEN_FIELDS = ("input", "output", "cache_read", "write_5m", "write_1h")


class Interned:
    """Strings as small numbers, 0 is ""."""

    def __init__(self) -> None:
        self.names: list[str] = [""]
        self._numbers: dict[str, int] = {"": 0}

    def number(self, name: str) -> int:
        """The number of a name, given out on first sight."""
        found = self._numbers.get(name)
        if found is None:
            found = self._numbers[name] = len(self.names)
            self.names.append(name)
        return found

    def translate(self, names: list[str]) -> npt.NDArray[np.int32]:
        """For each of another table's numbers, the number here."""
        return np.array([self.number(name) for name in names], dtype=np.int32)


@dataclass(slots=True)
class Vocabulary:
    """The interned names that the rows of all files share."""

    models: Interned = field(default_factory=Interned)
    agents: Interned = field(default_factory=Interned)
    sessions: Interned = field(default_factory=Interned)
    words: Interned = field(default_factory=Interned)


def split_writes(flat: int, five_minutes: int | None, one_hour: int | None) -> tuple[int, int]:
    """Tokens written to the 5-minute and the 1-hour cache (transcript-format.md 5, prices.md).

    The nested figures win over the flat one, which counts as 5-minute only where they are missing. Measured on client
    2.1.332: a nested object of zeros beside a flat figure says nothing, and the client bills the flat one.
    """
    five, hour = max(0, five_minutes or 0), max(0, one_hour or 0)
    return (five, hour) if five + hour > 0 else (max(0, flat), 0)


def rows_of_transcript(
    transcript: Transcript, file: int, names: Vocabulary, ends: Sequence[int] = ()
) -> npt.NDArray[Any]:
    """Every usage of assistant records of real models, in file order, with the tokens by bucket.

    Args:
        ends: for a transcript that holds several files one after the other (`fact_lines`), the number of the record
            behind each; the files are then numbered from `file`.
    """
    t = transcript
    table = t.usage_table
    record = table["record"].astype(np.int64)
    wanted = (t.kind[record] == RecordKind.ASSISTANT) & ((t.flags[record] & Flag.SYNTHETIC) == 0)
    chosen = np.flatnonzero(wanted)
    table, record = table[chosen], record[chosen]
    rows = np.zeros(len(record), ROW)
    rows["usage"], rows["record"], rows["file"] = chosen, record, file
    if ends:
        rows["file"] += np.searchsorted(ends, record, "right")
    rows["message"], rows["request"] = t.message_key[record], t.request_key[record]
    rows["time"] = t.timestamp_ms[record]
    if not isinstance(t.format, UsageLines | FactLines):
        rows["asked"] = _time_before(t.timestamp_ms)[record]
    rows["model"] = names.models.translate(t.model_names)[t.model_number[record]]
    rows["agent"] = names.agents.translate(t.agent_names)[t.agent_number[record]]
    rows["session"] = names.sessions.translate(t.session_names)[t.session_number[record]]
    words = names.words.translate(t.word_names)
    rows["speed"], rows["geo"] = words[table["speed"]], words[table["geo"]]
    rows["batch"] = words[table["tier"]] == names.words.number("batch")
    rows["sidechain"] = (t.flags[record] & Flag.SIDECHAIN) != 0
    rows["unfinished"] = (table["flags"] & USAGE_STOP_REASON_NULL) != 0
    rows["iterated"] = (table["flags"] & USAGE_ITERATIONS) != 0
    rows["web"] = table["web_search"]
    for name in ("input", "output", "cache_read"):
        rows[name] = np.maximum(table[name], 0)
    _fill_writes(rows, table)
    mark_instances(rows, t)
    return rows


def _time_before(times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each record the time of the nearest earlier record that has one, 0 where none has."""
    place = np.where(times > 0, np.arange(len(times)), -1)
    latest = np.maximum.accumulate(place) if len(times) else place
    before = np.concatenate(([-1], latest[:-1])) if len(times) else latest
    return np.where(before >= 0, times[before], 0)


def _fill_writes(rows: npt.NDArray[Any], table: npt.NDArray[Any]) -> None:
    """`split_writes` for a whole table at once."""
    five, hour = np.maximum(table["write_5m"], 0), np.maximum(table["write_1h"], 0)
    nested = ((table["flags"] & USAGE_NESTED) != 0) & (five.astype(np.int64) + hour > 0)
    rows["write_5m"] = np.where(nested, five, np.maximum(table["cache_creation"], 0))
    rows["write_1h"] = np.where(nested, hour, 0)


def prompt_tokens(rows: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Tokens of the prompt of each row: input + cache read + cache writes."""
    total: npt.NDArray[np.int64] = rows["input"] + rows["cache_read"] + rows["write_5m"] + rows["write_1h"]
    return total


def mark_instances(rows: npt.NDArray[Any], transcript: Transcript) -> None:
    """Tell apart responses that share both ids, by the size of their prompt.

    An id stands for one response, and its copies differ only in `output_tokens` (or have no figures at all). Behind a
    server that hands out its ids anew after a restart, two requests can carry the same ids: their prompts differ and
    a prompt of the person or a compaction lies between them. `instance` is the prompt's size for all copies.
    """
    prompt = prompt_tokens(rows)
    rows["instance"] = prompt
    for members in _differing(rows, prompt):
        if prompt[members].min() > 0 or len(np.unique(prompt[members])) > 2:
            _tell_apart(rows, prompt, members, transcript)
        else:
            rows["instance"][members] = prompt[members].max()


def ids_are_shared(rows: npt.NDArray[Any]) -> bool:
    """Whether records with the same ids have prompts of different sizes: reading everything is needed to judge them."""
    prompt = prompt_tokens(rows)
    return any(len(np.unique(prompt[m][prompt[m] > 0])) > 1 for m in _differing(rows, prompt))


def _differing(rows: npt.NDArray[Any], prompt: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """The groups of rows with the same ids whose prompts are not all equal, each in file order."""
    if not len(rows):
        return []
    order = np.lexsort((rows["request"], rows["message"], rows["file"]))
    file, message, request = rows["file"][order], rows["message"][order], rows["request"][order]
    new = np.ones(len(rows), bool)
    new[1:] = (message[1:] != message[:-1]) | (request[1:] != request[:-1]) | (file[1:] != file[:-1])
    starts = np.flatnonzero(new)
    differ = np.maximum.reduceat(prompt[order], starts) != np.minimum.reduceat(prompt[order], starts)
    ends = np.append(starts[1:], len(rows))
    return [
        np.sort(order[starts[number] : ends[number]]) for number in np.flatnonzero(differ) if message[starts[number]]
    ]


def _tell_apart(
    rows: npt.NDArray[Any], prompt: npt.NDArray[np.int64], members: npt.NDArray[np.int64], t: Transcript
) -> None:
    """Give each run of copies (in file order) the largest prompt of the run."""
    runs: list[list[int]] = [[int(members[0])]]
    for before, after in pairwise(members):
        differs = prompt[before] and prompt[after] and prompt[before] != prompt[after]
        if differs and _something_asked(t, int(rows["record"][before]), int(rows["record"][after])):
            runs.append([])
        runs[-1].append(int(after))
    for run in runs:
        rows["instance"][run] = prompt[run].max()


def _something_asked(t: Transcript, first: int, second: int) -> bool:
    """Whether a prompt or a compaction lies between two records."""
    kind, flags = t.kind[first + 1 : second], t.flags[first + 1 : second]
    asked = (kind == RecordKind.USER) & ((flags & Flag.TOOL_RESULT) == 0)
    return bool((asked | ((flags & Flag.COMPACT_BOUNDARY) != 0)).any())


class _Counts(msgspec.Struct, gc=False):
    ephemeral_5m_input_tokens: int | None = None
    ephemeral_1h_input_tokens: int | None = None


class _Searches(msgspec.Struct, gc=False):
    web_search_requests: int | None = None


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation: _Counts | None = None
    server_tool_use: _Searches | None = None
    speed: str | None = None
    inference_geo: str | None = None
    service_tier: str | None = None


class _Message(msgspec.Struct, gc=False):
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: _Usage | None = None


class _Embedded(msgspec.Struct, gc=False, rename={"request_id": "requestId"}):
    type: str | None = None
    request_id: str | None = None
    message: _Message | None = None


class _Data(msgspec.Struct, gc=False):
    message: _Embedded | None = None


class _Progress(msgspec.Struct, gc=False):
    data: _Data | None = None


_PROGRESS = msgspec.json.Decoder(_Progress)


def rows_of_progress(
    transcript: Transcript, file: int, names: Vocabulary, covered_agents: frozenset[str], records: slice = slice(None)
) -> npt.NDArray[Any]:
    """Usage of subagents embedded in agent_progress records (2.1.12 to 2.1.81), where their own file is missing.

    Args:
        covered_agents: ids of subagents whose own transcripts are read too: theirs are left out (section 8).
        records: which of the transcript's records are looked at.
    """
    t = transcript
    kinds = [number for number, name in enumerate(t.type_names) if name == "progress/agent_progress"]
    if not kinds:
        return np.zeros(0, ROW)
    found = []
    for record in (records.start or 0) + np.flatnonzero(t.type_number[records] == kinds[0]):
        agent = t.agent_id(int(record))
        if agent in covered_agents:
            continue
        message, request = _embedded(t, int(record))
        if message is None or message.usage is None or not message.id or message.model == SYNTHETIC:
            continue
        found.append(_progress_row(t, int(record), agent, message, request, file, names))
    return np.array(found, ROW) if found else np.zeros(0, ROW)


def _embedded(t: Transcript, record: int) -> tuple[_Message | None, str]:
    try:
        data = _PROGRESS.decode(t.record_bytes(record)).data
    except (msgspec.DecodeError, UnicodeDecodeError):
        try:
            data = msgspec.convert(t.payload(record), _Progress, strict=False).data
        except msgspec.ValidationError:
            return None, ""  # a progress record of another shape carries no usage
    inner = data.message if data is not None else None
    if inner is None or inner.type != "assistant":
        return None, ""
    return inner.message, inner.request_id or ""


def _progress_row(
    t: Transcript, record: int, agent: str, message: _Message, request: str, file: int, names: Vocabulary
) -> tuple[Any, ...]:
    usage = message.usage or _Usage()
    nested = usage.cache_creation or _Counts()
    five, hour = split_writes(
        usage.cache_creation_input_tokens or 0, nested.ephemeral_5m_input_tokens, nested.ephemeral_1h_input_tokens
    )
    tokens = (max(0, usage.input_tokens or 0), max(0, usage.output_tokens or 0),
              max(0, usage.cache_read_input_tokens or 0), five, hour)  # fmt: skip
    prompt = sum(tokens) - tokens[1]
    web = usage.server_tool_use.web_search_requests if usage.server_tool_use else 0
    return (
        key_of(message.id or ""), key_of(request) if request else 0, prompt, int(t.timestamp_ms[record]), 0, file,
        record, -1, names.models.number(message.model or ""), names.agents.number(agent),
        names.sessions.number(t.session(record)), *tokens, web or 0, names.words.number(usage.speed or ""),
        names.words.number(usage.inference_geo or ""), usage.service_tier == "batch", message.stop_reason is None,
        False, True,
    )  # fmt: skip


def iteration_tokens(entry: Mapping[str, Any]) -> tuple[int, int, int, int, int]:
    """Tokens by bucket of one entry of `usage.iterations`."""
    nested = entry.get("cache_creation")
    nested = nested if isinstance(nested, Mapping) else {}
    five, hour = split_writes(
        _number(entry, "cache_creation_input_tokens"), _number(nested, "ephemeral_5m_input_tokens"),
        _number(nested, "ephemeral_1h_input_tokens"),
    )  # fmt: skip
    return (_number(entry, "input_tokens"), _number(entry, "output_tokens"),
            _number(entry, "cache_read_input_tokens"), five, hour)  # fmt: skip


def iteration_models(transcript: Transcript, record: int, iterations: tuple[dict[str, Any], ...]) -> list[str]:
    """The model of each iteration: its own `model`; else the advisor's for `advisor_message`, the one fallen back from
    for what came before a `fallback_message`, and the record's otherwise (transcript-format.md 5)."""
    own = transcript.model(record)
    advisor = transcript.payload(record).get("advisorModel")
    refused = _fallen_back_from(transcript, record)
    fallback = next((n for n, entry in enumerate(iterations) if entry.get("type") == "fallback_message"), -1)
    models = []
    for number, entry in enumerate(iterations):
        name = entry.get("model")
        if isinstance(name, str) and name:
            models.append(name)
        elif entry.get("type") == "advisor_message":
            models.append(advisor if isinstance(advisor, str) and advisor else UNKNOWN_ADVISOR)
        else:
            models.append(refused if refused and number < fallback else own)
    return models


def _fallen_back_from(transcript: Transcript, record: int) -> str:
    content = transcript.message(record).get("content")
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict) and block.get("type") == "fallback":
            name = block.get("from")
            name = name.get("model") if isinstance(name, dict) else name
            return name if isinstance(name, str) else ""
    return ""


def _number(entry: Mapping[str, Any], name: str) -> int:
    value = entry.get(name)
    return max(0, value) if isinstance(value, int) and not isinstance(value, bool) else 0
