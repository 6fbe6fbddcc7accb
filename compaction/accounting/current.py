from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from compaction.accounting.attachments import attachment_text
from compaction.accounting.categories import Category
from compaction.accounting.cleared import cleared_tokens
from compaction.accounting.context import RoundUsage, context_series, round_usage
from compaction.accounting.estimate import compact_json, rough_tokens, rough_tokens_of_block
from compaction.accounting.figure import Figure, Method
from compaction.accounting.models import is_synthetic, tokenizer_family
from compaction.accounting.profiles import ClientProfile, parse_version, profile_for, recorded_profile
from compaction.accounting.settings import WindowSettings
from compaction.accounting.thresholds import Thresholds, WarningState, thresholds_for, warning_state
from compaction.conversation import Conversation
from compaction.transcript import RecordKind


@dataclass(frozen=True, slots=True)
class CurrentContext:
    """How full the context is at some API round (default: now), and against which lines.

    Attributes:
        tokens: the system's own count (compaction.md 2): the newest recorded usage, and the rough estimate of what was
            added since; its method says which.
        recorded: of these, tokens that the API recorded; `added`: the rough estimate.
        model: of the newest response, "" unknown.
        just_compacted: a compaction came after the newest response, so that no accurate count exists.
    """

    tokens: Figure
    recorded: int
    added: int
    model: str
    just_compacted: bool
    thresholds: Thresholds
    state: WarningState


def newest_version(conversation: Conversation) -> str:
    """The newest client version recorded in the file, "" when there is none."""
    t = conversation.transcript
    used = {t.version_names[int(n)] for n in np.unique(t.version_number)} - {""}
    return max(used, key=parse_version, default="")


def default_profile(conversation: Conversation) -> ClientProfile:
    """The profile of the newest client version recorded in the file (cli.md), the design document's without one."""
    return recorded_profile(newest_version(conversation))


def current_context(
    conversation: Conversation, client: str | None = None, settings: WindowSettings | None = None, at: int | None = None
) -> CurrentContext:
    """The context after API round `at` (default: at the end of the conversation) and its lines.

    Args:
        client: version or id of the client profile; None: the newest version in the file.

    Raises:
        UsageError: there is no such profile.
        IndexError: there is no such round.
    """
    profile = profile_for(client) if client else default_profile(conversation)
    usage = round_usage(conversation)
    place = _last_round(conversation, usage) if at is None else conversation.round(at).number - 1
    model = _model(conversation, place)
    compacted = at is None and _compacted_since(conversation, place)
    known = conversation.known_context if at is None else None
    if known is not None:
        tokens, recorded, added = Figure(known.tokens, Method.ESTIMATED, source="as the plan left it"), 0, known.tokens
    elif compacted:
        tokens, recorded, added = _after_compaction(conversation, place)
    else:
        tokens, recorded, added = _counted(conversation, usage, place, at is not None)
    largest = int(usage.context.max()) if len(usage.context) else 0
    thresholds = thresholds_for(profile, model, settings, largest)
    state = warning_state(round(tokens.value or 0), thresholds)
    return CurrentContext(tokens, recorded, added, model, compacted, thresholds, state)


def context_summary(
    conversation: Conversation, client: str | None = None, settings: WindowSettings | None = None, at: int | None = None
) -> dict[str, Any]:
    """The `context` object of `inspect --json` and `compare --json` (cli.md)."""
    now = current_context(conversation, client, settings, at)
    t = now.thresholds
    return {
        "tokens": round(now.tokens.value or 0),
        "method": str(now.tokens.method),
        "window": t.window,
        "effective_window": t.effective_window,
        "auto_compact_threshold": t.auto_compact_threshold,
        "blocking_limit": t.blocking_limit,
        "percent_left": now.state.percent_left,
        "state": now.state.state,
    }


