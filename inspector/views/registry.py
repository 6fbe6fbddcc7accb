"""The views of a session: one `ViewSpec` line each; docks, tabs, View menu and palette are built from it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from PySide6.QtWidgets import QWidget

if TYPE_CHECKING:
    from inspector.context import AppContext
    from inspector.documents.document import Document

Area = Literal["left", "right", "bottom", "center"]
Factory = Callable[["AppContext", "Document"], QWidget]


@dataclass(frozen=True, slots=True)
class ViewSpec:
    """How one view of a document is made and where it stands.

    Attributes:
        id: stable name, used in settings and by `compactoscope screenshot --view`.
        title: dock or tab title.
        icon: SVG name in resources/icons.
        area: "center" is a tab beside the tree; the others are docks.
        factory: `factory(context, document) -> QWidget`, or "module:name" of it, imported when the view is first
            shown (so that heavy imports wait). The widget is made once for each document, on the GUI thread, when it
            is first visible; document.conversation is not None then. It must follow `document.reloaded` and
            `document.selection_changed`, and never keep references to a replaced conversation.
        shown: docks: open in the default layout.
        tip: one sentence of help.
        shortcut: key that shows and focuses the view.
        help: page of resources/docs that F1 opens in this view, "" for the index.
        wide: center views: the docks are put away while it is in front, because it needs the room.
        badge: docks: a short text beside the title (a count), asked again when the diagnosis changes.
    """

    id: str
    title: str
    icon: str
    area: Area
    factory: Factory | str
    shown: bool = True
    tip: str = ""
    shortcut: str = ""
    help: str = ""
    wide: bool = False
    badge: Callable[[Document], str] | None = None

    def create(self, context: AppContext, document: Document) -> QWidget:
        """Make the widget for a document."""
        return resolve(self.factory)(context, document)


VIEWS: list[ViewSpec] = [
    ViewSpec(
        "tree",
        "Tree",
        "tree",
        "center",
        "inspector.views.outline_view:OutlineView",
        shortcut="Alt+1",
        help="tree",
        tip="Epochs, API rounds, messages and blocks with their tokens.",
    ),
    ViewSpec(
        "overview",
        "Overview",
        "overview",
        "center",
        "inspector.views.overview_view:OverviewView",
        wide=True,
        shortcut="Alt+6",
        help="tree",
        tip="The session on one page: figures, context, compactions, tools, what is worth looking at.",
    ),
    ViewSpec(
        "as_sent",
        "As sent",
        "request",
        "center",
        "inspector.views.as_sent_view:AsSentView",
        shortcut="Alt+7",
        help="requests",
        wide=True,
        tip="The request a client sends, beside the records it is made of: cleared, dropped, merged, injected.",
    ),
    ViewSpec(
        "compare",
        "Compare",
        "compare",
        "center",
        "inspector.views.compare.view:CompareView",
        wide=True,
        shortcut="Alt+8",
        help="strategies",
        tip="Every strategy side by side: tokens, cost, cache, losses, warnings; settings are previewed live.",
    ),
    ViewSpec(
        "before_after",
        "Before and after",
        "diff",
        "center",
        "inspector.views.before_after.view:BeforeAfterView",
        wide=True,
        shortcut="Alt+9",
        help="workbench",
        tip="What the strategy chosen in Compare changes, block by block; or this session against another open one.",
    ),
    ViewSpec(
        "timeline",
        "Timeline",
        "timeline",
        "center",
        "inspector.views.timeline.view:TimelineView",
        wide=True,
        shortcut="Alt+0",
        help="workbench",
        tip="Step through the compactions, recorded and simulated, and see the context as it was at any API round.",
    ),
    ViewSpec(
        "summaries",
        "Summaries",
        "summary",
        "center",
        "inspector.views.summaries.view:SummariesView",
        wide=True,
        help="workbench",
        tip="Recorded and fresh summaries beside their sources, the session memory, what the API counts.",
    ),
    ViewSpec(
        "detail",
        "Detail",
        "detail",
        "right",
        "inspector.views.detail.pane:DetailPane",
        shortcut="Alt+2",
        help="detail",
        tip="The selected record or block: rendered, as JSON, as bytes, with its links and usage.",
    ),
    ViewSpec(
        "findings",
        "Findings",
        "findings",
        "bottom",
        "inspector.views.findings_view:FindingsView",
        shortcut="Alt+3",
        help="findings",
        tip="What is wrong with the session, why, and how it can be mended.",
        badge=lambda document: document.diagnosis.badge(),
    ),
    ViewSpec(
        "context",
        "Context",
        "chart",
        "bottom",
        "inspector.views.charts.context_chart:ContextChart",
        shortcut="Alt+4",
        help="accounting",
        tip="How the context grew, round by round, what it is made of, where it was compacted, and what it cost.",
    ),
    ViewSpec(
        "cost",
        "Cost",
        "cost",
        "bottom",
        "inspector.views.cost_panel:CostPanel",
        shortcut="Alt+5",
        help="accounting",
        tip="What the session cost: buckets, models, subagents, compactions, cache misses, reconciliation.",
    ),
]
"""Every view, in the order of tabs and docks. Add one line here for a view of your own."""


STATUS_VIEWS: list[Factory | str] = ["inspector.views.context_gauge:ContextGauge"]
"""Small widgets at the right of the status bar (context gauge), each `factory(context, document)` or "module:name"."""


def resolve(factory: Factory | str) -> Factory:
    """The factory itself, imported when it is named by a string."""
    if not isinstance(factory, str):
        return factory
    module, _, name = factory.partition(":")
    return cast(Factory, getattr(importlib.import_module(module), name))


def view(view_id: str) -> ViewSpec:
    """The view of that id.

    Raises:
        KeyError: there is none.
    """
    for spec in VIEWS:
        if spec.id == view_id:
            return spec
    raise KeyError(view_id)
