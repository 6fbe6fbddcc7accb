from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from compaction.accounting.client_totals import ClientTotals, client_totals_of
from compaction.accounting.usage_rows import (
    ROW,
    TOKEN_FIELDS,
    Vocabulary,
    ids_are_shared,
    iteration_models,
    iteration_tokens,
    prompt_tokens,
    rows_of_progress,
    rows_of_transcript,
)
from compaction.conversation import Session
from compaction.transcript import Transcript, open_transcript
from compaction.transcript.usage_lines import UsageLines

Ints = npt.NDArray[np.int64]

CHARGE = np.dtype(
    [
        ("response", "<i4"), ("model", "<i4"), ("time", "<i8"), ("tokens", "<i8", (5,)), ("web", "<i4"),
        ("speed", "<i4"), ("geo", "<i4"), ("batch", "?"),
    ]
)  # fmt: skip
"""One request to price: a response, or one of its server-side iterations. `tokens` by bucket (`prices.BUCKETS`)."""


@dataclass(frozen=True, slots=True)
class FileUsage:
    """What one file contributed, for the reconciliation.

    Attributes:
        name: the file.
        records: usages on its records, one a record (the raw sum counts all of them).
        raw_tokens: their tokens by bucket; `own_tokens`: after one response once within the file.
        responses: distinct responses in the file.
        subagent: the file is a subagent's or a compaction's own transcript.
    """

    name: str
    records: int
    raw_tokens: tuple[int, ...]
    own_tokens: tuple[int, ...]
    responses: int
    subagent: bool


class Responses:
    """Every response of some files, once, as columns; made by `Ledger.settle`.

    Attributes:
        rows: all usages (`usage_rows.ROW`) of all files, in the order the files were added.
        response_of: for each of them its response.
        best: for each response the row whose figures count: the largest output, the last of equals.
        time: for each response the earliest time of its copies, UTC milliseconds, 0 unknown.
        finish: the latest time of the copies in the file that has it first.
        uncertain: no copy has a stop_reason, so the recorded output may be a placeholder (section 5).
        file: the first file that has it.
        names: what the numbers of `rows` mean.
        charges: what is to be priced (`CHARGE`), `charges["response"]` ascending.
    """

    def __init__(self, ledger: Ledger, apart: bool = False) -> None:
        self.names = ledger.names
        # With the dtype given nothing is promoted, which would compare all fields of all parts.
        self.rows: npt.NDArray[Any] = np.concatenate([np.zeros(0, ROW), *ledger.parts], dtype=ROW)
        rows = self.rows
        self.response_of = _number_responses(rows, apart)
        self.count = int(self.response_of.max()) + 1 if len(rows) else 0
        order = np.lexsort((np.arange(len(rows)), rows["output"], prompt_tokens(rows) > 0, self.response_of))
        starts = np.searchsorted(self.response_of[order], np.arange(self.count + 1))
        self.best: Ints = order[starts[1:] - 1] if self.count else np.zeros(0, np.int64)
        self.uncertain = np.ones(self.count, bool)
        self.uncertain[self.response_of[~rows["unfinished"]]] = False
        self.time = _smallest_positive(self.response_of, rows["time"], self.count)
        first = np.full(self.count, len(rows), np.int64)
        np.minimum.at(first, self.response_of, np.arange(len(rows)))
        self.file: Ints = rows["file"][first] if self.count else np.zeros(0, np.int64)
        here = rows["file"] == self.file[self.response_of] if self.count else np.zeros(0, bool)
        self.finish: Ints = np.zeros(self.count, np.int64)
        np.maximum.at(self.finish, self.response_of[here], rows["time"][here])
        self.charges = _charges(self, ledger.transcripts)
        self._file_names = list(ledger.files)
        self.client_totals: list[ClientTotals] = ledger.client_totals

    @cached_property
    def files(self) -> list[FileUsage]:
        """What each file contributed, in the order they were added."""
        return _file_usage(self, self._file_names)

    @cached_property
    def tokens(self) -> Ints:
        """Billed tokens of each response by bucket, shape (responses, 5); iterations are summed."""
        total = np.zeros((self.count, 5), np.int64)
        np.add.at(total, self.charges["response"], self.charges["tokens"])
        return total

    @property
    def duplicates(self) -> int:
        """How many usages on records are repeats of a response counted elsewhere."""
        return len(self.rows) - self.count

    def model(self, response: int) -> str:
        """The model that gave a response."""
        return self.names.models.names[int(self.rows["model"][self.best[response]])]


