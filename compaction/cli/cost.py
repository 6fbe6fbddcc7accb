from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from compaction.accounting.cost import CostState, ModelCost, cost_report, cost_state
from compaction.accounting.prices import BUCKETS, PriceBook, load_price_book
from compaction.accounting.usage import Ledger
from compaction.cli.output import print_json, print_line, print_table, warn
from compaction.conversation.session import subagent_paths
from compaction.errors import InputUnreadable
from compaction.transcript import Transcript, open_transcript
from compaction.transcript.usage_lines import open_usage_lines

HELP = "what sessions cost: files or folders, each response counted once over all of them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `compactoscope cost`."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a session (with its subagents) or a folder of them")
    parser.add_argument("--prices", default="", metavar="SET", help='price set: "public list" or "design document"')
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Print the cost report; files inside a folder that cannot be read are named on standard error and left out."""
    prices = price_book().set(args.prices)
    state = cost_state(read_usage(args.paths).settle(), prices)
    if args.json:
        print_json(as_json(state))
    else:
        _print(state)
    return 0


def price_book() -> PriceBook:
    """The bundled price sets with the person's own `prices.json` of the configuration folder in front."""
    return load_price_book()


def read_usage(paths: list[str]) -> Ledger:
    """The usage of every session under some paths, each file once.

    Raises:
        InputUnreadable: a path that was named (not found inside a folder) cannot be read.
    """
    ledger = Ledger()
    named, found = [], []
    for text in paths:
        path = Path(text)
        if text != "-" and os.path.isdir(path):  # unlike Path.is_dir, no error for a name too long
            found += sorted(p for p in path.rglob("*.jsonl") if p.is_file())
        else:
            named.append(text)
    opened = {name: open_transcript(name) for name in dict.fromkeys(named)}
    subagents = [p for t in opened.values() for p in _subagents(t)]
    files = list({_identity(Path(n)): n for n in [*named, *(str(p) for p in [*subagents, *found])]}.values())
    agents = frozenset(Path(f).stem.removeprefix("agent-") for f in files if _is_subagent(f))
    for file in files:
        try:
            ledger.add(opened.get(file) or open_usage_lines(file), agents, _is_subagent(file))
        except InputUnreadable as error:
            warn(f"left out: {error}")
    return ledger


def _subagents(transcript: Transcript) -> list[Path]:
    path = transcript.path
    if path is None or _is_subagent(path.name):
        return []
    session = next((name for name in transcript.session_names if name), "")
    return subagent_paths(path, session)


def _is_subagent(name: str) -> bool:
    return Path(name).name.startswith("agent-")


def _identity(path: Path) -> tuple[int, int] | str:
    """What tells whether two names are one file."""
    try:
        found = path.stat()
    except OSError:
        return str(path)
    return found.st_dev, found.st_ino


def as_json(state: CostState) -> dict[str, Any]:
    """The keys of cli.md, with the reconciliation and what only the client's own totals show."""
    return {
        "files": len(state.files),
        "responses": state.responses,
        "total_usd": state.total_usd,
        "prices": state.prices.name,
        "buckets": {
            name: {"tokens": tokens, "usd": usd}
            for name, tokens, usd in zip(BUCKETS, state.tokens, state.usd, strict=True)
        },
        "web_search": {"requests": state.web_searches, "usd": state.web_usd},
        "models": [_model(model) for model in state.models.values() if model.sources],
        "unpriced": [
            {"model": _name(m), "responses": m.unpriced_responses, "tokens": sum(m.unpriced)} for m in state.unpriced
        ],
        "duplicates_removed": state.duplicates,
        "output_tokens_uncertain": state.uncertain,
        "client_total_usd": state.client_usd,
        "api_time_ms": {"value": state.api_time.value, "method": str(state.api_time.method)},
        "duration_ms": {"value": state.duration.value, "method": str(state.duration.method)},
        "unrecorded": [
            {
                "model": u.model,
                "tokens": sum(u.tokens),
                "usd": u.total_usd if u.usd is not None else None,
                "method": str(u.method),
                "session_id": u.session,
            }
            for u in state.unrecorded
        ],
        "reconciliation": reconciliation(state),
    }


def reconciliation(state: CostState) -> dict[str, int]:
    """Tokens of all buckets: summed a record, once within each file, once over all files, and with what only the
    client's own totals show."""
    recorded = sum(state.tokens) - sum(sum(u.tokens) for u in state.unrecorded)
    return {
        "tokens_summed_per_record": sum(sum(f.raw_tokens) for f in state.files),
        "tokens_once_per_file": sum(sum(f.own_tokens) for f in state.files),
        "tokens_once_over_all_files": recorded,
        "tokens_with_unrecorded_requests": sum(state.tokens),
    }


def _model(model: ModelCost) -> dict[str, Any]:
    return {
        "model": _name(model),
        "names": model.names,
        "responses": model.responses,
        "tokens": sum(model.tokens),
        "usd": model.total_usd,
        "price_source": "; ".join(model.sources),
        "buckets": dict(zip(BUCKETS, model.tokens, strict=True)),
    }


def _name(model: ModelCost) -> str:
    return model.names[0] if model.names else model.model


def _print(state: CostState) -> None:
    for line in cost_report(state):
        print_line(line)
    if state.uncertain:
        print_line(f"{state.uncertain:,} responses have no final output count: the client recorded a placeholder")
    print_line()
    rows: list[tuple[object, ...]] = [
        (title.replace("_", " ").replace("tokens ", ""), value) for title, value in reconciliation(state).items()
    ]
    print_table(rows, ("reconciliation", "tokens"))
    print_line(f"{len(state.files):,} files, {state.duplicates:,} repeated usages removed")
