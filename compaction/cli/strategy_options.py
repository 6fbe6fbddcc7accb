"""Options that `compare`, `compact` and `replay` share: client, round, time, prices, settings of strategies."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from compaction.accounting.prices import load_price_book
from compaction.accounting.settings import WindowSettings
from compaction.cli.summariser_options import summariser_from
from compaction.conversation import Conversation
from compaction.errors import InputUnreadable, UsageError
from compaction.strategies.inputs import strategy_input
from compaction.strategies.plan import StrategyInput
from compaction.strategies.registry import Strategy
from compaction.strategies.session_at import round_time_ms, session_at
from compaction.strategies.settings import make_settings, specs_of
from compaction.summaries.session_memory import find_memory


def add_situation(parser: argparse.ArgumentParser) -> None:
    """Which client, when, and at which prices."""
    parser.add_argument("--client", default="", metavar="VERSION", help="client profile (default: the newest recorded)")
    parser.add_argument("--at", type=int, metavar="N", help="as it stood before API round N's response (1-based)")
    parser.add_argument(
        "--now", default="", metavar="TIME", help="ISO time to judge pauses by (default: now, or round N's)"
    )
    parser.add_argument("--prices", default="", metavar="SET", help="price set (default: the public list)")
    parser.add_argument(
        "--memory", default="", metavar="MEMORY", help="session memory file (default: the session's own, see `memory`)"
    )


def situation(args: argparse.Namespace, conversation: Conversation) -> tuple[Conversation, StrategyInput]:
    """The conversation as it stood at the asked round, and what strategies are given for it.

    Raises:
        UsageError: no such round, client, price set or time.
        InputUnreadable: the session memory file.
    """
    now_ms = _time_ms(args.now) if args.now else time.time_ns() // 1_000_000
    if args.at is not None:
        stamp = round_time_ms(conversation, args.at)
        conversation = session_at(conversation, args.at)
        now_ms = now_ms if args.now or not stamp else stamp
    memory, last_summarised = None, ""
    found = find_memory(conversation) if not args.memory else None
    if found is not None and not found.is_empty_template:
        memory, last_summarised = found.text, found.last_summarised_uuid
    if args.memory:
        try:
            memory = Path(args.memory).read_text("utf-8", "replace")
        except OSError as error:
            raise InputUnreadable(
                f"cannot be read: {error.strerror or error}", "check the path", args.memory
            ) from error
    given = strategy_input(
        conversation,
        now_ms=now_ms,
        client=args.client,
        window=WindowSettings.from_environment(os.environ),
        prices=load_price_book().set(args.prices),
        summariser=summariser_from(args) if hasattr(args, "summariser") else None,
        session_memory=memory,
        last_summarised_uuid=last_summarised,
    )
    return conversation, given


def settings_for(strategy: Strategy, pairs: Sequence[str], *, named: bool) -> Any:
    """The settings of one strategy from `--set` values; asking for a strategy by name switches it on.

    Args:
        pairs: `KEY=VALUE`, or with `named` `NAME.KEY=VALUE`, of which those of other strategies are left out.

    Raises:
        UsageError: no `=`, an unknown key, or a bad value.
    """
    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--set {pair!r} has no value", "write KEY=VALUE" if not named else "write NAME.KEY=VALUE")
        name, dot, rest = key.partition(".")
        if dot and name != strategy.name:
            if not named:
                raise UsageError(f"--set {pair!r} is for {name}, the strategy is {strategy.name}")
            continue
        if named and not dot:
            raise UsageError(f"--set {pair!r} does not say for which strategy", "write NAME.KEY=VALUE")
        values[rest if dot else key] = value
    if any(spec.key == "enabled" for spec in specs_of(strategy.settings_type)):
        values.setdefault("enabled", True)
    return make_settings(strategy.settings_type, values, strategy.name)


def _time_ms(text: str) -> int:
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise UsageError(f"--now {text!r} is no ISO time", "write it as 2026-01-31T12:00:00Z") from None
