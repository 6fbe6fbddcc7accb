from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt


class Category(IntEnum):
    """What a part of the context is (cli.md); the order is the order of the stack in charts, bottom first."""

    SYSTEM_AND_TOOLS = 0
    """System prompt, tool schemas, memory: what is sent and not in the transcript."""
    SUMMARY = 1
    """The summary that a compaction wrote."""
    USER_TEXT = 2
    ASSISTANT_TEXT = 3
    THINKING = 4
    """Thinking, shown or hidden."""
    TOOL_USE = 5
    TOOL_RESULT = 6
    ATTACHMENTS = 7
    """Text that the client adds by itself: reminders, skill lists, files named by the person."""
    IMAGES = 8
    """Images and documents."""

    @property
    def key(self) -> str:
        """The name in JSON, such as "tool_result"."""
        return self.name.lower()

    @property
    def title(self) -> str:
        """The name for people."""
        return "System and tools" if self is Category.SYSTEM_AND_TOOLS else self.name.replace("_", " ").capitalize()


CATEGORY_COUNT = len(Category)
CATEGORY_KEYS = ("system_and_tools", "user_text", "assistant_text", "thinking", "tool_use", "tool_result",
                 "attachments", "images", "summary")  # fmt: skip
"""The keys in the order of cli.md."""


def as_json(tokens: npt.NDArray[np.int64]) -> dict[str, int]:
    """Tokens by category (index = `Category`) as the JSON object of cli.md."""
    return {key: int(tokens[Category[key.upper()]]) for key in CATEGORY_KEYS}


def split_exactly(total: int, weights: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Divide `total` whole tokens by `weights` so that the parts add up to it exactly (largest remainder).

    Args:
        total: tokens to divide, 0 or more.
        weights: shares, 0 or more; when all are 0 nothing can be divided.

    Raises:
        ValueError: `total` is negative, or positive with no positive weight.
    """
    if total < 0:
        raise ValueError(f"cannot divide {total} tokens")
    weights = np.asarray(weights, dtype=np.float64)
    whole = float(weights.sum())
    if total == 0:
        return np.zeros(len(weights), dtype=np.int64)
    if whole <= 0:
        raise ValueError("no weight to divide by")
    exact = weights * (total / whole)
    parts = np.floor(exact).astype(np.int64)
    missing = total - int(parts.sum())
    if missing > 0:
        order = np.argsort(-(exact - parts), kind="stable")
        parts[order[:missing]] += 1
    elif missing < 0:
        # Floating point rounded a floor up (totals near 2**53): take the surplus from the largest parts.
        order = np.argsort(-parts, kind="stable")
        parts[order[:-missing]] -= 1
    return parts
