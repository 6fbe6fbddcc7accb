"""What actions ask of the tree of the current document."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from inspector.context import AppContext
from inspector.documents.document import Scope

if TYPE_CHECKING:
    from inspector.views.outline_view import OutlineView


def tree(context: AppContext) -> OutlineView:
    """The tree view of the current document, brought to the front.

    Raises:
        LookupError: there is no loaded session.
    """
    widget = context.workspace.show_view("tree") if context.workspace is not None else None
    if widget is None:
        raise LookupError("no session is open")
    return cast("OutlineView", widget)


def a_selection(context: AppContext) -> str:
    """A row must be selected."""
    document = context.current_document
    chosen = document is not None and document.selection.scope is not Scope.NONE
    return "" if chosen else "Select a row of the tree first."


def a_pair(context: AppContext) -> str:
    """The selected block must be a tool_use or tool_result with a partner."""
    return "" if _has_pair(context) else "Select a tool_use or a tool_result that has its partner first."


def _has_pair(context: AppContext) -> bool:
    document = context.current_document
    if document is None or document.selection.conversation is None:
        return False
    selection = document.selection
    conversation = document.selection.conversation
    blocks = [selection.block] if selection.block >= 0 else _blocks(context)
    return any(int(conversation.pair[block]) >= 0 for block in blocks)


def _blocks(context: AppContext) -> list[int]:
    document = context.current_document
    if document is None or document.selection.conversation is None or len(document.selection.records) > 64:
        return []
    transcript = document.selection.conversation.transcript
    return [block for record in document.selection.records for block in transcript.blocks_of(record)]
