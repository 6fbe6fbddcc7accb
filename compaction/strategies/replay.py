"""A recorded session walked round by round: where compaction would have fired, set against what was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from compaction.accounting.estimate import rough_tokens_of_block
from compaction.accounting.models import is_synthetic
from compaction.accounting.profiles import profile_for, recorded_profile
from compaction.accounting.settings import WindowSettings
from compaction.accounting.thresholds import Thresholds, thresholds_for
from compaction.conversation import Compaction, Conversation
from compaction.progress import Progress
from compaction.transcript.kinds import Flag, RecordKind

MATCH_ROUNDS = 1
"""A prediction within this many rounds of the recorded compaction counts as matched (issue 5)."""
_CHECKED = 200


@dataclass(frozen=True, slots=True)
class RoundFacts:
    """One API round of the main thread as the client's check before the next request sees it.

    Attributes:
        number: 1-based; line: of the response's first record; time_ms: when it was written.
        context: recorded context of the response, tokens; 0 unknown.
        output: its output in tokens; `output_recorded` False when only the stream's placeholder is there and the
            rough estimate of its blocks stands in.
        added: rough estimate of what came after the response and before the next request or compaction, tokens.
        epoch: number of its epoch.
        model, version: of the response.
    """

    number: int
    line: int
    time_ms: int
    context: int
    output: int
    output_recorded: bool
    added: int
    epoch: int
    model: str
    version: str

    @property
    def checked(self) -> int:
        """`token_count_with_estimation` before the next request (clients.md), tokens; 0 when unknown."""
        return self.context + self.output + self.added if self.context else 0


@dataclass(frozen=True, slots=True)
class Fired:
    """A compaction: `trigger` (auto, manual, micro, legacy, silent), tokens before it, and by which strategy."""

    trigger: str
    tokens: int | None
    strategy: str = ""


@dataclass(frozen=True, slots=True)
class ReplayEvent:
    """A predicted compaction, a recorded one, or both.

    Attributes:
        round: the last API round before it (of the recorded one where there is one).
        line: of the recorded boundary, else of the round's response.
        error_tokens: predicted − recorded tokens, None where one is unknown.
        error_rounds: predicted − recorded round, None where one is missing.
        output_recorded: the output of the round's response was recorded, so the tokens can be exact.
    """

    round: int
    line: int
    predicted: Fired | None
    recorded: Fired | None
    error_tokens: int | None
    error_rounds: int | None
    output_recorded: bool = True


@dataclass(frozen=True, slots=True)
class Replay:
    """The events of a session in order; matched, missed and extra count automatic compactions only."""

    client: str
    events: tuple[ReplayEvent, ...]
    matched: int
    missed: int
    extra: int


def replay(
    conversation: Conversation,
    client: str = "",
    window: WindowSettings | None = None,
    progress: Progress | None = None,
) -> Replay:
    """Where the client would have compacted by itself, and where it did.

    Args:
        client: the client version whose profile counts; "" takes the version that wrote each round.
        window: overrides of the window and its thresholds.
    """
    facts = list(round_facts(conversation, progress))
    recorded = [c for c in conversation.compactions if c.kind in ("auto", "manual", "legacy", "micro", "silent")]
    predictions = predicted_rounds(conversation, facts, client, window)
    events: list[ReplayEvent] = []
    used: set[int] = set()
    for compaction in recorded:
        predicted = _prediction_for(compaction, predictions, facts, used)
        if predicted is not None:
            used.add(predicted.number)
        events.append(_event(compaction, predicted, facts))
    extra = [fact for fact in predictions if fact.number not in used]
    events += [
        ReplayEvent(f.number, f.line, Fired("auto", f.checked, "auto-compact"), None, None, None, f.output_recorded)
        for f in extra
    ]
    automatic = [e for e in events if e.recorded is not None and e.recorded.trigger == "auto"]
    matched = sum(1 for e in automatic if e.error_rounds is not None and abs(e.error_rounds) <= MATCH_ROUNDS)
    ordered = tuple(sorted(events, key=lambda e: (e.round, e.line)))
    return Replay(client or "as recorded", ordered, matched, len(automatic) - matched, len(extra))


def round_facts(conversation: Conversation, progress: Progress | None = None) -> Iterator[RoundFacts]:
    """The facts of every round, in order; one pass over the records."""
    t = conversation.transcript
    for number in range(1, conversation.round_count + 1):
        if progress is not None and number % _CHECKED == 0:
            progress.check()
            progress.done = number
        span = conversation.round(number)
        records = [r for r in conversation.response_records(span.response) if span.first_record <= r < span.end_record]
        output, recorded = _output(conversation, records)
        yield RoundFacts(
            number=number,
            line=int(t.line[span.first_record]),
            time_ms=int(t.timestamp_ms[span.first_record]),
            context=conversation.round_context(number),
            output=output,
            output_recorded=recorded,
            added=_added(conversation, span.first_record, span.end_record),
            epoch=span.epoch,
            model=t.model(records[-1]) if records else "",
            version=t.version(span.first_record),
        )


def _output(conversation: Conversation, records: list[int]) -> tuple[int, bool]:
    """The output of a response: as recorded by its last record, or (a placeholder only) at least its blocks' size."""
    t = conversation.transcript
    usages = [usage for r in records if (usage := t.usage(r)) is not None]
    if not usages:
        return 0, False
    output = usages[-1].output_tokens
    if not usages[-1].stop_reason_null:
        return output, True
    visible = sum(rough_tokens_of_block(t.block(b)) for r in records for b in t.blocks_of(r))
    return max(output, visible), False


