from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from compaction.request.wire import Json
from compaction.strategies.context import ContextView
from compaction.strategies.finish import does_not_apply, make_plan, with_notes
from compaction.strategies.parts import ToolPair
from compaction.strategies.plan import Item, Plan, StrategyInput, item_of
from compaction.strategies.records import NewRecords
from compaction.strategies.rewrite import Rewrite
from compaction.strategies.server_edits import already_asked, document_edits, with_context_management
from compaction.strategies.settings import setting

EDIT_TYPE = "clear_tool_uses_20250919"
PLACEHOLDER = "[cleared to save context]"
"""What stands in place of a cleared result: the API does not publish its text; this is the cookbook's (api.md 2.1)."""
NEVER_CLEARED_BYTES = 46
"""Text results of 1 to 46 bytes are neither cleared nor counted (api.md 2.1)."""

_CLIENT, _API = "compaction.md 5 (the client's default)", "api.md 1.5"


@dataclass(frozen=True, slots=True)
class ApiClearToolUsesSettings:
    """Parameters of `clear_tool_uses_20250919`."""

    trigger: str = setting("input_tokens", "What the trigger counts.", _API, choices=("input_tokens", "tool_uses"))
    trigger_value: int = setting(
        180_000, "Clears when the context is over this (the API's own default is 100,000).", _CLIENT,
        unit="tokens or tool uses", minimum=0,
    )  # fmt: skip
    keep: int = setting(3, "The newest clearable tool uses stay.", _API, unit="tool uses", minimum=0)
    clear_at_least: int = setting(
        140_000, "Does nothing when it cannot free this much; 0 = no limit. The client aims at 40,000 kept.", _CLIENT,
        unit="tokens", minimum=0,
    )  # fmt: skip
    exclude_tools: tuple[str, ...] = setting((), "Tools that are never cleared.", _API, unit="tool names")
    clear_tool_inputs: tuple[str, ...] = setting(
        (), "Tools whose inputs are cleared too; `*` for all.", _API, unit="tool names"
    )


class ApiClearToolUses:
    """Has the API drop old tool results before the model sees them; the transcript stays (compaction.md 5)."""

    name = "api-clear-tool-uses"
    title = "API context editing: clear tool uses"
    settings_type = ApiClearToolUsesSettings

    def preview(self, given: StrategyInput, settings: ApiClearToolUsesSettings) -> Plan:
        """The edit's effect computed locally by the documented rules (api.md 2.1), and its exact JSON."""
        edit = edit_json(settings)
        if already_asked(given.wire, edit):
            return does_not_apply(given, self.name, self.title, settings, "the request asks for this edit already")
        candidates = clearable(given.view, settings.exclude_tools)
        refusal = self._not_triggered(given, settings, len(candidates))
        chosen = [] if refusal else choose(given.view, candidates, settings)
        if not refusal and not chosen:
            freed = f", or they free less than {settings.clear_at_least:,} tokens" if settings.clear_at_least else ""
            refusal = f"the {len(candidates)} clearable results are all kept{freed}"
        if refusal:
            return does_not_apply(given, self.name, self.title, settings, refusal)
        rewrite = Rewrite(given.view, NewRecords(given.conversation, self.name))
        cleared = self._clear(given.view, rewrite, chosen, settings)
        sent = with_context_management(given.wire, edit)
        plan = make_plan(
            given, self.name, self.title, settings,
            f"the API clears {len(chosen)} of {len(candidates)} results, the newest stay",
            rewrite.request(),
            sent=sent,
            make_edits=partial(document_edits, given, sent),
            cleared=cleared,
            structural=False,
            server_edit={"context_management": {"edits": [edit]}},
        )  # fmt: skip
        return with_notes(plan, [
            "the API does the editing: the transcript and what the client sends stay whole",
            "the cached prefix is lost from the first cleared block on",
        ])  # fmt: skip

    def _not_triggered(self, given: StrategyInput, settings: ApiClearToolUsesSettings, uses: int) -> str:
        count = given.view.tokens if settings.trigger == "input_tokens" else uses
        if count > settings.trigger_value:
            return ""
        unit = "tokens" if settings.trigger == "input_tokens" else "clearable tool uses"
        return f"the trigger is more than {settings.trigger_value:,} {unit}, there are {count:,}"

    def _clear(
        self, view: ContextView, rewrite: Rewrite, chosen: Sequence[ToolPair], settings: ApiClearToolUsesSettings
    ) -> tuple[Item, ...]:
        marker = view.tokens_of_new({"type": "tool_result", "content": PLACEHOLDER})
        items = []
        for pair in chosen:
            rewrite.replace(pair.result, {**pair.result.value, "content": PLACEHOLDER}, ())
            items.append(item_of(pair.result, f"{pair.tool} result", min(marker, pair.result.tokens), pair.tool))
            if pair.use is not None and _clears_input(pair.tool, settings.clear_tool_inputs):
                rewrite.replace(pair.use, {**pair.use.value, "input": {}}, ())
                items.append(item_of(pair.use, f"{pair.tool} input", 0, pair.tool))
        return tuple(items)


def clearable(view: ContextView, exclude: Sequence[str]) -> list[ToolPair]:
    """The results that count and can be cleared, oldest first: not excluded, not tiny, with their call."""
    return [
        pair
        for pair in view.pairs
        if pair.use is not None and pair.tool not in exclude and not _tiny(pair.result.value.get("content"))
    ]


def choose(view: ContextView, candidates: Sequence[ToolPair], settings: ApiClearToolUsesSettings) -> list[ToolPair]:
    """The results to clear: oldest first, all but the newest `keep`, never the newest result of all.

    With `clear_at_least` they go in batches that each free that much; an incomplete last batch stays.
    """
    newest = view.pairs[-1].id if view.pairs else ""
    pool = [p for p in candidates[: max(0, len(candidates) - settings.keep)] if p.id != newest]
    pool = [p for p in pool if p.result.value.get("content") != PLACEHOLDER and not p.cleared]
    if not settings.clear_at_least:
        return pool
    marker = view.tokens_of_new({"type": "tool_result", "content": PLACEHOLDER})
    chosen: list[ToolPair] = []
    batch: list[ToolPair] = []
    freed = 0
    for pair in pool:
        batch.append(pair)
        freed += max(0, pair.result.tokens - marker)
        if freed >= settings.clear_at_least:
            chosen += batch
            batch, freed = [], 0
    return chosen


def edit_json(settings: ApiClearToolUsesSettings) -> Json:
    """The edit as it stands in the request."""
    inputs: Any = list(settings.clear_tool_inputs)
    if "*" in settings.clear_tool_inputs:
        inputs = True
    edit: Json = {
        "type": EDIT_TYPE,
        "trigger": {"type": settings.trigger, "value": settings.trigger_value},
        "keep": {"type": "tool_uses", "value": settings.keep},
    }
    if settings.clear_at_least:
        edit["clear_at_least"] = {"type": "input_tokens", "value": settings.clear_at_least}
    if settings.exclude_tools:
        edit["exclude_tools"] = list(settings.exclude_tools)
    return {**edit, "clear_tool_inputs": inputs if inputs else False}


def _clears_input(tool: str, names: Sequence[str]) -> bool:
    return "*" in names or tool in names


def _tiny(content: Any) -> bool:
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        content = content[0].get("text")
    return isinstance(content, str) and 1 <= len(content.encode("utf-8", "surrogatepass")) <= NEVER_CLEARED_BYTES
