from __future__ import annotations

from dataclasses import dataclass

from compaction.strategies.compacting import Replacement, compacted, has_answers
from compaction.strategies.finish import does_not_apply
from compaction.strategies.plan import Plan, StrategyInput
from compaction.strategies.prompts import SummaryMessage
from compaction.strategies.restore import RestoreSettings, restored_context
from compaction.strategies.settings import setting
from compaction.strategies.summariser import SummaryTask


@dataclass(frozen=True, slots=True)
class SummarySettings(RestoreSettings):
    """Settings that every strategy with a summary has."""

    custom_instructions: str = setting("", "What the summary should stress.", "compaction.md 7")
    transcript_path: bool = setting(
        False, "Whether the summary names the full transcript's path for details.", "compaction.md 7"
    )

    def message(self, given: StrategyInput, *, recent_kept: bool) -> SummaryMessage:
        """How the summary is put to the model."""
        path = given.conversation.transcript.path
        return SummaryMessage(
            transcript_path=path.name if self.transcript_path and path is not None else "",
            recent_kept=recent_kept,
            continue_unasked=given.automatic,
        )


@dataclass(frozen=True, slots=True)
class AutoCompactSettings(SummarySettings):
    """Settings of AutoCompact."""


class AutoCompact:
    """Replaces the whole conversation by a summary that a model writes (compaction.md 6)."""

    name = "auto-compact"
    title = "AutoCompact (summary of everything)"
    settings_type = AutoCompactSettings

    def preview(self, given: StrategyInput, settings: AutoCompactSettings) -> Plan:
        """The conversation as boundary, summary and restored context."""
        view = given.view
        if not has_answers(given, view.parts):
            reason = "not enough messages to compact: no answer since the beginning or the last compaction"
            return does_not_apply(given, self.name, self.title, settings, reason)
        task = SummaryTask(view, view.parts, "full", settings.custom_instructions)
        what = Replacement(
            kind="full",
            border=len(view.parts),
            summary=given.summariser.summarise(task),
            message=settings.message(given, recent_kept=False),
            restored=restored_context(view, (), settings, given.now_ms),
        )
        reason = f"all {len(view.wire.messages)} messages become one summary"
        return compacted(given, self.name, self.title, settings, reason, what)
