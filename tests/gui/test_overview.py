"""The overview: its figures against counts made record by record, every line leads to its record."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from compaction.conversation import open_session
from inspector.context import AppContext
from inspector.models.overview import MOST_LINES, Overview, Table, overview_of
from inspector.views.main_window import MainWindow
from inspector.views.overview_view import RECORD, OverviewView, TableCard
from tests import generator
from tests.support import corpus_files, needs_shared


def table(overview: Overview, title: str) -> Table:
    return next(found for found in overview.tables if found.title == title)


def test_figures_are_those_of_the_records(sample_session: Path) -> None:
    session = open_session(sample_session)
    t = session.transcript
    figures = {fact.name: fact.value for fact in overview_of(session).figures}
    payloads = [t.payload(record) for record in range(len(t))]
    blocks = [
        block
        for payload in payloads
        if isinstance(payload.get("message", {}).get("content"), list)
        for block in payload["message"]["content"]
    ]
    assert figures["Records"] == str(len(sample_session.read_bytes().splitlines()))
    assert figures["Tool calls"] == str(sum(block["type"] == "tool_use" for block in blocks))
    assert figures["Subagents"] == str(len(list(sample_session.with_suffix("").rglob("agent-*.jsonl"))))
    assert figures["Damaged lines"] == "0"


def test_tools_count_calls_and_failures(sample_session: Path) -> None:
    session = open_session(sample_session)
    t = session.transcript
    calls: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    names: dict[str, str] = {}
    for record in range(len(t)):
        for number in t.blocks_of(record):
            block = t.block(number)
            if block.get("type") == "tool_use":
                calls[block["name"]] += 1
                names[block["id"]] = block["name"]
            elif block.get("type") == "tool_result" and block.get("is_error") and block["tool_use_id"] in names:
                failed[names[block["tool_use_id"]]] += 1
    for line in table(overview_of(session), "Tools").lines:
        name, called, wrong, _ = line.cells
        assert (called, wrong) == (str(calls[name]), str(failed[name]))
        assert any(t.block_tool(block) == name for block in t.blocks_of(line.record))


def test_compactions_and_largest_records_lead_to_their_records(sample_session: Path) -> None:
    session = open_session(sample_session)
    overview = overview_of(session)
    assert [line.record for line in table(overview, "Compactions").lines] == [
        compaction.record for compaction in session.conversation.compactions
    ]
    largest = table(overview, "Largest records")
    assert len(largest.lines) == MOST_LINES
    assert largest.lines[0].share == 1.0
    assert [line.share for line in largest.lines] == sorted((line.share for line in largest.lines), reverse=True)


def test_what_is_worth_looking_at_names_its_first_line(tmp_path: Path) -> None:
    path = generator.Session(seed=2, rounds=40, orphan_results=1, faults=("garbage_line@9",)).write(
        tmp_path / "a.jsonl"
    )
    session = open_session(path)
    lines = {line.cells[0]: line for line in table(overview_of(session), "Worth looking at").lines}
    assert lines["⚠ damaged"].cells[2] == "line 9"
    assert "∅ tool_result without tool_use" in lines


@pytest.mark.parametrize("content", [b"", b"not json\n", b'{"type":"user"}\n'])
def test_odd_files_have_an_overview(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_bytes(content)
    overview = overview_of(open_session(path))
    assert {found.title for found in overview.tables} >= {"Tools", "Compactions"}
    assert all(found.lines or found.empty for found in overview.tables)


@pytest.mark.slow
@needs_shared
@pytest.mark.parametrize("path", corpus_files(), ids=lambda path: path.name)
def test_real_sessions_have_an_overview(path: Path) -> None:
    overview = overview_of(open_session(path))
    assert overview.figures[0].value != "0"


def test_a_line_chosen_in_the_overview_is_shown_in_the_tree(
    window: MainWindow, app_context: AppContext, sample_session: Path, qtbot: QtBot
) -> None:
    document = window.open_path(sample_session)
    assert app_context.runner.wait_until_idle()
    view = window.show_view("overview")
    assert isinstance(view, OverviewView)
    qtbot.waitUntil(lambda: view.overview is not None, timeout=10_000)
    cards = [card for card in view._cards if isinstance(card, TableCard)]
    for card in cards:
        heights = [
            card.tree.visualItemRect(card.tree.topLevelItem(n)).bottom() for n in range(card.tree.topLevelItemCount())
        ]
        assert not heights or max(heights) <= card.tree.viewport().height(), "a line is cut off"
    chosen = next(card for card in cards if "Compactions" in [label.text() for label in card.findChildren(QLabel)])
    item = chosen.tree.topLevelItem(1)
    assert item is not None
    chosen.tree.itemActivated.emit(item, 0)
    assert window.current_view() == "tree"
    assert document.selection.record == item.data(0, RECORD)
