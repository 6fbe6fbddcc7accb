from __future__ import annotations

from PySide6.QtWidgets import QWidget

from inspector.actions.registry import Action, Menu, a_session
from inspector.context import AppContext
from inspector.documents.derived import apply_column, why_not
from inspector.documents.workbench import Workbench


def _workbench(context: AppContext) -> Workbench | None:
    document = context.current_document
    found = document.findChild(Workbench) if document is not None else None
    return found if isinstance(found, Workbench) else None


def _applicable(context: AppContext) -> str:
    workbench = _workbench(context)
    return why_not(workbench.chosen) if workbench is not None else a_session(context) or "Open Compare first."


def _apply(context: AppContext) -> None:
    document, workbench = context.current_document, _workbench(context)
    if document is not None and workbench is not None and workbench.chosen is not None:
        apply_column(context, document, workbench, workbench.chosen)


def _compare(context: AppContext) -> None:
    if context.workspace is not None:
        context.workspace.show_view("compare")


def _export(context: AppContext) -> None:
    from inspector.views.export_dialog import ExportDialog

    document = context.current_document
    if document is not None:
        parent: QWidget | None = context.workspace.window_widget() if context.workspace is not None else None
        ExportDialog(context, document, parent).exec()


def _api_settings(context: AppContext) -> None:
    from inspector.views.summaries.api_dialog import ApiDialog

    if context.workspace is not None:
        ApiDialog(context.settings, context.runner, context.workspace.window_widget()).exec()


ACTIONS = [
    Action(
        "session.api_settings",
        "AP&I settings…",
        _api_settings,
        icon="settings",
        menu=Menu.SESSION,
        group="accounting",
        tip="Where the Messages API is, and what is sent when you ask a model for a summary.",
    ),
    Action(
        "session.compare",
        "&Compare strategies",
        _compare,
        icon="compare",
        shortcut="Ctrl+Shift+M",
        menu=Menu.SESSION,
        group="workbench",
        missing=a_session,
        toolbar=True,
        tip="Every compaction strategy side by side: tokens, cost, what is lost.",
    ),
    Action(
        "session.apply",
        "&Apply the chosen strategy to a copy",
        _apply,
        icon="apply",
        shortcut="Ctrl+Return",
        menu=Menu.SESSION,
        group="workbench",
        missing=_applicable,
        tip="Carry out the strategy chosen in Compare on a copy in a tab of its own; nothing is written.",
    ),
    Action(
        "file.export",
        "&Export…",
        _export,
        icon="export",
        shortcut="Ctrl+E",
        menu=Menu.FILE,
        group="export",
        missing=a_session,
        toolbar=True,
        tip="Write the session as a new file: resumable transcript, API request, Markdown, HTML report.",
    ),
]
