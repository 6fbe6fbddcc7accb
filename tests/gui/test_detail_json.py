"""The JSON tree: lazy, exact, escapes what hides, and quiet under the model tester."""

from __future__ import annotations

import json
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QAbstractItemModelTester
from pytestqt.qtbot import QtBot

from inspector.models.flat_tree import EXPANDED_ROLE, LEVEL_ROLE
from inspector.models.json_tree import RANGE_SIZE, JsonTreeModel, value_text
from inspector.views.detail.pages import JsonPage

VALUE: dict[str, Any] = {
    "type": "user",
    "message": {"content": [{"text": "x" * 500}, 1, None, True]},
    "odd key": {"a": []},
    "n": 1.5,
}


@pytest.fixture
def model(qtbot: QtBot) -> JsonTreeModel:
    found = JsonTreeModel()
    QAbstractItemModelTester(found, QAbstractItemModelTester.FailureReportingMode.Fatal, found)
    return found


def names(model: JsonTreeModel) -> list[str]:
    return [row.data.name for row in model.rows]


def test_children_are_listed_when_a_row_is_opened(model: JsonTreeModel) -> None:
    model.set_value(VALUE)
    assert names(model) == ["record", "type", "message", "odd key", "n"]
    model.set_expanded(2, True)
    model.set_expanded(3, True)
    assert names(model) == ["record", "type", "message", "content", "[0]", "[1]", "[2]", "[3]", "odd key", "n"]
    assert model.rows[4].data.path == "message.content[0]"
    assert model.rows[8].data.path == '["odd key"]'
    model.set_expanded(2, False)
    assert names(model) == ["record", "type", "message", "odd key", "n"]


def test_open_all_below_lists_everything(model: JsonTreeModel) -> None:
    model.set_value(VALUE)
    assert model.expand_below(0)
    assert "text" in names(model)
    assert model.rows[names(model).index("text")].level == 4
    assert not model.expand_below(0, limit=3)
    assert len(model.rows) <= 6


def test_long_arrays_are_listed_in_ranges(model: JsonTreeModel) -> None:
    model.set_value(list(range(2 * RANGE_SIZE + 5)))
    assert names(model)[1:] == ["0 … 999", "1,000 … 1,999", "2,000 … 2,004"]
    model.set_expanded(3, True)
    assert names(model)[4:] == ["[2000]", "[2001]", "[2002]", "[2003]", "[2004]"]
    model.set_value(list(range(RANGE_SIZE * RANGE_SIZE + 1)))
    assert len(model.rows) == 3


def test_values_are_cut_and_what_hides_is_escaped() -> None:
    assert value_text("a\x00\u202e\n\ud800") == '"a\\u0000\\u202e\\n\\ud800"'
    cut = value_text("y" * (10 * 1024 * 1024))
    assert len(cut) < 250
    assert cut.endswith("10.0 MB")
    assert value_text({"a": 1}) == "{ 1 member }"
    assert value_text([1, 2]) == "[ 2 items ]"
    assert value_text(float("nan")) == "NaN"


def test_a_screen_reader_hears_level_and_state(model: JsonTreeModel) -> None:
    model.set_value(VALUE)
    first = model.index(0, 0)
    assert first.data(Qt.ItemDataRole.AccessibleTextRole) == "level 1, expanded, record"
    assert model.index(2, 0).data(Qt.ItemDataRole.AccessibleTextRole) == "level 2, collapsed, message"
    assert model.index(2, 0).data(EXPANDED_ROLE) is False
    assert model.index(1, 0).data(EXPANDED_ROLE) is None
    assert model.index(1, 0).data(LEVEL_ROLE) == 1


@pytest.fixture
def page(qtbot: QtBot) -> JsonPage:
    found = JsonPage()
    qtbot.addWidget(found)
    found.resize(500, 400)
    found.show()
    return found


def test_keys_open_close_and_walk(qtbot: QtBot, page: JsonPage) -> None:
    page.set_value(VALUE, "record")
    tree = page.tree
    tree.setFocus()
    start = tree.currentIndex().row()
    assert start == 0
    qtbot.keyClick(tree, Qt.Key.Key_Down)
    qtbot.keyClick(tree, Qt.Key.Key_Down)
    qtbot.keyClick(tree, Qt.Key.Key_Left)
    assert not page.model.rows[2].expanded
    qtbot.keyClick(tree, Qt.Key.Key_Right)
    assert page.model.rows[2].expanded
    qtbot.keyClick(tree, Qt.Key.Key_Right)
    assert tree.currentIndex().row() == 3
    qtbot.keyClick(tree, Qt.Key.Key_Left)
    assert tree.currentIndex().row() == 2
    qtbot.keyClick(tree, Qt.Key.Key_Asterisk)
    assert "text" in names(page.model)


def test_enter_on_a_text_shows_it_whole_and_escape_goes_back(qtbot: QtBot, page: JsonPage) -> None:
    page.set_value(VALUE, "record")
    page.model.expand_below(0)
    page.tree.select_row(names(page.model).index("text"))
    qtbot.keyClick(page.tree, Qt.Key.Key_Return)
    assert page.currentIndex() == 1
    assert page.whole.text == "x" * 500
    page._show_tree()
    assert page.currentIndex() == 0


def test_a_click_on_the_arrow_opens_the_row(qtbot: QtBot, page: JsonPage) -> None:
    page.set_value({"a": {"b": 1}}, "record")
    page.show()
    rect = page.tree.visualRect(page.model.index(1, 0))
    step = int(page.tree.fontMetrics().height() * 1.1)
    point = rect.topLeft()
    point.setX(point.x() + step + step // 2)
    point.setY(rect.center().y())
    qtbot.mouseClick(page.tree.viewport(), Qt.MouseButton.LeftButton, pos=point)
    assert names(page.model) == ["record", "a", "b"]


def test_find_goes_to_the_next_row_with_the_text(page: JsonPage) -> None:
    page.set_value(VALUE, "record")
    assert page.find_text("USER")
    assert page.tree.currentIndex().row() == names(page.model).index("type")
    assert not page.find_text("no such text")


def test_values_are_copied_whole(qtbot: QtBot, page: JsonPage) -> None:
    page.set_value({"text": "a\ud800" + "x" * 900, "list": [1, {"b": None}]}, "record")
    page.tree.select_row(1)
    qtbot.keyClick(page.tree, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "a\ufffd" + "x" * 900
    page.tree.select_row(2)
    qtbot.keyClick(page.tree, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert json.loads(QGuiApplication.clipboard().text()) == [1, {"b": None}]
