from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.generator import Session
from tests.support import ROOT


@dataclass(frozen=True, slots=True)
class Measure:
    """What a function did in a process of its own: its JSON-able result, seconds, and memory above the start (MB).

    `own_peak_megabytes` leaves out pages of mapped files.
    """

    result: Any
    seconds: float
    peak_megabytes: float
    own_peak_megabytes: float


class Table:
    """Collects the rows of a run and prints each as it comes.

    Attributes:
        scale: factor on every size; 1 is the size that the requirements name.
        failed: rows over their limit.
    """

    def __init__(self, scale: float = 1.0, folder: Path | None = None) -> None:
        self.scale = scale
        self.folder = folder or ROOT / ".bench"
        self.failed: list[str] = []

    def heading(self, text: str) -> None:
        """Start a group of rows."""
        print(f"\n{text}\n{'-' * len(text)}", flush=True)

    def fact(self, what: str, value: float, unit: str) -> None:
        """A figure without a limit."""
        self._print(what, f"{_number(value)} {unit}", "", "", "")

    def compare(self, what: str, measured: float, baseline: float, limit: float | None = None, unit: str = "s") -> None:
        """A figure beside the baseline of the same run; it may be at most `limit` × that."""
        ratio = measured / baseline if baseline else float("inf")
        verdict = "" if limit is None else self._verdict(what, ratio <= limit)
        bound = "" if limit is None else f" (max {limit:g} x)"
        numbers = f"{_number(measured)} {unit}", f"{_number(baseline)} {unit}", f"{ratio:.2f} x{bound}"
        self._print(what, *numbers, verdict)

    def within(self, what: str, measured: float, limit: float, unit: str) -> None:
        """A figure that may be at most `limit`."""
        verdict = self._verdict(what, measured <= limit)
        self._print(what, f"{_number(measured)} {unit}", "", f"max {_number(limit)} {unit}", verdict)

    def session(self, name: str, **arguments: Any) -> Path:
        """A generated session (arguments of `tests.generator.Session`), made once and kept in `.bench/`."""
        key = hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()[:12]
        path = self.folder / f"{name}-{key}" / f"{name}.jsonl"
        if not path.exists():
            print(f"  (generating {path.relative_to(self.folder)} ...)", flush=True)
            part = path.with_name(f"{name}.part")
            Session(**arguments).write(part)
            part.rename(path)
        return path

    def child(self, function: Callable[..., Any], *arguments: Any, best_of: int = 1) -> Measure:
        """Run a module-level function in a fresh process; with `best_of`, the quickest of several runs."""
        command = [sys.executable, "-m", "tests.bench.child", function.__module__, function.__qualname__]
        encoded = json.dumps([str(a) if isinstance(a, Path) else a for a in arguments])
        environment = os.environ | {"QT_QPA_PLATFORM": "offscreen"}
        runs = []
        for _ in range(best_of):
            done = subprocess.run(
                [*command, encoded], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
            )
            runs.append(Measure(**json.loads(done.stdout.splitlines()[-1])))
        return min(runs, key=lambda run: run.seconds)

    def _verdict(self, what: str, good: bool) -> str:
        if not good:
            self.failed.append(what)
        return "ok" if good else "OVER"

    def _print(self, what: str, measured: str, baseline: str, limit: str, verdict: str) -> None:
        print(f"{what:52} {measured:>14} {baseline:>14}  {limit:24} {verdict}".rstrip(), flush=True)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.3g}"
