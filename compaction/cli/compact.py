from __future__ import annotations

import argparse
from typing import Any

from compaction.cli.output import print_json, print_line, warn
from compaction.cli.strategy_options import add_situation, settings_for, situation
from compaction.cli.summariser_options import add_summariser
from compaction.conversation import Conversation, open_session
from compaction.errors import NothingWritten
from compaction.export.transcripts import write_plan
from compaction.export.writer import Written
from compaction.strategies.plan import Plan
from compaction.strategies.registry import preview, strategy

HELP = "apply one strategy to a copy of a session"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `compactoscope compact`."""
    parser.add_argument("file", help="a session transcript or a Messages-API request; - for standard input")
    parser.add_argument("--strategy", required=True, metavar="NAME", help="see `compactoscope strategies`")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the strategy")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the new file")
    parser.add_argument("--overwrite", action="store_true", help="replace OUT when it exists (never FILE itself)")
    add_situation(parser)
    add_summariser(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Preview, apply, write, report; exit code 1 when the strategy has nothing to do or nothing was written."""
    chosen = strategy(args.strategy)
    settings = settings_for(chosen, args.set, named=False)
    conversation, given = situation(args, open_session(args.file).conversation)
    plan = preview(chosen, given, settings)
    if not plan.applies:
        if args.json:
            print_json(_document(plan, None))
        warn(f"compactoscope: {chosen.name} has nothing to do: {plan.reason}")
        return 1
    written = _write(args, conversation, plan)
    for warning in written.warnings:
        warn(f"compactoscope: {warning}")
    if args.json:
        print_json(_document(plan, written))
    else:
        _print(plan, written)
    return 0


def _write(args: argparse.Namespace, conversation: Conversation, plan: Plan) -> Written:
    errors = [v for v in plan.violations if v.severity == "error"]
    if errors:
        raise NothingWritten(f"the result would break an API rule: {errors[0].message}", "repair the session first")
    return write_plan(
        args.output, conversation.transcript, plan, source=args.file, at=args.at, overwrite=args.overwrite
    )


def _document(plan: Plan, written: Written | None) -> dict[str, Any]:
    return {
        "strategy": plan.strategy,
        "written": str(written.path) if written is not None else None,
        "telemetry": plan.telemetry.as_json() if plan.telemetry is not None else None,
        "journal": written.entry.id if written is not None else None,
        "applies": plan.applies,
        "reason": plan.reason,
        "tokens_before": plan.tokens_before,
        "tokens_after": plan.tokens_after,
        "tokens_freed": plan.tokens_freed,
        "method": str(plan.method),
        "cleared": [item.id for item in plan.cleared],
        "removed": len(plan.removed),
        "replaced": len(plan.replaced),
        "inserted": len(plan.inserted),
        "notes": list(plan.notes),
        "sha256": written.sha256 if written is not None else None,
    }


def _print(plan: Plan, written: Written) -> None:
    print_line(f"{plan.title}: {plan.reason}")
    print_line(
        f"context {plan.tokens_before:,} → {plan.tokens_after:,} tokens ({plan.tokens_freed:,} freed, {plan.method})"
    )
    for note in plan.notes:
        print_line(f"note: {note}")
    print_line(f"written {written.path} ({written.size:,} bytes, journal {written.entry.id})")
