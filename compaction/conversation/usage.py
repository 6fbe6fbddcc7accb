from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from compaction.transcript.columns import USAGE_ITERATIONS, USAGE_NESTED

if TYPE_CHECKING:
    from compaction.conversation.conversation import Conversation


def context_by_response(conversation: Conversation) -> npt.NDArray[np.int64]:
    """Recorded context of every response, tokens: input + cache read + cache creation (transcript-format.md §5).

    The last record of a response that has figures wins; with server-side iterations the last `message` or
    `fallback_message` one counts, because the top level is their sum. 0 where nothing is recorded.
    """
    table = conversation.transcript.usage_table
    nested = np.where(table["flags"] & USAGE_NESTED, table["write_5m"].astype(np.int64) + table["write_1h"], 0)
    written = np.maximum(table["cache_creation"].astype(np.int64), nested)
    tokens = table["input"].astype(np.int64) + table["cache_read"] + written
    records = table["record"]
    for row in np.flatnonzero(table["flags"] & USAGE_ITERATIONS):
        tokens[row] = _last_iteration(conversation, int(row), int(tokens[row]))
    context = np.zeros(conversation.response_count, np.int64)
    response = conversation.response_of[records]
    rows = np.flatnonzero((tokens > 0) & (response >= 0))
    context[response[rows]] = tokens[rows]
    return context


def context_of_iterations(iterations: tuple[dict[str, Any], ...]) -> int | None:
    """Context tokens of the last `message` / `fallback_message` iteration, None when there is none."""
    for entry in reversed(iterations):
        if entry.get("type") in ("message", "fallback_message"):
            return context_of_usage(entry)
    return None


def context_of_usage(usage: Mapping[str, Any]) -> int:
    """input + cache read + cache creation of one usage object, tokens; absent or odd fields count 0."""
    total = 0
    for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"):
        value = usage.get(name)
        total += value if isinstance(value, int) and not isinstance(value, bool) else 0
    return total


def _last_iteration(conversation: Conversation, row: int, otherwise: int) -> int:
    found = context_of_iterations(conversation.transcript.usage_at(row).iterations)
    return otherwise if found is None else found
