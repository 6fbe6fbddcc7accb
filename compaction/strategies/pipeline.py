"""The pipeline of one query (compaction.md 10): Snip, MicroCompact, Context Collapse, AutoCompact, in that order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from compaction.conversation import Conversation
from compaction.errors import Cancelled
from compaction.request.assemble import assemble
from compaction.strategies.apply import applied
from compaction.strategies.auto_compact import AutoCompact, AutoCompactSettings
from compaction.strategies.cleanup import cleared_state
from compaction.strategies.collapse import CollapseSettings, ContextCollapse
from compaction.strategies.microcompact_cached import MicrocompactCached, MicrocompactCachedSettings
from compaction.strategies.microcompact_time import MicrocompactTime, MicrocompactTimeSettings
from compaction.strategies.plan import Plan, StrategyInput
from compaction.strategies.registry import preview
from compaction.strategies.session_memory import SessionMemory, SessionMemorySettings
from compaction.strategies.snip import Snip, SnipSettings

FORKED_SOURCES = ("session_memory", "compact")
"""Query sources that are forks of a compaction themselves: compacting them would deadlock (compaction.md 6)."""
COLLAPSE_SOURCE = "context_collapse"
"""The query source of the collapse agent."""


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """The settings of every stage; each stage's own `enabled` says whether it takes part.

    Attributes:
        disable_compact: DISABLE_COMPACT is truthy: no compaction at all.
        reactive: reactive mode: compaction waits for the API's prompt-too-long error.
        attribution: the attribution feature is on (its cache is cleared too).
    """

    snip: SnipSettings = field(default_factory=SnipSettings)
    microcompact_time: MicrocompactTimeSettings = field(default_factory=MicrocompactTimeSettings)
    microcompact_cached: MicrocompactCachedSettings = field(default_factory=MicrocompactCachedSettings)
    collapse: CollapseSettings = field(default_factory=CollapseSettings)
    session_memory: SessionMemorySettings = field(default_factory=SessionMemorySettings)
    auto_compact: AutoCompactSettings = field(default_factory=AutoCompactSettings)
    disable_compact: bool = False
    reactive: bool = False
    attribution: bool = False


@dataclass(frozen=True, slots=True)
class PipelineState:
    """What one query hands to the next.

    Attributes:
        consecutive_failures: of AutoCompact; the circuit breaker opens at the profile's maximum.
        warning_suppressed: the "context left" warning is hidden until the next response (compaction.md 1).
        last_summarised_uuid: the last record that the session memory covers; reset by its success.
    """

    consecutive_failures: int = 0
    warning_suppressed: bool = False
    last_summarised_uuid: str = ""


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """What one query's pipeline did.

    Attributes:
        plans: the plans of the stages that ran, in order; those that do not apply say why.
        conversation: the conversation afterwards.
        snip_tokens_freed: what Snip freed and passed on.
        compacted_by: the strategy that compacted, or "".
        skipped: why AutoCompact did not run, or "".
        failure: what went wrong in it, or ""; `logged` is False for a user's abort.
        cleared: the state that the cleanup cleared (compaction.md 11), () without a compaction.
        state: for the next query.
    """

    plans: tuple[Plan, ...]
    conversation: Conversation
    snip_tokens_freed: int
    compacted_by: str
    skipped: str
    failure: str
    logged: bool
    cleared: tuple[str, ...]
    state: PipelineState


def should_auto_compact(
    given: StrategyInput, settings: PipelineSettings, snip_tokens_freed: int = 0
) -> tuple[bool, str]:
    """Whether AutoCompact runs for this query, and if not, why (compaction.md 6).

    Args:
        snip_tokens_freed: the newest usage still shows the size before Snip, so it is taken off.
    """
    if given.query_source in FORKED_SOURCES:
        return False, f"the query source {given.query_source} is a fork: compacting it would deadlock"
    if given.query_source == COLLAPSE_SOURCE:
        return False, "the query comes from the collapse agent"
    if not given.thresholds.auto_compact_on:
        return False, "auto-compact is off"
    if settings.reactive:
        return False, "reactive mode suppresses it"
    if settings.collapse.enabled:
        return False, "Context Collapse is on and suppresses it"
    tokens = given.view.tokens - snip_tokens_freed
    threshold = given.thresholds.auto_compact_threshold
    if tokens < threshold:
        return False, f"{tokens:,} tokens are under the threshold of {threshold:,}"
    return True, ""


def run_pipeline(
    given: StrategyInput, settings: PipelineSettings, state: PipelineState | None = None
) -> PipelineResult:
    """One query's way through the pipeline, in memory; light strategies first.

    Each stage works on what the one before left. A failure of AutoCompact is part of the result, never an error.
    """
    state = replace(state or PipelineState(), warning_suppressed=False)
    given = replace(given, automatic=True, last_summarised_uuid=state.last_summarised_uuid)
    plans: list[Plan] = []
    given, snipped = _stage(given, preview(Snip(), given, settings.snip), plans)
    timed = preview(MicrocompactTime(), given, settings.microcompact_time)
    given, _ = _stage(given, timed, plans)
    if not timed.applies:
        given, _ = _stage(given, preview(MicrocompactCached(), given, settings.microcompact_cached), plans)
    given, _ = _stage(given, preview(ContextCollapse(), given, settings.collapse), plans)
    return _auto_compact(given, settings, state, plans, snipped)


def _stage(given: StrategyInput, plan: Plan, plans: list[Plan]) -> tuple[StrategyInput, int]:
    """Carry a plan out in memory; returns the input of the next stage and the tokens freed."""
    plans.append(plan)
    if not plan.applies:
        return given, 0
    if not plan.edits:
        return given, plan.tokens_freed
    conversation = applied(given.conversation.transcript, plan.edits)
    wire = assemble(conversation, given.wire.client, model=given.wire.model)
    return replace(given, conversation=conversation, wire=wire), plan.tokens_freed


def _auto_compact(
    given: StrategyInput, settings: PipelineSettings, state: PipelineState, plans: list[Plan], snipped: int
) -> PipelineResult:
    """`auto_compact_if_needed` (compaction.md 6): guards, breaker, session memory first, then the summary."""
    breaker = given.thresholds.profile.max_consecutive_failures
    should, skipped = should_auto_compact(given, settings, snipped)
    if settings.disable_compact:
        should, skipped = False, "DISABLE_COMPACT is set"
    elif state.consecutive_failures >= breaker:
        should, skipped = False, f"the circuit breaker is open after {state.consecutive_failures} failures in a row"
    compacted_by, failure, logged = "", "", True
    if should:
        compacted_by, plan, failure, logged = _compact(given, settings)
        if plan is not None:
            given, _ = _stage(given, plan, plans)
        if compacted_by:
            summarised = "" if compacted_by == SessionMemory.name else state.last_summarised_uuid
            state = PipelineState(0, warning_suppressed=True, last_summarised_uuid=summarised)
        else:
            state = replace(state, consecutive_failures=state.consecutive_failures + 1)
    cleared = cleared_state(given.query_source, attribution=settings.attribution) if compacted_by else ()
    return PipelineResult(
        tuple(plans), given.conversation, snipped, compacted_by, skipped, failure, logged, cleared, state
    )


def _compact(given: StrategyInput, settings: PipelineSettings) -> tuple[str, Plan | None, str, bool]:
    """The strategy that compacted ("" when none did), its plan, the failure, and whether that is logged."""
    try:
        memory = preview(SessionMemory(), given, settings.session_memory)
    except Exception:  # noqa: BLE001 - compaction.md 8: any exception falls back to AutoCompact
        memory = None
    if memory is not None and memory.applies:
        return SessionMemory.name, memory, "", True
    try:
        plan = preview(AutoCompact(), given, settings.auto_compact)
    except Cancelled:
        return "", None, "the user stopped it", False
    except Exception as error:  # noqa: BLE001 - compaction.md 6: a failure adds 1, whatever it is
        return "", None, f"{type(error).__name__}: {error}", True
    if not plan.applies:
        return "", plan, plan.reason, True
    return AutoCompact.name, plan, "", True
