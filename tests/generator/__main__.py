from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.generator.faults import FAULTS
from tests.generator.session import Session


def main() -> int:
    """Write one generated session; see --help."""
    parser = argparse.ArgumentParser(prog="python -m tests.generator", description="Generate a session.")
    parser.add_argument("out", type=Path, nargs="?", help="the main file to write, for example big.jsonl")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--records", type=int, help="lines of the main file")
    size.add_argument("--rounds", type=int, default=100, help="API responses of the main thread (default 100)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--client", default="2.1.217", help="client version that writes (default 2.1.217)")
    parser.add_argument("--compactions", type=int, help="how many; default: where the context asks for it")
    parser.add_argument("--microcompactions", type=int, default=0)
    parser.add_argument("--subagents", type=int, default=1)
    parser.add_argument("--orphan-results", type=int, default=0)
    parser.add_argument("--unanswered-calls", type=int, default=0)
    parser.add_argument("--forks", type=float, default=0.0, help="how likely a rewind is in a round, 0 to 1")
    parser.add_argument("--result-characters", type=int, default=1200, help="mean size of a tool result")
    parser.add_argument("--fault", action="append", default=[], metavar="NAME[@LINE]", help="may be repeated")
    parser.add_argument("--list-faults", action="store_true")
    args = parser.parse_args()
    if args.list_faults:
        for name, fault in FAULTS.items():
            print(f"{name:26} {(fault.__doc__ or '').splitlines()[0]}")
        return 0
    if args.out is None:
        parser.error("OUT is missing")
    session = Session(
        seed=args.seed,
        version=args.client,
        rounds=args.rounds,
        records=args.records,
        compactions=args.compactions,
        microcompactions=args.microcompactions,
        subagents=args.subagents,
        orphan_results=args.orphan_results,
        unanswered_calls=args.unanswered_calls,
        forks=args.forks,
        result_characters=args.result_characters,
        faults=tuple(args.fault),
    )
    session.write(args.out)
    sys.stderr.write(f"{args.out}: {args.out.stat().st_size:,} bytes\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
