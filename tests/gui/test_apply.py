"""Applying a strategy opens a derived session; undo, redo, chaining and export; the original stays (issue 6)."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from compaction.conversation import open_session
from compaction.resources import resource
from compaction.transcript import open_transcript
from inspector.context import AppContext
from inspector.documents.derived import apply_column, can_apply, client_folder, suggested_name, why_not
from inspector.documents.document import Document
from inspector.documents.workbench import Workbench, workbench_of
from inspector.views.export_dialog import ExportDialog
from inspector.views.main_window import MainWindow

WAIT = 20_000


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    path = tmp_path / "tide-tables.jsonl"
    path.write_bytes(Path(resource("sample", "tide-tables.jsonl")).read_bytes())
    return path


def ready(context: AppContext, document: Document, qtbot: QtBot) -> Workbench:
    workbench = workbench_of(context, document)
    workbench.start()
    qtbot.waitUntil(lambda: not any(c.stale for c in workbench.columns), timeout=WAIT)
    return workbench


def apply(context: AppContext, document: Document, name: str, qtbot: QtBot) -> None:
    workbench = ready(context, document, qtbot)
    column = next(c for c in workbench.columns if c.strategy.name == name)
    assert can_apply(column)
    done: list[bool] = []
    apply_column(context, document, workbench, column).finished(lambda: done.append(True))
    qtbot.waitUntil(lambda: bool(done), timeout=WAIT)


def test_every_column_that_cannot_be_applied_says_why(
    app_context: AppContext, window: MainWindow, copy: Path, qtbot: QtBot
) -> None:
    document = window.open_path(copy)
    qtbot.waitUntil(lambda: document.session is not None and document.session.transcript.complete, timeout=WAIT)
    reasons = {c.strategy.name: why_not(c) for c in ready(app_context, document, qtbot).columns}
    assert reasons["microcompact-time"] == ""
    assert "180,000" in reasons["api-clear-tool-uses"]
    assert "no record of the file" in reasons["api-clear-thinking"]
    assert "first" in why_not(None)


def test_apply_undo_redo_chain_and_export(
    app_context: AppContext, window: MainWindow, copy: Path, qtbot: QtBot
) -> None:
    before = hashlib.sha256(copy.read_bytes()).hexdigest()
    original = window.open_path(copy)
    qtbot.waitUntil(lambda: original.session is not None and original.session.transcript.complete, timeout=WAIT)
    apply(app_context, original, "microcompact-time", qtbot)
    derived = window.current_document
    assert derived is not None
    assert derived is not original
    assert derived.path is None
    assert derived.title == "tide-tables · MicroCompact, time-based"
    assert derived.lineage[0] == "tide-tables.jsonl"
    assert derived.session is not None
    once = derived.session.transcript
    cleared = [i for i in range(len(once)) if b"[Old tool result content cleared]" in once.record_bytes(i)]
    assert cleared
    derived.undo_stack.undo()
    assert derived.session is original.session
    derived.undo_stack.redo()
    assert derived.session.transcript is once
    apply(app_context, derived, "context-collapse", qtbot)
    assert window.current_document is derived
    assert derived.undo_stack.count() == 2
    assert len(derived.lineage) == 3
    dialog = ExportDialog(app_context, derived)
    qtbot.addWidget(dialog)
    target = copy.with_name("exported.jsonl")
    dialog.target.setText(str(target))
    dialog._on_write()
    qtbot.waitUntil(lambda: dialog.written is not None, timeout=WAIT)
    assert dialog.written is not None
    assert dialog.written.entry.lineage["steps"] == list(derived.lineage)
    written = open_transcript(target)
    assert derived.session is not None
    twice = derived.session.transcript
    assert [written.record_bytes(i) for i in range(len(written))] == [twice.record_bytes(i) for i in range(len(twice))]
    derived.undo_stack.undo()
    qtbot.waitUntil(lambda: not target.exists(), timeout=WAIT)
    assert hashlib.sha256(copy.read_bytes()).hexdigest() == before


def test_an_existing_file_is_not_overwritten(app_context: AppContext, copy: Path, qtbot: QtBot) -> None:
    document = Document(copy)
    document.set_session(open_session(copy))
    dialog = ExportDialog(app_context, document)
    qtbot.addWidget(dialog)
    dialog.target.setText(str(copy))
    assert "exists" in dialog.state.text()
    content = copy.read_bytes()
    dialog._on_write()
    qtbot.waitUntil(lambda: dialog.state.text().startswith("✖"), timeout=WAIT)
    assert copy.read_bytes() == content


def test_the_clients_folder_is_offered_and_never_the_default(
    app_context: AppContext, copy: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "client"))
    document = Document(copy)
    document.set_session(open_session(copy))
    dialog = ExportDialog(app_context, document)
    qtbot.addWidget(dialog)
    assert Path(dialog.target.text()).parent == tmp_path
    dialog.client_folder.click()
    assert Path(dialog.target.text()).parent == tmp_path / "client" / "projects" / "-Users-ada-tide-tables"
    assert client_folder(document) == tmp_path / "client" / "projects" / "-Users-ada-tide-tables"
    assert not (tmp_path / "client").exists()
    assert suggested_name(document, ".jsonl", new_id=True) != suggested_name(document, ".jsonl", new_id=True)
