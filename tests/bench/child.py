"""Run one function in this fresh process and print its result, its time and its memory as JSON (see `Table.child`)."""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
from pathlib import Path

_PAGE_MEGABYTES = os.sysconf("SC_PAGE_SIZE") / 1e6
_STATM = Path("/proc/self/statm")


def memory() -> tuple[float, float]:
    """Megabytes resident now: (all of it, without pages of mapped files, which the system can drop at will)."""
    _, resident, shared, *_ = _STATM.read_text().split()
    return int(resident) * _PAGE_MEGABYTES, (int(resident) - int(shared)) * _PAGE_MEGABYTES


class Watch(threading.Thread):
    """Samples the memory every 20 ms; `peak` holds the highest figures seen."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.start_of_work = self.peak = memory()
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.wait(0.02):
            self._sample()

    def stop(self) -> None:
        """Take a last sample and end."""
        self._sample()
        self._done.set()
        self.join()

    def _sample(self) -> None:
        all_now, own_now = memory()
        self.peak = (max(self.peak[0], all_now), max(self.peak[1], own_now))


def main(arguments: list[str]) -> int:
    """`child MODULE FUNCTION ARGUMENTS-AS-JSON`."""
    module, function, encoded = arguments
    call = getattr(importlib.import_module(module), function)
    watch = Watch()
    watch.start()
    before = time.perf_counter()
    result = call(*json.loads(encoded))
    seconds = time.perf_counter() - before
    watch.stop()
    report = {
        "result": result,
        "seconds": seconds,
        "peak_megabytes": watch.peak[0] - watch.start_of_work[0],
        "own_peak_megabytes": watch.peak[1] - watch.start_of_work[1],
    }
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
