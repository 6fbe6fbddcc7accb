"""The laws that every plan must keep, whatever the strategy, session, round and settings (issue 5)."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from compaction.conversation import Conversation
from compaction.request.assemble import assemble
from compaction.request.wire import WireRequest
from compaction.strategies.apply import applied
from compaction.strategies.inputs import strategy_input
from compaction.strategies.plan import Plan, StrategyInput
from compaction.strategies.registry import STRATEGIES, Strategy, preview
from compaction.strategies.settings import SettingSpec, make_settings, specs_of

MEMORY = "# Session\n_What this is about_\n\nThe reader was mended; the tests stay as they are.\n"
LATER_MS = 3 * 3_600_000


def given_for(conversation: Conversation, client: str = "") -> StrategyInput:
    """What strategies are given three hours after the session's newest record."""
    stamps = conversation.transcript.timestamp_ms
    now = int(stamps.max()) + LATER_MS if len(stamps) else LATER_MS
    return strategy_input(conversation, now_ms=now, client=client, session_memory=MEMORY)


def random_settings(strategy: Strategy, chance: random.Random) -> Any:
    """Settings of a strategy with some keys off their defaults, inside their ranges."""
    values: dict[str, Any] = {}
    for spec in specs_of(strategy.settings_type):
        if spec.key == "enabled":
            values[spec.key] = True
        elif chance.random() < 0.6:
            values[spec.key] = _value(spec, chance)
    values.pop("pivot_uuid", None)
    return make_settings(strategy.settings_type, values, strategy.name)


def _value(spec: SettingSpec, chance: random.Random) -> Any:
    if spec.choices:
        return chance.choice(spec.choices)
    if spec.type == "switch":
        return chance.random() < 0.5
    if spec.type in ("integer", "number"):
        low = int(spec.minimum or 0)
        return low + chance.choice([0, 1, 2, 3, 5, 10, 40, 1_000, 8_000])
    if spec.type == "names":
        default = list(spec.default)
        return (
            tuple(chance.sample(default, chance.randint(0, len(default)))) if default else chance.choice([(), ("*",)])
        )
    return chance.choice(["", "focus on the tests"])


def pairs_and_responses(request: WireRequest, conversation: Conversation) -> tuple[set[str], dict[int, int]]:
    """Ids of calls without a result behind them and results without a call; blocks of each response."""
    calls: set[str] = set()
    open_ids: set[str] = set()
    sizes: dict[int, int] = {}
    for message in request.messages:
        for block, origin in zip(message.content, message.origins, strict=True):
            if block.get("type") == "tool_use":
                calls.add(str(block["id"]))
                open_ids.add(str(block["id"]))
            elif block.get("type") == "tool_result":
                name = str(block["tool_use_id"])
                if name in open_ids:
                    open_ids.discard(name)
                elif name not in calls:
                    open_ids.add(name)
            if origin is not None and block.get("type") not in ("thinking", "redacted_thinking"):
                response = int(conversation.response_of[origin.record])
                if response >= 0:
                    sizes[response] = sizes.get(response, 0) + 1
    return open_ids, sizes


def check_laws(given: StrategyInput, strategy: Strategy, settings: Any) -> Plan:
    """Preview, check every law, apply in memory, check that it sends what was shown, and apply again."""
    plan = preview(strategy, given, settings)
    assert sum(plan.before.values()) == plan.tokens_before
    assert sum(plan.after_categories.values()) == plan.tokens_after
    assert plan.tokens_after <= plan.tokens_before
    assert all(tokens >= 0 for tokens in plan.after_categories.values())
    assert plan.telemetry is not None
    assert plan.cost is not None
    if not plan.applies:
        assert plan.reason
        assert plan.edits == ()
        assert plan.sent is plan.request
        return plan
    _nothing_split(given, plan)
    assert [v for v in plan.violations if v.severity == "error"] == []
    assert preview(strategy, given, settings) == plan
    conversation = applied(given.conversation.transcript, plan.edits)
    sent = assemble(conversation, given.wire.client)
    assert _contents(sent) == _contents(plan.sent)
    again = preview(strategy, given_for(conversation, given.wire.client), settings)
    assert not again.applies or again.edits == (), again.reason
    return plan


def _nothing_split(given: StrategyInput, plan: Plan) -> None:
    before, sizes_before = pairs_and_responses(plan.request, given.conversation)
    after, sizes_after = pairs_and_responses(plan.after, given.conversation)
    assert after <= before, "a pair was split"
    for response, size in sizes_after.items():
        assert size == sizes_before[response], "a response was split"


def _contents(request: WireRequest) -> list[tuple[str, list[dict[str, Any]]]]:
    return [(message.role, message.content) for message in request.messages]


def strategies() -> Iterable[Strategy]:
    """Every registered strategy."""
    return STRATEGIES.values()
