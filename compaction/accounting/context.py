from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from compaction.accounting.calibration import UNCALIBRATED, Calibration, calibrate
from compaction.accounting.categories import CATEGORY_COUNT, Category
from compaction.accounting.composition import Added, Composition, first_composition, next_composition
from compaction.accounting.models import strips_earlier_thinking
from compaction.accounting.parts import Parts, estimate_parts
from compaction.accounting.usage_rows import Vocabulary, prompt_tokens, rows_of_transcript
from compaction.conversation import ROOT, Compaction, Conversation, context_of_iterations
from compaction.progress import Progress
from compaction.transcript import Flag, RecordKind, Transcript, key_of

Ints = npt.NDArray[np.int64]
_ASSISTANT_SIDE = (Category.ASSISTANT_TEXT, Category.THINKING, Category.TOOL_USE)
NO_ROUND = -1


@dataclass(frozen=True, slots=True)
class RoundUsage:
    """What the API recorded for each API round's response; arrays have one entry a round, round n at n − 1.

    Attributes:
        context: input + cache read + cache creation, tokens; 0 not recorded.
        output: output tokens; `final`: not a placeholder; `thinking`: of these, where recorded, −1 elsewhere.
        cache_read, written, one_hour: tokens read from and written to the cache, and of these to the 1-hour cache.
        time, finish: UTC milliseconds of the response's first and last record, 0 unknown.
        row_record: the record that carries the figures, −1 none.
    """

    context: Ints
    output: Ints
    final: npt.NDArray[np.bool_]
    thinking: Ints
    cache_read: Ints
    written: Ints
    one_hour: Ints
    time: Ints
    finish: Ints
    row_record: Ints


def round_usage(conversation: Conversation) -> RoundUsage:
    """The recorded usage of every API round (transcript-format.md 5): the copy with the largest output of each."""
    c = conversation
    t = c.transcript
    n = c.round_count
    rows = rows_of_transcript(t, 0, Vocabulary())
    rows = rows[c.main[rows["record"]]]
    # An id that two responses share (see usage_rows.mark_instances) must not mix rounds: a round's own records count.
    number = np.searchsorted(c.round_first_records, rows["record"], "right") - 1
    if n:
        same = (number >= 0) & (c.response_of[rows["record"]] == c.round_responses[np.maximum(number, 0)])
        rows, number = rows[same], number[same]
    else:
        rows, number = rows[:0], number[:0]
    order = np.lexsort((rows["output"], prompt_tokens(rows) > 0, number))
    rows, number = rows[order], number[order]
    ends = np.searchsorted(number, np.arange(n), "right") - 1
    has = (ends >= 0) & (number[np.maximum(ends, 0)] == np.arange(n)) if len(number) else np.zeros(n, bool)
    best = rows[np.maximum(ends, 0)] if len(rows) else np.zeros(n, rows.dtype)
    context = np.where(has, prompt_tokens(best), 0)
    for place in np.flatnonzero(has & best["iterated"]).tolist():
        found = context_of_iterations(t.usage_at(int(best["usage"][place])).iterations)
        context[place] = found if found is not None else context[place]
    final = np.zeros(n, bool)
    final[number[~rows["unfinished"]]] = True
    finish = np.zeros(n, np.int64)
    np.maximum.at(finish, number, rows["time"])
    first = c.round_first_records
    return RoundUsage(
        context=context,
        output=np.where(has, best["output"], 0),
        final=final & has,
        thinking=_thinking(t, np.where(has, best["usage"], -1)),
        cache_read=np.where(has, best["cache_read"], 0),
        written=np.where(has, best["write_5m"] + best["write_1h"], 0),
        one_hour=np.where(has, best["write_1h"], 0),
        time=t.timestamp_ms[first].astype(np.int64),
        finish=np.maximum(finish, t.timestamp_ms[first]),
        row_record=np.where(has, best["record"], -1).astype(np.int64),
    )


