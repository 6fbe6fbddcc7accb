"""The long text view: wraps at blanks, lays out only what is on screen, selects, copies and finds exactly."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from inspector.rendering.line_index import LineIndex, line_starts
from inspector.views.detail.long_text import LongTextView


def rows_by_hand(text: str, columns: int) -> list[tuple[int, int]]:
    """The rows of a text, computed one character after the other."""
    rows: list[tuple[int, int]] = []
    offset = 0
    for line in text.split("\n"):
        starts = range(0, max(len(line), 1), columns)
        rows += [(offset + start, offset + min(start + columns, len(line))) for start in starts]
        offset += len(line) + 1
    return rows


@given(st.text(alphabet=st.sampled_from("ab\n日\ud800\U0001f600 "), max_size=60), st.integers(1, 9))
def test_rows_are_those_of_a_wrap_after_so_many_characters(text: str, columns: int) -> None:
    with patch("inspector.rendering.line_index.PROSE_LIMIT", -1):
        index = LineIndex(text, columns)
    expected = rows_by_hand(text, columns)
    assert [index.span(row) for row in range(index.row_count)] == expected
    check_mapping(index, text, expected)


@given(st.text(alphabet=st.sampled_from("ab\n日\ud800\U0001f600   "), max_size=90), st.integers(1, 9))
def test_prose_breaks_at_blanks_and_only_longer_words_are_broken(text: str, columns: int) -> None:
    index = LineIndex(text, columns)
    rows = [index.span(row) for row in range(index.row_count)]
    lines: list[str] = []
    for row, (start, end) in enumerate(rows):
        piece = text[start:end]
        assert len(piece) <= columns or (len(piece) == columns + 1 and piece.endswith(" "))
        if index.starts_line(row) >= 0:
            lines.append(piece)
            continue
        lines[-1] += piece
        before = text[rows[row - 1][0] : start]
        # Either the break is behind a blank, or what was there to break has none behind its first word.
        assert before.endswith(" ") or " " not in (text[rows[row - 1][0] : rows[row - 1][0] + columns + 1]).lstrip(" ")
    assert "\n".join(lines) == text
    assert index.row_count <= len(lines) + 2 * len(text) / columns
    check_mapping(index, text, rows)


def check_mapping(index: LineIndex, text: str, expected: list[tuple[int, int]]) -> None:
    """Rows, lines and offsets lead to each other."""
    assert index.line_count == text.count("\n") + 1
    for row, (start, end) in enumerate(expected):
        for offset in range(start, end):
            assert index.row_of(offset) == row
            assert index.line_of(offset) == text.count("\n", 0, offset)
        assert index.row_of(index.last_offset(row)) == row
    firsts = [index.starts_line(row) for row in range(index.row_count)]
    assert [line for line in firsts if line >= 0] == list(range(index.line_count))


def test_line_starts_across_chunks() -> None:
    text = ("x" * 999 + "\n") * 2200 + "é" + ("y" * 99 + "\n") * 30_000 + "日\n" * 9000 + "z" * 1_500_000 + "\n"
    expected = [0, *(position + 1 for position, character in enumerate(text) if character == "\n")]
    assert line_starts(text).tolist() == expected


@pytest.fixture
def view(qtbot: QtBot) -> LongTextView:
    widget = LongTextView()
    qtbot.addWidget(widget)
    widget.resize(600, 400)
    widget.show()
    return widget


def test_a_10_mb_line_lays_out_only_the_rows_on_screen(view: LongTextView, monkeypatch: pytest.MonkeyPatch) -> None:
    view.set_text("x" * (10 * 1024 * 1024))
    laid_out: list[int] = []
    original = LongTextView._layout

    def counted(self: LongTextView, start: int, end: int) -> object:
        laid_out.append(end - start)
        return original(self, start, end)

    monkeypatch.setattr(LongTextView, "_layout", counted)
    view.grab()
    assert view.row_count > 100_000
    assert 10 < len(laid_out) < 80
    assert sum(laid_out) < 20_000


def test_select_all_copies_the_text_unchanged(view: LongTextView) -> None:
    text = "one\ttwo\x00\nthree \u202e four"
    view.set_text(text)
    view.select_all()
    assert view.selected_text() == text
    view.copy()
    assert QGuiApplication.clipboard().text() == text


def test_a_lone_surrogate_is_copied_as_a_replacement_character(view: LongTextView) -> None:
    view.set_text("a\ud800b")
    view.select_all()
    view.copy()
    assert QGuiApplication.clipboard().text() == "a\ufffdb"


def test_keys_move_and_select(qtbot: QtBot, view: LongTextView) -> None:
    view.set_text("first line\nsecond line\nthird")
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_Down)
    qtbot.keyClick(view, Qt.Key.Key_End, Qt.KeyboardModifier.ShiftModifier)
    assert view.selected_text() == "second line"
    qtbot.keyClick(view, Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier)
    for _ in range(5):
        qtbot.keyClick(view, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert view.selected_text() == "first"
    qtbot.keyClick(view, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(view, Qt.Key.Key_Up, Qt.KeyboardModifier.ShiftModifier)
    assert view.selected_text() == "d line\nthird"
    qtbot.keyClick(view, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "first line\nsecond line\nthird"


def test_up_and_down_go_through_rows_of_different_lengths(qtbot: QtBot, view: LongTextView) -> None:
    width = view._columns()
    view.set_text("x" * (width - 1) + " " + "short " + "y" * (width - 2) + " " + "z" * (width - 1))
    assert view.row_count == 4
    qtbot.keyClick(view, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    rows = []
    for _ in range(4):
        rows.append(view._index.row_of(view._caret))
        qtbot.keyClick(view, Qt.Key.Key_Up)
    assert rows == [3, 2, 1, 0]


def test_page_down_goes_through_the_whole_text(qtbot: QtBot, view: LongTextView) -> None:
    view.set_text("\n".join(str(number) for number in range(1000)))
    for _ in range(200):
        qtbot.keyClick(view, Qt.Key.Key_PageDown)
    assert view.accessibleDescription().startswith("line 1,000 of 1,000: 999")
    bar = view.verticalScrollBar()
    assert bar.value() == bar.maximum()


def test_the_mouse_selects_over_rows(qtbot: QtBot, view: LongTextView) -> None:
    view.set_text("alpha beta\ngamma delta")
    height = int(view._row_height())
    qtbot.mousePress(view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(0, 2))
    qtbot.mouseMove(view.viewport(), QPoint(300, height + 4))
    qtbot.mouseRelease(view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(300, height + 4))
    qtbot.mouseClick(
        view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier, QPoint(300, height + 4)
    )
    assert view.selected_text() == "alpha beta\ngamma delta"


def test_a_double_click_selects_the_word(qtbot: QtBot, view: LongTextView) -> None:
    view.set_text("alpha beta")
    qtbot.mouseDClick(view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(15, 4))
    assert view.selected_text() == "alpha"


def test_find_goes_forward_backward_and_wraps(qtbot: QtBot, view: LongTextView) -> None:
    view.set_text("Needle " + "hay " * 10 + "needle " + "hay " * 10)
    places: list[object] = []
    view.found.connect(places.append)

    def find(backward: bool = False) -> object:
        count = len(places)
        view.find_text("needle", backward)
        qtbot.waitUntil(lambda: len(places) > count)
        return places[-1]

    assert find() == (0, 6)
    assert find() == (47, 53)
    assert find() == (0, 6)
    assert find(backward=True) == (47, 53)
    assert view.selected_text() == "needle"
    view.find_text("absent")
    qtbot.waitUntil(lambda: places[-1] is None)


def test_find_sees_hits_across_slices(qtbot: QtBot, view: LongTextView, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.views.detail.long_text._FIND_SLICE", 7)
    text = "".join(f"{number:04d}" for number in range(60))
    view.set_text(text)
    for needle in ("00590", "000000", "003000310", "0"):
        view.select(100, 100)
        with qtbot.waitSignal(view.found) as signal:
            view.find_text(needle)
        expected = text.find(needle, 100)
        expected = expected if expected >= 0 else text.find(needle)
        wanted = (expected, expected + len(needle)) if expected >= 0 else None
        assert signal.args == [wanted]


def test_resizing_keeps_the_first_visible_character(view: LongTextView) -> None:
    view.set_text("word " * 100_000)
    view.verticalScrollBar().setValue(500)
    top = view._index.span(500)[0]
    view.resize(300, 400)
    row = view.verticalScrollBar().value()
    start, end = view._index.span(row)
    assert start <= top < end


def test_line_numbers_take_room_of_their_own(view: LongTextView) -> None:
    view.set_text("a\nb\nc")
    plain = view._margin()
    view.set_text("a\nb\nc", line_numbers=True)
    assert view._margin() > plain


@pytest.mark.parametrize(
    "text", ["", "\n", "\x00\x01\x02", "\u202eabc", "日本語 \U0001f600" * 50, "\ud800" * 300, "שלום עולם"]
)
def test_odd_texts_are_painted(view: LongTextView, text: str) -> None:
    view.set_text(text, line_numbers=True)
    view.select_all()
    assert not view.grab().isNull()
    assert view.selected_text() == text
