"""The tree window by keyboard and by action: walk, pairs, places, find, copy, reload (issue 2, issue 6)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFontMetrics, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from inspector.context import AppContext
from inspector.documents.document import Document, Scope
from inspector.models.outline import Column, OutlineModel
from inspector.models.outline_cells import JOINT
from inspector.models.outline_rows import Kind, index_of, kind_of
from inspector.views.main_window import MainWindow
from inspector.views.outline_delegate import OutlineDelegate, cut_facts
from inspector.views.outline_view import OutlineView

Key = Qt.Key


@pytest.fixture
def tree(window: MainWindow, app_context: AppContext, sample_session: Path) -> OutlineView:
    window.open_path(sample_session)
    assert app_context.runner.wait_until_idle()
    view = window.show_view("tree")
    assert isinstance(view, OutlineView)
    return view


def model_of(tree: OutlineView) -> OutlineModel:
    assert tree.model is not None
    return tree.model


def row_of(tree: OutlineView) -> int:
    return tree.table.currentIndex().row()


def press(tree: OutlineView, *keys: Qt.Key) -> None:
    for key in keys:
        QTest.keyClick(tree.table, key)


def test_arrows_open_close_and_climb_as_in_a_tree(tree: OutlineView) -> None:
    model = model_of(tree)
    assert kind_of(model.node(row_of(tree))) is Kind.MESSAGE
    press(tree, Key.Key_Home)
    assert row_of(tree) == 0
    press(tree, Key.Key_Left)
    assert not model.is_expanded(0)
    assert kind_of(model.node(1)) is Kind.EPOCH
    press(tree, Key.Key_Right)
    assert model.is_expanded(0)
    press(tree, Key.Key_Right)
    assert row_of(tree) == 1
    press(tree, Key.Key_Down, Key.Key_Right, Key.Key_Right)
    assert kind_of(model.node(row_of(tree))) is Kind.BLOCK
    press(tree, Key.Key_Left)
    assert kind_of(model.node(row_of(tree))) is Kind.MESSAGE
    press(tree, Key.Key_Left, Key.Key_Left, Key.Key_Left)
    assert not model.is_expanded(1)
    press(tree, Key.Key_Left)
    assert row_of(tree) == 0


def test_home_end_and_pages_go_over_all_rows(tree: OutlineView) -> None:
    model = model_of(tree)
    press(tree, Key.Key_End)
    assert row_of(tree) == model.rowCount() - 1
    press(tree, Key.Key_Home)
    assert row_of(tree) == 0
    press(tree, Key.Key_PageDown)
    assert row_of(tree) > 5
    press(tree, Key.Key_PageUp)
    assert row_of(tree) == 0


def test_star_opens_everything_below_and_space_toggles(tree: OutlineView) -> None:
    model = model_of(tree)
    press(tree, Key.Key_Home)
    before = model.rowCount()
    press(tree, Key.Key_Asterisk)
    assert model.rowCount() > before
    press(tree, Key.Key_Space)
    assert not model.is_expanded(0)


def test_the_whole_window_can_be_walked_with_the_keyboard_alone(
    tree: OutlineView, window: MainWindow, app_context: AppContext, qtbot: QtBot
) -> None:
    """Open, find, jump to the pair, copy, change the view, and leave, without a mouse."""
    QTest.keyClick(tree.table, Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert tree.find_bar.isVisible()
    QTest.keyClicks(tree.find_bar.edit, "type:tool_use")
    qtbot.waitUntil(lambda: "match" in tree.find_bar.count.text(), timeout=5000)
    QTest.keyClick(tree.find_bar.edit, Key.Key_Return)
    first = tree.document.selection.record
    assert first >= 0
    QTest.keyClick(tree.find_bar.edit, Key.Key_Escape)
    assert not tree.find_bar.isVisible()
    QTest.keyClick(tree.table, Key.Key_P, Qt.KeyboardModifier.ControlModifier)
    assert tree.document.selection.record > first
    QTest.keyClick(tree.table, Key.Key_J, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    assert app_context.runner.wait_until_idle()
    assert json.loads(QGuiApplication.clipboard().text())["type"] == "user"
    QTest.keyClick(tree.table, Key.Key_W, Qt.KeyboardModifier.ControlModifier)
    assert window.current_document is None
    assert window.start_page.isVisible()


def test_selecting_one_of_a_pair_highlights_the_other_and_the_action_jumps(
    tree: OutlineView, app_context: AppContext
) -> None:
    model = model_of(tree)
    tree.expand_all()
    conversation = tree.document.conversation
    assert conversation is not None
    row = next(
        r
        for r in range(model.rowCount())
        if kind_of(model.node(r)) is Kind.BLOCK and conversation.pair[index_of(model.node(r))] >= 0
    )
    tree.table.select_row(row)
    use = index_of(model.node(row))
    result = int(conversation.pair[use])
    assert any(index_of(n) == result for n in model.partner if kind_of(n) is Kind.BLOCK)
    label = model.cells(row).texts[Column.FLAGS].split()[0]
    assert app_context.actions.run("go.pair")
    assert tree.document.selection.block == result
    assert model.cells(row_of(tree)).texts[Column.FLAGS].split()[0] == label.replace("→", "←")
    assert app_context.actions.run("go.pair")
    assert tree.document.selection.block == use


def test_a_selection_made_elsewhere_is_shown_in_the_tree(tree: OutlineView) -> None:
    tree.collapse_to_rounds()
    tree.document.select_record(40)
    assert tree.document.selection.record == 40
    node = tree.current_node
    assert node is not None
    assert 40 in model_of(tree).selection_of(row_of(tree)).records


def test_parent_child_line_round_and_leaf(tree: OutlineView, app_context: AppContext) -> None:
    conversation = tree.document.conversation
    assert conversation is not None
    record = next(r for r in range(20, 60) if conversation.parent[r] >= 0 and conversation.response_of[r] < 0)
    tree.document.select_record(record)
    assert app_context.actions.run("go.parent")
    assert tree.document.selection.record == conversation.parent[record]
    tree.go_to_line(50)
    assert 49 in [int(r) for r in tree.document.selection.records]
    tree.go_to_round(5)
    assert (tree.document.selection.scope, tree.document.selection.round) == (Scope.ROUND, 5)
    assert app_context.actions.run("go.next_round")
    assert tree.document.selection.round == 6
    assert app_context.actions.run("go.leaf")
    assert conversation.leaf in tree.document.selection.records
    assert app_context.actions.run("go.back")
    assert tree.current_node is not None
    assert kind_of(tree.current_node) is Kind.GROUP


def test_problems_and_compactions_are_found_one_after_the_other(tree: OutlineView, app_context: AppContext) -> None:
    conversation = tree.document.conversation
    assert conversation is not None
    seen = []
    for _ in range(len(conversation.compactions)):
        assert app_context.actions.run("go.next_compaction")
        seen.append(tree.document.selection.record)
    assert seen == sorted({c.record for c in conversation.compactions})
    assert app_context.actions.run("go.previous_problem")
    assert tree.structure is not None
    assert any(tree.structure.problems[int(r)] for r in tree.document.selection.records)


def test_only_matches_filters_the_rows_and_closing_shows_all_again(
    tree: OutlineView, app_context: AppContext, qtbot: QtBot
) -> None:
    before = model_of(tree).rowCount()
    tree.open_find()
    tree.find_bar.edit.setText("tool:Bash error:yes")
    qtbot.waitUntil(lambda: "match" in tree.find_bar.count.text(), timeout=5000)
    tree.find_bar.only.setChecked(True)
    assert 0 < model_of(tree).rowCount() < before
    tree.find_bar.edit.setText("tool:")
    qtbot.waitUntil(lambda: "no value" in tree.find_bar.count.text(), timeout=5000)
    tree.find_bar.close_bar()
    assert model_of(tree).rowCount() == before


def test_typing_a_letter_in_the_tree_begins_a_search(tree: OutlineView) -> None:
    QTest.keyClicks(tree.table, "t")
    assert tree.find_bar.isVisible()
    assert tree.find_bar.edit.text() == "t"


def test_copied_json_is_the_files_own_bytes(tree: OutlineView, app_context: AppContext, sample_session: Path) -> None:
    tree.go_to_line(7)
    assert app_context.actions.run("edit.copy_json")
    assert app_context.runner.wait_until_idle()
    lines = sample_session.read_text(encoding="utf-8").splitlines()
    assert lines[6] in QGuiApplication.clipboard().text().splitlines()


def test_copied_text_has_no_markup_and_no_ids(tree: OutlineView, app_context: AppContext) -> None:
    tree.go_to_line(2)
    QTest.keyClick(tree.table, Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert app_context.runner.wait_until_idle()
    text = QGuiApplication.clipboard().text()
    assert text
    assert "parentUuid" not in text


def test_reload_keeps_expansion_selection_and_scroll(
    window: MainWindow, app_context: AppContext, sample_session: Path, tmp_path: Path
) -> None:
    path = tmp_path / "live.jsonl"
    shutil.copy(sample_session, path)
    document = window.open_path(path)
    assert app_context.runner.wait_until_idle()
    tree = window.show_view("tree")
    assert isinstance(tree, OutlineView)
    model = model_of(tree)
    message = next(r for r in range(60, model.rowCount()) if kind_of(model.node(r)) is Kind.MESSAGE)
    model.expand(message)
    model.collapse(next(r for r in range(30, model.rowCount()) if kind_of(model.node(r)) is Kind.GROUP))
    tree.table.select_row(message - 1)
    QApplication.processEvents()
    nodes, selected, top = model.rows.nodes.tolist(), tree.current_node, model.node(tree.table.rowAt(0))
    with path.open("ab") as file:
        file.write(b'{"type":"summary","summary":"written meanwhile","leafUuid":"x"}\n')
    assert app_context.actions.run("session.reload")
    assert app_context.runner.wait_until_idle()
    QApplication.processEvents()
    assert tree.model is not model
    again = model_of(tree)
    assert len(document.conversation.transcript) == len(model.session.transcript) + 1  # type: ignore[union-attr]
    assert again.rows.nodes.tolist() == nodes
    assert tree.current_node == selected
    assert again.node(tree.table.rowAt(0)) == top


def test_the_context_menu_key_offers_what_can_be_done_with_the_row(tree: OutlineView, app_context: AppContext) -> None:
    tree.go_to_line(5)
    menu = tree.context_menu()
    texts = [action.text() for action in menu.actions()]
    assert "Expand" in texts or "Collapse" in texts
    assert any("JSON" in text for text in texts)
    menu.deleteLater()


def test_a_click_on_the_arrow_opens_and_one_on_the_text_selects(tree: OutlineView) -> None:
    model = model_of(tree)
    cell = tree.table.visualRect(model.index(1, Column.WHAT))
    arrow = tree.table.delegate.arrow_rect(cell, model.depth(1)).center()
    QTest.mouseClick(tree.table.viewport(), Qt.MouseButton.LeftButton, pos=arrow)
    assert not model.is_expanded(1)
    QTest.mouseClick(tree.table.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(cell.right() - 5, cell.center().y()))
    assert row_of(tree) == 1


def test_painting_describes_only_the_rows_on_screen(
    window: MainWindow, app_context: AppContext, tmp_path: Path
) -> None:
    from tests import generator

    path = generator.Session(seed=1, records=6_000, result_characters=40).write(tmp_path / "big.jsonl")
    window.open_path(path)
    assert app_context.runner.wait_until_idle(60)
    QApplication.processEvents()
    tree = window.show_view("tree")
    assert isinstance(tree, OutlineView)
    model = model_of(tree)
    assert model.rowCount() > 3_000
    bar = tree.table.verticalScrollBar()
    per_page = tree.table.viewport().height() // tree.table.delegate.row_height() + 2
    for step in range(1, 6):
        described = model.described
        bar.setValue(bar.maximum() * step // 6)
        QApplication.processEvents()
        assert model.described - described <= per_page


def test_showing_bookkeeping_adds_rows_and_keeps_the_place(tree: OutlineView, app_context: AppContext) -> None:
    tree.go_to_line(30)
    node, before = tree.current_node, model_of(tree).rowCount()
    assert app_context.actions.run("view.bookkeeping")
    assert model_of(tree).rowCount() > before
    assert tree.current_node == node
    assert app_context.actions.run("view.bookkeeping")
    assert model_of(tree).rowCount() == before


def test_a_document_in_memory_shows_without_a_file(window: MainWindow) -> None:
    from compaction.conversation import Session, build_conversation
    from compaction.transcript import transcript_from_bytes

    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]}
    document = Document(None, "derived")
    document.set_session(Session(build_conversation(transcript_from_bytes(json.dumps(body).encode(), "derived"))))
    window.add_document(document)
    tree = window.show_view("tree")
    assert isinstance(tree, OutlineView)
    texts = [model_of(tree).cells(row).texts[Column.WHAT] for row in range(model_of(tree).rowCount())]
    assert "User" in texts
    assert "Assistant" in texts


@pytest.mark.usefixtures("qapp")
@given(st.lists(st.sampled_from(["Read ×3", "context 155,100", "claude-opus-4-5", "API rounds 1–61"]), min_size=1))
def test_no_figure_of_a_rows_facts_is_cut_in_two(facts: list[str]) -> None:
    metrics, text = QFontMetrics(QApplication.font()), JOINT.join(facts)
    for room in range(20, metrics.horizontalAdvance(text) + 20, 7):
        shown = cut_facts(text, metrics, room)
        assert shown == text or metrics.horizontalAdvance(shown) <= room or shown == "…"
        assert shown == text or not shown[:-1].endswith((*"0123456789,",))


def test_flags_that_have_no_room_are_counted(tree: OutlineView, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    original = OutlineDelegate._rest_of_flags
    monkeypatch.setattr(
        OutlineDelegate,
        "_rest_of_flags",
        lambda self, painter, rect, count: (told.append(count), original(self, painter, rect, count))[1],
    )
    rows = [row for row in range(model_of(tree).rowCount()) if len(model_of(tree).cells(row).pairs) > 1]
    tree.table.select_row(rows[0])
    tree.table.grab()
    assert told == []
    tree.table.setColumnWidth(Column.FLAGS, 50)
    tree.table.grab()
    cells = model_of(tree).cells(rows[0])
    assert len(cells.pairs) + len(cells.marks) - 1 in told


def test_in_a_narrow_window_columns_step_aside_until_somebody_chose_them(
    tree: OutlineView, window: MainWindow, app_context: AppContext, qtbot: QtBot
) -> None:
    for dock in window.docks.values():
        dock.hide()
    window.resize(1400, 700)
    QApplication.processEvents()
    assert not any(tree.table.isColumnHidden(column) for column in Column)
    window.resize(window.minimumSizeHint().width(), 700)
    QApplication.processEvents()
    tree.table.resize(430, 500)
    assert tree.table.isColumnHidden(Column.SHARE)
    assert not tree.table.isColumnHidden(Column.FLAGS)
    tree.table.resize(1400, 500)
    assert not tree.table.isColumnHidden(Column.SHARE)
    entry = next(action for action in tree.table.columns_menu().actions() if action.text() == "Time")
    entry.setChecked(False)
    qtbot.waitUntil(lambda: not app_context.settings.blob("tree_columns_1").isEmpty(), timeout=5000)
    tree.table.resize(1500, 500)
    assert tree.table.isColumnHidden(Column.TIME)
