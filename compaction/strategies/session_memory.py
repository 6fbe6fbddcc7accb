from __future__ import annotations

import re
from dataclasses import dataclass, replace

from compaction.accounting.categories import Category
from compaction.strategies.auto_compact import SummarySettings
from compaction.strategies.borders import border_at_message, calculate_messages_to_keep_index, messages_of
from compaction.strategies.compacting import Replacement, compacted
from compaction.strategies.finish import does_not_apply
from compaction.strategies.plan import Plan, StrategyInput
from compaction.strategies.restore import restored_context
from compaction.strategies.settings import setting
from compaction.strategies.summariser import Summary
from compaction.strategies.telemetry import will_retrigger

_SOURCE = "compaction.md 8"
WAIT_FOR_EXTRACTION_SECONDS = 15
"""How long the client waits at most for a running extraction of the session memory."""


@dataclass(frozen=True, slots=True)
class SessionMemorySettings(SummarySettings):
    """Settings of SessionMemoryCompact."""

    enabled: bool = setting(
        False,
        "Whether the client uses it: both feature flags, or ENABLE_CLAUDE_CODE_SM_COMPACT; asking for the strategy by "
        "name switches it on.",
        _SOURCE,
    )
    min_tokens: int = setting(10_000, "Verbatim messages hold at least this much …", _SOURCE, unit="tokens", minimum=0)
    min_text_block_messages: int = setting(
        5, "… and at least this many of them have text.", _SOURCE, unit="messages", minimum=0
    )
    max_tokens: int = setting(
        40_000, "Verbatim messages are not extended beyond this.", _SOURCE, unit="tokens", minimum=0
    )


class SessionMemory:
    """Replaces what the session memory covers by the memory itself: no model call (compaction.md 8)."""

    name = "session-memory"
    title = "SessionMemoryCompact"
    settings_type = SessionMemorySettings

    def preview(self, given: StrategyInput, settings: SessionMemorySettings) -> Plan:
        """The memory as the summary, the newest messages verbatim; or why it falls back to AutoCompact."""
        refusal = self._refusal(given, settings)
        if refusal:
            return does_not_apply(given, self.name, self.title, settings, refusal)
        messages = messages_of(given.view)
        last = self._last_summarised(given, len(messages))
        if last is None:
            reason = "the last summarised message is not in the request: falls back to AutoCompact"
            return does_not_apply(given, self.name, self.title, settings, reason)
        start = calculate_messages_to_keep_index(
            messages,
            last,
            min_tokens=settings.min_tokens,
            min_text_block_messages=settings.min_text_block_messages,
            max_tokens=settings.max_tokens,
        )
        border = border_at_message(messages, given.view, start)
        kept = given.view.parts[border:]
        memory = (given.session_memory or "").strip()
        what = Replacement(
            kind="up_to",
            border=border,
            summary=Summary(f"Summary:\n{memory}", "taken from the session memory"),
            message=settings.message(given, recent_kept=bool(kept)),
            restored=restored_context(given.view, kept, replace(settings, max_files=0, skills_tokens=0), given.now_ms),
            model_calls=0,
        )
        reason = f"the session memory replaces {start} messages, {len(messages) - start} stay verbatim"
        plan = compacted(given, self.name, self.title, settings, reason, what)
        if plan.applies and will_retrigger(plan.tokens_after, given.thresholds):
            again = (
                f"the result would still be {plan.tokens_after:,} tokens, over the threshold: falls back to AutoCompact"
            )
            return does_not_apply(given, self.name, self.title, settings, again)
        return plan

    def _refusal(self, given: StrategyInput, settings: SessionMemorySettings) -> str:
        if not settings.enabled:
            return "it is switched off (feature flags, or ENABLE_CLAUDE_CODE_SM_COMPACT)"
        if given.session_memory is None:
            return "there is no session memory: falls back to AutoCompact"
        if is_empty_memory(given.session_memory):
            return "the session memory is the empty template: falls back to AutoCompact"
        summaries = [p.text for p in given.view.parts if p.category is Category.SUMMARY]
        if any(given.session_memory.strip() in text for text in summaries):
            return "the conversation begins with this session memory already"
        return ""

    def _last_summarised(self, given: StrategyInput, count: int) -> int | None:
        """The last message that the memory covers; the last one at all when nothing is recorded; None: not there."""
        if not given.last_summarised_uuid:
            return count - 1
        t = given.conversation.transcript
        messages = messages_of(given.view)
        for number in range(count - 1, -1, -1):
            origin = given.view.parts[messages[number].first_part].origin
            if origin is not None and t.uuid(origin.record) == given.last_summarised_uuid:
                return number
        return None


def session_memory_enabled(
    *, enable: bool, disable: bool, session_memory_flag: bool = False, compact_flag: bool = False
) -> bool:
    """Whether the client uses SessionMemoryCompact (compaction.md 8).

    Args:
        enable, disable: ENABLE_CLAUDE_CODE_SM_COMPACT and DISABLE_CLAUDE_CODE_SM_COMPACT are truthy.
        session_memory_flag, compact_flag: the two feature flags.
    """
    if enable:
        return True
    return not disable and session_memory_flag and compact_flag


_TEMPLATE_LINE = re.compile(r"\s*(#.*|_.*_|<!--.*-->|[-*]?)\s*")


def is_empty_memory(text: str) -> bool:
    """Whether a session memory holds nothing but its template: headings, italic hints, comments, empty bullets."""
    return all(_TEMPLATE_LINE.fullmatch(line) for line in text.splitlines())
