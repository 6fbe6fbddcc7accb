from __future__ import annotations

from typing import TYPE_CHECKING, cast

from inspector.actions.registry import Action, Menu, a_session
from inspector.context import AppContext

if TYPE_CHECKING:
    from inspector.views.charts.context_chart import ContextChart


def _chart(context: AppContext) -> ContextChart | None:
    widget = context.workspace.show_view("context") if context.workspace is not None else None
    return cast("ContextChart | None", widget)


def _limits(context: AppContext) -> None:
    chart = _chart(context)
    if chart is not None:
        chart.choose_limits()


def _export(context: AppContext, suffix: str) -> None:
    chart = _chart(context)
    if chart is not None:
        chart.choose_export(suffix)


def _export_action(suffix: str, text: str, tip: str) -> Action:
    return Action(
        f"session.export_context_{suffix}",
        text,
        lambda context: _export(context, suffix),
        icon="export",
        missing=a_session,
        tip=tip,
    )


ACTIONS = [
    Action(
        "session.limits",
        "C&lient and limits…",
        _limits,
        icon="gauge",
        menu=Menu.SESSION,
        group="accounting",
        missing=a_session,
        tip="Choose the client profile, and the environment it runs in, for the context's window and limits.",
    ),
    _export_action("png", "Export the context chart as a PNG…", "Save the context chart as a picture."),
    _export_action("svg", "Export the context chart as an SVG…", "Save the context chart as a drawing."),
    _export_action("csv", "Export the context by round as CSV…", "Save the figures of every API round as a table."),
]
