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
from inspector.models.round_table import event_title

if TYPE_CHECKING:
    from compaction.accounting.accounts import SessionAccounts
    from compaction.accounting.figure import Figure

_LISTED = 500
"""Most records listed of what a summary replaced; the count is always whole."""

SIGNS = {"auto": "▼", "manual": "◆", "legacy": "▼", "micro": "▽", "silent": "?", "simulated": "△"}
"""One sign for each kind of compaction, the same on the strip and in lists."""
_WITHOUT_SUMMARY = {
    "micro": "clearing tool results asks no model for a summary",
    "silent": "the context fell between two responses, and no record says why",
    "simulated": "a simulation writes none and changes no record",
}
"""Why these kinds have neither a summary nor records that came back."""


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
class Fact:
    """One figure of a step.

    Attributes:
        name, value, method: as shown; the method is empty where there is no value.
        tip: where the value stands in the file, or how it is made.
    """

    name: str
    value: str
    method: str
    tip: str = ""


@dataclass(frozen=True, slots=True)
class StepDetail:
    """What a step shows.

    Attributes:
        facts: its figures.
        before, after: tokens by category index; None where they are not known.
        summary: the summary's text, "" when there is none.
        replaced, preserved, attached: records as (line, text); `replaced_count` is the whole number.
    """

    facts: tuple[Fact, ...]
    before: tuple[int, ...] | None
    after: tuple[int, ...] | None
    summary: str
    replaced: tuple[tuple[int, str], ...]
    replaced_count: int
    preserved: tuple[tuple[int, str], ...]
    attached: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class EmptyReasons:
    """One sentence for each part of a step that may be empty."""

    summary: str
    replaced: str
    preserved: str
    attached: str


def reasons_of(kind: str) -> EmptyReasons:
    """Why a part of a step of this kind has no content, when it has none."""
    why = _WITHOUT_SUMMARY.get(kind)
    if why is None:
        return EmptyReasons(
            "No summary follows this compaction in the file.",
            "No message stands before this compaction in the file.",
            "No message was kept verbatim: the summary stands for all of them.",
            "The client attached nothing again before the next response.",
        )
    replaced = {
        "micro": "The record does not name the results that were cleared.",
        "silent": f"It is not known what went: {why}.",
        "simulated": "A simulation changes no record.",
    }[kind]
    return EmptyReasons(
        f"No summary belongs to this step: {why}.",
        replaced,
        f"Nothing was kept apart: {why}.",
        f"Nothing was attached again: {why}.",
    )


def kind_title(kind: str) -> str:
    """A kind of step in words."""
    return "simulated compaction" if kind == "simulated" else event_title(kind)


def legend_of(steps: Sequence[Step]) -> str:
    """The signs of the kinds of compaction that appear, with what they stand for."""
    kinds = {step.kind for step in steps}
    return "   ".join(f"{sign} {kind_title(kind)}" for kind, sign in SIGNS.items() if kind in kinds)


def counted(steps: Sequence[Step]) -> str:
    """How many compactions are on record, and how many are only seen by the fall of the context."""
    recorded = sum(s.compaction is not None and s.kind != "silent" for s in steps)
    silent = sum(s.kind == "silent" for s in steps)
    text = f"{recorded:,} recorded compaction{'' if recorded == 1 else 's'}"
    return text + (f" and {silent:,} without a record" if silent else "")


def recorded_steps(conversation: Conversation) -> list[Step]:
    """The compactions in the file, by position."""
    return [
        Step(c.kind, c.round, f"{SIGNS[c.kind]} {kind_title(c.kind)} after API round {c.round:,}, line {c.line:,}", c)
        for c in conversation.compactions
    ]


def simulated_steps(events: Sequence[SimulatedEvent]) -> list[Step]:
    """What a simulation fired."""
    return [
        Step(
            "simulated",
            e.round,
            f"{SIGNS['simulated']} {e.strategy} after API round {e.round:,}: "
            f"{e.tokens_before:,} → {e.tokens_after:,} tokens",
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


def _fact(name: str, value: str | None, method: str, tip: str) -> Fact:
    """A figure as it is shown: what is not on record says so, and has no method."""
    return Fact(name, value, method, tip) if value is not None else Fact(name, "not recorded", "", tip)


def _tokens(value: int | None) -> str | None:
    return None if value is None else f"{value:,} tokens"


def _recorded_facts(c: Conversation, compaction: Compaction) -> list[Fact]:
    payload = c.transcript.payload(compaction.record)
    key = "compactMetadata" if isinstance(payload.get("compactMetadata"), dict) else "microcompactMetadata"
    found = payload.get(key)
    details = found if isinstance(found, dict) else {}
    duration, saved = details.get("durationMs"), details.get("tokensSaved")
    usage = "Input + cache read + cache creation of the {} response on record."
    facts = [
        Fact(
            "kind",
            kind_title(compaction.kind),
            "recorded" if compaction.kind != "silent" else "computed from the fall",
            f"“{compaction.kind}”",
        ),
        _fact("context before", _tokens(compaction.context_before), "recorded", usage.format("last")),
        _fact("context after", _tokens(compaction.context_after), "recorded", usage.format("first")),
        _fact("context before, by the client", _tokens(compaction.pre_tokens), "recorded", f"Field preTokens of {key}"),
        _fact(
            "context after, by the client", _tokens(compaction.post_tokens), "recorded", f"Field postTokens of {key}"
        ),
        Fact("messages kept verbatim", f"{compaction.preserved:,}", "recorded", f"Counted from {key}"),
        _fact(
            "duration",
            f"{duration / 1000:,.1f} s" if isinstance(duration, int) else None,
            "recorded",
            f"Field durationMs of {key}",
        ),
    ]
    if isinstance(saved, int):
        facts.append(Fact("freed, by the client", f"{saved:,} tokens", "recorded", f"Field tokensSaved of {key}"))
    return facts


def _cost_facts(accounts: SessionAccounts, compaction: Compaction) -> list[Fact]:
    found = next((c for c in accounts.compactions if c.compaction == compaction), None)
    if found is None:
        return []
    return [
        Fact("cost of its own call", _dollars(found.call), str(found.call.method), found.call.source),
        Fact(
            "cost of writing the cache again", _dollars(found.rebuild), str(found.rebuild.method), found.rebuild.source
        ),
    ]


def _dollars(figure: Figure) -> str:
    return "unknown" if figure.value is None else f"${figure.value:,.4f}"


def _simulated_facts(step: Step) -> tuple[Fact, ...]:
    event = step.event
    if event is None:
        return ()
    return (
        Fact("strategy", event.strategy, "simulated"),
        Fact("context before", f"{event.tokens_before:,} tokens", "estimated"),
        Fact("context after", f"{event.tokens_after:,} tokens", "estimated"),
        Fact("freed", f"{event.tokens_before - event.tokens_after:,} tokens", "estimated"),
    )


def category_amounts(parts: Sequence[int]) -> dict[Category, int]:
    """Tokens by category from a row of the series."""
    return {category: parts[category] for category in Category}