class Ledger:
    """Collects usage from transcripts, so that each response counts once over all of them.

    Transcripts are needed again only for the few responses with server-side iterations; those are read when the file
    is added, so a transcript may be let go afterwards.

    Attributes:
        files: name of each file added, and whether it is a subagent's own.
    """

    def __init__(self) -> None:
        self.names = Vocabulary()
        self.parts: list[npt.NDArray[Any]] = []
        self.client_totals: list[ClientTotals] = []
        self.transcripts: list[dict[int, list[tuple[str, tuple[int, ...]]]]] = []
        self.files: list[tuple[str, bool]] = []

    def add(self, transcript: Transcript, covered_agents: frozenset[str] = frozenset(), subagent: bool = False) -> int:
        """Read a transcript's usage and return the file's number.

        Args:
            covered_agents: subagents whose own files are added too (their agent_progress copies are left out).
            subagent: the transcript is a subagent's own file.
        """
        file = len(self.files)
        rows = rows_of_transcript(transcript, file, self.names)
        if isinstance(transcript.format, UsageLines) and transcript.path is not None and ids_are_shared(rows):
            # Only what lies between them tells whether they are one response; the narrow reader leaves that out.
            return self.add(open_transcript(transcript.path), covered_agents, subagent)
        progress = rows_of_progress(transcript, file, self.names, covered_agents)
        self.parts.append(np.concatenate([rows, progress]) if len(progress) else rows)
        self.transcripts.append(_iterations(transcript, rows))
        self.client_totals += client_totals_of(transcript, file)
        self.files.append((transcript.name, subagent))
        return file

    def add_parts(self, transcript: Transcript, ends: Sequence[int], covered_agents: Sequence[frozenset[str]]) -> None:
        """Read the usage of files that stand one after the other in a transcript (`fact_lines`), each as a file.

        The client's own totals are left out.

        Args:
            ends: the number of the record behind each file.
            covered_agents: for each file as in `add`.
        """
        file = len(self.files)
        rows = rows_of_transcript(transcript, file, self.names, ends)
        iterations = _iterations(transcript, rows)
        bounds = [0, *np.searchsorted(rows["record"], ends).tolist()]
        embedded: list[npt.NDArray[Any]] = []
        for number, (end, covered) in enumerate(zip(ends, covered_agents, strict=True)):
            first, last = bounds[number], bounds[number + 1]
            records = slice(ends[number - 1] if number else 0, end)
            embedded.append(rows_of_progress(transcript, file + number, self.names, covered, records))
            self.transcripts.append({row - first: found for row, found in iterations.items() if first <= row < last})
            self.files.append((transcript.name, False))
        if any(map(len, embedded)):
            for first, last, progress in zip(bounds[:-1], bounds[1:], embedded, strict=True):
                self.parts += [rows[first:last], progress]
        else:
            self.parts.append(rows)

    def add_session(self, session: Session) -> int:
        """Read a session with its subagents' files; returns the number of the main file."""
        agents = frozenset(file.agent_id for file in session.subagents)
        main = self.add(session.transcript, agents, session.conversation.is_subagent_file)
        for file in session.subagents:
            self.add(file.open().transcript, agents, subagent=True)
        return main

    def settle(self, apart: bool = False) -> Responses:
        """Everything added so far, each response once: over all files, or `apart` once in every file that has it."""
        return Responses(self, apart)


def usage_of_session(session: Session) -> Responses:
    """The responses of a session and its subagents, each once; file 0 is the main transcript."""
    ledger = Ledger()
    ledger.add_session(session)
    return ledger.settle()


