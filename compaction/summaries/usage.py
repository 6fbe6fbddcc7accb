from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CallUsage:
    """Tokens of one or more API calls by bucket; recorded by the API.

    `cache_write_1h` is part of `cache_creation`.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_creation: int = 0
    cache_write_1h: int = 0

    def __add__(self, other: CallUsage) -> CallUsage:
        return CallUsage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_creation + other.cache_creation,
            self.cache_write_1h + other.cache_write_1h,
        )


def usage_of(usage: Any) -> CallUsage:
    """The usage of a response. `iterations` are summed when present: a compaction's own pass is not in the top-level
    totals (api.md §1.6)."""
    iterations = getattr(usage, "iterations", None)
    if iterations:
        total = CallUsage()
        for entry in iterations:
            total = total + _one(entry)
        return total
    return _one(usage)


def _one(usage: Any) -> CallUsage:
    nested = getattr(usage, "cache_creation", None)
    five = _count(nested, "ephemeral_5m_input_tokens")
    hour = _count(nested, "ephemeral_1h_input_tokens")
    flat = _count(usage, "cache_creation_input_tokens")
    return CallUsage(
        input=_count(usage, "input_tokens"),
        output=_count(usage, "output_tokens"),
        cache_read=_count(usage, "cache_read_input_tokens"),
        cache_creation=five + hour if nested is not None else flat,
        cache_write_1h=hour,
    )


def _count(source: Any, name: str) -> int:
    value = getattr(source, name, None)
    return value if isinstance(value, int) else 0
