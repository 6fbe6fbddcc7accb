"""Every strategy: one module and one line here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from compaction.errors import UsageError
from compaction.strategies.cost import plan_cost
from compaction.strategies.plan import Plan, StrategyInput
from compaction.strategies.telemetry import telemetry_of


class Strategy(Protocol):
    """A way to make a conversation smaller.

    Attributes:
        name: on the command line and in JSON.
        title: for people.
        settings_type: its settings dataclass (every field made with `settings.setting`).
    """

    name: str
    title: str
    settings_type: type[Any]

    def preview(self, given: StrategyInput, settings: Any) -> Plan:
        """The plan for `given` under `settings`: a pure function, nothing is changed or written."""


def _load() -> dict[str, Strategy]:
    from compaction.strategies.api_clear_thinking import ApiClearThinking
    from compaction.strategies.api_clear_tool_uses import ApiClearToolUses
    from compaction.strategies.api_compact import ApiCompact
    from compaction.strategies.auto_compact import AutoCompact
    from compaction.strategies.collapse import ContextCollapse
    from compaction.strategies.microcompact_cached import MicrocompactCached
    from compaction.strategies.microcompact_time import MicrocompactTime
    from compaction.strategies.partial import PartialFrom, PartialUpTo
    from compaction.strategies.session_memory import SessionMemory
    from compaction.strategies.snip import Snip

    found: list[Strategy] = [
        MicrocompactTime(),
        MicrocompactCached(),
        ApiClearToolUses(),
        ApiClearThinking(),
        ApiCompact(),
        Snip(),
        ContextCollapse(),
        SessionMemory(),
        AutoCompact(),
        PartialFrom(),
        PartialUpTo(),
    ]
    return {strategy.name: strategy for strategy in found}


STRATEGIES: dict[str, Strategy] = _load()
"""The registry, in the order of menus and tables: lightest first."""


def strategy(name: str) -> Strategy:
    """The strategy called `name`.

    Raises:
        UsageError: there is none; the names are listed.
    """
    found = STRATEGIES.get(name)
    if found is None:
        raise UsageError(f"no strategy {name!r}", "strategies: " + ", ".join(STRATEGIES))
    return found


def preview(chosen: Strategy, given: StrategyInput, settings: Any) -> Plan:
    """A strategy's plan with its cost and its twelve telemetry figures."""
    plan = chosen.preview(given, settings)
    cost = plan_cost(given, plan)
    figures = telemetry_of(
        given.conversation,
        given.thresholds,
        before=plan.tokens_before,
        after=plan.tokens_after,
        system=given.view.system_tokens,
        automatic=given.automatic,
        usage=plan.summary_usage or cost.usage,
    )
    return replace(plan, cost=cost, telemetry=figures)
