from __future__ import annotations

from dataclasses import dataclass, replace

from compaction.accounting.models import model_version
from compaction.request.wire import Json
from compaction.strategies.finish import does_not_apply, make_plan, with_notes
from compaction.strategies.microcompact import COMPACTABLE_TOOLS, compactable_results
from compaction.strategies.microcompact_time import MicrocompactTimeSettings, clear, cleared_items, refusal_of
from compaction.strategies.parts import ToolPair
from compaction.strategies.plan import Plan, StrategyInput, is_main_thread
from compaction.strategies.records import NewRecords
from compaction.strategies.rewrite import Rewrite
from compaction.strategies.settings import setting

_SOURCE = "compaction.md 4.2"
_OWN = "own choice: compaction.md 4.2 names no figure"


@dataclass(frozen=True, slots=True)
class MicrocompactCachedSettings:
    """Settings of cached MicroCompact."""

    enabled: bool = setting(
        False, "Whether the client has the feature; asking for the strategy by name switches it on.", _SOURCE
    )
    trigger_results: int = setting(
        20, "Deletes once more than this many compactable results are registered.", _OWN, unit="results", minimum=1
    )
    keep_recent: int = setting(5, "The newest registered results stay.", _OWN, unit="results", minimum=1)
    compactable_tools: tuple[str, ...] = setting(
        COMPACTABLE_TOOLS, "The tools whose results are registered.", "compaction.md 4", unit="tool names"
    )
    baseline_deleted_tokens: int = setting(
        0, "Tokens that earlier edits of this cache have deleted already.", _SOURCE, unit="tokens", minimum=0
    )


class MicrocompactCached:
    """Has the API delete old results from its cache: messages stay, the cached prefix survives (compaction.md 4.2)."""

    name = "microcompact-cached"
    title = "MicroCompact, cached (cache_edits)"
    settings_type = MicrocompactCachedSettings

    def preview(self, given: StrategyInput, settings: MicrocompactCachedSettings) -> Plan:
        """Which results the queued `cache_edits` block would delete; nothing changes locally."""
        refusal = self._refusal(given, settings)
        results = [] if refusal else compactable_results(given.view, settings.compactable_tools)
        fresh = [pair for pair in results if not pair.cleared]
        if not refusal and len(fresh) <= settings.trigger_results:
            refusal = f"{len(fresh)} results are registered, the trigger is more than {settings.trigger_results}"
        chosen = fresh[: max(0, len(fresh) - settings.keep_recent)]
        if not refusal and not chosen:
            refusal = "every registered result is kept"
        if refusal:
            return does_not_apply(given, self.name, self.title, settings, refusal)
        rewrite = Rewrite(given.view, NewRecords(given.conversation, self.name))
        clear(rewrite, chosen)
        block = cache_edits(chosen, settings.baseline_deleted_tokens)
        params = {**given.wire.params, "cache_edits": block}
        plan = make_plan(
            given,
            self.name,
            self.title,
            settings,
            f"a cache_edits block deletes {len(chosen)} of {len(fresh)} registered results, the newest stay",
            rewrite.request(),
            sent=replace(given.wire, params=params),
            first_changed=len(given.wire.messages),
            structural=False,
            cleared=cleared_items(given, chosen),
            server_edit=block,
            duration_ms=1,
        )
        return with_notes(plan, ["the transcript and its scroll-back keep every output in full", "the cache survives"])

    def _refusal(self, given: StrategyInput, settings: MicrocompactCachedSettings) -> str:
        if not settings.enabled:
            return "the client does not have the feature (enabled is false)"
        if not is_main_thread(given.query_source):
            return f"it works for the main thread only, not for {given.query_source}"
        version = model_version(given.wire.model)
        if version is None or version < (4, 0):
            return f"the model {given.wire.model or 'of this session'} is not known to support cache_edits"
        return ""


def cache_edits(chosen: list[ToolPair], baseline: int) -> Json:
    """The block for the API layer: the ids to delete, registered once each and grouped by user message."""
    groups: dict[int, list[str]] = {}
    for pair in chosen:
        groups.setdefault(pair.result.place[0], []).append(pair.id)
    return {
        "type": "cache_edits",
        "trigger": "auto",
        "baseline_cache_deleted_tokens": baseline,
        "edits": [
            {"message": message, "type": "delete_tool_results", "tool_use_ids": list(dict.fromkeys(ids))}
            for message, ids in groups.items()
        ],
    }


def microcompact_path(given: StrategyInput, timed: MicrocompactTimeSettings, cached: MicrocompactCachedSettings) -> str:
    """Which path MicroCompact takes (compaction.md 4, entry order): `time`, else `cached`, else `none`."""
    if not refusal_of(given, timed):
        return "time"
    return "cached" if MicrocompactCached().preview(given, cached).applies else "none"
