from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

StopReasons = Literal["every", "last", "never"]
SubagentLayout = Literal["inline", "sibling", "nested"]


@dataclass(frozen=True, slots=True)
class Version:
    """What a client version writes (transcript-format.md); compared as numbers."""

    text: str
    numbers: tuple[int, int, int]

    def since(self, other: str) -> bool:
        """Whether this version is `other` or newer."""
        return self.numbers >= parse(other).numbers

    def between(self, first: str, last: str) -> bool:
        """Whether this version lies in first … last, both included."""
        return self.since(first) and self.numbers <= parse(last).numbers

    @property
    def stop_reasons(self) -> StopReasons:
        """On which records of a response the final stop_reason and output_tokens stand (section 5)."""
        if self.since("2.1.200"):
            return "every"
        if self.since("2.1.59") or self.between("2.0.37", "2.0.54"):
            return "last"
        return "never"

    @property
    def subagents(self) -> SubagentLayout:
        """Where the records of a subagent are written (section 1)."""
        if self.since("2.1.2"):
            return "nested"
        return "sibling" if self.since("2.0.28") else "inline"

    @property
    def auto_compact_threshold(self) -> int:
        """Context tokens at which this version compacts by itself in a 200K window (clients.md)."""
        return 167_000 if self.since("2.1.25") else 155_000

    @property
    def model(self) -> str:
        """A model with a window of 200K that people used with this version."""
        for first, model in (
            ("2.1.50", "claude-opus-4-6"),
            ("2.1.0", "claude-opus-4-5-20251101"),
            ("2.0.0", "claude-sonnet-4-5-20250929"),
        ):
            if self.since(first):
                return model
        return "claude-sonnet-4-20250514"


@lru_cache(maxsize=256)
def parse(text: str) -> Version:
    """The version named `text`, three numbers with dots."""
    major, minor, patch = (int(part) for part in text.split("."))
    return Version(text, (major, minor, patch))
