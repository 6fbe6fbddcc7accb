"""Every user action once, with a text, a tip and a working condition; the registries hold together."""

from __future__ import annotations

from collections import Counter

import pytest
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QWidget

from inspector.actions.registry import Action, ActionRegistry, Menu
from inspector.context import AppContext
from inspector.settings import SHOW_META, THEME, Settings
from inspector.views.main_window import MainWindow
from inspector.views.registry import STATUS_VIEWS, VIEWS, resolve, view


def test_every_action_says_what_it_does(window: MainWindow, app_context: AppContext) -> None:
    for action in app_context.actions:
        assert action.label, action.id
        assert action.tip.endswith("."), f"{action.id} has no sentence that says what it does"


def test_every_key_is_valid_and_used_once(window: MainWindow, app_context: AppContext) -> None:
    keys = [QKeySequence(key).toString() for action in app_context.actions for key in action.keys]
    assert all(keys)
    assert [key for key, count in Counter(keys).items() if count > 1] == []


def test_mnemonics_of_a_menu_are_unique(window: MainWindow, app_context: AppContext) -> None:
    for menu in Menu:
        letters = [
            action.text[action.text.index("&") + 1].lower()
            for action in app_context.actions
            if action.menu is menu and menu is not Menu.NONE and "&" in action.text
        ]
        assert [letter for letter, count in Counter(letters).items() if count > 1] == [], menu


def test_without_a_session_nothing_that_needs_one_runs(window: MainWindow, app_context: AppContext) -> None:
    for action_id in ("edit.copy_text", "go.pair", "view.expand_all", "session.reload", "file.close"):
        assert not app_context.actions.enabled(action_id)
        assert not app_context.actions.run(action_id)
        assert not app_context.actions.qaction(action_id, window).isEnabled()


def test_menu_toolbar_and_keyboard_share_one_qaction(window: MainWindow, app_context: AppContext) -> None:
    shared = app_context.actions.qaction("file.open", window)
    assert shared in window.menus[Menu.FILE].actions()
    assert shared in window.toolbar.actions()


def test_every_action_can_be_reached_by_menu_or_palette(window: MainWindow, app_context: AppContext) -> None:
    in_menus = {entry.objectName() for menu in window.menus.values() for entry in menu.actions()}
    in_window = {entry.objectName() for entry in window.actions()}
    assert {action.id for action in app_context.actions} <= in_menus | in_window


def test_an_error_in_a_handler_is_reported_with_the_actions_name(app_context: AppContext) -> None:
    def broken(_context: AppContext) -> None:
        raise RuntimeError("no")

    app_context.actions.add(Action("test.broken", "&Break it", broken))
    assert app_context.actions.run("test.broken")
    assert app_context.errors.reports[-1].title == "Break it"


def test_ids_and_keys_cannot_be_taken_twice() -> None:
    registry = ActionRegistry()
    registry.add(Action("a", "A", lambda _context: None, shortcut="Ctrl+1"))
    with pytest.raises(ValueError, match="named a"):
        registry.add(Action("a", "A", lambda _context: None))
    with pytest.raises(ValueError, match=r"both want Ctrl\+1"):
        registry.add(Action("b", "B", lambda _context: None, shortcut="Ctrl+1"))


def test_every_view_has_a_title_a_tip_and_a_factory() -> None:
    assert len({spec.id for spec in VIEWS}) == len(VIEWS)
    for spec in VIEWS:
        assert spec.title, spec.id
        assert spec.tip.endswith("."), spec.id
        assert callable(resolve(spec.factory)), spec.id
    for factory in STATUS_VIEWS:
        assert callable(resolve(factory))
    with pytest.raises(KeyError):
        view("nonsense")


def test_settings_come_back_with_their_types(app_context: AppContext, tmp_path: object, qtbot: object) -> None:
    settings = app_context.settings
    assert settings.get(SHOW_META) is True
    settings.set(SHOW_META, False)
    settings.set(THEME, "dark")
    settings.set_strings("recent", ["one"])
    settings.sync()
    again = Settings(tmp_path / "config")  # type: ignore[operator]
    assert again.get(SHOW_META) is False
    assert again.get(THEME) == "dark"
    assert again.recent_files == ["one"]
    again.set(THEME, "pink")
    assert again.get(THEME) == "system"


def test_every_widget_that_takes_the_focus_has_a_name_for_screen_readers(window: MainWindow) -> None:
    nameless = [
        f"{type(child).__name__} {child.objectName()}"
        for child in window.findChildren(QWidget)
        if type(child).__module__.startswith("inspector.") and child.focusPolicy().value and not child.accessibleName()
    ]
    assert nameless == []
