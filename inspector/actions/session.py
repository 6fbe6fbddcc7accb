from __future__ import annotations

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication

from inspector.actions.registry import Action, Menu
from inspector.context import AppContext


def _a_file(context: AppContext) -> str:
    document = context.current_document
    if document is None:
        return "Open a session first."
    return "" if document.path is not None and str(document.path) != "-" else "This session has no file."


def _reload(context: AppContext) -> None:
    document = context.current_document
    if document is not None:
        document.load(context.runner)


def _copy_path(context: AppContext) -> None:
    document = context.current_document
    if document is not None:
        QGuiApplication.clipboard().setText(document.main_path)


def _show_folder(context: AppContext) -> None:
    document = context.current_document
    if document is not None and document.path is not None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(document.path.parent)))


ACTIONS = [
    Action(
        "session.reload",
        "&Reload",
        _reload,
        icon="reload",
        shortcut="F5",
        menu=Menu.SESSION,
        group="file",
        missing=_a_file,
        toolbar=True,
        tip="Read the file again; what is expanded, selected and scrolled to stays.",
    ),
    Action(
        "session.copy_path",
        "Copy the &path",
        _copy_path,
        icon="copy",
        menu=Menu.SESSION,
        group="file",
        missing=_a_file,
        tip="Copy the path of the session's file.",
    ),
    Action(
        "session.show_folder",
        "Show in its &folder",
        _show_folder,
        icon="folder",
        menu=Menu.SESSION,
        group="file",
        missing=_a_file,
        tip="Open the folder of the session's file in the file manager.",
    ),
]