def _file_usage(responses: Responses, files: list[tuple[str, bool]]) -> list[FileUsage]:
    """Raw sums of each file, and sums of each response once within it."""
    rows, numbers = responses.rows, responses.response_of
    raw = _sums(rows, len(files))
    records = np.bincount(rows["file"], minlength=len(files)) if len(rows) else np.zeros(len(files), np.int64)
    order = np.lexsort((rows["output"], prompt_tokens(rows) > 0, numbers, rows["file"]))
    last = np.ones(len(rows), bool)
    file, response = rows["file"][order], numbers[order]
    last[:-1] = (file[1:] != file[:-1]) | (response[1:] != response[:-1])
    best = rows[order[last]]
    own = _sums(best, len(files))
    counts = np.bincount(best["file"], minlength=len(files)) if len(best) else np.zeros(len(files), np.int64)
    return [
        FileUsage(name, int(records[n]), raw[n], own[n], int(counts[n]), subagent)
        for n, (name, subagent) in enumerate(files)
    ]


def _sums(rows: npt.NDArray[Any], files: int) -> list[tuple[int, ...]]:
    """Tokens by bucket of each file."""
    total = np.zeros((files, len(TOKEN_FIELDS)), np.int64)
    for bucket, name in enumerate(TOKEN_FIELDS):
        np.add.at(total[:, bucket], rows["file"], rows[name])
    return [tuple(row) for row in total.tolist()]


