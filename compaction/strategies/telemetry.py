from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from compaction.accounting.thresholds import Thresholds
from compaction.conversation import Conversation


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The twelve figures of one compaction (compaction.md 12), in context tokens.

    Attributes:
        pre_compact_token_count: the context before.
        post_compact_token_count: what the compaction leaves as messages (as the client's `postTokens` counts).
        true_post_compact_token_count: the whole context after, system prompt and tools included.
        auto_compact_threshold: where the client compacts by itself.
        will_retrigger_next_turn: the context after is still at or over the threshold: a loop is coming.
        is_auto_compact: the client did it by itself.
        is_recompaction_in_chain: the session was compacted before.
        turns_since_previous_compact: API rounds since then (since the beginning when there was none).
        compaction_input_tokens, compaction_output_tokens, compaction_cache_read_tokens,
        compaction_cache_creation_tokens: usage of the summary request, 0 where no model is called.
    """

    pre_compact_token_count: int
    post_compact_token_count: int
    true_post_compact_token_count: int
    auto_compact_threshold: int
    will_retrigger_next_turn: bool
    is_auto_compact: bool
    is_recompaction_in_chain: bool
    turns_since_previous_compact: int
    compaction_input_tokens: int = 0
    compaction_output_tokens: int = 0
    compaction_cache_read_tokens: int = 0
    compaction_cache_creation_tokens: int = 0

    def as_json(self) -> dict[str, Any]:
        """The figures by name."""
        return asdict(self)


def will_retrigger(tokens_after: int, thresholds: Thresholds) -> bool:
    """Whether the context after a compaction is still at or over the auto-compact threshold (compaction.md 12)."""
    return thresholds.auto_compact_on and tokens_after >= thresholds.auto_compact_threshold


def rounds_since_compaction(conversation: Conversation) -> tuple[bool, int]:
    """Whether the session was compacted before (micro and silent ones do not count), and the API rounds since."""
    last = max((e.number for e in conversation.epochs), default=0)
    rounds = sum(1 for r in conversation.round_first_records.tolist() if conversation.epoch_of[r] == last)
    return any(epoch.boundary_record >= 0 for epoch in conversation.epochs), rounds


def telemetry_of(
    conversation: Conversation,
    thresholds: Thresholds,
    *,
    before: int,
    after: int,
    system: int,
    automatic: bool,
    usage: tuple[int, int, int, int] = (0, 0, 0, 0),
) -> Telemetry:
    """The figures of a plan.

    Args:
        before, after: context tokens; `system` is the share of system prompt and tools in both.
        usage: of the summary request: input, output, cache read, cache creation tokens.
    """
    earlier, rounds = rounds_since_compaction(conversation)
    return Telemetry(
        pre_compact_token_count=before,
        post_compact_token_count=max(0, after - system),
        true_post_compact_token_count=after,
        auto_compact_threshold=thresholds.auto_compact_threshold,
        will_retrigger_next_turn=will_retrigger(after, thresholds),
        is_auto_compact=automatic,
        is_recompaction_in_chain=earlier,
        turns_since_previous_compact=rounds,
        compaction_input_tokens=usage[0],
        compaction_output_tokens=usage[1],
        compaction_cache_read_tokens=usage[2],
        compaction_cache_creation_tokens=usage[3],
    )
