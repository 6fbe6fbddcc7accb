"""The workbench without a mouse: every control is reached by Tab, has a name, and tables let the focus go (issue 6)."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QLabel,
    QLineEdit,
    QScrollArea,
    QTabBar,
    QWidget,
)
from pytestqt.qtbot import QtBot

from compaction.resources import resource
from inspector.context import AppContext
from inspector.documents.workbench import Workbench
from inspector.views.main_window import MainWindow

VIEWS = ("compare", "before_after", "timeline", "summaries")
WAIT = 20_000


def opened(window: MainWindow, context: AppContext, view_id: str, qtbot: QtBot) -> QWidget:
    document = window.open_path(Path(resource("sample", "tide-tables.jsonl")))
    assert context.runner.wait_until_idle()
    if view_id == "before_after":
        window.show_view("compare")
        workbench = document.findChild(Workbench)
        assert isinstance(workbench, Workbench)
        qtbot.waitUntil(lambda: not any(c.stale for c in workbench.columns), timeout=WAIT)
        workbench.choose(workbench.columns[0])
    view = window.show_view(view_id)
    assert view is not None
    qtbot.waitUntil(view.isVisible, timeout=WAIT)
    assert context.runner.wait_until_idle()
    if not view.isAncestorOf(QApplication.focusWidget() or window):
        view.setFocus(Qt.FocusReason.ShortcutFocusReason)
    return view


def stops(view: QWidget) -> list[QWidget]:
    """What Tab should reach: visible, enabled, with focus by Tab, and no part of another control."""
    found = []
    for child in view.findChildren(QWidget):
        takes = bool(child.focusPolicy().value & Qt.FocusPolicy.TabFocus.value)
        inner = child.focusProxy() is not None or isinstance(child.parentWidget(), QTabBar)
        embedded = isinstance(child, QLineEdit) and child.objectName() == "qt_spinbox_lineedit"
        empty = isinstance(child, QScrollArea) and not child.verticalScrollBar().isVisible()
        if takes and child.isVisibleTo(view) and child.isEnabled() and not inner and not embedded and not empty:
            found.append(child)
    return found


def name_of(widget: QWidget, view: QWidget) -> str:
    """What a screen reader says first: its accessible name, its text, or the label it is the buddy of."""
    if widget.accessibleName():
        return widget.accessibleName()
    if isinstance(widget, QAbstractButton) and widget.text():
        return widget.text()
    if isinstance(widget, QTabBar):
        return widget.tabText(widget.currentIndex())
    return next((label.text() for label in view.findChildren(QLabel) if label.buddy() is widget), "")


@pytest.mark.parametrize("view_id", VIEWS)
def test_tab_reaches_every_control_and_each_has_a_name(
    window: MainWindow, app_context: AppContext, qtbot: QtBot, view_id: str
) -> None:
    view = opened(window, app_context, view_id, qtbot)
    wanted = stops(view)
    assert wanted
    reached: set[QWidget] = set()
    for _ in range(150):
        focus = QApplication.focusWidget()
        assert focus is not None
        reached.add(focus)
        QTest.keyClick(focus, Qt.Key.Key_Tab)
    missed = [f"{type(w).__name__} {name_of(w, view)!r}" for w in wanted if w not in reached]
    assert not missed
    assert not [type(w).__name__ for w in wanted if not name_of(w, view).strip()]


@pytest.mark.parametrize("view_id", VIEWS)
def test_every_list_and_table_has_a_name_of_its_own(
    window: MainWindow, app_context: AppContext, qtbot: QtBot, view_id: str
) -> None:
    view = opened(window, app_context, view_id, qtbot)
    tables = [t for t in view.findChildren(QAbstractItemView) if type(t).__name__ != "QComboBoxListView"]
    names = [t.accessibleName() for t in tables if t.isVisibleTo(view) and t.focusPolicy() != Qt.FocusPolicy.NoFocus]
    assert all(names)
    assert len(set(names)) == len(names)


def test_a_column_is_chosen_moved_copied_and_applied_by_keys(
    window: MainWindow, app_context: AppContext, qtbot: QtBot
) -> None:
    opened(window, app_context, "compare", qtbot)
    document = window.current_document
    assert document is not None
    workbench = document.findChild(Workbench)
    assert isinstance(workbench, Workbench)
    qtbot.waitUntil(lambda: not any(c.stale for c in workbench.columns), timeout=WAIT)
    table = QApplication.focusWidget()
    assert table is not None
    count = len(workbench.columns)
    first = workbench.chosen
    assert first is workbench.columns[0]
    QTest.keyClick(table, Qt.Key.Key_Right)
    assert workbench.chosen is workbench.columns[1]
    QTest.keyClick(table, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
    assert len(workbench.columns) == count + 1
    QTest.keyClick(table, Qt.Key.Key_Delete)
    assert len(workbench.columns) == count
    workbench.choose(first)
    qtbot.waitUntil(lambda: not any(c.stale for c in workbench.columns), timeout=WAIT)
    QTest.keyClick(table, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: len(window.documents) == 2, timeout=WAIT)
    assert app_context.runner.wait_until_idle()
    derived = window.current_document
    assert derived is not None
    assert derived.parent_document is document
