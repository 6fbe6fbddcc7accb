"""Findings about the conversation as a whole: its compactions (compaction.md, api-rules.md part B)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from compaction.accounting.models import is_synthetic
from compaction.accounting.profiles import recorded_profile
from compaction.accounting.thresholds import thresholds_for
from compaction.conversation import Epoch
from compaction.diagnosis.case import Case
from compaction.diagnosis.model import Finding, Repair
from compaction.diagnosis.rules.encoding import strings_in
from compaction.transcript import BlockType, Flag, RecordKind, key_of

THRASH_COMPACTIONS = 3
THRASH_TURNS = 3
"""The client's own breaker (2.1.89): three compactions in a row, each refilled in fewer than three round trips."""
BELOW_SHARE = 0.9
"""An automatic compaction counts as early when it fired below this share of the threshold: the recorded figure holds
an estimate of what was added last, which is off by some per cent (transcript-format.md §7)."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """The stretch between two compactions: what filled the context again, in characters by source."""

    boundary: int
    next_boundary: int
    turns: int
    sources: Counter[str]


def _turns_between(case: Case, start: int, end: int) -> int:
    """Round trips between two records: responses of the main thread, the client's own error records left out."""
    conversation, t = case.conversation, case.transcript
    records = [
        r
        for r in range(start, end)
        if conversation.response_of[r] >= 0 and conversation.main[r] and not is_synthetic(t.model(r))
    ]
    return len({int(conversation.response_of[r]) for r in records})


def sources_between(case: Case, start: int, end: int) -> Counter[str]:
    """Characters that the main thread added between two records, by source: attachments by kind and path, tool
    results by tool, what the person wrote, images. What the model wrote and the summary are no refill."""
    conversation, t = case.conversation, case.transcript
    found: Counter[str] = Counter()
    for record in range(start, end):
        if not conversation.main[record]:
            continue
        if t.kind[record] == RecordKind.ATTACHMENT:
            name, size = _attachment(case, record)
            found[name] += size
        elif t.kind[record] == RecordKind.USER and not t.flags[record] & Flag.COMPACT_SUMMARY:
            found.update(_user_sources(case, record))
    return found


def _attachment(case: Case, record: int) -> tuple[str, int]:
    attachment = case.transcript.payload(record).get("attachment")
    value = attachment if isinstance(attachment, dict) else {}
    place = next((value[k] for k in ("path", "filename", "displayPath") if isinstance(value.get(k), str)), "")
    told = {
        k: v for k, v in value.items() if k in ("content", "text", "snippet", "prompt", "addedLines", "addedBlocks")
    }
    size = sum(len(text) for _, text in strings_in(told))
    return f"attachment:{value.get('type', 'unknown')} {place}".strip(), size


def _user_sources(case: Case, record: int) -> Counter[str]:
    conversation, t = case.conversation, case.transcript
    found: Counter[str] = Counter()
    for block in t.blocks_of(record):
        size = int(t.block_chars[block])
        if t.block_type[block] == BlockType.TOOL_RESULT:
            call = int(conversation.pair[block])
            found[f"tool_result:{t.block_tool(call) if call >= 0 else 'unknown'}"] += size
        elif t.block_type[block] in (BlockType.IMAGE, BlockType.DOCUMENT):
            found["images"] += size
        else:
            found["user_text"] += size
    return found


def _thrashing(case: Case) -> list[list[Epoch]]:
    """Runs of automatic compactions with fewer than three round trips between each two, at least three long."""
    automatic = [e for e in case.conversation.epochs if e.boundary_record >= 0 and e.kind == "auto"]
    runs: list[list[Epoch]] = []
    run: list[Epoch] = []
    for epoch in automatic:
        if run and _turns_between(case, run[-1].boundary_record, epoch.boundary_record) >= THRASH_TURNS:
            runs.append(run)
            run = []
        run.append(epoch)
    runs.append(run)
    return [r for r in runs if len(r) >= THRASH_COMPACTIONS]


def thrash(case: Case) -> Iterator[Finding]:
    """Automatic compactions in a row that the context refilled at once, and what refilled it."""
    t = case.transcript
    for run in _thrashing(case):
        cycles = [
            Cycle(
                one.boundary_record,
                other.boundary_record,
                _turns_between(case, one.boundary_record, other.boundary_record),
                sources_between(case, one.boundary_record, other.boundary_record),
            )
            for one, other in pairwise(run)
        ]
        boundaries = [e.boundary_record for e in run]
        yield Finding(
            code="compaction_thrash",
            rule="",
            severity="error",
            message=f"{len(run)} automatic compactions in a row were refilled within {THRASH_TURNS} round trips.",
            lines=tuple(case.line(r) for r in boundaries),
            records=tuple(boundaries),
            repairs=_ADVICE,
            why="The same text is put back after every compaction; see refill_source.",
            details={
                "boundaries": [t.uuid(r) for r in boundaries],
                "turns_between": [c.turns for c in cycles],
                "cycles": [_told(case, c) for c in cycles],
            },
        )
        yield _refill(case, cycles)


_ADVICE = (
    Repair(
        "shrink_the_source",
        "No edit of the transcript: make what refill_source names smaller",
        reason="a mended transcript would be refilled the same way",
        changes_file=False,
    ),
)


