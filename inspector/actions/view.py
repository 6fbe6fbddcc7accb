from __future__ import annotations

from typing import TYPE_CHECKING, cast

from PySide6.QtCore import Qt

from inspector.actions.registry import Action, Menu, a_session
from inspector.context import AppContext
from inspector.settings import SHOW_BOOKKEEPING, SHOW_META, SHOW_SIDECHAIN, THEME, Setting
from inspector.theme import Mode

if TYPE_CHECKING:
    from inspector.views.main_window import MainWindow


def _window(context: AppContext) -> MainWindow:
    from inspector.views.main_window import MainWindow

    return cast(MainWindow, context.workspace)


def _palette(context: AppContext) -> None:
    from inspector.views.palette import Palette

    palette = Palette(context, _window(context))
    palette.show()
    palette.edit.setFocus()


def _set_theme(context: AppContext, mode: Mode) -> None:
    context.settings.set(THEME, mode)
    context.theme.set_mode(mode)


def _switch(context: AppContext, setting: Setting[bool]) -> None:
    context.settings.set(setting, not context.settings.get(setting))
    for document in _window(context).documents:
        document.show_settings_changed.emit()


def _theme(mode: Mode, text: str, icon: str) -> Action:
    return Action(
        f"view.theme_{mode}",
        text,
        lambda context: _set_theme(context, mode),
        icon=icon,
        menu=Menu.VIEW,
        group="theme",
        checked_when=lambda context: context.theme.mode == mode,
        tip="Follow the system's light or dark colours." if mode == "system" else f"Use {mode} colours.",
    )


def _shown(setting: Setting[bool], name: str, text: str, icon: str, shortcut: str) -> Action:
    return Action(
        f"view.{name}",
        text,
        lambda context: _switch(context, setting),
        icon=icon,
        shortcut=shortcut,
        menu=Menu.VIEW,
        group="records",
        checked_when=lambda context: context.settings.get(setting),
        tip=setting.tip,
    )


def _step_tab(context: AppContext, step: int) -> None:
    tabs = _window(context).tabs
    if tabs.count():
        tabs.setCurrentIndex((tabs.currentIndex() + step) % tabs.count())


def _full_screen(context: AppContext) -> None:
    window = _window(context)
    window.setWindowState(window.windowState() ^ Qt.WindowState.WindowFullScreen)


def _toggle_theme(context: AppContext) -> None:
    _set_theme(context, "light" if context.theme.dark else "dark")


ACTIONS = [
    Action(
        "view.palette",
        "&Commands…",
        _palette,
        icon="command",
        shortcut=("Ctrl+K", "Ctrl+Shift+P"),
        menu=Menu.VIEW,
        group="palette",
        toolbar=True,
        tip="Find and run any command by typing a few letters of it.",
    ),
    _shown(SHOW_SIDECHAIN, "sidechain", "Show &sidechain records", "sidechain", "Ctrl+1"),
    _shown(SHOW_META, "meta", "Show &meta records", "eye", "Ctrl+2"),
    _shown(SHOW_BOOKKEEPING, "bookkeeping", "Show &bookkeeping records", "state", "Ctrl+3"),
    _theme("system", "Colours of the s&ystem", "settings"),
    _theme("light", "&Light colours", "sun"),
    _theme("dark", "&Dark colours", "moon"),
    Action(
        "view.toggle_theme",
        "Switch light and dark",
        _toggle_theme,
        icon="moon",
        shortcut="Ctrl+Shift+L",
        toolbar=True,
        tip="Switch between light and dark colours.",
    ),
    Action(
        "view.reset_layout",
        "&Reset the layout",
        lambda context: _window(context).reset_layout(),
        menu=Menu.VIEW,
        group="layout",
        tip="Put docks and toolbar where a fresh installation has them.",
    ),
    Action(
        "view.full_screen",
        "F&ull screen",
        _full_screen,
        icon="float",
        shortcut="F11",
        menu=Menu.VIEW,
        group="layout",
        tip="Use the whole screen.",
    ),
    Action(
        "view.next_tab",
        "Next session",
        lambda context: _step_tab(context, 1),
        shortcut=("Ctrl+Tab", "Ctrl+PgDown"),
        missing=a_session,
        tip="Show the next open session.",
    ),
    Action(
        "view.previous_tab",
        "Previous session",
        lambda context: _step_tab(context, -1),
        shortcut=("Ctrl+Shift+Tab", "Ctrl+PgUp"),
        missing=a_session,
        tip="Show the open session before.",
    ),
]
