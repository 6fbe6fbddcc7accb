from __future__ import annotations

import argparse

from compaction.cli.output import print_json, print_line, print_table
from compaction.strategies.registry import STRATEGIES
from compaction.strategies.settings import specs_of

HELP = "the strategies, with their settings, defaults, units and sources"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `compactoscope strategies`."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Print the registry."""
    if args.json:
        document = [
            {
                "name": strategy.name,
                "title": strategy.title,
                "settings": [spec.as_json() for spec in specs_of(strategy.settings_type)],
            }
            for strategy in STRATEGIES.values()
        ]
        print_json({"strategies": document})
        return 0
    for strategy in STRATEGIES.values():
        print_line(f"{strategy.name}: {strategy.title}")
        rows = [
            ("", spec.key, _value(spec.default), spec.unit, spec.source, spec.help)
            for spec in specs_of(strategy.settings_type)
        ]
        if rows:
            print_table(rows, ("", "setting", "default", "unit", "source", "what it does"))
        print_line()
    return 0


def _value(default: object) -> str:
    if isinstance(default, tuple):
        return ", ".join(map(str, default)) if len(default) < 4 else f"{len(default)} names"
    if isinstance(default, bool):
        return "yes" if default else "no"
    return f"{default:,}" if isinstance(default, int) else str(default)
