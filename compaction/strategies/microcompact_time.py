from __future__ import annotations

import math
from dataclasses import dataclass

from compaction.accounting.estimate import rough_tokens_of_block
from compaction.strategies.context import ContextView
from compaction.strategies.finish import does_not_apply, make_plan, with_notes
from compaction.strategies.microcompact import COMPACTABLE_TOOLS, cleared_block, compactable_results
from compaction.strategies.parts import ToolPair
from compaction.strategies.plan import Item, Plan, StrategyInput, is_main_thread, item_of
from compaction.strategies.records import NewRecords
from compaction.strategies.rewrite import Rewrite
from compaction.strategies.settings import setting
from compaction.strategies.thinking import invalidated_thinking, thinking_note
from compaction.transcript.kinds import CLEARED_MARKER, RecordKind

_SOURCE = "compaction.md 4.1"


@dataclass(frozen=True, slots=True)
class MicrocompactTimeSettings:
    """Settings of time-based MicroCompact."""

    enabled: bool = setting(
        False, "Whether the client does it by itself; asking for the strategy by name switches it on.", _SOURCE
    )
    gap_threshold_minutes: float = setting(
        60.0,
        "Fires when the newest answer is at least this old: the lifetime of the one-hour prompt cache, so that "
        "clearing loses no cache.",
        _SOURCE,
        unit="minutes",
        minimum=0,
    )
    keep_recent: int = setting(
        5, "The newest compactable results keep their content; at least 1 does.", _SOURCE, unit="results", minimum=0
    )
    compactable_tools: tuple[str, ...] = setting(
        COMPACTABLE_TOOLS, "The tools whose results can be cleared.", "compaction.md 4", unit="tool names"
    )


class MicrocompactTime:
    """Clears old tool results after a pause so long that the prompt cache is gone anyway (compaction.md 4, path 1)."""

    name = "microcompact-time"
    title = "MicroCompact, time-based"
    settings_type = MicrocompactTimeSettings

    def preview(self, given: StrategyInput, settings: MicrocompactTimeSettings) -> Plan:
        """Which results would be cleared now; pairs stay whole because only content changes."""
        refusal = refusal_of(given, settings)
        if refusal:
            return does_not_apply(given, self.name, self.title, settings, refusal)
        results = compactable_results(given.view, settings.compactable_tools)
        kept = results[-max(1, settings.keep_recent) :]
        older = results[: len(results) - len(kept)]
        chosen = [pair for pair in older if not cleared_on_record(given.view, pair)]
        if not chosen:
            reason = f"there is nothing to clear: {len(results)} compactable results, the newest {len(kept)} are kept"
            return does_not_apply(given, self.name, self.title, settings, reason)
        rewrite = Rewrite(given.view, NewRecords(given.conversation, self.name))
        clear(rewrite, chosen)
        stripped = invalidated_thinking(given.view, rewrite.touched, set())
        rewrite.remove(stripped)
        plan = make_plan(
            given, self.name, self.title, settings,
            f"{len(chosen)} of {len(results)} compactable results are cleared, the newest {len(kept)} stay",
            rewrite.request(),
            make_edits=rewrite.edits,
            structural=bool(stripped),
            cleared=cleared_items(given, chosen),
            removed=tuple(item_of(part, "thinking bound to the old prefix") for part in stripped),
            duration_ms=1,
        )  # fmt: skip
        notes = [thinking_note(len(stripped), given.wire.model)] if stripped else []
        saved = (
            sum(rough_tokens_of_block(p.result.value) for p in chosen) - len(chosen) * (len(CLEARED_MARKER) + 3) // 4
        )
        return with_notes(plan, [*notes, f"the client itself would report {saved:,} tokens saved (characters / 4)"])


def refusal_of(given: StrategyInput, settings: MicrocompactTimeSettings) -> str:
    """Why the time-based path does not fire now; "" when it does (compaction.md 4)."""
    if not settings.enabled:
        return "it is switched off (enabled is false)"
    if not is_main_thread(given.query_source):
        return f"it fires for the main thread only, not for {given.query_source}"
    if not math.isfinite(settings.gap_threshold_minutes):
        return "a gap that is not finite never fires"
    newest = newest_answer_ms(given)
    if not newest:
        return "there is no answer of the assistant with a time yet"
    minutes = (given.now_ms - newest) / 60_000
    if minutes < settings.gap_threshold_minutes:
        return f"the newest answer is {minutes:.0f} minutes old, less than {settings.gap_threshold_minutes:g}"
    return ""


def newest_answer_ms(given: StrategyInput) -> int:
    """The time of the newest assistant record in the request, milliseconds; 0 when there is none."""
    t = given.conversation.transcript
    for part in reversed(given.view.parts):
        if part.role == "assistant" and part.origin is not None and t.kind[part.origin.record] == RecordKind.ASSISTANT:
            stamp = int(t.timestamp_ms[part.origin.record])
            if stamp:
                return stamp
    return 0


def cleared_on_record(view: ContextView, pair: ToolPair) -> bool:
    """Whether a result's record holds the marker already: one that only the client clears does not."""
    return pair.cleared and view.recorded(pair.result).get("content") == CLEARED_MARKER


def clear(rewrite: Rewrite, chosen: list[ToolPair], marker: str = CLEARED_MARKER) -> None:
    """Replace the content of these results by the marker."""
    for pair in chosen:
        content = pair.result.value.get("content")
        # Only what a reminder was appended to differs from its record.
        extended = not isinstance(content, str) or "<system-reminder>" in content
        recorded = rewrite.view.recorded(pair.result) if extended else {}
        rewrite.replace(pair.result, cleared_block(pair.result.value, recorded, marker), [(("content",), marker)])


def cleared_items(given: StrategyInput, chosen: list[ToolPair]) -> tuple[Item, ...]:
    """The items of cleared results, with what each takes before and after."""
    marker = given.view.tokens_of_new({"type": "tool_result", "content": CLEARED_MARKER})
    return tuple(item_of(p.result, f"{p.tool} result", min(marker, p.result.tokens), p.tool) for p in chosen)
