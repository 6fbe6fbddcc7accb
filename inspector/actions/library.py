from __future__ import annotations

from typing import TYPE_CHECKING, cast

from inspector.actions.registry import Action, Menu, a_session
from inspector.settings import FOLLOW_END, FOLLOW_LIVE, NOTIFY, SINGLE_INSTANCE

if TYPE_CHECKING:
    from inspector.context import AppContext
    from inspector.settings import Setting
    from inspector.views.main_window import MainWindow


def _window(context: AppContext) -> MainWindow:
    return cast("MainWindow", context.workspace)


def _flip(context: AppContext, setting: Setting[bool]) -> bool:
    value = not context.settings.get(setting)
    context.settings.set(setting, value)
    return value


def _show_library(context: AppContext) -> None:
    from inspector.views.library_window import show_library

    show_library(context)


def _search_library(context: AppContext) -> None:
    from inspector.views.library_window import show_library

    show_library(context).show_search()


def _follow(context: AppContext) -> None:
    _flip(context, FOLLOW_LIVE)
    live = _window(context).live
    if live is not None:
        live.apply_settings()


def _follow_end(context: AppContext) -> None:
    live = _window(context).live
    if _flip(context, FOLLOW_END) and live is not None:
        live.show_end()


ACTIONS = [
    Action(
        "library.show",
        "Li&brary…",
        _show_library,
        icon="library",
        shortcut="Ctrl+Shift+B",
        menu=Menu.FILE,
        group="open",
        tip="All sessions of the client's folders, with tokens, cost, context and findings.",
        toolbar=True,
    ),
    Action(
        "library.search",
        "Search all sess&ions…",
        _search_library,
        icon="find",
        shortcut="Ctrl+Shift+F",
        menu=Menu.FILE,
        group="open",
        tip="Look for words in the prompts, answers, tool calls and results of all sessions.",
    ),
    Action(
        "live.follow",
        "Follow &growing sessions",
        _follow,
        icon="live",
        checked_when=lambda context: context.settings.get(FOLLOW_LIVE),
        menu=Menu.VIEW,
        group="live",
        tip="Take in what is written to open sessions.",
    ),
    Action(
        "live.end",
        "Keep the &end in view",
        _follow_end,
        icon="down",
        shortcut="Ctrl+Shift+End",
        missing=a_session,
        checked_when=lambda context: context.settings.get(FOLLOW_END),
        menu=Menu.VIEW,
        group="live",
        tip="Scroll to the newest row when the session grows.",
    ),
    Action(
        "window.single",
        "One &window for later starts",
        lambda context: _flip(context, SINGLE_INSTANCE),
        checked_when=lambda context: context.settings.get(SINGLE_INSTANCE),
        menu=Menu.VIEW,
        group="live",
        tip="A second start opens its files here instead of in a window of its own; holds from the next start.",
    ),
    Action(
        "live.notify",
        "&Notify about sessions",
        lambda context: _flip(context, NOTIFY),
        icon="info",
        checked_when=lambda context: context.settings.get(NOTIFY),
        menu=Menu.VIEW,
        group="live",
        tip="Tell when a context passes its level, a compaction happens or an error is found.",
    ),
]
