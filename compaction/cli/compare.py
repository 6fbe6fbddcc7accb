from __future__ import annotations

import argparse
from typing import Any

from compaction.accounting.thresholds import warning_state
from compaction.cli.output import print_json, print_line, print_table
from compaction.cli.strategy_options import add_situation, settings_for, situation
from compaction.conversation import open_session
from compaction.strategies.plan import Plan, StrategyInput
from compaction.strategies.registry import STRATEGIES, preview, strategy
from compaction.strategies.settings import settings_json
from compaction.strategies.telemetry import will_retrigger

HELP = "what each strategy would do to a session now: tokens, cost, what is lost"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `compactoscope compare`."""
    parser.add_argument("file", help="a session transcript or a Messages-API request; - for standard input")
    parser.add_argument("--strategy", action="append", default=[], metavar="NAME", help="only this one (repeatable)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME.KEY=VALUE", help="a setting of a strategy")
    add_situation(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Preview the strategies; nothing is written."""
    chosen = [strategy(name) for name in args.strategy] or list(STRATEGIES.values())
    for pair in args.set:
        strategy(pair.partition("=")[0].partition(".")[0])
    settings = {one.name: settings_for(one, args.set, named=True) for one in chosen}
    _, given = situation(args, open_session(args.file).conversation)
    plans = [preview(one, given, settings[one.name]) for one in chosen]
    if args.json:
        print_json({"at": args.at, "context": _context(given), "strategies": [_plan(plan, given) for plan in plans]})
    else:
        _print(plans, given)
    return 0


def _context(given: StrategyInput) -> dict[str, Any]:
    t = given.thresholds
    state = warning_state(given.view.tokens, t)
    return {
        "tokens": given.view.tokens,
        "method": str(given.view.total.method),
        "window": t.window,
        "effective_window": t.effective_window,
        "auto_compact_threshold": t.auto_compact_threshold,
        "blocking_limit": t.blocking_limit,
        "percent_left": state.percent_left,
        "state": state.state,
        "client": given.wire.client,
        "model": given.wire.model,
        "messages": len(given.wire.messages),
    }


def _plan(plan: Plan, given: StrategyInput) -> dict[str, Any]:
    cost = plan.cost
    return {
        "name": plan.strategy,
        "title": plan.title,
        "applies": plan.applies,
        "reason": plan.reason,
        "settings": settings_json(plan.settings),
        "tokens_before": plan.tokens_before,
        "tokens_after": plan.tokens_after,
        "tokens_freed": plan.tokens_freed,
        "method": str(plan.method),
        "before": dict(plan.before),
        "after": dict(plan.after_categories),
        "model_calls": plan.model_calls,
        "duration_ms": plan.duration_ms,
        "one_off_cost_usd": cost.one_off if cost else None,
        "next_request_cost_usd": cost.next_request if cost else None,
        "next_request_cost_without_usd": cost.next_request_without if cost else None,
        "cost_per_request_before_usd": cost.per_request_without if cost else None,
        "cost_per_request_after_usd": cost.per_request if cost else None,
        "break_even_requests": cost.break_even_requests if cost else None,
        "requests_until_auto_compact": cost.requests_until_auto_compact if cost else None,
        "saved_until_auto_compact_usd": cost.saved_until_auto_compact if cost else None,
        "price_source": cost.price_source if cost else "",
        "cache_tokens_kept": cost.cache_tokens_kept if cost else 0,
        "cache_tokens_lost": cost.cache_tokens_lost if cost else 0,
        "will_retrigger_next_turn": will_retrigger(plan.tokens_after, given.thresholds),
        "violations": [
            {"rule": v.rule, "path": v.path, "message": v.message, "api_error": v.api_error, "severity": v.severity}
            for v in plan.violations
        ],
        "lost": {
            "user_messages": plan.lost.user_messages,
            "files": list(plan.lost.files),
            "tool_results": plan.lost.tool_results,
            "thinking_turns": plan.lost.thinking_turns,
        },
        "notes": list(plan.notes),
        "server_edit": plan.server_edit,
    }


def _print(plans: list[Plan], given: StrategyInput) -> None:
    context = _context(given)
    print_line(
        f"context {context['tokens']:,} tokens ({context['method']}), auto-compact at "
        f"{context['auto_compact_threshold']:,}, {context['percent_left']} % left"
    )
    print_line()
    rows = [
        (
            plan.strategy,
            "yes" if plan.applies else "no",
            plan.tokens_after,
            plan.tokens_freed,
            _dollars(plan.cost.one_off if plan.cost else None),
            _dollars(plan.cost.next_request if plan.cost else None),
            _dollars(plan.cost.per_request if plan.cost else None),
            "never" if plan.cost is None or plan.cost.break_even_requests is None else plan.cost.break_even_requests,
            plan.reason,
        )
        for plan in plans
    ]
    headers = ("strategy", "applies", "tokens after", "freed", "once $", "next $", "each $", "break-even", "why")
    print_table(rows, headers)


def _dollars(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4f}"
