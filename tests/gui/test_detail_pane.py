"""The detail pane on real-shaped sessions: every section follows the selection, and the window never waits for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QUrl
from pytestqt.qtbot import QtBot

from compaction.conversation import Conversation, Session, build_conversation, open_session
from compaction.transcript import transcript_from_bytes
from inspector.context import AppContext
from inspector.documents.document import Document, Scope, Selection
from inspector.rendering import content
from inspector.rendering.relations import Relation
from inspector.rendering.usage_rows import usage_rows
from inspector.settings import Settings
from inspector.theme import Theme
from inspector.views.detail.pane import DetailPane, subject_of
from tests.support import corpus_files, needs_shared

USAGE = {
    "input_tokens": 5,
    "cache_read_input_tokens": 1000,
    "cache_creation_input_tokens": 20,
    "output_tokens": 7,
    "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 0},
}


def user(uuid: str, parent: str | None, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": "user", "content": content}
    return {"type": "user", "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message, **more}


def assistant(uuid: str, parent: str | None, block: dict[str, Any], usage: dict[str, Any] = USAGE) -> dict[str, Any]:
    message = {"id": "msg_1", "role": "assistant", "model": "claude-x", "content": [block], "usage": usage}
    return {"type": "assistant", "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message}


def call(name: str, use_id: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": use_id, "name": name, "input": given}


def result(use_id: str, content: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": use_id, "content": content}]


RECORDS = [
    user("u1", None, "hello <b>you</b>"),
    assistant("a1", "u1", {"type": "text", "text": "**fine**"}, {**USAGE, "output_tokens": 1}),
    assistant("a2", "a1", call("Read", "t1", file_path="/x/a.py")),
    user("u2", "a2", result("t1", "    1→import os")),
    user("u3", "gone", result("t9", "orphan")),
]


def conversation_of(records: list[dict[str, Any]], extra: bytes = b"") -> Conversation:
    data = b"".join(json.dumps(record).encode() + b"\n" for record in records) + extra
    return build_conversation(transcript_from_bytes(data))


@pytest.fixture
def context(qtbot: QtBot, qapp: Any, tmp_path: Path) -> Iterator[AppContext]:
    found = AppContext(Settings(tmp_path), Theme(qapp, "light"))
    yield found
    found.runner.close()
    HELD.clear()


HELD: list[DetailPane] = []
"""`qtbot` holds widgets weakly: one without a parent could be collected while it is painted."""


def pane_of(qtbot: QtBot, context: AppContext, conversation: Conversation) -> tuple[DetailPane, Document]:
    document = Document(None, "test")
    document.set_session(Session(conversation))
    pane = DetailPane(context, document)
    HELD.append(pane)
    qtbot.addWidget(pane)
    pane.resize(700, 600)
    pane.show()
    return pane, document


def show(pane: DetailPane, document: Document, record: int, block: int = -1) -> None:
    document.select_record(record, block=block)
    pane.show_now()
    pane._context.runner.wait_until_idle()


def table_texts(table: Any) -> list[list[str]]:
    return [
        [table.item(row, column).text() for column in range(table.columnCount())] for row in range(table.rowCount())
    ]


def test_each_section_shows_the_selected_record(qtbot: QtBot, context: AppContext) -> None:
    pane, document = pane_of(qtbot, context, conversation_of(RECORDS))
    show(pane, document, 3)
    assert "import os" in pane.rendered.rich.toPlainText()
    assert "tool_result Read" in pane.rendered.rich.toPlainText()
    pane.tabs.setCurrentIndex(1)
    assert pane.json.model.rows[0].data.value == RECORDS[3]
    pane.tabs.setCurrentIndex(2)
    assert pane.raw.view.text == json.dumps(RECORDS[3])
    pane.tabs.setCurrentIndex(3)
    links = {row[0]: row[1] for row in table_texts(pane.links)}
    assert links["tool_use"].startswith("line 3 ")
    assert links["parent"].startswith("line 3 ")
    pane.tabs.setCurrentIndex(4)
    assert pane.usage.currentIndex() == 1


def test_a_link_selects_its_record(qtbot: QtBot, context: AppContext) -> None:
    pane, document = pane_of(qtbot, context, conversation_of(RECORDS))
    show(pane, document, 3)
    pane.tabs.setCurrentIndex(3)
    row = [texts[0] for texts in table_texts(pane.links)].index("tool_use")
    pane.links.activated.emit(pane.links.model().index(row, 0))
    assert document.selection.record == 2
    assert document.selection.scope is Scope.BLOCK
    pane.show_now()
    assert pane._headline.text().startswith("assistant · line 3 · block 1 of 1")


def test_missing_halves_say_why(qtbot: QtBot, context: AppContext) -> None:
    pane, document = pane_of(qtbot, context, conversation_of(RECORDS))
    show(pane, document, 4)
    pane.tabs.setCurrentIndex(3)
    links = {row[0]: row[1] for row in table_texts(pane.links)}
    assert links["tool_use"] == "✖ the call of this result is not in the file"
    assert links["parent"] == "▲ not in this file: gone"
    before = document.selection
    pane.links.activated.emit(pane.links.model().index(0, 0))
    assert document.selection == before


def test_a_link_to_the_request_opens_it_as_sent(qtbot: QtBot, context: AppContext) -> None:
    shown: list[Any] = []

    class View:
        def show_round(self, number: int) -> None:
            shown.append(number)

    class Window:
        def show_view(self, view_id: str) -> View:
            shown.append(view_id)
            return View()

    context.workspace = Window()  # type: ignore[assignment]
    pane, document = pane_of(qtbot, context, conversation_of(RECORDS))
    show(pane, document, 2)
    pane._on_relation(Relation("request", "", round=1))
    assert shown == ["as_sent", 1]


def test_usage_is_that_of_the_last_record_of_the_response() -> None:
    rows = {row.name: row for row in usage_rows(conversation_of(RECORDS), 1)}
    assert rows["output_tokens"].value == "7 tokens"
    assert rows["context"].value == "1,025 tokens"
    assert rows["context"].method == "computed"
    assert rows["input_tokens"].method == "recorded"
    assert rows["records of the response"].value == "2"
    assert usage_rows(conversation_of(RECORDS), 0) == []


def test_a_large_record_is_decoded_in_a_worker(
    qtbot: QtBot, context: AppContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    text = "z" * (10 * 1024 * 1024)
    records = [*RECORDS, user("u9", "u2", result("t1", text))]
    pane, document = pane_of(qtbot, context, conversation_of(records))
    threads: list[str] = []
    original = content.prepare

    def recorded(*args: Any) -> Any:
        threads.append(threading.current_thread().name)
        return original(*args)

    monkeypatch.setattr("inspector.views.detail.pane.prepare", recorded)
    show(pane, document, 5)
    assert threads
    assert all(name.startswith("work") for name in threads)
    assert "Showing the first 256 KB of 10.0 MB" in pane.rendered.rich.toPlainText()
    pane.rendered.show_text(*pane.rendered.rich.folded[0])
    assert pane.rendered.whole.text == text
    pane.tabs.setCurrentIndex(2)
    context.runner.wait_until_idle()
    assert len(pane.raw.view.text) == len(json.dumps(records[5]))


def test_a_later_selection_wins_over_a_slow_one(qtbot: QtBot, context: AppContext) -> None:
    records = [*RECORDS, user("u9", "u2", result("t1", "z" * 3_000_000))]
    pane, document = pane_of(qtbot, context, conversation_of(records))
    document.select_record(5)
    pane.show_now()
    show(pane, document, 0)
    context.runner.wait_until_idle()
    assert "hello <b>you</b>" in pane.rendered.rich.toPlainText()


def test_damaged_bytes_are_shown_with_what_was_lost(qtbot: QtBot, context: AppContext) -> None:
    conversation = conversation_of(RECORDS, b'{"type":"user","uu\xff\x00\n' + b"{broken\n")
    pane, document = pane_of(qtbot, context, conversation)
    show(pane, document, len(RECORDS))
    assert "bytes lost" in pane.rendered.rich.toPlainText()
    pane.tabs.setCurrentIndex(2)
    assert "\ufffd" in pane.raw.view.text
    assert "not valid UTF-8" in pane.raw._note.text()


def test_a_round_shows_its_records_together(qtbot: QtBot, context: AppContext) -> None:
    conversation = conversation_of(RECORDS)
    pane, document = pane_of(qtbot, context, conversation)
    document.select(Selection(Scope.ROUND, conversation, 1, records=range(1, 4), round=1))
    pane.show_now()
    assert pane._headline.text() == "API round 1 · lines 2 to 4 · 3 records"
    text = pane.rendered.rich.toPlainText()
    assert "fine" in text
    assert "import os" in text
    pane.tabs.setCurrentIndex(1)
    assert len(pane.json.model.rows[0].data.value) == 3


def test_a_selection_without_records_shows_nothing() -> None:
    conversation = conversation_of(RECORDS)
    assert subject_of(Selection()) is None
    assert subject_of(Selection(Scope.SESSION, conversation)) is None
    subject = subject_of(Selection(Scope.RECORD, conversation, 2))
    assert subject is not None
    assert subject.records == (2,)


def test_too_many_records_are_counted_not_shown() -> None:
    records = [user(f"u{n}", f"u{n - 1}" if n else None, "x" * 2000) for n in range(900)]
    conversation = conversation_of(records)
    subject = subject_of(Selection(Scope.EPOCH, conversation, 0, records=range(900), epoch=0))
    assert subject is not None
    prepared = content.prepare(subject)
    assert prepared.left_out == 900 - content.MANY_RECORDS
    assert prepared.headline == "epoch 0 · lines 1 to 900 · 900 records"
    assert f"{prepared.left_out} more records" in prepared.parts[-1].text  # type: ignore[union-attr]


def test_nothing_selected_clears_every_section(qtbot: QtBot, context: AppContext) -> None:
    conversation = conversation_of(RECORDS)
    pane, document = pane_of(qtbot, context, conversation)
    show(pane, document, 1)
    document.set_session(Session(conversation_of(RECORDS[:1])))
    pane.show_now()
    assert "Select a record" in pane.rendered.rich.toPlainText()
    assert pane.raw.view.text == ""


def test_an_orphan_says_why_and_where_its_other_half_is(qtbot: QtBot, context: AppContext) -> None:
    pane, document = pane_of(qtbot, context, conversation_of(RECORDS))
    show(pane, document, 4)
    document.diagnosis.ensure(context.runner)
    qtbot.waitUntil(lambda: document.diagnosis.report is not None and not document.diagnosis.running)
    text = pane.rendered.rich.toPlainText()
    assert "The result of t9 does not follow its call." in text
    assert "call of t9: ✖ no record of this file holds its call" in text
    place = pane.rendered.rich.document().find("line 5")
    pane.rendered.rich.anchorClicked.emit(QUrl(place.charFormat().anchorHref()))
    assert document.selection.block >= 0


def test_a_session_that_grows_keeps_what_is_shown(qtbot: QtBot, context: AppContext, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    lines = [json.dumps(record).encode() + b"\n" for record in RECORDS]
    path.write_bytes(b"".join(lines))
    document = Document(path)
    document.set_session(open_session(path))
    pane = DetailPane(context, document)
    HELD.append(pane)
    qtbot.addWidget(pane)
    pane.show()
    show(pane, document, 1)
    before = pane.rendered.rich.document()
    path.write_bytes(b"".join([*lines, json.dumps(user("u7", "u2", "more")).encode() + b"\n"]))
    document.set_session(open_session(path))
    show(pane, document, 1)
    assert pane.rendered.rich.document() is before
    assert pane._prepared is not None
    assert pane._prepared.subject.conversation is document.conversation
    show(pane, document, 0)
    assert pane.rendered.rich.document() is not before


def test_find_works_in_each_section(qtbot: QtBot, context: AppContext) -> None:
    pane, document = pane_of(qtbot, context, conversation_of(RECORDS))
    show(pane, document, 3)
    pane.find_bar.open()
    pane.find_bar.wanted.emit("import", False)
    assert pane.find_bar.status.text() == ""
    pane.find_bar.wanted.emit("not there", False)
    assert pane.find_bar.status.text() == "Not found"
    pane.tabs.setCurrentIndex(2)
    with qtbot.waitSignal(pane.raw.view.found):
        pane.find_bar.wanted.emit("tool_use_id", False)
    assert pane.raw.view.selected_text() == "tool_use_id"
    pane.find_bar.closed.emit()
    assert pane.find_bar.isHidden()


@needs_shared
def test_every_kind_of_record_of_the_corpus_is_shown_without_an_unexpected_shape() -> None:
    """Every record type and block type of the shared corpus has parts of its own; none fails into raw JSON."""
    seen: set[str] = set()
    for path in corpus_files():
        conversation = build_conversation(transcript_from_bytes(path.read_bytes()))
        transcript = conversation.transcript
        for record in range(len(transcript)):
            kinds = [f"{transcript.block_type[b]}{transcript.block_tool(b)}" for b in transcript.blocks_of(record)]
            key = f"{transcript.type_name(record)} {kinds}"
            if key in seen:
                continue
            seen.add(key)
            for part in content.record_parts(conversation, record):
                assert "unexpected shape" not in getattr(part, "text", ""), f"{path.name}: record {record}"
    assert len(seen) > 60