def _added(conversation: Conversation, first: int, end: int) -> int:
    """The rough estimate of the main thread's user blocks between a response and the next request, tokens."""
    t = conversation.transcript
    inside = np.arange(first, end)
    chosen = inside[(t.kind[first:end] == RecordKind.USER) & conversation.main[first:end]]
    hidden = Flag.COMPACT_SUMMARY
    return sum(
        rough_tokens_of_block(t.block(block))
        for record in chosen.tolist()
        if not int(t.flags[record]) & hidden
        for block in t.blocks_of(record)
    )


def predicted_rounds(
    conversation: Conversation, facts: list[RoundFacts], client: str, window: WindowSettings | None
) -> list[RoundFacts]:
    """The rounds behind which the client would compact by itself: the first over the threshold in each stretch.

    In a stretch that goes on without compacting only one prediction stands, until the context falls under the
    threshold again.
    """
    largest = max((fact.context for fact in facts), default=0)
    limits = _Limits(client, window, largest)
    found: list[RoundFacts] = []
    armed, epoch = True, -1
    for fact in facts:
        if not fact.checked or is_synthetic(fact.model):
            continue
        if fact.epoch != epoch:
            armed, epoch = True, fact.epoch
        thresholds = limits.of(fact)
        over = thresholds.auto_compact_on and fact.checked >= thresholds.auto_compact_threshold
        if over and armed:
            found.append(fact)
        armed = not over
    return found


class _Limits:
    """The thresholds of each round under one client, or under the client that wrote it."""

    def __init__(self, client: str, window: WindowSettings | None, largest: int) -> None:
        self._client, self._window, self._largest = client, window, largest
        self._cached = lru_cache(maxsize=None)(self._thresholds)

    def of(self, fact: RoundFacts) -> Thresholds:
        return self._cached(fact.version, fact.model)

    def _thresholds(self, version: str, model: str) -> Thresholds:
        profile = profile_for(self._client) if self._client else recorded_profile(version)
        return thresholds_for(profile, model, self._window, self._largest)


def _prediction_for(
    compaction: Compaction, predictions: list[RoundFacts], facts: list[RoundFacts], used: set[int]
) -> RoundFacts | None:
    """The prediction that belongs to a recorded compaction: the nearest one in the stretch that it ended."""
    if compaction.kind in ("micro", "silent", "legacy") or compaction.round < 1:
        return None
    epoch = facts[compaction.round - 1].epoch
    near = [f for f in predictions if f.epoch == epoch and f.number <= compaction.round + MATCH_ROUNDS]
    near = [f for f in near if f.number not in used]
    return min(near, key=lambda f: abs(f.number - compaction.round), default=None)


def _event(compaction: Compaction, predicted: RoundFacts | None, facts: list[RoundFacts]) -> ReplayEvent:
    at = facts[compaction.round - 1] if compaction.round >= 1 else None
    recorded = Fired(compaction.kind, compaction.pre_tokens)
    error = None
    if at is not None and at.checked and compaction.pre_tokens is not None and compaction.kind in ("auto", "manual"):
        error = at.checked - compaction.pre_tokens
    return ReplayEvent(
        round=compaction.round,
        line=compaction.line,
        predicted=Fired("auto", predicted.checked, "auto-compact") if predicted is not None else None,
        recorded=recorded,
        error_tokens=error,
        error_rounds=predicted.number - compaction.round if predicted is not None else None,
        output_recorded=at.output_recorded if at is not None else False,
    )
