from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from compaction.accounting.models import model_key, model_version
from compaction.request.wire import Json, WireMessage
from compaction.strategies.compacting import has_answers
from compaction.strategies.finish import does_not_apply, make_plan, with_notes
from compaction.strategies.plan import Item, Plan, StrategyInput, item_of
from compaction.strategies.server_edits import already_asked, document_edits, with_context_management
from compaction.strategies.settings import setting
from compaction.strategies.summariser import SummaryTask

EDIT_TYPE = "compact_20260112"
MINIMUM_TRIGGER = 50_000
_SINCE = {"opus": (4, 6), "sonnet": (4, 6), "haiku": (5, 5), "fable": (5, 0), "mythos": (5, 0)}
"""The first version of each family that compacts on the server (api.md 2.2)."""
_SOURCE = "api.md 1.5 and 2.2"


@dataclass(frozen=True, slots=True)
class ApiCompactSettings:
    """Parameters of `compact_20260112`."""

    trigger_value: int = setting(
        150_000, "Compacts when the context is over this.", _SOURCE, unit="tokens", minimum=MINIMUM_TRIGGER
    )
    instructions: str = setting("", "Replaces the API's own summary prompt.", _SOURCE)
    pause_after_compaction: bool = setting(False, "Stop after the compaction instead of answering.", _SOURCE)


class ApiCompact:
    """Has the API summarise the conversation: a compaction block, before which it ignores everything (api.md 2.2)."""

    name = "api-compact"
    title = "API compaction on the server"
    settings_type = ApiCompactSettings

    def preview(self, given: StrategyInput, settings: ApiCompactSettings) -> Plan:
        """The context as the compaction block would leave it, and the edit's exact JSON."""
        edit = edit_json(settings)
        refusal = self._refusal(given, settings, edit)
        if refusal:
            return does_not_apply(given, self.name, self.title, settings, refusal)
        summary = given.summariser.summarise(SummaryTask(given.view, given.view.parts, "full", settings.instructions))
        block: Json = {"type": "compaction", "content": f"<summary>\n{summary.text}\n</summary>"}
        after = replace(given.wire, messages=[WireMessage("assistant", [block], [None])])
        sent = with_context_management(given.wire, edit)
        plan = make_plan(
            given, self.name, self.title, settings,
            "the API summarises all messages into one compaction block",
            after,
            summaries=[block],
            sent=sent,
            make_edits=partial(document_edits, given, sent),
            first_changed=0,
            removed=tuple(item_of(part, "before the compaction block") for part in given.view.parts),
            inserted=(Item(-1, 0, "compaction", "compaction block", tokens_after=given.view.tokens_of_new(block)),),
            server_edit={"context_management": {"edits": [edit]}},
            model_calls=1,
            duration_ms=90_000,
            summary=summary.text,
        )  # fmt: skip
        return with_notes(plan, [
            f"the block shown was {summary.label}; the API's own will differ",
            "the block has to be sent back; the client goes on sending the whole history, which the API ignores",
            "the extra call is counted in usage.iterations only, not in the totals (api.md 1.6)",
        ])  # fmt: skip

    def _refusal(self, given: StrategyInput, settings: ApiCompactSettings, edit: Json) -> str:
        if not compacts_on_server(given.wire.model):
            return f"the model {given.wire.model or 'of this session'} does not compact on the server"
        if already_asked(given.wire, edit):
            return "the request asks for this edit already"
        if given.view.tokens <= settings.trigger_value:
            return f"the trigger is more than {settings.trigger_value:,} tokens, there are {given.view.tokens:,}"
        return "" if has_answers(given, given.view.parts) else "there is nothing to summarise"


def compacts_on_server(model: str) -> bool:
    """Whether a model supports `compact_20260112` (api.md 2.2); False when its name does not tell."""
    version = model_version(model)
    since = next((first for family, first in _SINCE.items() if family in model_key(model)), None)
    return version is not None and since is not None and version >= since


def edit_json(settings: ApiCompactSettings) -> Json:
    """The edit as it stands in the request."""
    return {
        "type": EDIT_TYPE,
        "trigger": {"type": "input_tokens", "value": settings.trigger_value},
        "pause_after_compaction": settings.pause_after_compaction,
        **({"instructions": settings.instructions} if settings.instructions else {}),
    }
