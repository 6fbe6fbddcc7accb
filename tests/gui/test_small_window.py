"""A small screen, or an ordinary one at 200 %: every view fits 640×400 logical pixels, scrolling where it must."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMargins, QRect, QSize, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QTabBar, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from inspector.context import AppContext
from inspector.views.flow_layout import FlowLayout, together
from inspector.views.main_window import MainWindow
from inspector.views.registry import VIEWS
from inspector.views.summaries.view import SummariesView
from inspector.views.turning_splitter import TurningSplitter
from inspector.views.view_scroll import ViewScroll

SMALL = QSize(640, 400)


def test_the_window_keeps_the_size_of_a_small_screen_in_every_view(
    window: MainWindow, app_context: AppContext, sample_session: Path
) -> None:
    window.resize(SMALL)
    window.reset_layout()
    assert window.size() == SMALL
    window.open_path(sample_session)
    assert app_context.runner.wait_until_idle()
    for spec in VIEWS:
        window.show_view(spec.id)
        assert app_context.runner.wait_until_idle()
        QApplication.processEvents()
        assert window.size() == SMALL, spec.id


def test_summaries_fit_a_small_screen_without_scrolling_sideways(
    window: MainWindow, app_context: AppContext, sample_session: Path
) -> None:
    window.open_path(sample_session)
    assert app_context.runner.wait_until_idle()
    found = window.show_view("summaries")
    assert app_context.runner.wait_until_idle()
    assert found is not None
    assert found.minimumSizeHint().width() <= SMALL.width()


def test_no_view_scrolls_as_a_whole_at_an_ordinary_size(
    window: MainWindow, app_context: AppContext, sample_session: Path
) -> None:
    window.open_path(sample_session)
    assert app_context.runner.wait_until_idle()
    for spec in VIEWS:
        view = window.show_view(spec.id)
        assert app_context.runner.wait_until_idle()
        QApplication.processEvents()
        frame = view.parentWidget().parentWidget() if view is not None else None
        assert isinstance(frame, ViewScroll)
        assert (frame.horizontalScrollBar().maximum(), frame.verticalScrollBar().maximum()) == (0, 0), spec.id


def test_tab_stops_at_nothing_that_cannot_be_seen_on_the_start_page(window: MainWindow, qtbot: QtBot) -> None:
    window.start_page.setFocus()
    for _ in range(8):
        focused = QApplication.focusWidget()
        assert focused is not None
        assert focused is window.start_page or window.start_page.isAncestorOf(focused), focused
        QTest.keyClick(focused, Qt.Key.Key_Tab)


def test_the_tabs_of_docks_are_named_and_only_reachable_while_they_are_shown(
    window: MainWindow, app_context: AppContext, sample_session: Path
) -> None:
    window.open_path(sample_session)
    assert app_context.runner.wait_until_idle()
    only_own = Qt.FindChildOption.FindDirectChildrenOnly
    bars = window.findChildren(QTabBar, options=only_own)
    assert any(bar.isEnabled() and bar.accessibleName() for bar in bars)
    window.show_view("overview")
    assert not any(bar.isEnabled() for bar in window.findChildren(QTabBar, options=only_own))
    window.show_view("tree")
    assert any(bar.isEnabled() for bar in window.findChildren(QTabBar, options=only_own))


def test_tab_bars_of_earlier_layouts_are_out_of_sight(
    window: MainWindow, app_context: AppContext, sample_session: Path, qtbot: QtBot
) -> None:
    window.resize(SMALL)
    window.restore_layout()
    window.open_path(sample_session)
    assert app_context.runner.wait_until_idle()
    for view_id in ("summaries", "findings", "context", "tree", "overview", "tree"):
        window.show_view(view_id)
        docks = [dock for dock in window.docks.values() if not dock.isHidden()]

        def only_that_of_the_docks(count: int = len(docks)) -> bool:
            bars = window.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly)
            seen = [bar for bar in bars if bar.geometry().intersects(window.rect())]
            return (
                [bar.count() for bar in seen if bar.isEnabled()]
                == [bar.count() for bar in seen]
                == ([count] if count > 1 else [])
            )

        qtbot.waitUntil(only_that_of_the_docks)


def test_a_view_in_a_frame_has_all_the_room_and_scrolls_only_where_it_lacks(qtbot: QtBot) -> None:
    view = QWidget()
    view.setMinimumSize(500, 300)
    frame = ViewScroll(view)
    qtbot.addWidget(frame)
    frame.resize(800, 600)
    frame.show()
    assert view.size() == QSize(800, 600)
    assert frame.minimumSizeHint().width() < 500
    frame.resize(200, 150)
    assert view.size() == QSize(500, 300)
    assert frame.horizontalScrollBar().maximum() > 0
    assert frame.focusPolicy() is Qt.FocusPolicy.NoFocus


@pytest.mark.parametrize(("width", "rows"), [(900, 1), (330, 2), (140, 4)])
def test_a_row_of_controls_goes_on_below_where_the_window_is_narrow(qtbot: QtBot, width: int, rows: int) -> None:
    box = QWidget()
    qtbot.addWidget(box)
    outer = QVBoxLayout(box)
    outer.setContentsMargins(0, 0, 0, 0)
    flow = FlowLayout(QMargins(5, 5, 5, 5), spacing=10)
    field, buttons = together(QLabel("At"), QWidget(), grows=True), [QPushButton(f"{n}") for n in range(3)]
    for widget in (field, *buttons):
        widget.setFixedHeight(20)
        flow.addWidget(widget)
    field.setMinimumWidth(120)
    for button in buttons:
        button.setFixedWidth(80)
    outer.addLayout(flow)
    outer.addStretch(1)
    box.resize(width, 300)
    box.show()
    places = [widget.geometry() for widget in (field, *buttons)]
    assert len({place.top() for place in places}) == rows
    inside = QRect(5, 5, width - 10, 290)
    assert all(inside.contains(place) for place in places)
    assert not any(a.intersects(b) for n, a in enumerate(places) for b in places[n + 1 :])
    if rows == 1:
        assert places[-1].right() == inside.right(), "the field takes what is left of the row"


def test_panes_stand_below_each_other_where_the_window_is_narrow_and_come_back(qtbot: QtBot) -> None:
    split = TurningSplitter(100)
    qtbot.addWidget(split)
    for _ in range(2):
        split.addWidget(QWidget())
    character = split.fontMetrics().averageCharWidth()
    split.resize(character * 120, 400)
    split.show()
    split.setSizes([character * 80, character * 40])
    before = split.sizes()
    split.resize(character * 60, 400)
    assert split.orientation() is Qt.Orientation.Vertical
    assert all(split.widget(place).minimumHeight() > 0 for place in range(2))
    split.resize(character * 120, 400)
    assert split.orientation() is Qt.Orientation.Horizontal
    assert split.sizes() == before
    assert not any(split.widget(place).minimumHeight() for place in range(2))


def test_panes_below_each_other_have_the_height_that_they_need_also_when_it_changes(qtbot: QtBot) -> None:
    split = TurningSplitter(100)
    qtbot.addWidget(split)
    tall, short = QWidget(), QWidget()
    inside = QWidget()
    inside.setMinimumHeight(700)
    QVBoxLayout(tall).addWidget(inside)
    split.addWidget(tall)
    split.addWidget(short)
    split.resize(split.fontMetrics().averageCharWidth() * 60, 400)
    split.show()
    assert split.orientation() is Qt.Orientation.Vertical
    assert tall.minimumHeight() > 700
    inside.setMinimumHeight(900)
    qtbot.waitUntil(lambda: tall.minimumHeight() > 900)
    assert 0 < short.minimumHeight() < 400


def test_on_a_small_screen_the_docks_leave_the_tree_its_height(
    window: MainWindow, app_context: AppContext, sample_session: Path
) -> None:
    window.resize(SMALL)
    window.reset_layout()
    window.open_path(sample_session)
    assert app_context.runner.wait_until_idle()
    QApplication.processEvents()
    right = Qt.DockWidgetArea.RightDockWidgetArea
    assert {window.dockWidgetArea(dock) for dock in window.docks.values()} == {right}
    assert not window.docks["detail"].visibleRegion().isEmpty()
    tree = window.view_widget("tree")
    assert tree is not None
    assert tree.height() > SMALL.height() / 2
    window.resize(1280, 800)
    window.reset_layout()
    assert window.dockWidgetArea(window.docks["findings"]) is Qt.DockWidgetArea.BottomDockWidgetArea


def test_the_items_column_keeps_room_in_a_narrow_table_of_the_audit(
    window: MainWindow, app_context: AppContext, sample_session: Path
) -> None:
    window.resize(SMALL)
    window.open_path(sample_session)
    assert app_context.runner.wait_until_idle()
    view = window.show_view("summaries")
    assert isinstance(view, SummariesView)
    QApplication.processEvents()
    assert view.audit.table.columnWidth(1) >= view.fontMetrics().averageCharWidth() * 30
