from __future__ import annotations

import platform
from importlib import metadata

from PySide6.QtCore import Qt, qVersion
from PySide6.QtWidgets import QMessageBox, QWhatsThis

from compaction import __version__
from inspector.actions.registry import Action, Menu
from inspector.context import AppContext


def _help(context: AppContext) -> None:
    from inspector.views.help_window import HelpWindow

    HelpWindow.open(context, "index")


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
        tip="How to read the tree, and what every view shows.",
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
