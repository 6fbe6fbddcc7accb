"""What is worth telling about a session that grows: the context passes a level, a compaction, an error finding."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.conversation import Conversation

Notices = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Level:
    """Where a session stands.

    Attributes:
        tokens: its context; window: the effective window, both tokens.
        compactions: how many there were; errors: findings of severity error, None while not known.
    """

    tokens: int
    window: int
    compactions: int
    errors: int | None

    @classmethod
    def of(cls, conversation: Conversation, client: str, errors: int | None) -> Level:
        """The level of a conversation now."""
        from compaction.accounting.current import context_summary

        context = context_summary(conversation, client or None)
        return cls(context["tokens"], context["effective_window"], len(conversation.compactions), errors)

    @property
    def percent(self) -> float:
        """Share of the effective window that is used, %."""
        return 100 * self.tokens / self.window if self.window else 0.0


def notices_between(before: Level, after: Level, percent: int) -> Notices:
    """One sentence for each thing that became true between two levels; a level that stays passed is told once."""
    found: list[str] = []
    if after.compactions > before.compactions:
        found.append(f"compacted: the context is {after.tokens:,} tokens now")
    if before.percent < percent <= after.percent:
        found.append(f"the context passed {percent} % of the window ({after.tokens:,} of {after.window:,} tokens)")
    if before.errors is not None and after.errors is not None and after.errors > before.errors:
        new = after.errors - before.errors
        found.append(f"{new} new finding{'s' if new > 1 else ''} of severity error")
    return tuple(found)
