from __future__ import annotations

from dataclasses import dataclass

from compaction.strategies.auto_compact import SummarySettings
from compaction.strategies.borders import answered_rounds, border_at_message_number, safe_border
from compaction.strategies.compacting import Replacement, compacted, has_answers, summarised_and_kept
from compaction.strategies.finish import does_not_apply, with_notes
from compaction.strategies.plan import Plan, StrategyInput
from compaction.strategies.prompts import SummaryKind
from compaction.strategies.restore import restored_context
from compaction.strategies.settings import setting
from compaction.strategies.summariser import SummaryTask

_SOURCE = "compaction.md 7 (partial compaction)"


@dataclass(frozen=True, slots=True)
class PartialSettings(SummarySettings):
    """Settings of a partial compaction."""

    keep_rounds: int = setting(
        10, "API rounds that stay verbatim, where no message is named.", _SOURCE, unit="rounds", minimum=1
    )
    pivot_uuid: str = setting(
        "", "The message to summarise from or up to (its uuid); it wins over the rounds.", _SOURCE
    )


class _Partial:
    """What both directions share."""

    name: str
    title: str
    kind: SummaryKind
    settings_type = PartialSettings

    def preview(self, given: StrategyInput, settings: PartialSettings) -> Plan:
        """The plan; cuts only where pairs and responses stay whole."""
        border = self._border(given, settings)
        if isinstance(border, str):
            return does_not_apply(given, self.name, self.title, settings, border)
        gone, kept = summarised_and_kept(given, self.kind, border)
        if not kept or not has_answers(given, gone):
            reason = "not enough messages to compact: nothing would be kept, or nothing with an answer summarised"
            return does_not_apply(given, self.name, self.title, settings, reason)
        task = SummaryTask(given.view, gone, self.kind, settings.custom_instructions)
        what = Replacement(
            kind=self.kind,
            border=border,
            summary=given.summariser.summarise(task),
            message=settings.message(given, recent_kept=self.kind == "up_to"),
            restored=restored_context(given.view, kept, settings, given.now_ms),
        )
        rounds = len({part.place[0] for part in kept if part.role == "assistant"})
        which = "later" if self.kind == "from" else "earlier"
        reason = f"the {which} messages become a summary, {rounds} responses stay verbatim"
        plan = compacted(given, self.name, self.title, settings, reason, what)
        if not plan.applies:
            return plan
        cache = "the cached prefix survives" if self.kind == "from" else "the cached prefix is lost"
        return with_notes(plan, [cache])

    def _border(self, given: StrategyInput, settings: PartialSettings) -> int | str:
        """The part that the border lies before, or why there is none."""
        view = given.view
        if settings.pivot_uuid:
            t = view.conversation.transcript
            for number, part in enumerate(view.parts):
                if part.origin is not None and t.uuid(part.origin.record) == settings.pivot_uuid:
                    return safe_border(view, number)
            return f"the message {settings.pivot_uuid} is not in the request"
        answered = answered_rounds(view)
        rounds = len(answered)
        if rounds <= settings.keep_rounds:
            return f"the conversation has {rounds} rounds and {settings.keep_rounds} are kept"
        chosen = answered[settings.keep_rounds if self.kind == "from" else rounds - settings.keep_rounds]
        return safe_border(view, border_at_message_number(view, chosen.first))


class PartialFrom(_Partial):
    """Keeps the early messages and summarises the later ones ("summarise from here")."""

    name = "partial-from"
    title = "Partial compaction from a message on"
    kind: SummaryKind = "from"


class PartialUpTo(_Partial):
    """Summarises the early messages and keeps the later ones ("summarise up to here")."""

    name = "partial-up-to"
    title = "Partial compaction up to a message"
    kind: SummaryKind = "up_to"
