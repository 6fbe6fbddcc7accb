"""What the context-management edits of the API share: their place in a request, their order, their beta headers."""

from __future__ import annotations

from dataclasses import replace

from compaction.request.wire import Json, WireRequest
from compaction.strategies.plan import StrategyInput
from compaction.transcript.document_edits import SetMember
from compaction.transcript.edits import Edit

_ORDER = ("clear_thinking_20251015", "clear_tool_uses_20250919", "compact_20260112")
"""clear_thinking must come first (api.md 2.1)."""
BETA_HEADERS = {
    "clear_thinking_20251015": "context-management-2025-06-27",
    "clear_tool_uses_20250919": "context-management-2025-06-27",
    "compact_20260112": "compact-2026-01-12",
}
"""The beta header that each edit needs (api.md 1.5)."""


def already_asked(wire: WireRequest, edit: Json) -> bool:
    """Whether the request carries exactly this edit."""
    return edit in _edits(wire)


def with_context_management(wire: WireRequest, edit: Json) -> WireRequest:
    """The request with `edit` among its `context_management.edits`, one of a type, in the API's order."""
    edits = [e for e in _edits(wire) if e.get("type") != edit["type"]]
    edits.append(edit)
    edits.sort(key=lambda e: _ORDER.index(e["type"]) if e.get("type") in _ORDER else len(_ORDER))
    before = wire.params.get("context_management")
    management = {**(before if isinstance(before, dict) else {}), "edits": edits}
    return replace(wire, params={**wire.params, "context_management": management})


def document_edits(given: StrategyInput, sent: WireRequest) -> tuple[Edit, ...]:
    """How the edit gets into a Messages-API document; a session file has no place for it."""
    if given.conversation.transcript.format_name != "messages-api":
        return ()
    return (SetMember("context_management", sent.params["context_management"]),)


def _edits(wire: WireRequest) -> list[Json]:
    management = wire.params.get("context_management")
    edits = management.get("edits") if isinstance(management, dict) else None
    return [e for e in edits if isinstance(e, dict)] if isinstance(edits, list) else []