def _told(case: Case, cycle: Cycle) -> dict[str, object]:
    figures = {e.boundary_record: e for e in case.conversation.epochs}
    return {
        "line": case.line(cycle.boundary),
        "post_tokens": figures[cycle.boundary].post_tokens,
        "next_pre_tokens": figures[cycle.next_boundary].pre_tokens,
        "turns": cycle.turns,
        "characters": dict(cycle.sources.most_common()),
    }


def _refill(case: Case, cycles: list[Cycle]) -> Finding:
    total: Counter[str] = Counter()
    for cycle in cycles:
        total.update(cycle.sources)
    top, size = total.most_common(1)[0] if total else ("unknown", 0)
    results = sum(count for name, count in total.items() if name.startswith("tool_result:"))
    boundaries = [c.boundary for c in cycles]
    return Finding(
        code="refill_source",
        rule="",
        severity="info",
        message=f"What fills the context again: {top}, {size // len(cycles):,} characters a cycle; tool results, "
        f"{results // len(cycles):,}.",
        lines=tuple(case.line(r) for r in boundaries),
        records=tuple(boundaries),
        repairs=_ADVICE,
        why="Counted between the compactions, by source.",
        details={
            "top": top,
            "chars_per_cycle": size // len(cycles),
            "tool_result_chars_per_cycle": results // len(cycles),
            "sources": {name: count // len(cycles) for name, count in total.most_common()},
        },
    )


def early_compaction(case: Case) -> Iterator[Finding]:
    """An automatic compaction below the threshold of the client that did it (2.1.21, 2.1.208, or a setting)."""
    conversation, t = case.conversation, case.transcript
    largest = int(conversation.response_context.max()) if conversation.response_count else 0
    for epoch in conversation.epochs:
        version = t.version(epoch.boundary_record) if epoch.boundary_record >= 0 else ""
        if epoch.kind != "auto" or not epoch.pre_tokens or not version[:1].isdigit():
            continue
        model = _model_before(case, epoch.boundary_record)
        limit = thresholds_for(recorded_profile(version), model, None, largest).auto_compact_threshold
        if epoch.pre_tokens < limit * BELOW_SHARE:
            yield Finding(
                code="auto_compact_below_window",
                rule="",
                severity="warning",
                message=f"The client compacted at {epoch.pre_tokens:,} tokens; {version} does so from {limit:,} with "
                f"{model or 'this model'}.",
                lines=(case.line(epoch.boundary_record),),
                records=(epoch.boundary_record,),
                why="A smaller window was set (CLAUDE_CODE_AUTO_COMPACT_WINDOW, a percentage), or the version took the "
                "model for one with a smaller window.",
                details={"pre_tokens": epoch.pre_tokens, "threshold": limit, "version": version, "model": model},
            )


def _model_before(case: Case, record: int) -> str:
    t = case.transcript
    replies = np.flatnonzero((t.kind[:record] == RecordKind.ASSISTANT) & case.conversation.main[:record])
    return next((t.model(int(r)) for r in replies[::-1] if not is_synthetic(t.model(int(r)))), "")


def recompaction(case: Case) -> Iterator[Finding]:
    """Summaries of summaries: what the first summary left out, no later one can bring back."""
    t = case.transcript
    cuts = [e.boundary_record for e in case.conversation.epochs if e.boundary_record >= 0]
    if len(cuts) >= 2:
        yield Finding(
            code="recompaction_chain",
            rule="",
            severity="info",
            message=f"The conversation was summarised {len(cuts)} times: each summary is made from the one before.",
            lines=tuple(case.line(r) for r in cuts),
            records=tuple(cuts),
            details={"boundaries": [t.uuid(r) for r in cuts]},
        )


def unsent_preserved(case: Case) -> Iterator[Finding]:
    """A client from before preserved messages does not put them behind the summary: it sends the summary only."""
    boundary, named = case.preserved
    if named and not case.profile.relinks_preserved:
        yield Finding(
            code="preserved_messages_not_sent",
            rule="",
            severity="warning",
            message=f"This client does not send the {len(named)} messages that the last compaction preserved.",
            lines=(case.line(boundary),),
            records=(boundary,),
            path="compactMetadata.preservedMessages.uuids",
            why="The file was compacted by a newer client; the messages keep their old place before the boundary.",
            clients={
                "1.0.128": "the preserved messages are lost",
                "2.0.76": "the preserved messages are lost",
                "2.1.332": "summary, then the preserved messages, then what follows",
            },
        )


def missing_preserved(case: Case) -> Iterator[Finding]:
    """The last compaction names messages to keep that the file does not hold: they are not sent."""
    t = case.transcript
    boundary, named = case.preserved
    if not named:
        return
    held = np.isin(np.array([key_of(u) for u in named], np.uint64), t.uuid_key)
    missing = [u for u, there in zip(named, held, strict=True) if not there]
    if missing:
        yield Finding(
            code="preserved_messages_missing",
            rule="",
            severity="warning",
            message=f"{len(missing)} of {len(named)} messages that the compaction preserved are not in the file.",
            lines=(case.line(boundary),),
            records=(boundary,),
            path="compactMetadata.preservedMessages.uuids",
            details={"missing": missing},
        )
