from __future__ import annotations

from inspector.actions.registry import Action, Menu, a_session
from inspector.actions.tree import a_selection, tree
from inspector.context import AppContext


def _undo(context: AppContext) -> None:
    document = context.current_document
    if document is not None:
        document.undo_stack.undo()


def _redo(context: AppContext) -> None:
    document = context.current_document
    if document is not None:
        document.undo_stack.redo()


def _undoable(context: AppContext) -> str:
    document = context.current_document
    return "" if document is not None and document.undo_stack.canUndo() else "There is nothing to undo."


def _redoable(context: AppContext) -> str:
    document = context.current_document
    return "" if document is not None and document.undo_stack.canRedo() else "There is nothing to redo."


ACTIONS = [
    Action(
        "edit.undo",
        "&Undo",
        _undo,
        icon="undo",
        shortcut="Ctrl+Z",
        menu=Menu.EDIT,
        group="undo",
        missing=_undoable,
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
        missing=_redoable,
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
        missing=a_selection,
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
        missing=a_selection,
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
        missing=a_session,
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
        missing=a_session,
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
        missing=a_session,
        tip="Go to the match before.",
    ),
]