def _number_responses(rows: npt.NDArray[Any], apart: bool) -> Ints:
    """The response of every row: equal message.id, requestId, model and instance (see `mark_instances`).

    Rows without a message.id are responses of their own. Rows without a requestId, and rows whose copies have no
    figures, join the one response with their message.id, when there is just one. `apart`: rows of different files are
    never one response.
    """
    count = len(rows)
    if not count:
        return np.zeros(0, np.int64)
    nameless = rows["message"] == 0
    message = _message_in_file(rows) if apart else rows["message"]
    identity = np.empty((count, 4), np.uint64)
    identity[:, 0], identity[:, 1] = message, rows["request"]
    identity[:, 2], identity[:, 3] = rows["model"].astype(np.uint64), rows["instance"].astype(np.uint64)
    # A row's own number tells nameless ones apart.
    identity[nameless, 1] = np.flatnonzero(nameless).astype(np.uint64) + np.uint64(1)
    order = np.lexsort((identity[:, 3], identity[:, 2], identity[:, 1], identity[:, 0]))
    ordered = identity[order]
    new = np.ones(count, bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    numbers = np.empty(count, np.int64)
    numbers[order] = np.cumsum(new) - 1
    _join_incomplete(identity, numbers, order, ordered, new)
    return _by_first_appearance(numbers)


def _message_in_file(rows: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """For each row a number above 0 that it shares with the rows of its file that have the same message.id; 0 without
    one."""
    order = np.lexsort((rows["message"], rows["file"]))
    file, message = rows["file"][order], rows["message"][order]
    new = np.ones(len(rows), bool)
    new[1:] = (file[1:] != file[:-1]) | (message[1:] != message[:-1])
    numbers = np.empty(len(rows), np.uint64)
    numbers[order] = np.cumsum(new)
    numbers[rows["message"] == 0] = 0
    return numbers


def _join_incomplete(
    identity: npt.NDArray[Any], numbers: Ints, order: Ints, ordered: npt.NDArray[Any], new: npt.NDArray[np.bool_]
) -> None:
    """Move rows that lack a requestId or figures to the only complete response with their message.id."""
    named = ordered[:, 0] != 0
    lacking = named & ((ordered[:, 1] == 0) | (ordered[:, 3] == 0))
    if not lacking.any():
        return
    heads = np.flatnonzero(new & named)
    messages, counts = np.unique(ordered[heads, 0], return_counts=True)
    crowded = set(messages[counts > 1].tolist())
    by_message: dict[int, list[int]] = {}
    for head in heads[np.isin(ordered[heads, 0], list(crowded))] if crowded else []:
        by_message.setdefault(int(ordered[head, 0]), []).append(int(head))
    for members in by_message.values():
        complete = [h for h in members if ordered[h, 1] and ordered[h, 3]]
        complete = complete or [h for h in members if ordered[h, 3]]
        for head in members:
            if ordered[head, 1] and ordered[head, 3]:
                continue
            fits = [h for h in complete if h != head and _may_be_copies(ordered[h], ordered[head])]
            if len(fits) == 1:
                numbers[numbers == numbers[order[head]]] = numbers[order[fits[0]]]


def _may_be_copies(whole: npt.NDArray[Any], part: npt.NDArray[Any]) -> bool:
    same_request = part[1] == 0 or whole[1] == 0 or part[1] == whole[1]
    return bool(same_request and (part[3] == 0 or part[3] == whole[3]) and (part[3] == 0 or part[2] == whole[2]))


def _by_first_appearance(numbers: Ints) -> Ints:
    unique, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    rank = np.empty(len(unique), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(unique))
    return rank[inverse]


def _smallest_positive(groups: Ints, values: Ints, count: int) -> Ints:
    """For each group the smallest value above 0, or 0."""
    result = np.full(count, np.iinfo(np.int64).max, np.int64)
    known = values > 0
    np.minimum.at(result, groups[known], values[known])
    result[result == np.iinfo(np.int64).max] = 0
    return result


def _iterations(transcript: Transcript, rows: npt.NDArray[Any]) -> dict[int, list[tuple[str, tuple[int, ...]]]]:
    """For each usage row with server-side iterations, or with no figures at the top: model and tokens of each."""
    found: dict[int, list[tuple[str, tuple[int, ...]]]] = {}
    empty = (prompt_tokens(rows) == 0) & (rows["output"] == 0)
    for row in np.flatnonzero(rows["iterated"] | empty):
        record = int(rows["record"][row])
        usage = transcript.message(record).get("usage")
        entries = usage.get("iterations") if isinstance(usage, dict) else None
        iterations = tuple(e for e in entries if isinstance(e, dict)) if isinstance(entries, list) else ()
        if iterations:
            models = iteration_models(transcript, record, iterations)
            found[int(row)] = [(m, iteration_tokens(e)) for m, e in zip(models, iterations, strict=True)]
    return found


def _charges(responses: Responses, iterations: list[dict[int, list[tuple[str, tuple[int, ...]]]]]) -> npt.NDArray[Any]:
    """One charge a response, or one an iteration where there are some (their sum is what is billed)."""
    rows = responses.rows[responses.best]
    charges = np.zeros(responses.count, CHARGE)
    charges["response"] = np.arange(responses.count)
    charges["time"] = responses.time
    for name in ("model", "web", "speed", "geo", "batch"):
        charges[name] = rows[name]
    for bucket, name in enumerate(TOKEN_FIELDS):
        charges["tokens"][:, bucket] = rows[name]
    if not any(iterations):
        return charges
    first_row = np.cumsum([0, *(np.bincount(responses.rows["file"], minlength=len(iterations)))])
    extra: list[npt.NDArray[Any]] = []
    replaced = np.zeros(responses.count, bool)
    for response, best in enumerate(responses.best.tolist()):
        file = int(responses.rows["file"][best])
        entries = iterations[file].get(best - int(first_row[file]))
        if entries:
            extra.append(_iteration_charges(charges[response : response + 1], entries, responses.names))
            replaced[response] = True
    joined = np.concatenate([charges[~replaced], *extra])
    return joined[np.argsort(joined["response"], kind="stable")]


def _iteration_charges(
    whole: npt.NDArray[Any], entries: Iterable[tuple[str, tuple[int, ...]]], names: Vocabulary
) -> npt.NDArray[Any]:
    listed = list(entries)
    charges = np.repeat(whole, len(listed))
    for number, (model, tokens) in enumerate(listed):
        charges["model"][number] = names.models.number(model)
        charges["tokens"][number] = tokens
    charges["web"][1:] = 0
    return charges
