"""The request beside its records: each thing a client does to the file is marked in place, in words and with a sign."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtTest import QAbstractItemModelTester
from pytestqt.qtbot import QtBot

from compaction.conversation import Conversation, Session, build_conversation, open_session
from compaction.diagnosis.requests import check_request
from compaction.request import assemble
from compaction.request.wire import Dropped, Origin, WireMessage, WireRequest
from compaction.transcript import transcript_from_bytes
from inspector.context import AppContext
from inspector.documents.document import Document, Scope, Selection
from inspector.models.as_sent import AsSentModel
from inspector.models.as_sent_rows import Change, compare, lines_text
from inspector.rendering.parts import Tone, source_text
from inspector.rendering.tones import colours_for
from inspector.settings import Settings
from inspector.theme import Theme
from inspector.views.as_sent_view import AsSentView, place_of_path, sent_parts, state_text
from tests.support import case_folders, corpus_files, needs_shared


def user(uuid: str, parent: str | None, content: Any) -> dict[str, Any]:
    message = {"role": "user", "content": content}
    return {
        "type": "user",
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "s",
        "version": "2.1.20",
        "message": message,
    }


def assistant(uuid: str, parent: str, block: dict[str, Any], response: str = "m1") -> dict[str, Any]:
    message = {"id": response, "role": "assistant", "model": "claude-opus-4-5", "content": [block]}
    record = {"type": "assistant", "uuid": uuid, "parentUuid": parent, "sessionId": "s", "version": "2.1.20"}
    return {**record, "message": message}


def result(use_id: str, content: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": use_id, "content": content}]


RECORDS = [
    user("u1", None, "start"),
    assistant("a1", "u1", {"type": "text", "text": "reading"}),
    assistant("a2", "a1", {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}),
    assistant("a3", "a2", {"type": "tool_use", "id": "t2", "name": "Read", "input": {}}),
    user("u2", "a3", result("t1", "one")),
    user("u3", "u2", "go on"),
]


def conversation_of(records: list[dict[str, Any]]) -> Conversation:
    return build_conversation(transcript_from_bytes(b"".join(json.dumps(r).encode() + b"\n" for r in records)))


def block(conversation: Conversation, record: int, position: int = 0) -> dict[str, Any]:
    content = conversation.transcript.message(record)["content"]
    return {"type": "text", "text": content} if isinstance(content, str) else content[position]


def hand_made(conversation: Conversation) -> WireRequest:
    """A request that does everything a client can do."""
    cleared = {**block(conversation, 4), "content": "[Old tool result content cleared]"}
    renamed = {**block(conversation, 2), "name": "View"}
    return WireRequest(
        client="2.1.20",
        at=None,
        messages=[
            WireMessage("user", [block(conversation, 0)], [Origin(0, 1, 0)]),
            WireMessage("assistant", [block(conversation, 1), renamed], [Origin(1, 2, 0), Origin(2, 3, 0)]),
            WireMessage("user", [cleared, {"type": "text", "text": "reminder"}], [Origin(4, 5, 0), None]),
            WireMessage("assistant", [{"type": "text", "text": "No response requested."}], [None]),
        ],
        model="m",
        unaccounted=[{"kind": "attachment", "message": "a reminder is not in the file", "line": 3}],
        dropped=[Dropped(3, 0, "tool_use without a result")],
    )


def changes(rows: Any) -> list[tuple[Change, int, int, int]]:
    return [(row.change, row.message, row.block, row.line) for row in rows]


def test_every_change_is_named_where_it_happened() -> None:
    conversation = conversation_of(RECORDS)
    request = hand_made(conversation)
    comparison = compare(conversation, request, check_request(request))
    flat = [row for top in comparison.rows for row in (top, *top.children) if row.change is not Change.NOTE]
    assert changes(flat) == [
        (Change.SAME, 0, -1, 1),
        (Change.SAME, 0, 0, 1),
        (Change.MERGED, 1, -1, 2),
        (Change.SAME, 1, 0, 2),
        (Change.CHANGED, 1, 1, 3),
        (Change.DROPPED, -1, -1, 4),
        (Change.SAME, 2, -1, 5),
        (Change.CLEARED, 2, 0, 5),
        (Change.INJECTED, 2, 1, 0),
        (Change.INJECTED, 3, -1, 0),
        (Change.INJECTED, 3, 0, 0),
    ]
    texts = {row.change: row.text for row in flat}
    assert texts[Change.CHANGED] == "sent with another name"
    assert texts[Change.DROPPED] == "tool_use without a result"
    assert texts[Change.MERGED] == "merged from 2 records, lines 2–3"
    notes = [row.text for row in comparison.rows if row.change is Change.NOTE]
    assert "a reminder is not in the file" in notes
    assert "The transcript does not hold the system prompt." in notes
    assert "The transcript does not hold the tool definitions." in notes


def test_what_is_recorded_beside_the_messages_is_shown() -> None:
    conversation = conversation_of(RECORDS)
    request = replace(
        hand_made(conversation),
        system=[{"type": "text", "text": "You are"}],
        tools=[{"name": "Read"}, {"name": "Bash"}],
        thinking={"type": "adaptive"},
        params={"max_tokens": 9},
    )
    rows = compare(conversation, request, []).rows[:3]
    assert [row.text for row in rows] == [
        "system prompt: 1 entry",
        "tool definitions: 2 entries",
        "parameters: thinking, max_tokens",
    ]
    texts = ["\n".join(source_text(part) for part in sent_parts(row)) for row in rows]
    assert "You are" in texts[0]
    assert '"Bash"' in texts[1]
    assert '"max_tokens": 9' in texts[2]


def test_the_line_on_top_says_how_the_request_was_found() -> None:
    conversation = conversation_of(RECORDS)
    request = hand_made(conversation)
    by_rules = state_text(compare(conversation, request, check_request(request)))
    assert by_rules.startswith("Rebuilt by the rules of client 2.1.20 (profile) · 4 messages")
    assert "▲ 1 thing is not accounted for" in by_rules
    proven = state_text(compare(conversation, replace(request, verified="hash", unaccounted=[]), []))
    assert proven.startswith("✔ Verified by hash: every message is proven")
    assert "✔ breaks no API rule" in proven
    assert "not accounted" not in proven


def test_dropped_content_stands_between_the_blocks_of_its_message() -> None:
    conversation = conversation_of(RECORDS)
    request = WireRequest(
        client="2.1.20",
        at=None,
        messages=[
            WireMessage("user", [block(conversation, 0)], [Origin(0, 1, 0)]),
            WireMessage(
                "assistant", [block(conversation, 1), block(conversation, 3)], [Origin(1, 2, 0), Origin(3, 4, 0)]
            ),
            WireMessage("assistant", [{"type": "text", "text": "x"}], [None]),
        ],
        model="m",
        dropped=[Dropped(2, 0, "between"), Dropped(4, 0, "after"), Dropped(5, -1, "last")],
    )
    rows = [row for row in compare(conversation, request, []).rows if row.change is not Change.NOTE]
    assert [(row.message, row.record) for row in rows] == [(0, 0), (1, 1), (-1, 4), (-1, 5), (2, -1)]
    assert [(row.block, row.record) for row in rows[1].children] == [(0, 1), (-1, 2), (1, 3)]


def test_violations_stand_at_their_place() -> None:
    conversation = conversation_of(RECORDS)
    request = hand_made(conversation)
    request.messages[1].content.append({"type": "tool_use", "id": "t9", "name": "Read", "input": {}})
    request.messages[1].origins.append(None)
    comparison = compare(conversation, request, check_request(request))
    broken = [row for top in comparison.rows for row in (top, *top.children) if row.violations]
    assert any(row.message == 1 and any("t9" in v.ids for v in row.violations) for row in broken)


def test_a_violation_has_the_sign_and_colour_of_its_severity() -> None:
    conversation = conversation_of(RECORDS)
    request = hand_made(conversation)
    request.messages[3].content.append({"type": "thinking", "thinking": "", "signature": "s"})
    request.messages[3].origins.append(None)
    found = check_request(request)
    assert {violation.code: violation.severity for violation in found}["thinking_text_empty_but_signed"] == "info"
    model = AsSentModel()
    colours = colours_for(QPalette())
    model.set_colours(colours)
    model.set_comparison(compare(conversation, request, found))
    cell = model.index(model.number_of_place(3, 1), 2)
    assert "ℹ R18" in cell.data()
    assert cell.data(Qt.ItemDataRole.ForegroundRole) == colours.tones[Tone.INFO]


def test_line_numbers_are_runs() -> None:
    assert lines_text([7]) == "line 7"
    assert lines_text([3, 1, 2, 9]) == "lines 1–3, 9"
    assert lines_text(list(range(1, 40, 3))).endswith(", …")


@pytest.mark.parametrize(
    ("path", "place"),
    [("messages.3.content.0", (3, 0)), ("messages.12", (12, -1)), ("system.0", None), ("", None)],
)
def test_wire_paths_name_places(path: str, place: tuple[int, int] | None) -> None:
    assert place_of_path(path) == place


def test_the_model_is_quiet_and_finds_rows(qtbot: QtBot) -> None:
    model = AsSentModel()
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal, model)
    conversation = conversation_of(RECORDS)
    request = hand_made(conversation)
    model.set_comparison(compare(conversation, request, check_request(request)))
    number = model.number_of(4, 0)
    assert model.rows[number].data.change is Change.CLEARED
    assert "⌫ content replaced by the cleared marker" in model.index(number, 2).data()
    assert model.rows[model.number_of(3)].data.change is Change.DROPPED
    assert model.rows[model.number_of_place(1, 1)].data.change is Change.CHANGED
    assert model.number_of(99) == -1
    model.set_expanded(model.number_of_place(1), False)
    assert model.rows[model.number_of(2, 0)].data.is_message or model.number_of(2, 0) == -1
    model.set_comparison(None)
    assert model.rowCount() == 0


@needs_shared
@pytest.mark.parametrize("path", corpus_files()[::6], ids=lambda path: path.stem)
def test_blocks_of_real_sessions_that_are_sent_as_stored_equal_their_records(path: Path) -> None:
    """Against the request itself: rows and wire blocks correspond one to one; "as stored" means equal JSON."""
    conversation = build_conversation(transcript_from_bytes(path.read_bytes()))
    if not conversation.round_count:
        return
    for at in (None, conversation.round_count):
        request = assemble(conversation, "2.1.332", at)
        comparison = compare(conversation, request, [])
        messages = [row for row in comparison.rows if row.is_message]
        assert len(messages) == len(request.messages)
        for row, message in zip(messages, request.messages, strict=True):
            children = [child for child in row.children if child.block >= 0]
            for child, sent, origin in zip(children, message.content, message.origins, strict=True):
                assert child.sent is sent
                assert (child.change is Change.INJECTED) == (origin is None)
                if child.change is Change.SAME:
                    assert child.stored is not None
                    stored = {k: v for k, v in child.stored.items() if k != "cache_control"}
                    assert stored == sent
        flat = [row for top in comparison.rows for row in (top, *top.children)]
        assert sum(row.change is Change.DROPPED for row in flat) == len(request.dropped)


# The view -----------------------------------------------------------------------------------------------------

HELD: list[AsSentView] = []


@pytest.fixture
def context(qtbot: QtBot, qapp: Any, tmp_path: Path) -> Iterator[AppContext]:
    found = AppContext(Settings(tmp_path), Theme(qapp, "light"))
    yield found
    found.runner.close()
    HELD.clear()


def view_of(qtbot: QtBot, context: AppContext, session: Session) -> tuple[AsSentView, Document]:
    document = Document(None, "test")
    document.set_session(session)
    view = AsSentView(context, document)
    HELD.append(view)
    qtbot.addWidget(view)
    view.resize(900, 700)
    view.show()
    assert context.runner.wait_until_idle()
    return view, document


def test_the_view_shows_the_request_and_says_how_it_was_found(qtbot: QtBot, context: AppContext) -> None:
    view, _ = view_of(qtbot, context, Session(conversation_of(RECORDS)))
    assert "Rebuilt by the rules of client" in view.state.text()
    assert "(profile)" in view.state.text()
    assert any(row.data.change is Change.DROPPED for row in view.model.rows)
    assert "dropped" in view.legend.text()


def test_the_selection_is_shared_with_the_tree_both_ways(qtbot: QtBot, context: AppContext) -> None:
    view, document = view_of(qtbot, context, Session(conversation_of(RECORDS)))
    document.select_record(4)
    assert view.tree.current_row().data.record == 4
    view.tree.select_row(view.model.number_of(1, 0))
    assert document.selection.record == 1
    assert document.selection.scope is Scope.BLOCK
    assert "reading" in view.sent.toPlainText()
    assert "reading" in view.stored.toPlainText()


def test_what_is_not_sent_says_so_on_its_side(qtbot: QtBot, context: AppContext) -> None:
    view, document = view_of(qtbot, context, Session(conversation_of(RECORDS)))
    document.select_record(3)
    assert view.tree.current_row().data.change is Change.DROPPED
    assert "Not sent" in view.sent.toPlainText()
    assert "t2" in view.stored.toPlainText()


def test_a_record_that_is_not_in_the_request_says_why(qtbot: QtBot, context: AppContext) -> None:
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None, "sessionId": "s"}
    records = [*RECORDS, boundary, user("u9", "b", "after"), user("side", "u1", "another branch")]
    records += [assistant("a9", "u9", {"type": "text", "text": "later"}, "m2"), {"type": "summary", "summary": "x"}]
    view, document = view_of(qtbot, context, Session(conversation_of(records)))
    expected = {
        0: "Line 1 is not in this request. It lies before the compact boundary on line 7.",
        8: "Line 9 is not in this request. It lies beside the parent chain",
        10: "Line 11 is not in this request. It is bookkeeping",
    }
    for record, sentence in expected.items():
        document.select_record(record)
        assert sentence in view.sent.toPlainText()
        assert view.tree.current_row() is None
    assert "summary" in view.stored.toPlainText()
    view.show_round(2)
    assert context.runner.wait_until_idle()
    document.select_record(9)
    assert "It was written after this request." in view.sent.toPlainText()
    document.select_record(7)
    assert view.tree.current_row() is not None
    assert document.selection.record == 7


def test_a_selected_round_shows_its_request(qtbot: QtBot, context: AppContext) -> None:
    records = [*RECORDS, assistant("a9", "u3", {"type": "text", "text": "later"}, "m2")]
    conversation = conversation_of(records)
    view, document = view_of(qtbot, context, Session(conversation))
    before = len(view.model.rows)
    document.select(Selection(Scope.ROUND, conversation, 1, records=range(1, 4), round=1))
    assert context.runner.wait_until_idle()
    assert view.at == 1
    assert len(view.model.rows) < before
    assert view.model.comparison is not None
    assert view.model.comparison.request.at == 1


def test_another_client_rebuilds_the_request(qtbot: QtBot, context: AppContext) -> None:
    view, document = view_of(qtbot, context, Session(conversation_of(RECORDS)))
    document.diagnosis.set_client("1.0.128")
    assert context.runner.wait_until_idle()
    assert view.model.comparison is not None
    assert view.model.comparison.request.client == "1.0.128"
    assert view.client.currentData() == "1.0.128"


def test_the_unmended_request_shows_what_the_api_would_refuse(qtbot: QtBot, context: AppContext) -> None:
    view, _ = view_of(qtbot, context, Session(conversation_of(RECORDS)))
    view.which.setCurrentIndex(2)
    assert context.runner.wait_until_idle()
    assert "before any client mends it" in view.state.text()
    assert "✖ breaks" in view.state.text()
    broken = next(number for number, row in enumerate(view.model.rows) if row.data.violations)
    view.tree.select_row(broken)
    assert "R01" in view.sent.toPlainText()
    assert "✖ R01" in view.model.index(broken, 2).data()


def test_keys_open_and_close_messages(qtbot: QtBot, context: AppContext) -> None:
    view, _ = view_of(qtbot, context, Session(conversation_of(RECORDS)))
    number = view.model.number_of_place(1)
    view.tree.select_row(number)
    rows = len(view.model.rows)
    qtbot.keyClick(view.tree, Qt.Key.Key_Left)
    assert len(view.model.rows) < rows
    qtbot.keyClick(view.tree, Qt.Key.Key_Return)
    assert len(view.model.rows) == rows


@needs_shared
@pytest.mark.parametrize("folder", case_folders(), ids=lambda folder: folder.name)
def test_every_shared_case_is_shown(qtbot: QtBot, context: AppContext, folder: Path) -> None:
    view, _ = view_of(qtbot, context, open_session(next(folder.glob("input.*"))))
    for mode in (0, 2):
        view.which.setCurrentIndex(mode)
        assert context.runner.wait_until_idle()
        assert "cannot be rebuilt" not in view.state.text()
        for number in range(len(view.model.rows)):
            view.tree.select_row(number)
