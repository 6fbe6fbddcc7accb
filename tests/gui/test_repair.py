"""The repair dialog: shown record by record, every choice open, a new file, undone through the journal (issue 4)."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QLabel, QRadioButton
from pytestqt.qtbot import QtBot

from compaction.conversation import Session, build_conversation, open_session
from compaction.diagnosis.doctor import diagnose
from compaction.diagnosis.model import Finding, Repair
from compaction.diagnosis.repair.plan import RecordChange
from compaction.export.journal import Journal
from compaction.resources import resource
from inspector.context import AppContext
from inspector.documents.derived import folder_of
from inspector.documents.document import Document
from inspector.models.repair import LEAVE, ChoicesModel, change_parts, default_choice
from inspector.rendering.parts import Code, Diff, Note
from inspector.settings import Settings
from inspector.theme import Theme
from inspector.views.repair_dialog import RepairDialog, default_target, is_session_id
from tests.gui.test_findings import orphan_session
from tests.support import case_folders, needs_shared

HELD: list[RepairDialog] = []


@pytest.fixture
def context(qtbot: QtBot, qapp: Any, tmp_path: Path, own_data_folder: Path) -> Iterator[AppContext]:
    found = AppContext(Settings(tmp_path / "settings"), Theme(qapp, "light"))
    yield found
    found.runner.close()
    for dialog in HELD:
        dialog._document.close()
    HELD.clear()


@pytest.fixture
def session_file(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    path.write_bytes(orphan_session())
    return path


def dialog_of(qtbot: QtBot, context: AppContext, path: Path) -> tuple[RepairDialog, Document]:
    document = Document(path)
    document.set_session(open_session(path))
    dialog = RepairDialog(context, document)
    HELD.append(dialog)
    qtbot.addWidget(dialog)
    dialog.show()
    assert context.runner.wait_until_idle()
    assert dialog.plan is not None
    return dialog, document


def options(dialog: RepairDialog) -> list[QRadioButton]:
    found = dialog._options.findChildren(QRadioButton)
    return [button for button in found if button in (dialog._group.buttons() if dialog._group else [])]


def test_the_plan_is_shown_for_each_record(qtbot: QtBot, context: AppContext, session_file: Path) -> None:
    dialog, _ = dialog_of(qtbot, context, session_file)
    assert dialog.plan is not None
    assert len(dialog.changes.rows) == len(dialog.plan.changes) > 0
    assert "No error is left" in dialog.state.text()
    assert "unchanged byte for byte" in dialog.state.text()
    for number in range(len(dialog.changes.rows)):
        dialog.changes_tree.select_row(number)
        assert "+" in dialog.preview.toPlainText()


def test_writing_makes_a_new_file_without_errors_and_leaves_the_original(
    qtbot: QtBot, context: AppContext, session_file: Path
) -> None:
    before = session_file.read_bytes()
    dialog, document = dialog_of(qtbot, context, session_file)
    dialog.write.click()
    assert context.runner.wait_until_idle()
    assert dialog.written is not None
    assert dialog.written.path == session_file.with_name("session.repaired.jsonl")
    assert session_file.read_bytes() == before
    assert not diagnose(build_conversation(open_session(dialog.written.path).transcript)).errors()
    untouched = set(before.splitlines()) & set(dialog.written.path.read_bytes().splitlines())
    assert dialog.plan is not None
    assert len(untouched) == dialog.plan.counts()["unchanged_lines"]
    entries = Journal().entries()
    assert [(entry.operation, entry.state) for entry in entries] == [("repair", "done")]
    assert entries[0].lineage["repairs"]
    assert document.undo_stack.canUndo()


def test_undo_removes_the_file_and_redo_writes_it_again(qtbot: QtBot, context: AppContext, session_file: Path) -> None:
    dialog, document = dialog_of(qtbot, context, session_file)
    dialog.write.click()
    assert context.runner.wait_until_idle()
    assert dialog.written is not None
    path, data = dialog.written.path, dialog.written.path.read_bytes()
    assert document.undo_stack.undoText() == "Repair to session.repaired.jsonl"
    document.undo_stack.undo()
    assert context.runner.wait_until_idle()
    assert not path.exists()
    document.undo_stack.redo()
    assert context.runner.wait_until_idle()
    assert path.read_bytes() == data


def test_undo_keeps_a_file_that_was_changed_since(qtbot: QtBot, context: AppContext, session_file: Path) -> None:
    dialog, document = dialog_of(qtbot, context, session_file)
    dialog.write.click()
    assert context.runner.wait_until_idle()
    assert dialog.written is not None
    with dialog.written.path.open("ab") as stream:
        stream.write(b'{"type":"user"}\n')
    document.undo_stack.undo()
    assert context.runner.wait_until_idle()
    assert dialog.written.path.exists()
    assert "changed after it was written" in context.errors.reports[-1].cause


def test_an_existing_file_is_not_replaced(qtbot: QtBot, context: AppContext, session_file: Path) -> None:
    other = session_file.with_name("other.jsonl")
    other.write_text("mine")
    dialog, document = dialog_of(qtbot, context, session_file)
    dialog.target.setText(str(other))
    dialog.write.click()
    assert context.runner.wait_until_idle()
    assert other.read_text() == "mine"
    assert "exists already" in dialog.state.text()
    assert not document.undo_stack.canUndo()
    dialog.target.setText(str(session_file))
    dialog.write.click()
    assert context.runner.wait_until_idle()
    assert "original" in dialog.state.text()


def test_every_choice_is_open_and_changes_the_plan(qtbot: QtBot, context: AppContext, session_file: Path) -> None:
    dialog, _ = dialog_of(qtbot, context, session_file)
    row = next(n for n, r in enumerate(dialog.choices.rows) if r.data.code == "result_without_tool_use")
    finding: Finding = dialog.choices.rows[row].data
    dialog.findings_tree.select_row(row)
    titles = [button.text() for button in options(dialog)]
    assert titles == [*(r.title for r in finding.repairs if r.changes_file), "Leave as it is"]
    assert options(dialog)[0].isChecked()
    for repair in (r for r in finding.repairs if r.changes_file and not r.default):
        next(b for b in options(dialog) if b.text() == repair.title).click()
        assert context.runner.wait_until_idle()
        assert dialog.plan is not None
        assert repair.name in [made.repair for made in dialog.plan.made]
        assert dialog.choices.text(dialog.choices.rows[row], 2) == repair.title
    options(dialog)[-1].click()
    assert context.runner.wait_until_idle()
    assert dialog.plan is not None
    assert finding.key in [left.key for left in dialog.plan.findings_after]
    assert "▲" in dialog.state.text()


def test_leaving_everything_as_it_is_writes_nothing(qtbot: QtBot, context: AppContext, session_file: Path) -> None:
    dialog, _ = dialog_of(qtbot, context, session_file)
    for number in range(len(dialog.choices.rows)):
        dialog.findings_tree.select_row(number)
        options(dialog)[-1].click()
        assert context.runner.wait_until_idle()
    assert "there is nothing to write" in dialog.state.text()
    assert not dialog.write.isEnabled()
    assert "No record changes" in dialog.preview.toPlainText()


def test_the_default_name_is_free_and_beside_the_original(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    assert default_target(Document(path)).name == "s.repaired.jsonl"
    (tmp_path / "s.repaired.jsonl").touch()
    assert default_target(Document(path)).name == "s.repaired-2.jsonl"
    assert default_target(Document(tmp_path / "request.json")).name == "request.repaired.json"


def test_what_is_made_of_the_sample_goes_to_the_home_folder_not_into_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    sample = Document(resource("sample", "tide-tables.jsonl"))
    assert default_target(sample) == tmp_path / "tide-tables.repaired.jsonl"
    assert folder_of(sample) == tmp_path


def test_a_session_gets_a_new_id_and_any_other_file_its_own_name(
    qtbot: QtBot, context: AppContext, session_file: Path
) -> None:
    dialog, _ = dialog_of(qtbot, context, session_file)
    assert Path(dialog.target.text()).name == "session.repaired.jsonl"
    session = session_file.rename(session_file.with_name("0b9f1f6a-4c1c-4d57-9b5e-1f3a5b1f0a11.jsonl"))
    dialog, _ = dialog_of(qtbot, context, session)
    target = Path(dialog.target.text())
    assert is_session_id(target.stem)
    assert target.parent == session.parent
    assert target != session


def test_bytes_that_are_in_no_record_are_kept_in_a_report(
    qtbot: QtBot, context: AppContext, session_file: Path
) -> None:
    session_file.write_bytes(session_file.read_bytes() + b"\x00" * 40 + b"{broken\n")
    dialog, document = dialog_of(qtbot, context, session_file)
    dialog.write.click()
    assert context.runner.wait_until_idle()
    report = session_file.with_name("session.repaired.jsonl.left-out.json")
    kept = b"".join(base64.b64decode(piece["base64"]) for piece in json.loads(report.read_text()))
    assert b"{broken" in kept
    document.undo_stack.undo()
    assert context.runner.wait_until_idle()
    assert not report.exists()


def test_a_change_is_shown_member_by_member() -> None:
    change = RecordChange(3, 4, "u", "replace", b'{"a":1,"b":2}', b'{"a":1,"b":3}', "code", "reason")
    parts = change_parts(change)
    shown = next(part for part in parts if isinstance(part, Diff))
    assert [(row.sign, row.text.strip()) for row in shown.rows if row.sign in "+-"] == [
        ("-", '"b": 2'),
        ("+", '"b": 3'),
    ]
    assert Note("reason") in parts


@pytest.mark.parametrize("data", [b"\xff\x00 not json", b"[" * 100_000, b"x" * 2_000_000])
def test_a_change_of_odd_bytes_is_shown(data: bytes) -> None:
    parts = change_parts(RecordChange(-1, 4, "", "leave_out", data, None, "nul_padding", "In no whole record."))
    assert any(isinstance(part, Diff | Code) for part in parts)


def test_only_errors_are_mended_unasked() -> None:
    repairs = (Repair("first", "First"), Repair("second", "Second"))
    assert default_choice(Finding("c", "", "error", "m", repairs=repairs)) == "first"
    assert default_choice(Finding("c", "", "warning", "m", repairs=repairs)) == LEAVE
    marked = (Repair("first", "First"), Repair("second", "Second", default=True))
    assert default_choice(Finding("c", "", "error", "m", repairs=marked)) == "second"


def test_the_choices_model_is_quiet(qtbot: QtBot) -> None:
    model = ChoicesModel()
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal, model)
    repairs = (Repair("first", "First", True), Repair("second", "Second"))
    finding = Finding("c", "R01", "error", "m", lines=(3,), repairs=repairs)
    model.set_findings((finding, Finding("d", "", "info", "nothing to mend")))
    assert len(model.rows) == 1
    model.choose(finding, "second")
    assert model.choices == {finding.key: "second"}
    model.choose(finding, "first")
    assert model.choices == {}


@needs_shared
@pytest.mark.parametrize("folder", case_folders(), ids=lambda folder: folder.name)
def test_the_shared_cases_are_repaired_from_the_window(
    qtbot: QtBot, context: AppContext, folder: Path, tmp_path: Path
) -> None:
    source = next(folder.glob("input.*"))
    path = tmp_path / f"session{source.suffix}"
    shutil.copy(source, path)
    dialog, _ = dialog_of(qtbot, context, path)
    assert dialog.plan is not None
    left = [f for f in dialog.plan.findings_after if f.severity == "error"]
    assert not [f for f in left if any(repair.changes_file for repair in f.repairs)]
    if not dialog.plan.changes_anything:
        assert not dialog.write.isEnabled()
        return
    dialog.write.click()
    assert context.runner.wait_until_idle()
    assert dialog.written is not None
    again = diagnose(Session(open_session(dialog.written.path).conversation))
    assert {f.code for f in again.errors()} == {f.code for f in left}


def test_the_dialog_says_that_files_of_subagents_stay_with_the_original(
    qtbot: QtBot, context: AppContext, sample_session: Path
) -> None:
    dialog, document = dialog_of(qtbot, context, sample_session)
    assert document.session is not None
    assert len(document.session.subagents) == 1
    assert any("1 file of a subagent stays with the original" in x.text() for x in dialog.findChildren(QLabel))