def _thinking(transcript: Transcript, usage_rows: Ints) -> Ints:
    """`output_tokens_details.thinking_tokens` of some rows of the usage table, −1 where there is none."""
    result = np.full(len(usage_rows), -1, np.int64)
    known = usage_rows >= 0
    result[known] = transcript.usage_table["thinking"][usage_rows[known]]
    return result


class ContextSeries:
    """The context of every API round, divided into categories that add up to what was recorded.

    Attributes:
        conversation: what it is about.
        usage: the recorded figures.
        parts: tokens by round and `Category`, shape (rounds, 9); rows add up to `usage.context`.
        hidden_thinking: of the thinking, tokens that have no text.
        predecessor: for each round the round (0-based) whose context it grew from, −1: it begins anew.
        user_calibration, assistant_calibration: how the estimator was scaled to this session.
        estimates: the estimates themselves.
    """

    def __init__(self, conversation: Conversation, estimates: Parts, progress: Progress | None = None) -> None:
        self.conversation = conversation
        self.estimates = estimates
        self.usage = round_usage(conversation)
        count = conversation.round_count
        self.parts: Ints = np.zeros((count, CATEGORY_COUNT), np.int64)
        self.hidden_thinking: Ints = np.zeros(count, np.int64)
        self.predecessor = _predecessors(conversation)
        self._assistant, self._user = self._weights()
        self._prompted = self._prompts()
        self._hides = self._silences()
        self._compacted = self._clearings()
        self.assistant_calibration, self.user_calibration = self._calibrate()
        self._divide(progress or Progress())

    @property
    def rounds(self) -> int:
        """Number of API rounds."""
        return len(self.usage.context)

    @cached_property
    def compactions(self) -> list[Compaction]:
        """Every compaction, recorded, microcompaction or silent drop, by file position."""
        return self.conversation.compactions

    def _weights(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Estimated tokens by round and category: of the response, and of what follows it."""
        c, e = self.conversation, self.estimates
        shape = (c.round_count + 1, CATEGORY_COUNT)
        assistant, user = np.zeros(shape), np.zeros(shape)
        # Round 0 collects what comes before the first response of an epoch; `_before` looks at it again.
        number = c.round_of[e.record]
        own = np.isin(e.category, _ASSISTANT_SIDE) & (c.transcript.kind[e.record] == RecordKind.ASSISTANT)
        np.add.at(assistant, (number[own], e.category[own]), e.tokens[own])
        np.add.at(user, (number[~own], e.category[~own]), e.tokens[~own])
        return assistant, user

    def _prompts(self) -> npt.NDArray[np.bool_]:
        """Whether a prompt of the person lies in the round (after its response)."""
        c = self.conversation
        t = c.transcript
        asked = c.main & (t.kind == RecordKind.USER) & ((t.flags & (Flag.TOOL_RESULT | Flag.META)) == 0)
        result = np.zeros(c.round_count + 1, bool)
        result[c.round_of[asked]] = True
        return result

    def _clearings(self) -> set[int]:
        """Rounds (0-based) before whose request the client cleared content: microcompactions and silent drops."""
        first = self.conversation.round_first_records
        return {int(np.searchsorted(first, x.record)) for x in self.compactions if x.kind in ("micro", "silent")}

    def _output(self, place: int) -> int | None:
        return int(self.usage.output[place]) if self.usage.final[place] else None

    def _silences(self) -> npt.NDArray[np.bool_]:
        """Whether a round's response holds thinking without text."""
        c = self.conversation
        result = np.zeros(c.round_count + 1, bool)
        result[c.round_of[self.estimates.hidden & c.main]] = True
        return result[1:]

    def _calibrate(self) -> tuple[Calibration, Calibration]:
        u, count = self.usage, self.rounds
        if count < 2:
            return UNCALIBRATED, UNCALIBRATED
        before = self.predecessor[1:]
        plain = (before == np.arange(count - 1)) & (u.context[1:] > 0) & (u.context[:-1] > 0)
        growth = (u.context[1:] - u.context[:-1]).astype(float)
        plain &= (growth > 0) & ~np.isin(np.arange(1, count), list(self._compacted))
        estimated_response = self._assistant[1:count].sum(axis=1)
        estimated_user = self._user[1:count].sum(axis=1)
        open_thinking = ~self._hides[:-1]
        known = plain & u.final[:-1]
        spoke = known & open_thinking
        assistant = calibrate(estimated_response[spoke], u.output[:-1][spoke].astype(float))
        rest = growth - u.output[:-1]
        user = calibrate(estimated_user[known], rest[known])
        if user.rounds < 4:
            # No final outputs (2.1.12 to 2.1.52): the growth of rounds without hidden thinking scales both sides.
            both = plain & open_thinking & ~u.final[:-1]
            user = calibrate((estimated_response + estimated_user)[both], growth[both])
            assistant = assistant if assistant.rounds >= 4 else user
        return assistant, user

    def _before(self, place: int) -> npt.NDArray[np.float64]:
        """Calibrated estimates of what a round's request holds when nothing tells what it grew from."""
        c = self.conversation
        r = c.round(place + 1)
        start = max(c.epochs[r.epoch].first_record, self._start_of(r.first_record))
        return self._visible(start, r.first_record, r.epoch)

    def _visible(self, start: int, end: int, epoch: int) -> npt.NDArray[np.float64]:
        """Calibrated estimates by category of the records from `start` to `end` and what the epoch preserved."""
        e = self.estimates
        inside = (e.record >= start) & (e.record < end)
        inside |= np.isin(e.record, preserved_records(self.conversation, epoch))
        total = np.zeros(CATEGORY_COUNT)
        np.add.at(total, e.category[inside], e.tokens[inside])
        return total * self.user_calibration.factor

    def user_estimate(self, place: int) -> float:
        """Calibrated estimate of what was added after the response of round `place` (0-based), tokens."""
        return float(self._user[place + 1].sum() * self.user_calibration.factor)

    def pending_estimate(self) -> float:
        """Estimated tokens of what the last epoch holds: all there is to say before its first response."""
        epoch = self.conversation.epochs[-1]
        return float(self._visible(epoch.first_record, epoch.end_record, epoch.number).sum())

    def _start_of(self, record: int) -> int:
        """The root of the chain that a record stands in."""
        parent = self.conversation.parent
        for _ in range(len(parent)):
            if parent[record] < 0:
                return record
            record = int(parent[record])
        return record

    def _divide(self, progress: Progress) -> None:
        u, c = self.usage, self.conversation
        models = c.transcript.model_names
        strips = [bool(name) and strips_earlier_thinking(name) for name in models]
        system: int | None = None
        compositions: list[Composition | None] = [None] * self.rounds
        progress.total, progress.unit, progress.text = self.rounds, "rounds", "Dividing the context"
        for place in range(self.rounds):
            if place % 512 == 0:
                progress.check()
                progress.done = place
            total = int(u.context[place])
            if not total:
                continue
            base, added, asked, cleared = self._base(place, compositions)
            if base is None or added is None:
                current = first_composition(total, self._before(place), system)
                if not (current.tokens[Category.SYSTEM_AND_TOOLS] == 0 and system is not None):
                    system = int(current.tokens[Category.SYSTEM_AND_TOOLS])
            else:
                model = int(c.transcript.model_number[c.round_first_records[place]])
                current = next_composition(base, total, added, cleared, strips[model] and asked)
                system = int(current.tokens[Category.SYSTEM_AND_TOOLS])
            compositions[place] = current
            self.parts[place] = current.tokens
            self.hidden_thinking[place] = current.hidden_thinking

    def _base(
        self, place: int, compositions: list[Composition | None]
    ) -> tuple[Composition | None, Added | None, bool, bool]:
        """The context that a round grew from, what was added since, whether a person asked, whether content went.

        Rounds without recorded figures are passed over: what they added counts too.
        """
        before = int(self.predecessor[place])
        assistant, user = np.zeros(CATEGORY_COUNT), np.zeros(CATEGORY_COUNT)
        hidden = asked = False
        cleared = place in self._compacted
        output: int | None = 0
        thinking: int | None = 0
        while before >= 0:
            assistant += self._assistant[before + 1] * self.assistant_calibration.factor
            user += self._user[before + 1] * self.user_calibration.factor
            hidden |= bool(self._hides[before])
            asked |= bool(self._prompted[before + 1])
            own = self._output(before)
            output = output + own if output is not None and own is not None else None
            thought = int(self.usage.thinking[before])
            thinking = thinking + thought if thinking is not None and thought >= 0 else None
            if compositions[before] is not None:
                return compositions[before], Added(assistant, user, hidden, output, thinking), asked, cleared
            cleared |= before in self._compacted
            before = int(self.predecessor[before])
        return None, None, False, cleared


def preserved_records(conversation: Conversation, epoch: int) -> list[int]:
    """The records that a compaction kept verbatim after its summary, by number (transcript-format.md 7)."""
    c = conversation
    t = c.transcript
    boundary = c.epochs[epoch].boundary_record
    if boundary < 0 or not t.flags[boundary] & Flag.COMPACT_BOUNDARY:
        return []
    details = t.payload(boundary).get("compactMetadata")
    kept = details.get("preservedMessages") if isinstance(details, dict) else None
    uuids = kept.get("uuids") if isinstance(kept, dict) else None
    if not isinstance(uuids, list):
        return []
    keys = np.array([key_of(u) for u in uuids if isinstance(u, str)], np.uint64)
    return [int(r) for r in np.flatnonzero(np.isin(t.uuid_key[:boundary], keys))]


def _predecessors(conversation: Conversation) -> npt.NDArray[np.int64]:
    """For each round (0-based) the round whose response is its nearest ancestor; −1 where the walk ends at a root.

    A round after a compaction begins anew. Where the chain is broken, the round before in the file counts.
    """
    c = conversation
    first, t = c.round_first_records, c.transcript
    result = np.full(c.round_count, NO_ROUND, np.int64)
    place_of = np.searchsorted(first, np.arange(len(t)), "right") - 1
    answers = (t.kind == RecordKind.ASSISTANT) & c.main
    # Plain lists: the walk reads single entries, which costs a tenth of reading them from arrays.
    walk = _Walk(c.parent.tolist(), answers.tolist(), c.response_of.tolist(), c.epoch_of.tolist(), place_of.tolist())
    for place, record in enumerate(first.tolist()):
        if not place or walk.epoch[record] == walk.epoch[int(first[place - 1])]:
            result[place] = walk.nearest_round(record, place)
    return result


@dataclass(frozen=True, slots=True)
class _Walk:
    """The chain as lists, one entry a record; `place` is the round (0-based) by file position."""

    parent: list[int]
    answers: list[bool]
    response: list[int]
    epoch: list[int]
    place: list[int]

    def nearest_round(self, record: int, place: int) -> int:
        """The round of the nearest ancestor that is another response."""
        response, epoch = self.response[record], self.epoch[record]
        while True:
            parent = self.parent[record]
            if parent == ROOT:
                return NO_ROUND
            # A parent further down would make the walk endless: the file is damaged there, so the file order counts.
            if parent < 0 or parent >= record or self.epoch[parent] != epoch:
                return place - 1
            record = parent
            if self.answers[record] and self.response[record] != response:
                return min(self.place[record], place - 1)


def context_series(conversation: Conversation, progress: Progress | None = None) -> ContextSeries:
    """The context of every API round with its parts (see `ContextSeries`).

    Raises:
        Cancelled: `progress.cancel()` was called.
    """
    return ContextSeries(conversation, estimate_parts(conversation, progress), progress)