def _last_round(c: Conversation, usage: RoundUsage) -> int:
    """The newest round with recorded usage on the line that the next request continues; −1 without one."""
    leaf = c.leaf
    place = int(np.searchsorted(c.round_first_records, leaf, "right")) - 1 if leaf >= 0 else c.round_count - 1
    while place >= 0 and not usage.context[place]:
        place -= 1
    return place


def _compacted_since(c: Conversation, place: int) -> bool:
    """Whether a compaction came after a round, so that its usage says nothing about the next request."""
    epoch = int(c.epoch_of[c.round_first_records[place]]) if place >= 0 else 0
    return place >= 0 and epoch < len(c.epochs) - 1


def _model(c: Conversation, place: int) -> str:
    t = c.transcript
    for record in c.round_first_records[: place + 1][::-1]:
        model = t.model(int(record))
        if model and not is_synthetic(model):
            return model
    named = t.document.get("model") if t.format_name != "claude-code" else None
    return named if isinstance(named, str) else ""


def _counted(c: Conversation, usage: RoundUsage, place: int, closed: bool) -> tuple[Figure, int, int]:
    """`token_count_with_estimation` (compaction.md 2); a closed round counts its response and nothing after it."""
    if place < 0:
        return _uncounted(c)
    recorded = int(usage.context[place] + usage.output[place])
    if not recorded:
        return Figure(None, Method.UNKNOWN), 0, 0
    first = int(c.round_first_records[place])
    added = 0 if closed else _rough_after(c, first)
    source = "input + cache read + cache creation + output of the newest response"
    rows = {} if closed else cleared_tokens(c, first, tokenizer_family(_model(c, place)))
    if rows:
        cleared = round(sum(rows.values()))
        recorded = max(0, recorded - cleared)
        source = f"{source}, less the estimate of {cleared:,} tokens of results cleared in the file since"
        return Figure(recorded + added, Method.ESTIMATED, source=source), 0, recorded + added
    if added:
        return (
            Figure(recorded + added, Method.ESTIMATED, source=f"{source}, and characters / 4 of what follows"),
            recorded,
            added,
        )
    return Figure(recorded, Method.RECORDED, source=source), recorded, 0


def _rough_after(c: Conversation, first: int, include: bool = False) -> int:
    """The rough estimate of everything that the main thread holds after a response (from `first` on: `include`)."""
    t = c.transcript
    response = -2 if include else c.response_of[first]
    total = 0
    for record in (np.flatnonzero(c.main[first:]) + first).tolist():
        if c.response_of[record] == response:
            continue
        if t.kind[record] in (RecordKind.USER, RecordKind.ASSISTANT):
            total += sum(rough_tokens_of_block(t.block(b)) for b in t.blocks_of(record))
        elif t.kind[record] == RecordKind.ATTACHMENT:
            total += rough_tokens(attachment_text(t.payload(record)))
    return total


def _uncounted(c: Conversation) -> tuple[Figure, int, int]:
    """Nothing was recorded: the rough estimate of all there is (a Messages-API request: with system and tools)."""
    t = c.transcript
    total = _rough_after(c, 0, include=True) if len(t) else 0
    document = t.document if t.format_name != "claude-code" else {}
    total += sum(rough_tokens(compact_json(document[key])) for key in ("system", "tools") if document.get(key))
    if not total:
        return Figure(None, Method.UNKNOWN), 0, 0
    return Figure(total, Method.ESTIMATED, source="characters / 4 of everything on record"), 0, total


def _after_compaction(c: Conversation, place: int) -> tuple[Figure, int, int]:
    """After a compaction and before the next response nothing is recorded: system and tools as before, and estimates
    of the summary, the kept messages and what followed."""
    series = context_series(c)
    system = int(series.parts[place][Category.SYSTEM_AND_TOOLS])
    visible = round(series.pending_estimate())
    error = series.user_calibration.error
    source = "system and tools of the round before the compaction, and estimates of what is kept"
    margin = visible * error if error is not None else None
    return Figure(system + visible, Method.ESTIMATED, margin, source), 0, system + visible
