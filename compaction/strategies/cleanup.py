from __future__ import annotations

from compaction.strategies.plan import is_main_thread

EVERY_COMPACTION = (
    "microcompact state",
    "system-prompt sections",
    "classifier approvals",
    "speculative checks",
    "tracing state",
    "session messages cache",
)
"""What every compaction clears (compaction.md 11)."""
WITH_ATTRIBUTION = "attribution file cache"
"""Cleared by every compaction where attribution is on."""
MAIN_THREAD_ONLY = ("context-collapse store", "user-context cache", "memory-files cache")
"""What only a compaction of the main thread clears: a subagent shares module state with it."""
NEVER = ("invoked skills' content",)
"""Deliberately kept: the next compaction needs it again."""


def cleared_state(query_source: str | None, *, attribution: bool = False) -> tuple[str, ...]:
    """The state that the cleanup after a compaction by `query_source` clears (compaction.md 11)."""
    found = EVERY_COMPACTION + ((WITH_ATTRIBUTION,) if attribution else ())
    return found + MAIN_THREAD_ONLY if is_main_thread(query_source) else found
