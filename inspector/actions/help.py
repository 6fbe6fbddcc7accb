from __future__ import annotations

import platform
from importlib import metadata

from PySide6.QtCore import Qt, qVersion
from PySide6.QtWidgets import QApplication, QMessageBox, QWhatsThis

from compaction import __version__
from inspector.actions.registry import Action, Menu
from inspector.context import AppContext
from inspector.views.registry import VIEWS, view


def _help(context: AppContext) -> None:
    from inspector.views.help_window import HelpWindow

    HelpWindow.open(context, page_here(context))


def page_here(context: AppContext) -> str:
    """The help page of the view that has the focus, else of the center view in front, else the index."""
    workspace, focus = context.workspace, QApplication.focusWidget()
    if workspace is None or workspace.current_document is None:
        return "index"
    for spec in VIEWS:
        widget = workspace.view_widget(spec.id)
        if widget is not None and focus is not None and (widget is focus or widget.isAncestorOf(focus)) and spec.help:
            return spec.help
    return view(workspace.current_view()).help or "index"


def _keys(context: AppContext) -> None:
    from inspector.views.help_window import HelpWindow

    HelpWindow.open(context, "keys")


def _filters(context: AppContext) -> None:
    from inspector.views.help_window import HelpWindow

    HelpWindow.open(context, "filters")


def about_text() -> str:
    """Version facts, plain text: for the dialog and for reports."""
    parts = [
        f"Compactoscope {__version__}",
        f"Python {platform.python_version()}, PySide6 {metadata.version('PySide6-Essentials')}, Qt {qVersion()}",
        f"{platform.system()} {platform.machine()}",
    ]
    return "\n".join(parts)


def _about(context: AppContext) -> None:
    box = QMessageBox(context.workspace.window_widget() if context.workspace is not None else None)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setWindowTitle("About Compactoscope")
    box.setIconPixmap(context.theme.pixmap("app", 64, "accent"))
    box.setText(about_text())
    box.setInformativeText(
        "Inspector for AI coding-agent sessions. Originals are never changed; nothing leaves this machine without a "
        "button that says so. MIT licence."
    )
    box.exec()


ACTIONS = [
    Action(
        "help.contents",
        "&Help",
        _help,
        icon="help",
        toolbar=True,
        shortcut="F1",
        menu=Menu.HELP,
        group="help",
        tip="The help page of the view that has the focus.",
    ),
    Action("help.keys", "&Keyboard", _keys, icon="command", menu=Menu.HELP, group="help", tip="Every key."),
    Action(
        "help.filters",
        "&Filters",
        _filters,
        icon="filter",
        menu=Menu.HELP,
        group="help",
        tip="What the find bar understands.",
    ),
    Action(
        "help.whats_this",
        "&What's This?",
        lambda _context: QWhatsThis.enterWhatsThisMode(),
        icon="info",
        shortcut="Shift+F1",
        menu=Menu.HELP,
        group="help",
        tip="Click on anything to hear what it does.",
    ),
    Action(
        "help.about",
        "&About Compactoscope",
        _about,
        icon="app",
        menu=Menu.HELP,
        group="about",
        tip="Version and licence.",
    ),
]
