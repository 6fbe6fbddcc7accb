from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from compaction.cli.library_options import add_database_option, add_filter_options, opened, session_filter
from compaction.cli.output import print_json, print_line, print_table

if TYPE_CHECKING:
    from compaction.catalogue.entries import SessionEntry

HELP = "list the sessions of the library"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The filter, how many, where the catalogue is."""
    add_filter_options(parser)
    parser.add_argument("--limit", type=int, default=None, metavar="N", help="at most this many, the newest")
    add_database_option(parser)


def run(args: argparse.Namespace) -> int:
    """List sessions, the one used last first (cli.md: sessions)."""
    from compaction.catalogue.sessions import list_sessions, totals_of
    from compaction.catalogue.settings import load_library_settings

    with opened(args, load_library_settings(), create=False) as catalogue:
        entries = list_sessions(catalogue, session_filter(args))[: args.limit]
        together = totals_of(catalogue, [entry.id for entry in entries])
    if args.json:
        print_json(
            {
                "sessions": [as_json(entry, time.time()) for entry in entries],
                "total_usd": together.cost_usd,
                "total_responses": together.responses,
            }
        )
        return 0
    rows = [
        (
            _day(entry.last_ms), entry.session_id[:8], entry.title[:50] or "(no title)", entry.project[-40:],
            entry.total.responses, entry.total.tokens, round(entry.total.cost_usd, 2), entry.context_tokens,
            entry.compactions, entry.finding_count,
        )
        for entry in entries
    ]  # fmt: skip
    headers = ("last", "session", "title", "project", "resp.", "tokens", "USD", "context", "comp.", "findings")
    print_table(rows, headers)
    print_line(f"{len(entries):,} sessions, ${together.cost_usd:,.2f} with every response counted once")
    return 0


def as_json(entry: SessionEntry, now: float) -> dict[str, Any]:
    """A session with the keys of cli.md first; responses, tokens and cost include its subagents."""
    return {
        "session_id": entry.session_id,
        "file": entry.path,
        "title": entry.title,
        "project": entry.project,
        "models": list(entry.models),
        "responses": entry.total.responses,
        "tokens": entry.total.tokens,
        "cost_usd": entry.total.cost_usd,
        "compactions": entry.compactions,
        "findings": entry.finding_count,
        "context": entry.context_tokens,
        "branch": entry.branch,
        "versions": list(entry.versions),
        "tools": list(entry.tools),
        "first": _moment(entry.first_ms),
        "last": _moment(entry.last_ms),
        "bytes": entry.bytes,
        "lines": entry.lines,
        "records": entry.records,
        "damaged": entry.damaged,
        "subagents": entry.subagents,
        "own": asdict(entry.own),
        "unpriced_responses": entry.total.unpriced,
        "uncertain_responses": entry.total.uncertain,
        "findings_by_severity": dict(zip(("error", "warning", "info"), entry.findings, strict=True))
        if entry.findings
        else None,
        "finding_codes": list(entry.finding_codes),
        "api_errors": entry.api_errors,
        "tool_errors": entry.tool_errors,
        "forked_from": entry.forked_from,
        "live": entry.is_live(now),
        "owner": entry.owner,
        "problem": entry.problem,
    }


def _moment(milliseconds: int) -> str | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat() if milliseconds else None


def _day(milliseconds: int) -> str:
    return (_moment(milliseconds) or "")[:16].replace("T", " ")
