from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from PySide6.QtWidgets import QFileDialog

from inspector.actions.registry import Action, Menu, a_tab
from inspector.context import AppContext
from inspector.documents.derived import bundled_folder

if TYPE_CHECKING:
    from inspector.views.main_window import MainWindow


def _window(context: AppContext) -> MainWindow:
    from inspector.views.main_window import MainWindow

    return cast(MainWindow, context.workspace)


@cache
def sample_path() -> Path | None:
    """The bundled sample session, None when this installation has none."""
    folder = bundled_folder()
    return next(iter(sorted(folder.glob("*.jsonl"))), None) if folder is not None else None


def _open(context: AppContext) -> None:
    recent = context.settings.recent_files
    start = str(Path(recent[0]).parent) if recent else str(_sessions_folder())
    names, _ = QFileDialog.getOpenFileNames(
        _window(context), "Open sessions", start, "Sessions (*.jsonl *.json);;All files (*)"
    )
    _window(context).open_paths([Path(name) for name in names])


def _sessions_folder() -> Path:
    """Where the client keeps its sessions (transcript-format.md §1), or the home folder."""
    folder = Path.home() / ".claude" / "projects"
    return folder if folder.is_dir() else Path.home()


def _open_folder(context: AppContext) -> None:
    name = QFileDialog.getExistingDirectory(_window(context), "Open the sessions of a folder", str(_sessions_folder()))
    if name:
        _window(context).open_paths([Path(name)])


def _open_sample(context: AppContext) -> None:
    path = sample_path()
    if path is not None:
        _window(context).open_path(path)


def _last_sessions(context: AppContext) -> list[Path]:
    return [Path(name) for name in context.settings.strings("last_sessions") if Path(name).exists()]


def _reopen_last(context: AppContext) -> None:
    _window(context).open_paths(_last_sessions(context))


def _close(context: AppContext) -> None:
    document = context.current_document
    if document is not None:
        _window(context).close_document(document)


def _close_all(context: AppContext) -> None:
    for document in _window(context).documents:
        _window(context).close_document(document)


def _a_sample(_context: AppContext) -> str:
    return "" if sample_path() is not None else "The sample is not part of this installation."


def _sessions_before(context: AppContext) -> str:
    return "" if context.settings.strings("last_sessions") else "No session was open when the window was closed last."


ACTIONS = [
    Action(
        "file.open",
        "&Open…",
        _open,
        icon="open",
        shortcut="Ctrl+O",
        menu=Menu.FILE,
        group="open",
        toolbar=True,
        tip="Open one or more session files.",
    ),
    Action(
        "file.open_folder",
        "Open &folder…",
        _open_folder,
        icon="folder",
        shortcut="Ctrl+Shift+O",
        menu=Menu.FILE,
        group="open",
        tip="Open the sessions of a project folder.",
    ),
    Action(
        "file.open_sample",
        "Open the &sample",
        _open_sample,
        icon="sample",
        menu=Menu.FILE,
        group="open",
        missing=_a_sample,
        tip="Open the bundled sample: an invented session with everything worth seeing in it.",
    ),
    Action(
        "file.reopen_last",
        "Reopen the &last sessions",
        _reopen_last,
        icon="recent",
        menu=Menu.FILE,
        group="open",
        missing=_sessions_before,
        tip="Open the sessions that were open when the window was closed last.",
    ),
    Action(
        "file.close",
        "&Close",
        _close,
        icon="close",
        shortcut="Ctrl+W",
        menu=Menu.FILE,
        group="close",
        missing=a_tab,
        tip="Close this tab.",
    ),
    Action(
        "file.close_all",
        "Close &all",
        _close_all,
        shortcut="Ctrl+Shift+W",
        menu=Menu.FILE,
        group="close",
        missing=a_tab,
        tip="Close every tab.",
    ),
    Action(
        "file.quit",
        "&Quit",
        lambda context: _window(context).close(),
        shortcut="Ctrl+Q",
        menu=Menu.FILE,
        group="quit",
        tip="Close the window.",
    ),
]
