"""Previewing every strategy on a long session (issue "Every strategy", section "Must hold")."""

from __future__ import annotations

import time

from tests.bench.baseline import warm
from tests.bench.table import Table

ROUNDS = 5_000
"""About ten thousand messages: an answer and its results each."""


def accounting_pass(path: str) -> float:
    """Seconds of one pass of the accounting over an opened session: the context of every round by category."""
    from compaction.accounting.context import context_series
    from compaction.conversation import open_session

    conversation = open_session(path).conversation
    before = time.perf_counter()
    context_series(conversation)
    return time.perf_counter() - before


def previews(path: str) -> float:
    """Seconds to preview every strategy on an opened session whose request is assembled."""
    from compaction.conversation import open_session
    from compaction.strategies.inputs import strategy_input
    from compaction.strategies.registry import STRATEGIES, preview
    from compaction.strategies.settings import make_settings, specs_of

    conversation = open_session(path).conversation
    given = strategy_input(conversation, now_ms=4_000_000_000_000, session_memory="# Session\nAll is well.")
    before = time.perf_counter()
    for strategy in STRATEGIES.values():
        switched = any(spec.key == "enabled" for spec in specs_of(strategy.settings_type))
        preview(strategy, given, make_settings(strategy.settings_type, {"enabled": True} if switched else {}))
    return time.perf_counter() - before


def run(table: Table) -> None:
    """All strategies cost at most three passes of the accounting, and grow with the messages."""
    for share in (0.5, 1.0):
        rounds = max(50, round(ROUNDS * table.scale * share))
        path = table.session("strategies", seed=1, version="2.1.39", rounds=rounds, compactions=0, subagents=0)
        warm(str(path))
        table.heading(f"Strategies: {rounds:,} rounds, {path.stat().st_size / 1e6:,.0f} MB")
        one_pass = table.child(accounting_pass, path, best_of=2)
        all_previews = table.child(previews, path, best_of=2)
        table.compare("preview of every strategy", all_previews.result, one_pass.result, 3.0)
