"""Columns are as wide as their content where there is room, and share it where there is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QApplication, QStyleOptionViewItem, QToolTip
from pytestqt.qtbot import QtBot

from inspector.models.flat_tree import FlatRow, FlatTreeModel
from inspector.views.column_sizes import ColumnSizes, shared
from inspector.views.flat_tree_view import FlatTreeView


class Cells(FlatTreeModel):
    """Rows of three texts; the second column holds figures."""

    columns = ("What", "Count", "Notes")
    figures = frozenset({1})

    def text(self, row: FlatRow, column: int) -> str:
        """The cell."""
        return str(row.data[column])


@given(st.lists(st.integers(0, 500), max_size=6), st.integers(0, 1500))
def test_parts_fill_the_room_and_nobody_waits_beside_one_that_has_more(needs: list[int], room: int) -> None:
    parts = shared(needs, room)
    assert sum(parts) <= room
    assert all(part <= need for part, need in zip(parts, needs, strict=True))
    if sum(needs) <= room:
        assert parts == needs
    cut = [part for part, need in zip(parts, needs, strict=True) if part < need]
    if cut:
        assert room - sum(parts) <= len(needs)
        assert max(parts) <= min(cut) + len(needs)


@pytest.fixture
def table(qtbot: QtBot) -> FlatTreeView:
    view = FlatTreeView(Cells())
    qtbot.addWidget(view)
    view.resize(700, 230)
    view.show()
    return view


def fill(view: FlatTreeView, rows: list[tuple[str, str, str]]) -> None:
    view.tree_model.set_rows([FlatRow(row) for row in rows])
    QApplication.processEvents()


def test_figures_are_never_cut_and_an_empty_column_takes_no_room(table: FlatTreeView) -> None:
    ColumnSizes(table, table.tree_model.figures, optional=(2,))
    fill(table, [("a long text " * 30, "1,234,567,890", "")])
    assert table.isColumnHidden(2)
    assert table.columnWidth(1) > table.fontMetrics().horizontalAdvance("1,234,567,890")
    assert table.columnWidth(0) + table.columnWidth(1) == table.viewport().width()
    fill(table, [("short", "1", "a note")])
    assert not table.isColumnHidden(2)


def test_an_optional_column_steps_aside_for_the_main_one(table: FlatTreeView) -> None:
    ColumnSizes(table, table.tree_model.figures, optional=(2,))
    table.resize(1200, 230)
    fill(table, [("a long text " * 30, "12", "a long note " * 30)])
    assert not table.isColumnHidden(2)
    table.resize(600, 230)
    QApplication.processEvents()
    assert table.isColumnHidden(2)


def test_titles_stand_above_their_cells(table: FlatTreeView) -> None:
    model = table.tree_model
    fill(table, [("text", "12", "")])
    sides = [
        (
            model.headerData(column, Qt.Orientation.Horizontal, Qt.ItemDataRole.TextAlignmentRole),
            model.index(0, column).data(Qt.ItemDataRole.TextAlignmentRole),
        )
        for column in range(2)
    ]
    right = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    assert sides[1] == (right, right)
    assert sides[0][0] != right
    assert sides[0][1] != right


def test_no_half_row_is_drawn_at_the_lower_edge(table: FlatTreeView) -> None:
    fill(table, [("█" * 40, "", "")] * 50)
    height = table.viewport().height()
    last = table.rowAt(height - 1)
    top = table.rowViewportPosition(last)
    assert top + table.rowHeight(last) > height
    picture = table.viewport().grab().toImage()
    ground = table.palette().base().color()
    ratio = picture.devicePixelRatio()
    assert all(
        picture.pixelColor(x, y) == ground
        for y in range(int(top * ratio), picture.height())
        for x in range(0, picture.width(), 7)
    )
    table.select_row(last)
    assert table.rowViewportPosition(last) + table.rowHeight(last) <= height


def test_a_cut_cell_has_its_whole_text_as_tool_tip(table: FlatTreeView, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(QToolTip, "showText", lambda _place, text, _view: shown.append(text))
    ColumnSizes(table, table.tree_model.figures)
    fill(table, [("a long text " * 30, "12", "")])
    for column in range(2):
        index = table.model().index(0, column)
        option = QStyleOptionViewItem()
        table.initViewItemOption(option)
        option.rect = table.visualRect(index)
        event = QHelpEvent(QEvent.Type.ToolTip, QPoint(3, 3), QPoint(3, 3))
        assert table.itemDelegate().helpEvent(event, table, option, index)
    assert shown == ["a long text " * 30, ""]
