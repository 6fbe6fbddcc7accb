from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from compaction.accounting.prices import PriceSet, load_price_book
from compaction.accounting.settings import WindowSettings
from compaction.cli.output import print_json, print_line, print_table
from compaction.cli.what_if_options import what_if_of
from compaction.conversation import Conversation, open_session
from compaction.strategies.micro_fit import MicroFit, fit_microcompactions
from compaction.strategies.replay import Fired, Replay, ReplayEvent, replay
from compaction.strategies.what_if import Simulation, WhatIf, simulate

HELP = "predicted against recorded compactions, and the session under other settings"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `compactoscope replay`."""
    parser.add_argument("file", help="a session transcript; - for standard input")
    parser.add_argument("--client", default="", metavar="VERSION", help="client profile (default: each round's own)")
    parser.add_argument(
        "--what-if",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another setting: auto_compact_window, auto_compact_percent, auto_compact=off, or STRATEGY.KEY=VALUE",
    )
    parser.add_argument("--prices", default="", metavar="SET", help="price set (default: the public list)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Print the events, how far they agree, and the totals of the what-if."""
    conversation = open_session(args.file).conversation
    settings = what_if_of(args.what_if, args.client)
    found = replay(conversation, args.client)
    fits = fit_microcompactions(conversation)
    prices = load_price_book().set(args.prices)
    baseline, changed = _simulations(conversation, settings, prices, args.client, args.what_if)
    if args.json:
        print_json(_document(found, fits, baseline, changed))
    else:
        _print(found, fits, baseline, changed)
    return 0


def _simulations(
    conversation: Conversation, settings: WhatIf, prices: PriceSet, client: str, asked: Sequence[str]
) -> tuple[Simulation, Simulation | None]:
    baseline = simulate(conversation, WhatIf(client=client, window=WindowSettings()), prices)
    return baseline, simulate(conversation, settings, prices) if asked else None


def _document(
    found: Replay, fits: tuple[MicroFit, ...], baseline: Simulation, changed: Simulation | None
) -> dict[str, Any]:
    return {
        "client": found.client,
        "events": [_event(event) for event in found.events],
        "matched": found.matched,
        "missed": found.missed,
        "extra": found.extra,
        "microcompactions": [
            {
                "line": fit.line,
                "rule": fit.rule,
                "value": fit.value,
                "recorded_ids": fit.recorded,
                "visible_ids": fit.visible,
                "results": fit.results,
                "agreed": fit.agreed,
                "fit": fit.fit,
            }
            for fit in fits
        ],
        "simulated": _simulation(baseline),
        "what_if": _simulation(changed) if changed is not None else None,
    }


def _event(event: ReplayEvent) -> dict[str, Any]:
    predicted, recorded = event.predicted, event.recorded
    return {
        "round": event.round,
        "line": event.line,
        "predicted": None
        if predicted is None
        else {"trigger": predicted.trigger, "tokens": predicted.tokens, "strategy": predicted.strategy},
        "recorded": None if recorded is None else {"trigger": recorded.trigger, "tokens": recorded.tokens},
        "error_tokens": event.error_tokens,
        "error_rounds": event.error_rounds,
        "output_recorded": event.output_recorded,
    }


def _simulation(found: Simulation) -> dict[str, Any]:
    return {
        "requests": found.requests,
        "compactions": found.compactions,
        "context_tokens": found.context_tokens,
        "cache_read": found.cache_read,
        "cache_written": found.cache_written,
        "input": found.uncached,
        "output": found.output,
        "cost_usd": found.cost_usd,
        "largest_context": found.largest_context,
        "method": "estimated",
        "events": [
            {"round": e.round, "strategy": e.strategy, "tokens_before": e.tokens_before, "tokens_after": e.tokens_after}
            for e in found.events
        ],
    }


def _print(found: Replay, fits: tuple[MicroFit, ...], baseline: Simulation, changed: Simulation | None) -> None:
    rows = [
        (e.round, e.line, _fired(e.predicted), _fired(e.recorded), _signed(e.error_tokens), _signed(e.error_rounds))
        for e in found.events
    ]
    if rows:
        print_table(rows, ("round", "line", "predicted", "recorded", "tokens off", "rounds off"))
    print_line(f"automatic compactions: {found.matched} matched, {found.missed} missed, {found.extra} extra")
    for fit in fits:
        print_line(
            f"microcompaction in line {fit.line}: {fit.rule} {fit.value:,} gets {fit.agreed} of {fit.results} results "
            f"right ({fit.recorded} ids recorded, {fit.visible} of them in the file)"
        )
    print_line()
    rows_of = [("as recorded, simulated", baseline)] + ([("what if", changed)] if changed is not None else [])
    table = [
        (
            name,
            run.requests,
            run.compactions,
            run.context_tokens,
            run.largest_context,
            "unknown" if run.cost_usd is None else f"{run.cost_usd:.2f}",
        )
        for name, run in rows_of
    ]
    print_table(table, ("", "requests", "compactions", "prompt tokens", "largest context", "USD (estimated)"))


def _fired(fired: Fired | None) -> str:
    if fired is None:
        return "-"
    return f"{fired.trigger} at {fired.tokens:,}" if fired.tokens is not None else fired.trigger


def _signed(number: int | None) -> str:
    return "-" if number is None else f"{number:+,}"
