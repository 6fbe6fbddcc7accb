from __future__ import annotations

from PySide6.QtWidgets import QInputDialog

from inspector.actions.registry import Action, Menu, a_session
from inspector.actions.tree import a_pair, a_selection, tree
from inspector.context import AppContext


def _line(context: AppContext) -> None:
    view = tree(context)
    number, chosen = QInputDialog.getInt(view, "Go to line", "Line of the file:", 1, 1, max(1, view.last_line()))
    if chosen:
        view.go_to_line(number)


def _round(context: AppContext) -> None:
    view = tree(context)
    number, chosen = QInputDialog.getInt(view, "Go to API round", "API round:", 1, 1, max(1, view.last_round()))
    if chosen:
        view.go_to_round(number)


def _go_step(context: AppContext, what: str, step: int) -> None:
    """In the timeline compactions are stepped through there; everything else is in the tree."""
    from inspector.views.timeline.view import TimelineView

    workspace = context.workspace
    timeline = workspace is not None and workspace.current_view() == "timeline" and what == "compaction"
    view = workspace.view_widget("timeline") if workspace is not None and timeline else None
    if isinstance(view, TimelineView):
        view.step(step)
    else:
        tree(context).go_step(what, step)


def _step(name: str, text: str, what: str, icon: str, keys: tuple[str, str], tip: str) -> list[Action]:
    return [
        Action(
            f"go.{direction}_{name}",
            f"{direction.capitalize()} {text}",
            lambda context, step=step: _go_step(context, what, step),  # type: ignore[misc]
            icon=icon,
            shortcut=keys[0 if step > 0 else 1],
            menu=Menu.GO,
            group=name,
            missing=a_session,
            tip=f"Select the {direction} {tip}.",
        )
        for direction, step in (("next", 1), ("previous", -1))
    ]


ACTIONS = [
    Action(
        "go.back",
        "&Back",
        lambda context: tree(context).go_history(-1),
        icon="back",
        shortcut="Alt+Left",
        menu=Menu.GO,
        group="history",
        missing=a_session,
        toolbar=True,
        tip="Back to what was selected before.",
    ),
    Action(
        "go.forward",
        "&Forward",
        lambda context: tree(context).go_history(1),
        icon="forward",
        shortcut="Alt+Right",
        menu=Menu.GO,
        group="history",
        missing=a_session,
        toolbar=True,
        tip="Forward again.",
    ),
    Action(
        "go.pair",
        "Go to the &pair",
        lambda context: tree(context).go_to_pair(),
        icon="pair",
        shortcut="Ctrl+P",
        menu=Menu.GO,
        group="links",
        missing=a_pair,
        toolbar=True,
        context=True,
        tip="From a tool_use to its tool_result, or back.",
    ),
    Action(
        "go.parent",
        "Go to the parent &record",
        lambda context: tree(context).go_to_parent(),
        icon="parent",
        shortcut="Ctrl+Up",
        menu=Menu.GO,
        group="links",
        missing=a_selection,
        context=True,
        tip="Select the record that parentUuid names.",
    ),
    Action(
        "go.child",
        "Go to the &child record",
        lambda context: tree(context).go_to_child(),
        icon="child",
        shortcut="Ctrl+Down",
        menu=Menu.GO,
        group="links",
        missing=a_selection,
        context=True,
        tip="Select the first record whose parentUuid names this one.",
    ),
    *_step("round", "API round", "round", "round", ("F7", "Shift+F7"), "API round"),
    *_step("compaction", "compaction", "compaction", "boundary", ("F6", "Shift+F6"), "compaction"),
    *_step("problem", "problem", "problem", "warning", ("F8", "Shift+F8"), "error, orphan, damaged record or branch"),
    Action(
        "go.line",
        "Go to &line…",
        _line,
        icon="text",
        shortcut="Ctrl+L",
        menu=Menu.GO,
        group="number",
        missing=a_session,
        tip="Select the record on a line of the file.",
    ),
    Action(
        "go.round",
        "Go to API r&ound…",
        _round,
        icon="round",
        shortcut="Ctrl+G",
        menu=Menu.GO,
        group="number",
        missing=a_session,
        tip="Select an API round by its number.",
    ),
    Action(
        "go.leaf",
        "Go to the l&eaf",
        lambda context: tree(context).go_to_leaf(),
        icon="pin",
        menu=Menu.GO,
        group="number",
        missing=a_session,
        tip="Select the record the next request continues from.",
    ),
    Action(
        "view.expand_all",
        "E&xpand all",
        lambda context: tree(context).expand_all(),
        icon="expand",
        shortcut="Ctrl+Shift+E",
        menu=Menu.VIEW,
        group="expand",
        missing=a_session,
        toolbar=True,
        tip="Open every epoch, API round and message.",
    ),
    Action(
        "view.collapse_all",
        "C&ollapse to API rounds",
        lambda context: tree(context).collapse_to_rounds(),
        icon="collapse",
        shortcut="Ctrl+Shift+G",
        menu=Menu.VIEW,
        group="expand",
        missing=a_session,
        toolbar=True,
        tip="Show one row for each API round.",
    ),
]
