from __future__ import annotations

from dataclasses import dataclass

from compaction.strategies.context import ContextView
from compaction.strategies.files import FileTouch, touch_at
from compaction.strategies.finish import does_not_apply, make_plan, with_notes
from compaction.strategies.parts import Part, RoundSpan, ToolPair
from compaction.strategies.plan import Plan, StrategyInput, item_of
from compaction.strategies.records import NewRecords
from compaction.strategies.rewrite import Rewrite, carries_reminders
from compaction.strategies.settings import setting
from compaction.strategies.thinking import THINKING_TYPES, invalidated_thinking, open_loop_start, thinking_note

_SOURCE = "compaction.md 9"


@dataclass(frozen=True, slots=True)
class SnipSettings:
    """Settings of Snip."""

    enabled: bool = setting(
        False, "Whether the client has the feature; asking for the strategy by name switches it on.", _SOURCE
    )
    keep_recent_rounds: int = setting(
        3, "The newest API rounds are never removed.", "own choice: what was just read is still in use",
        unit="rounds", minimum=1,
    )  # fmt: skip
    max_text_characters: int = setting(
        400, "A round whose answer says more than this beside its reads stays.",
        "own choice: an announcement may go, an explanation not", unit="characters", minimum=0,
    )  # fmt: skip


class Snip:
    """Removes rounds that only read files which were read, edited or written again later (compaction.md 9)."""

    name = "snip"
    title = "Snip superseded reads"
    settings_type = SnipSettings

    def preview(self, given: StrategyInput, settings: SnipSettings) -> Plan:
        """The rounds that go; whole responses with all their pairs, or nothing."""
        if not settings.enabled:
            return does_not_apply(given, self.name, self.title, settings, "it is switched off (enabled is false)")
        view = given.view
        outdated = superseded_reads(view)
        spans = removable_rounds(view, outdated, settings)
        if not spans:
            reason = f"{len(outdated)} reads are superseded, none of them in a round that can go as a whole"
            return does_not_apply(given, self.name, self.title, settings, reason)
        rewrite = Rewrite(view, NewRecords(given.conversation, self.name))
        gone = [part for span in spans for part in parts_of_round(view, span)]
        rewrite.remove(gone)
        stripped = invalidated_thinking(view, rewrite.touched, {part.place for part in gone})
        rewrite.remove(stripped)
        plan = make_plan(
            given, self.name, self.title, settings,
            f"{len(spans)} rounds whose reads were superseded are removed",
            rewrite.request(),
            exact=carries_reminders(view, (p for span in spans for p in view.parts_of_messages(span.first, span.end))),
            make_edits=rewrite.edits,
            removed=tuple(item_of(part, "superseded read") for part in gone)
            + tuple(item_of(part, "thinking bound to the old prefix") for part in stripped),
            duration_ms=1,
        )  # fmt: skip
        notes = ["recorded usage still shows the size before: the freed tokens are passed on to AutoCompact"]
        if stripped:
            notes.append(thinking_note(len(stripped), given.wire.model))
        return with_notes(plan, notes) if plan.applies else plan


def superseded_reads(view: ContextView) -> set[str]:
    """Ids of reads whose file was read, edited or written again later (compaction.md 9).

    A later read of a part supersedes only a read of the same part; a later edit or write supersedes every read.
    """
    outdated: set[str] = set()
    changed: set[str] = set()
    whole: set[str] = set()
    ranges: set[tuple[str, object, object]] = set()
    for pair in reversed(view.pairs):
        touch = touch_at(view, pair)
        if touch is None:
            continue
        if touch.action != "read":
            changed.add(touch.path)
            continue
        span = (touch.path, pair.input.get("offset"), pair.input.get("limit"))
        if touch.path in changed or touch.path in whole or (touch.partial and span in ranges):
            outdated.add(pair.id)
        _note_read(touch, span, whole, ranges)
    return outdated


def _note_read(
    touch: FileTouch, span: tuple[str, object, object], whole: set[str], ranges: set[tuple[str, object, object]]
) -> None:
    if touch.partial:
        ranges.add(span)
    else:
        whole.add(touch.path)


def removable_rounds(view: ContextView, outdated: set[str], settings: SnipSettings) -> list[RoundSpan]:
    """The rounds that consist of superseded reads only and may go, oldest first."""
    pairs = {pair.id: pair for pair in view.pairs}
    answered = [span for span in view.rounds if span.number > 0]
    loop = open_loop_start(view)
    return [
        span
        for span in answered[: max(0, len(answered) - settings.keep_recent_rounds)]
        if _only_outdated(view, span, pairs, outdated, settings.max_text_characters)
        and not (span.first >= loop and _has_thinking(view, span))
    ]


def _only_outdated(
    view: ContextView, span: RoundSpan, pairs: dict[str, ToolPair], outdated: set[str], most_text: int
) -> bool:
    """Whether a round's response is nothing but superseded reads, each answered inside the round, and few words."""
    calls = 0
    for message in range(span.first, span.end):
        if view.wire.messages[message].role != "assistant":
            continue
        for block in view.wire.messages[message].content:
            kind = block.get("type")
            if kind == "tool_use":
                pair = pairs.get(str(block.get("id")))
                if pair is None or pair.id not in outdated or not span.first <= pair.result.place[0] < span.end:
                    return False
                calls += 1
            elif kind == "text":
                if len(str(block.get("text", ""))) > most_text:
                    return False
            elif kind not in THINKING_TYPES:
                return False
    return calls > 0


def _has_thinking(view: ContextView, span: RoundSpan) -> bool:
    blocks = (b for m in range(span.first, span.end) for b in view.wire.messages[m].content)
    return any(block.get("type") in THINKING_TYPES for block in blocks)


def parts_of_round(view: ContextView, span: RoundSpan) -> list[Part]:
    """The blocks of a round that go with its response: the answer and its results; prompts and reminders stay."""
    parts = view.parts_of_messages(span.first, span.end)
    return [part for part in parts if part.role == "assistant" or part.type == "tool_result"]
