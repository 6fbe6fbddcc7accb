"""What a strategy is given and what it answers: a plan, never an action."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from compaction.accounting.figure import Method
from compaction.accounting.prices import PriceSet
from compaction.accounting.thresholds import Thresholds
from compaction.conversation import Conversation
from compaction.request.wire import Json, WireRequest
from compaction.strategies.context import ContextView
from compaction.strategies.parts import Part
from compaction.transcript.edits import Edit

if TYPE_CHECKING:
    from compaction.diagnosis.model import Violation
    from compaction.strategies.cost import PlanCost
    from compaction.strategies.summariser import Summariser
    from compaction.strategies.telemetry import Telemetry

MAIN_THREAD = "repl_main_thread"
"""The query source of a person's own session (compaction.md 11)."""


def is_main_thread(query_source: str | None) -> bool:
    """Whether a query source is the main thread: none, `repl_main_thread…` or `sdk` (compaction.md 11)."""
    return query_source is None or query_source == "sdk" or query_source.startswith(MAIN_THREAD)


@dataclass(frozen=True)
class StrategyInput:
    """Everything that a preview may depend on: the same input and settings give the same plan.

    Attributes:
        conversation: the session.
        wire: the request that would be sent now.
        thresholds: the lines of its window under a client profile.
        prices: the price set for costs.
        now_ms: the time, milliseconds since the epoch.
        query_source: who asks (compaction.md 6); None is the main thread.
        summariser: writes summaries for the strategies that need one.
        session_memory: the text of the session memory file, None when there is none.
        last_summarised_uuid: the last record that the session memory covers, "" when unknown.
        automatic: whether the client would do it by itself (trigger `auto`) or a person asked for it (`manual`).
    """

    conversation: Conversation
    wire: WireRequest
    thresholds: Thresholds
    prices: PriceSet
    now_ms: int
    summariser: Summariser
    query_source: str | None = MAIN_THREAD
    session_memory: str | None = None
    last_summarised_uuid: str = ""
    automatic: bool = False

    @cached_property
    def view(self) -> ContextView:
        """The request measured block by block; made once for all strategies."""
        return ContextView(self.conversation, self.wire)


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a plan clears, removes, replaces, keeps or inserts, for the person to see and jump to.

    Attributes:
        record, line: where it is in the transcript (−1 and 0: not there yet).
        kind: block type, or "summary", "stand-in", "restored file", "cache_edits" …
        label: one line for the person.
        id: tool id, or "".
        tool: tool name, or "".
        tokens_before, tokens_after: its share of the context before and after, in tokens.
    """

    record: int
    line: int
    kind: str
    label: str
    id: str = ""
    tool: str = ""
    tokens_before: int = 0
    tokens_after: int = 0


@dataclass(frozen=True, slots=True)
class Lost:
    """What the model cannot see any more after the plan.

    Attributes:
        user_messages: prompts whose text is gone from the context (even if a summary quotes them).
        files: paths whose contents were in the context and are not any more.
        tool_results: results whose content is gone.
        thinking_turns: responses whose thinking is gone.
    """

    user_messages: int = 0
    files: tuple[str, ...] = ()
    tool_results: int = 0
    thinking_turns: int = 0


def no_edits() -> tuple[Edit, ...]:
    """The edits of a plan that changes nothing locally."""
    return ()


@dataclass(frozen=True)
class Plan:
    """What a strategy would do.

    Attributes:
        strategy, title: its name and title.
        settings: the settings it was made with (the strategy's settings dataclass).
        applies: whether there is anything to do; if not, `reason` says why and nothing else differs from before.
        reason: one sentence, also when it applies.
        make_edits: makes `edits`, the changes to the transcript; only a plan that is carried out needs them.
        request: the request before.
        after: the request as the model would see it afterwards.
        sent: the request as it would be sent afterwards: `after`, unless the server does the editing.
        tokens_before, tokens_after: context tokens; `method` says how they came about.
        before, after_categories: tokens by category key (cli.md); each adds up to its total.
        cleared, removed, replaced, inserted: what happens to which block.
        kept: number of blocks that stay as they are.
        violations: API rules that `after` breaks.
        notes: what the person should know (thinking stripped, cache lost, figures estimated …).
        lost: what the model cannot see any more.
        model_calls: calls of a model that carrying it out takes.
        duration_ms: how long the strategy itself takes, milliseconds, estimated where a model is called.
        summary: the summary text that the plan puts in, "" when none.
        summary_usage: recorded input, output, cache read, cache creation tokens of the calls that wrote it; None when
            no model was asked (yet).
        first_changed: number of the first message of `request` that does not stay byte-identical; the cache holds
            up to there. Equal to the message count when the prefix survives whole.
        server_edit: the JSON that goes with the request when the server or the API layer does the editing.
        trigger: "auto" or "manual", for telemetry and boundary records.
        cost, telemetry: filled in by `finish_plan`.
    """

    strategy: str
    title: str
    settings: Any
    applies: bool
    reason: str
    request: WireRequest
    after: WireRequest
    sent: WireRequest
    tokens_before: int
    tokens_after: int
    method: Method
    before: Mapping[str, int]
    after_categories: Mapping[str, int]
    make_edits: Callable[[], tuple[Edit, ...]] = field(default=no_edits, compare=False, repr=False)
    cleared: tuple[Item, ...] = ()
    removed: tuple[Item, ...] = ()
    replaced: tuple[Item, ...] = ()
    inserted: tuple[Item, ...] = ()
    kept: int = 0
    violations: tuple[Violation, ...] = ()
    notes: tuple[str, ...] = ()
    lost: Lost = field(default_factory=Lost)
    model_calls: int = 0
    duration_ms: int = 0
    summary: str = ""
    summary_usage: tuple[int, int, int, int] | None = None
    first_changed: int = 0
    server_edit: Json | None = None
    trigger: str = "manual"
    cost: PlanCost | None = None
    telemetry: Telemetry | None = None

    @cached_property
    def edits(self) -> tuple[Edit, ...]:
        """The changes to the transcript; () when the strategy changes nothing locally."""
        return self.make_edits()

    @property
    def tokens_freed(self) -> int:
        """Context tokens that the plan saves."""
        return self.tokens_before - self.tokens_after


def item_of(part: Part, label: str, tokens_after: int = 0, tool: str = "") -> Item:
    """The item of one block of the request."""
    value = part.value
    name = str(value.get("tool_use_id") or value.get("id") or "")
    line = part.origin.line if part.origin is not None else 0
    record = part.origin.record if part.origin is not None else -1
    return Item(record, line, part.type, label, name, tool, part.tokens, tokens_after)
