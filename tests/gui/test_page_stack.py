"""Stacks and tabs that need the room of the page in front only."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QStackedWidget, QTabWidget, QWidget
from pytestqt.qtbot import QtBot

from inspector.views.page_stack import DocumentTabBar, PageStack, PageTabs


def page(width: int, height: int) -> QWidget:
    found = QWidget()
    found.setMinimumSize(width, height)
    return found


@pytest.mark.parametrize("kind", [PageStack, PageTabs])
def test_a_page_that_is_not_in_front_claims_no_room(qtbot: QtBot, kind: type[PageStack] | type[PageTabs]) -> None:
    stack = kind()
    qtbot.addWidget(stack)
    for number, size in enumerate(((900, 700), (90, 70))):
        if isinstance(stack, PageTabs):
            stack.addTab(page(*size), f"{number}")
        else:
            stack.addWidget(page(*size))
    stack.setCurrentIndex(0)
    assert stack.minimumSizeHint().width() >= 900
    assert stack.minimumSizeHint().height() >= 700
    stack.setCurrentIndex(1)
    assert stack.minimumSizeHint().width() < 900
    assert 70 <= stack.minimumSizeHint().height() < 700


def test_an_empty_stack_needs_nothing(qtbot: QtBot) -> None:
    for stack in (PageStack(), PageTabs()):
        qtbot.addWidget(stack)
        assert isinstance(stack, (QStackedWidget, QTabWidget))
        assert stack.minimumSizeHint().width() < 200


def test_titles_of_sessions_keep_twenty_characters_when_there_are_many(qtbot: QtBot) -> None:
    bar = DocumentTabBar()
    qtbot.addWidget(bar)
    for number in range(12):
        bar.addTab(f"a session with a rather long title {number}.jsonl")
    assert bar.minimumTabSizeHint(0).width() >= bar.fontMetrics().horizontalAdvance("a session with a rat")
    bar.addTab("b")
    assert bar.minimumTabSizeHint(12).width() == bar.tabSizeHint(12).width()
