"""The findings panel: what the doctor found, grouped and filtered, with the way to the record and to the request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtGui import QGuiApplication, Qt
from PySide6.QtTest import QAbstractItemModelTester
from pytestqt.qtbot import QtBot

from compaction.conversation import Session, build_conversation, open_session
from compaction.diagnosis.doctor import diagnose
from compaction.diagnosis.explain import clients_with, refusal_with
from compaction.diagnosis.model import Finding, Repair, Report
from compaction.diagnosis.requests import check_request
from compaction.errors import UsageError
from compaction.request import assemble
from compaction.transcript import transcript_from_bytes
from inspector.context import AppContext
from inspector.documents.document import Document, Scope
from inspector.models.finding_parts import finding_parts, halves_of
from inspector.models.findings import FindingGroup, FindingsModel, grouped
from inspector.rendering.parts import Code, Fields, Heading, Note, Place, Places, Prose
from inspector.settings import Settings
from inspector.theme import Theme
from inspector.views.findings_view import FindingsView
from tests.support import case_folders, needs_shared

CODE = "tool_use_without_result"
FINDINGS = (
    Finding(
        "tool_use_without_result",
        "R01",
        "error",
        "No result for toolu_A.",
        "api says",
        "messages.1",
        (5,),
        ("toolu_A",),
    ),
    Finding("tool_use_without_result", "R01", "error", "No result for toolu_B.", "", "messages.3", (9,), ("toolu_B",)),
    Finding("blank_line", "", "info", "Line 3 holds nothing.", lines=(3,)),
    Finding("truncated_last_line", "", "warning", "Line 12 ends early.", lines=(12,), why="The program died."),
)


@pytest.fixture
def model(qtbot: QtBot) -> FindingsModel:
    found = FindingsModel()
    QAbstractItemModelTester(found, QAbstractItemModelTester.FailureReportingMode.Fatal, found)
    found.set_report(Report("2.1.332", FINDINGS))
    return found


def shown(model: FindingsModel) -> list[str]:
    return [model.text(row, 0) for row in model.rows]


def test_findings_are_grouped_with_the_worst_first(model: FindingsModel) -> None:
    assert shown(model) == [
        "✖ 2 × tool use without result (R01)",
        "✖ No result for toolu_A.",
        "✖ No result for toolu_B.",
        "▲ 1 × truncated last line",
        "▲ Line 12 ends early.",
        "ℹ 1 × blank line",
        "ℹ Line 3 holds nothing.",
    ]
    assert model.text(model.rows[0], 1) == ""
    assert model.text(model.rows[1], 1) == "line 5"
    assert model.text(model.rows[1], 2) == "toolu_A"


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 4), ("toolu_b", 1), ("R01", 2), ("line 12", 1), ("died", 1), ("api says", 1), ("blank line", 1), ("zzz", 0)],
)
def test_the_filter_looks_at_every_fact(model: FindingsModel, text: str, count: int) -> None:
    model.set_filter(text, ("error", "warning", "info"), "kind")
    assert model.shown == count


@pytest.mark.parametrize("text", ["line 1021", "line 1,021"])
def test_a_line_is_found_as_it_is_shown_and_as_it_is_typed(model: FindingsModel, text: str) -> None:
    model.set_report(Report("2.1.332", (Finding("x", "", "info", "message", lines=(1021,)),)))
    model.set_filter(text, ("info",), "kind")
    assert model.shown == 1


def test_severities_can_be_hidden(model: FindingsModel) -> None:
    model.set_filter("", ("warning",), "kind")
    assert shown(model) == ["▲ 1 × truncated last line", "▲ Line 12 ends early."]


def test_other_groupings() -> None:
    assert [group.title for group in grouped(list(FINDINGS), "severity")] == ["errors", "warnings", "worth knowing"]
    assert [group.title for group in grouped(list(FINDINGS), "line")] == ["line 3", "line 5", "line 9", "line 12"]


def test_a_closed_group_stays_closed_when_the_report_changes(model: FindingsModel) -> None:
    model.set_expanded(0, False)
    model.set_report(Report("2.1.332", FINDINGS))
    assert not model.rows[0].expanded
    assert model.number_of(FINDINGS[1]) == 2
    assert model.rows[0].expanded


def test_a_finding_that_quotes_html_is_no_html_in_its_tool_tip(model: FindingsModel) -> None:
    model.set_report(Report("", (Finding("x", "", "error", '<img src="file:///etc/x">'),)))
    tip = model.index(1, 0).data(Qt.ItemDataRole.ToolTipRole)
    assert not Qt.mightBeRichText(tip)


# Parts of one finding -----------------------------------------------------------------------------------------


def orphan_session() -> bytes:
    """A call before a compaction, its result after it, and a call that nothing answers."""

    def record(kind: str, uuid: str, parent: str | None, content: Any, **more: Any) -> dict[str, Any]:
        message = {
            "role": kind,
            "content": content,
            **({"id": f"m{uuid}", "model": "m"} if kind == "assistant" else {}),
        }
        base = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "version": "2.1.120"}
        return {**base, "message": message, **more}

    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make"}}
    lost = {"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {"command": "ls"}}
    records = [
        record("user", "u1", None, "go"),
        record("assistant", "a1", "u1", [call]),
        {
            "type": "system",
            "subtype": "compact_boundary",
            "uuid": "b1",
            "parentUuid": None,
            "logicalParentUuid": "a1",
            "compactMetadata": {"trigger": "auto", "preTokens": 9},
            "sessionId": "s",
            "version": "2.1.120",
        },
        record("user", "s1", "b1", "summary", isCompactSummary=True),
        record("user", "r1", "s1", [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}]),
        record("assistant", "a2", "r1", [lost]),
        record("user", "u2", "a2", "next"),
    ]
    return b"".join(json.dumps(found).encode() + b"\n" for found in records)


def test_an_orphan_shows_its_missing_half_and_why() -> None:
    conversation = build_conversation(transcript_from_bytes(orphan_session()))
    finding = next(f for f in diagnose(conversation).findings if f.code == "result_without_tool_use")
    halves = halves_of(finding, conversation)
    assert halves[0] == Place(
        "call of toolu_1", "line 2, before the compact boundary on line 3", 1, 0 + halves[0].block
    )
    assert halves[1].text == "line 5"
    texts = [part.text for part in finding_parts(finding, conversation) if isinstance(part, Prose)]
    assert any("compaction on line 3" in text for text in texts)
    lost = next(f for f in diagnose(conversation).findings if f.code == "tool_use_without_result")
    assert halves_of(lost, conversation)[1] == Place("result of toolu_2", "✖ no record of this file holds its result")


def test_a_finding_shows_everything_known_of_it() -> None:
    finding = Finding(
        "tool_use_without_result",
        "R01",
        "error",
        "message",
        "api sentence",
        "messages.1",
        (5,),
        ("toolu_A",),
        repairs=(Repair("a", "Insert", True, "best"), Repair("b", "Ask", changes_file=False)),
        why="because",
        clients={"2.1.332": "drops the call"},
        details={"result_lines": [3]},
    )
    parts = finding_parts(finding, None)
    assert Code("api sentence") in parts
    assert Prose("because") in parts
    assert Prose("● Insert") in parts
    assert Prose("○ Ask (advice: nothing is written)") in parts
    assert Fields((("2.1.332", "drops the call"),)) in parts
    assert Fields((("result lines", "[3]"),)) in parts
    assert isinstance(parts[0], Heading)


@pytest.mark.parametrize(("client", "refused"), [("1.0.128", True), ("2.0.76", True), ("2.1.217", False)])
def test_a_finding_says_first_whose_request_the_api_refuses(sample_session: Path, client: str, refused: bool) -> None:
    conversation = open_session(sample_session).conversation
    finding = next(f for f in diagnose(conversation, client).findings if f.code == "result_without_tool_use")
    parts = finding_parts(finding, conversation, client)
    answer = next(number for number, part in enumerate(parts) if isinstance(part, Code))
    notes = [part.text for part in parts[:answer] if isinstance(part, Note)]
    # What the pane says of this client is what its request shows.
    assert any(v.rule == finding.rule for v in check_request(assemble(conversation, client))) is refused
    assert notes[0].startswith(f"Client {client} sends it as it is" if refused else f"Not refused with client {client}")
    assert notes[-1] == "The API answers clients 1.0.128 and 2.0.76:"


def test_a_fault_that_every_client_mends_is_refused_with_none() -> None:
    conversation = build_conversation(transcript_from_bytes(orphan_session()))
    lost = next(f for f in diagnose(conversation).findings if f.code == "tool_use_without_result")
    assert Note("The API would answer to the file as it stands:") in finding_parts(lost, None, "2.1.120")


def test_a_surrogate_is_refused_with_a_client_from_before_it_was_replaced() -> None:
    clients = clients_with("lone_surrogate")
    finding = Finding("lone_surrogate", "R39", "error", "message", "api sentence", clients=clients)
    refused = {client: refusal_with(finding, client) for client in ("2.1.131", "2.1.132")}
    assert [found.own_refused for found in refused.values() if found is not None] == [True, False]
    assert refusal_with(replace(finding, api_error=""), "2.1.131") is None


# The view -----------------------------------------------------------------------------------------------------

HELD: list[FindingsView] = []


@pytest.fixture
def context(qtbot: QtBot, qapp: Any, tmp_path: Path) -> Iterator[AppContext]:
    found = AppContext(Settings(tmp_path), Theme(qapp, "light"))
    yield found
    found.runner.close()
    HELD.clear()


def view_of(qtbot: QtBot, context: AppContext, session: Session) -> tuple[FindingsView, Document]:
    document = Document(None, "test")
    document.set_session(session)
    view = FindingsView(context, document)
    HELD.append(view)
    qtbot.addWidget(view)
    view.resize(1100, 500)
    view.show()
    qtbot.waitUntil(lambda: document.diagnosis.report is not None and not document.diagnosis.running)
    return view, document


def orphans(qtbot: QtBot, context: AppContext) -> tuple[FindingsView, Document]:
    return view_of(qtbot, context, Session(build_conversation(transcript_from_bytes(orphan_session()))))


def test_the_view_counts_and_shows_the_first_finding(qtbot: QtBot, context: AppContext) -> None:
    view, document = orphans(qtbot, context)
    errors = document.diagnosis.counts()["error"]
    assert errors == 2
    assert document.diagnosis.badge().startswith("✖ 2")
    assert view.severities["error"].text() == "✖ 2"
    assert view.severities["error"].accessibleName() == "2 errors"
    assert view.current_finding() is not None
    assert view.current_finding().message in view.text.toPlainText().replace("\n", " ")  # type: ignore[union-attr]


def test_enter_goes_to_the_record_and_its_block(qtbot: QtBot, context: AppContext) -> None:
    view, document = orphans(qtbot, context)
    finding = next(f for f in document.diagnosis.report.findings if f.code == "result_without_tool_use")  # type: ignore[union-attr]
    view.show_finding(finding)
    qtbot.keyClick(view.tree, Qt.Key.Key_Return)
    assert document.selection.record == 4
    assert document.selection.scope is Scope.BLOCK


def test_a_row_is_copied_with_all_its_cells(qtbot: QtBot, context: AppContext) -> None:
    view, _ = orphans(qtbot, context)
    finding = view.current_finding()
    assert finding is not None
    qtbot.keyClick(view.tree, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert finding.message in QGuiApplication.clipboard().text()
    assert f"line {finding.lines[0]}" in QGuiApplication.clipboard().text()


def test_a_link_goes_to_the_missing_half(qtbot: QtBot, context: AppContext) -> None:
    view, document = orphans(qtbot, context)
    finding = next(f for f in document.diagnosis.report.findings if f.code == "result_without_tool_use")  # type: ignore[union-attr]
    view.show_finding(finding)
    cursor = view.text.document().find("before the compact boundary")
    view.text.anchorClicked.emit(cursor.charFormat().anchorHref())
    assert document.selection.record == 1


def test_the_way_to_the_request_selects_the_place(qtbot: QtBot, context: AppContext) -> None:
    from inspector.views.as_sent_view import AsSentView

    view, document = orphans(qtbot, context)
    sent = AsSentView(context, document)
    qtbot.addWidget(sent)
    sent.show()

    class Window:
        def show_view(self, view_id: str) -> AsSentView:
            assert view_id == "as_sent"
            return sent

    context.workspace = Window()  # type: ignore[assignment]
    finding = next(f for f in document.diagnosis.report.findings if f.code == "result_without_tool_use")  # type: ignore[union-attr]
    view.show_finding(finding)
    view.to_request.click()
    assert context.runner.wait_until_idle()
    row = sent.tree.current_row()
    assert row is not None
    assert f"messages.{row.data.message}.content.{row.data.block}" == finding.wire
    assert any(v.rule == "R02" for v in row.data.violations)


def test_another_client_is_diagnosed_again(qtbot: QtBot, context: AppContext) -> None:
    view, document = orphans(qtbot, context)
    view.client.setCurrentIndex(view.client.findData("1.0.128"))
    view.client.activated.emit(view.client.currentIndex())
    qtbot.waitUntil(lambda: document.diagnosis.report is not None and document.diagnosis.report.client == "1.0.128")
    assert "1.0.128" in view.state.text()


def test_filter_and_switches_say_what_they_hide(qtbot: QtBot, context: AppContext) -> None:
    view, _ = orphans(qtbot, context)
    view.filter.setText("toolu_2")
    assert view.model.shown == 1
    assert "hidden by the filter" in view.state.text()
    view.filter.clear()
    view.severities["error"].click()
    assert all(row.data.severity != "error" for row in view.model.rows)


def test_stepping_begins_with_the_selected_finding_and_then_goes_on(qtbot: QtBot, context: AppContext) -> None:
    view, document = orphans(qtbot, context)
    first = view.current_finding()
    assert first is not None
    view.step(1)
    assert view.current_finding() == first
    assert document.selection.record in first.records
    view.step(1)
    assert view.current_finding() != first


def test_stepping_goes_round_all_findings_and_selects_their_records(qtbot: QtBot, context: AppContext) -> None:
    view, document = orphans(qtbot, context)
    report = document.diagnosis.report
    assert report is not None
    view.tree.select_row(0)
    seen = []
    for _ in report.findings:
        view.step(1)
        finding = view.current_finding()
        assert finding is not None
        seen.append(finding.key)
        assert document.selection.record in finding.records
    assert sorted(seen) == sorted(finding.key for finding in report.findings)
    view.step(-1)
    assert view.current_finding().key == seen[-2]  # type: ignore[union-attr]


def test_a_sound_session_says_so(qtbot: QtBot, context: AppContext) -> None:
    record = {"type": "user", "uuid": "u", "parentUuid": None, "sessionId": "s", "version": "2.1.332"}
    data = json.dumps({**record, "message": {"role": "user", "content": "hi"}}).encode() + b"\n"
    view, document = view_of(qtbot, context, Session(build_conversation(transcript_from_bytes(data))))
    assert document.diagnosis.badge() == ""
    assert view.state.text().startswith("✔ Nothing is wrong")
    assert not view.repair.isEnabled()


def test_records_know_their_findings(qtbot: QtBot, context: AppContext) -> None:
    _, document = orphans(qtbot, context)
    diagnosis = document.diagnosis
    assert 4 in diagnosis.records
    assert diagnosis.worst_of_record(4) == "error"
    assert diagnosis.of_record(0) == ()
    assert diagnosis.worst_of_record(0) == ""


def test_a_large_session_is_diagnosed_in_a_process_with_the_same_report(
    qtbot: QtBot, context: AppContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(orphan_session())
    monkeypatch.setattr("inspector.documents.diagnosis.PROCESS_BYTES", 0)
    document = Document(path)
    document.set_session(open_session(path))
    document.diagnosis.ensure(context.runner)
    qtbot.waitUntil(lambda: document.diagnosis.report is not None, timeout=60_000)
    assert document.session is not None
    assert document.diagnosis.report == diagnose(document.session)


def test_a_failed_diagnosis_says_so(qtbot: QtBot, context: AppContext, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_args: object) -> Report:
        raise UsageError("no such client", "choose another")

    monkeypatch.setattr("compaction.diagnosis.doctor.diagnose", failing)
    document = Document(None, "test")
    document.set_session(Session(build_conversation(transcript_from_bytes(orphan_session()))))
    view = FindingsView(context, document)
    HELD.append(view)
    qtbot.addWidget(view)
    qtbot.waitUntil(lambda: document.diagnosis.error is not None and not document.diagnosis.running)
    assert "no such client" in view.state.text()
    assert view.model.rows == []


def test_a_session_that_is_still_read_is_not_diagnosed(qtbot: QtBot, context: AppContext) -> None:
    conversation = build_conversation(transcript_from_bytes(orphan_session()))
    conversation.transcript.complete = False
    document = Document(None, "test")
    document.set_session(Session(conversation))
    document.diagnosis.ensure(context.runner)
    assert not document.diagnosis.running
    assert context.runner.jobs == ()


@needs_shared
@pytest.mark.parametrize("folder", case_folders(), ids=lambda folder: folder.name)
def test_the_cases_show_every_expected_code(qtbot: QtBot, context: AppContext, folder: Path) -> None:
    """Against expected.md of the shared cases, not against the doctor."""
    text = (folder / "expected.md").read_text(encoding="utf-8")
    expected = json.loads(text.split("```json", 1)[1].split("```", 1)[0])
    view, _ = view_of(qtbot, context, open_session(next(folder.glob("input.*"))))
    codes = {row.data.code for row in view.model.rows if not isinstance(row.data, FindingGroup)}
    for finding in expected:
        assert finding["code"] in codes
    for number in range(len(view.model.rows)):
        view.tree.select_row(number)
        assert view.text.toPlainText()


def test_places_of_parts_are_links(qtbot: QtBot) -> None:
    from inspector.views.detail.rich_view import RichView

    view = RichView()
    qtbot.addWidget(view)
    view.set_parts([Places((Place("call", "line 2", 1, 3), Place("result", "nowhere")))])
    chosen: list[Place] = []
    view.place_chosen.connect(chosen.append)
    view.anchorClicked.emit(view.document().find("line 2").charFormat().anchorHref())
    assert chosen == [Place("call", "line 2", 1, 3)]
    assert not view.document().find("nowhere").charFormat().isAnchor()
