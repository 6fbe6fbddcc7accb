"""What every reader is measured against: decoding each line of a file once."""

from __future__ import annotations

import time

import orjson


def decode_every_line(path: str) -> int:
    """Decode every line with orjson and forget it; the number of lines."""
    count = 0
    with open(path, "rb") as file:
        for line in file:
            orjson.loads(line)
            count += 1
    return count


def warm(path: str) -> float:
    """Read the file once, so that no measurement pays for the disk; seconds."""
    before = time.perf_counter()
    with open(path, "rb") as file:
        while file.read(1 << 24):
            continue
    return time.perf_counter() - before
