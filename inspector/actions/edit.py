from __future__ import annotations

from inspector.actions.registry import Action, Menu, document_open
from inspector.actions.tree import selected, tree
from inspector.context import AppContext


def _undo(context: AppContext) -> None:
    document = context.current_document
    if document is not None:
        document.undo_stack.undo()


def _redo(context: AppContext) -> None:
    document = context.current_document
    if document is not None:
        document.undo_stack.redo()


def _can_undo(context: AppContext) -> bool:
    document = context.current_document
    return document is not None and document.undo_stack.canUndo()


def _can_redo(context: AppContext) -> bool:
    document = context.current_document
    return document is not None and document.undo_stack.canRedo()


ACTIONS = [
    Action(
        "edit.undo",
        "&Undo",
        _undo,
        icon="undo",
        shortcut="Ctrl+Z",
        menu=Menu.EDIT,
        group="undo",
        enabled_when=_can_undo,
        tip="Undo the last applied compaction or repair of this tab.",
    ),
    Action(
        "edit.redo",
        "&Redo",
        _redo,
        icon="redo",
        shortcut="Ctrl+Shift+Z",
        menu=Menu.EDIT,
        group="undo",
        enabled_when=_can_redo,
        tip="Do again what was undone.",
    ),
    Action(
        "edit.copy_text",
        "&Copy as text",
        lambda context: tree(context).copy_text(),
        icon="copy",
        shortcut="Ctrl+Shift+C",
        menu=Menu.EDIT,
        group="copy",
        enabled_when=selected,
        context=True,
        tip="Copy the selected rows' text, without markup.",
    ),
    Action(
        "edit.copy_json",
        "Copy as &JSON",
        lambda context: tree(context).copy_json(),
        icon="json",
        shortcut="Ctrl+Shift+J",
        menu=Menu.EDIT,
        group="copy",
        enabled_when=selected,
        context=True,
        tip="Copy the selected records exactly as they stand in the file.",
    ),
    Action(
        "edit.find",
        "&Find and filter…",
        lambda context: tree(context).open_find(),
        icon="find",
        shortcut="Ctrl+F",
        menu=Menu.EDIT,
        group="find",
        enabled_when=document_open,
        toolbar=True,
        tip="Search text and fields: tool:Bash error:yes tokens:>2000 type:user.",
    ),
    Action(
        "edit.find_next",
        "Find &next",
        lambda context: tree(context).find_step(1),
        icon="next",
        shortcut="F3",
        menu=Menu.EDIT,
        group="find",
        enabled_when=document_open,
        tip="Go to the next match.",
    ),
    Action(
        "edit.find_previous",
        "Find &previous",
        lambda context: tree(context).find_step(-1),
        icon="previous",
        shortcut="Shift+F3",
        menu=Menu.EDIT,
        group="find",
        enabled_when=document_open,
        tip="Go to the match before.",
    ),
]
