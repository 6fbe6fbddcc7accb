from __future__ import annotations

from collections.abc import Iterator, Sequence

from compaction.conversation import Conversation, KnownContext, build_conversation
from compaction.strategies.plan import Plan, StrategyInput
from compaction.transcript import Transcript, transcript_from_bytes
from compaction.transcript.edits import Edit, apply_edits


def apply_plan(transcript: Transcript, plan: Plan) -> Iterator[bytes]:
    """The bytes of the transcript that the plan makes: a copy, records without an edit byte-identical.

    Args:
        transcript: the one that the plan was made on.
    """
    return apply_edits(transcript, plan.edits)


def applied(transcript: Transcript, edits: Sequence[Edit]) -> Conversation:
    """The conversation after `edits`, built in memory: for checking a plan and for stacking one on another."""
    return build_conversation(transcript_from_bytes(b"".join(apply_edits(transcript, edits)), transcript.name))


def derived(given: StrategyInput, plan: Plan) -> Conversation:
    """The conversation that a plan makes of the one it was given, with the size that the plan says it has.

    The usage on record is from before the plan; whoever measures this conversation goes on from the plan's own figure
    (method estimated), so that before and after are counted alike along a chain of plans.
    """
    conversation = applied(given.conversation.transcript, plan.edits)
    view = given.view
    conversation.known_context = KnownContext(plan.tokens_after, view.system_tokens if view.parts else 0)
    return conversation
