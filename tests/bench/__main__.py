from __future__ import annotations

import argparse
import importlib
import pkgutil
import tempfile
from pathlib import Path

import tests.bench
from tests.bench.table import Table


def main() -> int:
    """Run the benchmarks, or those whose name is given; exit code 1 when a figure is over its limit."""
    names = sorted(
        m.name.removeprefix("bench_") for m in pkgutil.iter_modules(tests.bench.__path__) if "bench_" in m.name
    )
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=tests.bench.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(names)}")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on every size (default 1)")
    args = parser.parse_args()
    unknown = sorted(set(args.names) - set(names))
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are: {', '.join(names)}")
    with tempfile.TemporaryDirectory() as empty:
        import os

        os.environ["COMPACTOSCOPE_DATA"] = str(Path(empty) / "data")
        table = Table(args.scale)
        for name in args.names or names:
            importlib.import_module(f"tests.bench.bench_{name}").run(table)
    print(f"\n{len(table.failed)} over their limit" + "".join(f"\n  {what}" for what in table.failed))
    return 1 if table.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
