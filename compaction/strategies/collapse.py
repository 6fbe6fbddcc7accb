from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from compaction.accounting.estimate import rough_tokens_of_block
from compaction.request.wire import Json
from compaction.strategies.compacting import has_answers
from compaction.strategies.context import ContextView
from compaction.strategies.files import touch_at
from compaction.strategies.finish import does_not_apply, make_plan, with_notes
from compaction.strategies.parts import COLLAPSED, Part
from compaction.strategies.plan import Item, Plan, StrategyInput, item_of
from compaction.strategies.records import NewRecords
from compaction.strategies.rewrite import Rewrite, carries_reminders
from compaction.strategies.settings import setting
from compaction.strategies.thinking import invalidated_thinking, thinking_note

_SOURCE = "compaction.md 9"
_OWN = "own choice: compaction.md 9 names no figure"


@dataclass(frozen=True, slots=True)
class CollapseSettings:
    """Settings of Context Collapse."""

    enabled: bool = setting(
        False, "Whether the client has the feature; asking for the strategy by name switches it on.", _SOURCE
    )
    keep_recent_segments: int = setting(
        2, "The newest segments stay unfolded; the open one always does.", _OWN, unit="segments", minimum=1
    )
    min_tokens: int = setting(1_000, "A segment that would free less stays.", _OWN, unit="tokens", minimum=0)
    prompt_characters: int = setting(2_000, "The prompt in the stand-in.", _OWN, unit="characters", minimum=80)
    outcome_characters: int = setting(1_000, "The outcome in the stand-in.", _OWN, unit="characters", minimum=80)


@dataclass(frozen=True, slots=True)
class Segment:
    """A prompt and everything until the next prompt: parts `first` … `end` − 1 of the view."""

    first: int
    end: int


class ContextCollapse:
    """Folds finished segments into short stand-ins, as a projection that can be taken back (compaction.md 9)."""

    name = "context-collapse"
    title = "Context Collapse"
    settings_type = CollapseSettings

    def preview(self, given: StrategyInput, settings: CollapseSettings) -> Plan:
        """The stand-ins; the original records stay in the original transcript, so every fold is reversible."""
        if not settings.enabled:
            return does_not_apply(given, self.name, self.title, settings, "it is switched off (enabled is false)")
        view = given.view
        segments = finished_segments(view, settings.keep_recent_segments)
        rewrite = Rewrite(view, NewRecords(given.conversation, self.name))
        inserted: list[Item] = []
        gone: list[Part] = []
        for segment in segments:
            parts = view.parts[segment.first : segment.end]
            block = stand_in(view, parts, settings)
            tokens = view.tokens_of_new(block)
            # By the rough estimate: it depends on the segment alone, so folding once leaves nothing to fold again.
            # What the client clears by itself on resume would come back after a fold: the recorded size counts.
            blocks = (view.recorded(p) or p.value for p in parts) if view.client_clears else (p.value for p in parts)
            freed = sum(map(rough_tokens_of_block, blocks)) - rough_tokens_of_block(block)
            if not has_answers(given, parts) or freed < max(1, settings.min_tokens):
                continue
            rewrite.stand_in(parts, [block])
            gone += parts
            record, line = parts[0].record, parts[0].origin.line if parts[0].origin is not None else 0
            inserted.append(Item(record, line, "stand-in", parts[0].text[:120], tokens_after=tokens))
        if not gone:
            reason = f"none of {len(segments)} finished segments would free {settings.min_tokens:,} tokens"
            return does_not_apply(given, self.name, self.title, settings, reason)
        stripped = invalidated_thinking(view, rewrite.touched, {part.place for part in gone})
        rewrite.remove(stripped)
        plan = make_plan(
            given, self.name, self.title, settings,
            f"{len(inserted)} of {len(segments)} finished segments are folded into stand-ins",
            rewrite.request(),
            exact=carries_reminders(view, view.parts_of_messages(gone[0].place[0], gone[-1].place[0] + 1)),
            make_edits=rewrite.edits,
            replaced=tuple(item_of(part, "folded") for part in gone),
            removed=tuple(item_of(part, "thinking bound to the old prefix") for part in stripped),
            inserted=tuple(inserted),
            duration_ms=2,
        )  # fmt: skip
        notes = ["reversible: the original transcript keeps every folded message", "AutoCompact is off while it is on"]
        if stripped:
            notes.append(thinking_note(len(stripped), given.wire.model))
        return with_notes(plan, notes) if plan.applies else plan


def finished_segments(view: ContextView, keep_recent: int) -> list[Segment]:
    """Segments followed by another prompt, oldest first, without the newest `keep_recent` (the open one included)."""
    borders: list[int] = []
    message = -1
    for number, part in enumerate(view.parts):
        folded = is_stand_in(part)
        if folded or (view.is_prompt(part) and (part.place[0] != message or is_stand_in(view.parts[number - 1]))):
            message = part.place[0]
            if folded or view.safe_borders[number]:
                borders.append(number)
    segments = [Segment(first, end) for first, end in pairwise(borders)]
    finished = segments[: max(0, len(borders) - max(1, keep_recent))]
    return [segment for segment in finished if not is_stand_in(view.parts[segment.first])]


def is_stand_in(part: Part) -> bool:
    """Whether a block stands for a segment that was folded before."""
    return part.role == "user" and part.text.startswith(COLLAPSED)


def stand_in(view: ContextView, parts: Sequence[Part], settings: CollapseSettings) -> Json:
    """What stands for a folded segment: its prompt, the files touched, the tools used, the outcome."""
    pairs = view.pairs_in(parts)
    prompts = [part.text for part in parts if view.is_prompt(part) and part.text.strip()]
    touches = [touch for pair in pairs if (touch := touch_at(view, pair)) is not None]
    actions = {
        path: Counter(t.action for t in touches if t.path == path) for path in dict.fromkeys(t.path for t in touches)
    }
    tools = Counter(str(part.value.get("name")) for part in parts if part.type == "tool_use")
    failed = sum(1 for pair in pairs if pair.failed)
    outcome = next((part.text for part in reversed(parts) if part.text.strip() and view.is_answer(part)), "")
    lines = [COLLAPSED, "Prompt: " + _cut("\n".join(prompts), settings.prompt_characters)]
    if actions:
        files = (f"{path} ({', '.join(f'{a} {n}×' for a, n in sorted(c.items()))})" for path, c in actions.items())
        lines.append("Files: " + "; ".join(files))
    if tools:
        used = ", ".join(f"{name} {n}×" for name, n in sorted(tools.items()))
        lines.append(f"Tools: {used}" + (f"; {failed} calls failed" if failed else ""))
    lines += ["Outcome: " + (_cut(outcome, settings.outcome_characters) or "no answer"), "</collapsed-segment>"]
    return {"type": "text", "text": "\n".join(lines)}


def _cut(text: str, limit: int) -> str:
    text = text.strip()
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
