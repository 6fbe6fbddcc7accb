from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.actions.registry import Action, Menu, a_session
from inspector.context import AppContext

if TYPE_CHECKING:
    from compaction.diagnosis.model import Report
    from inspector.views.findings_view import FindingsView


def _findings(context: AppContext) -> str:
    report, missing = _report(context)
    return missing if report is None or report.findings else "Nothing was found in this session."


def _repairs(context: AppContext) -> str:
    report, missing = _report(context)
    if report is None or any(r.changes_file for finding in report.findings for r in finding.repairs):
        return missing
    return "No finding of this session has a repair that changes the file."


def _report(context: AppContext) -> tuple[Report | None, str]:
    """The diagnosis of the current session, or what is missing for one."""
    document = context.current_document
    if document is None:
        return None, "Open a session first."
    report = document.diagnosis.report
    return report, "" if report is not None else "The diagnosis is not done yet."


def _view(context: AppContext) -> FindingsView | None:
    from inspector.views.findings_view import FindingsView

    widget = context.workspace.show_view("findings") if context.workspace is not None else None
    return widget if isinstance(widget, FindingsView) else None


def _next(context: AppContext) -> None:
    view = _view(context)
    if view is not None:
        view.step(1)


def _previous(context: AppContext) -> None:
    view = _view(context)
    if view is not None:
        view.step(-1)


def _repair(context: AppContext) -> None:
    from inspector.views.repair_dialog import open_repair

    document, workspace = context.current_document, context.workspace
    if document is not None and workspace is not None:
        open_repair(context, document, workspace.window_widget())


def _as_sent(context: AppContext) -> None:
    from inspector.views.as_sent_view import AsSentView

    document, workspace = context.current_document, context.workspace
    widget = workspace.show_view("as_sent") if workspace is not None else None
    if isinstance(widget, AsSentView) and document is not None and document.selection.round > 0:
        widget.show_round(document.selection.round)


ACTIONS = [
    Action(
        "go.next_finding",
        "Next f&inding",
        _next,
        icon="step-next",
        shortcut="F4",
        menu=Menu.GO,
        group="findings",
        missing=_findings,
        tip="Select the next finding and its record.",
    ),
    Action(
        "go.previous_finding",
        "Previous findin&g",
        _previous,
        icon="step-previous",
        shortcut="Shift+F4",
        menu=Menu.GO,
        group="findings",
        missing=_findings,
        tip="Select the previous finding and its record.",
    ),
    Action(
        "go.request",
        "Request &as sent",
        _as_sent,
        icon="request",
        shortcut="Ctrl+Shift+A",
        menu=Menu.GO,
        group="findings",
        missing=a_session,
        tip="Show the request that led to the selected API round's response, beside the records it was made of.",
    ),
    Action(
        "session.repair",
        "R&epair…",
        _repair,
        icon="repair",
        shortcut="Ctrl+Shift+R",
        menu=Menu.SESSION,
        group="change",
        missing=_repairs,
        toolbar=True,
        tip="Preview how the session can be mended, choose, and write a new file.",
    ),
]
