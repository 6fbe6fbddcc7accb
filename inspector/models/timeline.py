"""The compactions of a session as steps: recorded ones with what they left, simulated ones beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from compaction.accounting.categories import Category
from compaction.accounting.context import preserved_records
from compaction.conversation import Compaction, Conversation
from compaction.strategies.what_if import SimulatedEvent
from compaction.summaries.audit import recorded_summary
from compaction.transcript import Flag, RecordKind

if TYPE_CHECKING:
    from compaction.accounting.accounts import SessionAccounts
    from compaction.accounting.figure import Figure

_LISTED = 500
"""Most records listed of what a summary replaced; the count is always whole."""

SIGNS = {"auto": "▼", "manual": "◆", "legacy": "▼", "micro": "▽", "silent": "?", "simulated": "△"}
"""One sign for each kind of compaction, the same on the strip and in lists."""


@dataclass(frozen=True, slots=True)
class Step:
    """One compaction to step to.

    Attributes:
        kind: auto, manual, legacy, micro, silent or simulated.
        round: the last API round before it.
        title: one line.
        compaction: the recorded one, None for a simulated one; `event` the other way round.
    """

    kind: str
    round: int
    title: str
    compaction: Compaction | None = None
    event: SimulatedEvent | None = None


@dataclass(frozen=True, slots=True)
class StepDetail:
    """What a step shows.

    Attributes:
        facts: name, value, method.
        before, after: tokens by category index; None where they are not known.
        summary: the summary's text, "" when there is none.
        replaced, preserved, attached: records as (line, text); `replaced_count` is the whole number.
    """

    facts: tuple[tuple[str, str, str], ...]
    before: tuple[int, ...] | None
    after: tuple[int, ...] | None
    summary: str
    replaced: tuple[tuple[int, str], ...]
    replaced_count: int
    preserved: tuple[tuple[int, str], ...]
    attached: tuple[tuple[int, str], ...]


def recorded_steps(conversation: Conversation) -> list[Step]:
    """The compactions in the file, by position."""
    return [
        Step(c.kind, c.round, f"{SIGNS[c.kind]} {c.kind} after API round {c.round}, line {c.line}", c)
        for c in conversation.compactions
    ]


def simulated_steps(events: Sequence[SimulatedEvent]) -> list[Step]:
    """What a simulation fired."""
    return [
        Step(
            "simulated",
            e.round,
            f"{SIGNS['simulated']} {e.strategy} after API round {e.round}: {e.tokens_before:,} → {e.tokens_after:,}",
            event=e,
        )
        for e in events
    ]


def detail_of(accounts: SessionAccounts, step: Step) -> StepDetail:
    """Everything about one step; decodes only the records that are listed."""
    series = accounts.series
    before = _parts(series.parts, step.round - 1)
    after = _parts(series.parts, step.round) if step.compaction is not None else None
    if step.compaction is None:
        return StepDetail(_simulated_facts(step), before, None, "", (), 0, (), ())
    compaction = step.compaction
    conversation = series.conversation
    facts = (*_recorded_facts(conversation, compaction), *_cost_facts(accounts, compaction))
    if compaction.kind in ("micro", "silent"):
        cleared = _cleared(conversation, compaction)
        return StepDetail(facts, before, after, "", tuple(cleared[:_LISTED]), len(cleared), (), ())
    number = int(conversation.epoch_of[compaction.record])
    earlier = conversation.epochs[number - 1] if number else None
    gone = _speaking(conversation, earlier.first_record, earlier.end_record) if earlier is not None else []
    kept = preserved_records(conversation, number)
    attached = _attached(conversation, compaction.record)
    return StepDetail(
        facts,
        before,
        after,
        recorded_summary(conversation, compaction.record),
        _lines(conversation, [r for r in gone if r not in set(kept)][:_LISTED]),
        len(gone) - len(kept),
        _lines(conversation, kept[:_LISTED]),
        _lines(conversation, attached[:_LISTED]),
    )


def _parts(parts: np.ndarray[tuple[int, ...], np.dtype[np.int64]], place: int) -> tuple[int, ...] | None:
    """Tokens by category of the round at a place (0-based), None where nothing is recorded."""
    if not 0 <= place < len(parts) or not parts[place].any():
        return None
    return tuple(int(n) for n in parts[place])


def _speaking(c: Conversation, first: int, end: int) -> list[int]:
    t = c.transcript
    kinds = (RecordKind.USER, RecordKind.ASSISTANT)
    return [r for r in range(first, end) if t.kind[r] in kinds and c.thread[r] == 0]


def _attached(c: Conversation, boundary: int) -> list[int]:
    """What was put into the context again: attachments and injected text up to the first response after it."""
    t = c.transcript
    epoch = c.epochs[int(c.epoch_of[boundary])]
    found = []
    for record in range(epoch.first_record, epoch.end_record):
        if t.kind[record] == RecordKind.ASSISTANT and c.thread[record] == 0:
            break
        if t.kind[record] == RecordKind.ATTACHMENT or int(t.flags[record]) & Flag.META:
            found.append(record)
    return found


def _cleared(c: Conversation, compaction: Compaction) -> list[tuple[int, str]]:
    details = c.transcript.payload(compaction.record).get("microcompactMetadata")
    ids = details.get("compactedToolIds") if isinstance(details, dict) else None
    line = compaction.line
    return [(line, f"result of {i}") for i in ids if isinstance(i, str)] if isinstance(ids, list) else []


def _lines(c: Conversation, records: Sequence[int]) -> tuple[tuple[int, str], ...]:
    t = c.transcript
    return tuple((int(t.line[r]), f"{t.type_name(r)}: {t.preview(r, 160)}") for r in records)


def _tokens(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,} tokens"


def _recorded_facts(c: Conversation, compaction: Compaction) -> list[tuple[str, str, str]]:
    payload = c.transcript.payload(compaction.record)
    details = payload.get("compactMetadata") or payload.get("microcompactMetadata") or {}
    facts = [
        ("kind", compaction.kind, "recorded" if compaction.kind != "silent" else "computed from the fall"),
        ("context before", _tokens(compaction.context_before), "recorded"),
        ("context after", _tokens(compaction.context_after), "recorded"),
        ("preTokens", _tokens(compaction.pre_tokens), "recorded"),
        ("postTokens", _tokens(compaction.post_tokens), "recorded"),
        ("messages preserved", str(compaction.preserved), "recorded"),
    ]
    duration = details.get("durationMs") if isinstance(details, dict) else None
    facts.append(("duration", f"{duration / 1000:.1f} s" if isinstance(duration, int) else "unknown", "recorded"))
    saved = details.get("tokensSaved") if isinstance(details, dict) else None
    if isinstance(saved, int):
        facts.append(("tokensSaved", f"{saved:,} tokens", "recorded by the client"))
    return facts


def _cost_facts(accounts: SessionAccounts, compaction: Compaction) -> list[tuple[str, str, str]]:
    found = next((c for c in accounts.compactions if c.compaction == compaction), None)
    if found is None:
        return []
    return [
        ("cost of its own call", _dollars(found.call), str(found.call.method)),
        ("cost of writing the cache again", _dollars(found.rebuild), str(found.rebuild.method)),
    ]


def _dollars(figure: Figure) -> str:
    return "unknown" if figure.value is None else f"${figure.value:,.4f}"


def _simulated_facts(step: Step) -> tuple[tuple[str, str, str], ...]:
    event = step.event
    if event is None:
        return ()
    return (
        ("strategy", event.strategy, "simulated"),
        ("context before", f"{event.tokens_before:,} tokens", "estimated"),
        ("context after", f"{event.tokens_after:,} tokens", "estimated"),
        ("freed", f"{event.tokens_before - event.tokens_after:,} tokens", "estimated"),
    )


def category_amounts(parts: Sequence[int]) -> dict[Category, int]:
    """Tokens by category from a row of the series."""
    return {category: parts[category] for category in Category}
