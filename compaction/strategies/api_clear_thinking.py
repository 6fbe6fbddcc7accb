from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from compaction.accounting.models import strips_earlier_thinking
from compaction.request.wire import Json
from compaction.strategies.context import ContextView
from compaction.strategies.finish import does_not_apply, make_plan, with_notes
from compaction.strategies.microcompact_time import newest_answer_ms
from compaction.strategies.parts import Part
from compaction.strategies.plan import Plan, StrategyInput, item_of
from compaction.strategies.records import NewRecords
from compaction.strategies.rewrite import Rewrite
from compaction.strategies.server_edits import already_asked, document_edits, with_context_management
from compaction.strategies.settings import setting
from compaction.strategies.thinking import THINKING_TYPES

EDIT_TYPE = "clear_thinking_20251015"
_SOURCE = "compaction.md 5"


@dataclass(frozen=True, slots=True)
class ApiClearThinkingSettings:
    """Parameters of `clear_thinking_20251015`."""

    keep: str = setting(
        "automatic",
        "all: every turn keeps its thinking; turns: the newest `thinking_turns`; automatic: all, but one turn after a "
        "pause in which the cache was lost anyway.",
        _SOURCE,
        choices=("automatic", "all", "turns"),
    )
    thinking_turns: int = setting(1, "Turns with thinking that keep it.", "api.md 1.5", unit="turns", minimum=1)
    idle_minutes: float = setting(
        60.0, "The pause after which `automatic` keeps one turn.", _SOURCE, unit="minutes", minimum=0
    )


class ApiClearThinking:
    """Has the API drop thinking of earlier turns; the transcript stays (compaction.md 5)."""

    name = "api-clear-thinking"
    title = "API context editing: clear thinking"
    settings_type = ApiClearThinkingSettings

    def preview(self, given: StrategyInput, settings: ApiClearThinkingSettings) -> Plan:
        """The edit's effect computed locally, and its exact JSON."""
        turns = thinking_turns(given.view)
        keep = turns_kept(given, settings)
        edit = edit_json(keep)
        refusal = ""
        if not turns:
            refusal = "the conversation has no thinking: the edit is not sent"
        elif already_asked(given.wire, edit):
            refusal = "the request asks for this edit already"
        elif keep is None:
            refusal = f"all {len(turns)} turns keep their thinking, and the cached prefix stays"
        elif len(turns) <= keep:
            refusal = f"{len(turns)} turns have thinking and {keep} keep it"
        if refusal or keep is None:
            return does_not_apply(given, self.name, self.title, settings, refusal)
        gone = [part for turn in turns[: len(turns) - keep] for part in turn]
        rewrite = Rewrite(given.view, NewRecords(given.conversation, self.name))
        rewrite.remove(gone)
        sent = with_context_management(given.wire, edit)
        plan = make_plan(
            given, self.name, self.title, settings,
            f"the API drops the thinking of {len(turns) - keep} of {len(turns)} turns",
            rewrite.request(),
            sent=sent,
            make_edits=partial(document_edits, given, sent),
            removed=tuple(item_of(part, "thinking") for part in gone),
            server_edit={"context_management": {"edits": [edit]}},
        )  # fmt: skip
        notes = ["the API does the editing: the transcript stays whole, signatures stay valid"]
        if strips_earlier_thinking(given.wire.model):
            notes.append(f"{given.wire.model} drops thinking of earlier turns by itself: it counted nothing before")
        if any(part.type == "redacted_thinking" or not part.value.get("thinking") for part in gone):
            notes.append("some thinking has no text in the transcript: its tokens cannot be told")
        return with_notes(plan, notes)


def thinking_turns(view: ContextView) -> list[list[Part]]:
    """The thinking blocks by turn (everything between two prompts), oldest first; turns without any are left out."""
    turns: list[list[Part]] = []
    fresh = True
    for part in view.parts:
        if view.is_prompt(part):
            fresh = True
        elif part.type in THINKING_TYPES:
            if fresh:
                turns.append([])
            fresh = False
            turns[-1].append(part)
    return turns


def turns_kept(given: StrategyInput, settings: ApiClearThinkingSettings) -> int | None:
    """How many turns keep their thinking; None: all."""
    if settings.keep == "all":
        return None
    if settings.keep == "turns":
        return settings.thinking_turns
    newest = newest_answer_ms(given)
    idle = newest and (given.now_ms - newest) / 60_000 > settings.idle_minutes
    return settings.thinking_turns if idle else None


def edit_json(keep: int | None) -> Json:
    """The edit as it stands in the request."""
    return {"type": EDIT_TYPE, "keep": "all" if keep is None else {"type": "thinking_turns", "value": keep}}
