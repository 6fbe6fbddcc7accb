"""A column whose summary a model wrote: which task it was for, and what happens when the task becomes another one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from compaction.errors import UsageError
from compaction.strategies.plan import StrategyInput
from compaction.strategies.registry import Strategy, preview
from compaction.strategies.summariser import OfflineSummariser, Summariser, Summary, SummaryTask


@dataclass(frozen=True, slots=True)
class WrittenSummary:
    """Gives the summary that a model wrote for one task; any other task gets the offline extract.

    So a changed setting never sends anything again by itself: the person is asked anew.
    """

    task: SummaryTask
    summary: Summary
    name: str = "anthropic"
    title: str = "Model (Anthropic API)"
    offline: bool = False

    def summarise(self, task: SummaryTask) -> Summary:
        """The model's summary when the task is the one it was written for."""
        return self.summary if same_task(task, self.task) else OfflineSummariser().summarise(task)


@dataclass(slots=True)
class _Remembers:
    """Notes what it is asked for; answers offline."""

    task: SummaryTask | None = None
    name: str = "offline"
    title: str = "Offline extract"
    offline: bool = True

    def summarise(self, task: SummaryTask) -> Summary:
        self.task = task
        return OfflineSummariser().summarise(task)


def same_task(one: SummaryTask, other: SummaryTask) -> bool:
    """Whether two tasks ask for the same: the same blocks of the same session, kind and instructions."""
    return (
        one.view.conversation is other.view.conversation
        and (one.kind, one.custom_instructions) == (other.kind, other.custom_instructions)
        and [part.place for part in one.parts] == [part.place for part in other.parts]
    )


def with_summariser(given: StrategyInput, summariser: Summariser | None) -> StrategyInput:
    """The input with another summariser; the measured request is shared, not measured again."""
    if summariser is None:
        return given
    changed = replace(given, summariser=summariser)
    vars(changed)["view"] = given.view
    return changed


def task_of(strategy: Strategy, given: StrategyInput, settings: Any) -> SummaryTask:
    """What the strategy would have a model summarise under these settings.

    Raises:
        UsageError: it has nothing to summarise here, with the plan's reason.
    """
    remembers = _Remembers()
    plan = preview(strategy, with_summariser(given, remembers), settings)
    if remembers.task is None:
        raise UsageError(f"{strategy.title} asks for no summary: {plan.reason}", "choose another column or point")
    return remembers.task


MODEL_STRATEGIES = ("auto-compact", "partial-from", "partial-up-to")
"""The strategies whose summary a model writes in the client (compaction.md 6, 7)."""
