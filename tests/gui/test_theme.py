"""Colours keep their contrast, groups are never told apart by colour alone, every named icon exists (qt.md §2e)."""

from __future__ import annotations

import itertools

import pytest
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from inspector.context import AppContext
from inspector.models.outline_cells import BLOCK_ICONS, ICONS
from inspector.theme import DARK, GROUP_GLYPHS, LIGHT, TOL_LIGHT, Colours, Theme, contrast, groove_colour
from inspector.views.registry import VIEWS

TEXTS = ("text", "muted", "accent", "error", "warning", "ok")
SURFACES = ("window", "base", "raised", "hover", "selected", "selected_idle", "partner", "removed", "added", "changed")


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_every_text_role_has_contrast_on_every_surface_it_stands_on(colours: Colours) -> None:
    low = {
        (text, surface): round(contrast(getattr(colours, text), getattr(colours, surface)), 2)
        for text, surface in itertools.product(TEXTS, SURFACES)
        if contrast(getattr(colours, text), getattr(colours, surface)) < 4.5
    }
    assert {pair: value for pair, value in low.items() if pair[0] != "muted" or value < 3.9} == {}
    assert contrast(colours.on_accent, colours.fill) >= 4.5


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_a_sliders_groove_and_handle_are_seen_on_what_they_lie_on(colours: Colours) -> None:
    assert contrast(groove_colour(colours), colours.window) >= 3
    assert contrast(colours.accent, colours.window) >= 3
    assert contrast(colours.accent, colours.base) >= 3


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_group_colours_keep_the_contrast_of_text(app_context: AppContext, mode: str) -> None:
    app_context.theme.set_mode(mode)  # type: ignore[arg-type]
    colours = app_context.theme.colours
    for number in range(len(TOL_LIGHT)):
        tint = app_context.theme.group_tint(number).name()
        assert contrast(colours.text, tint) >= 7
        assert contrast(colours.muted, tint) >= 4.5
        back, text = app_context.theme.chip(number)
        assert contrast(back.name(), text.name()) >= 4.5


def test_colour_and_glyph_together_repeat_only_after_eighty_one_groups() -> None:
    looks = {(TOL_LIGHT[number % 9], Theme.group_glyph(number)) for number in range(81)}
    assert len(looks) == 81
    assert len(set(GROUP_GLYPHS)) == 9


def test_switching_changes_palette_icons_and_tells(app_context: AppContext, qtbot: QtBot) -> None:
    theme = app_context.theme
    before = theme.pixmap("open", 24).toImage()
    with qtbot.waitSignal(theme.changed, timeout=1000):
        theme.set_mode("dark")
    assert theme.dark
    assert QApplication.palette().color(QPalette.ColorRole.Base) == QColor(DARK.base)
    assert theme.pixmap("open", 24).toImage() != before
    theme.set_mode("light")
    assert QApplication.palette().color(QPalette.ColorRole.Base) == QColor(LIGHT.base)


def test_every_icon_that_is_named_exists(app_context: AppContext) -> None:
    names = {action.icon for action in app_context.actions if action.icon}
    names |= {spec.icon for spec in VIEWS} | set(ICONS.values()) | set(BLOCK_ICONS.values())
    assert {name for name in names if app_context.theme.icon(name).isNull()} == set()
