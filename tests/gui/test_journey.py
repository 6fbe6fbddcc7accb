"""The way that needs no manual (issue 6, "Must hold"): sample, orphan, reason, compare, apply, export, request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from compaction.resources import resource
from inspector.context import AppContext
from inspector.views.compare.view import CompareView
from inspector.views.export_dialog import ExportDialog
from inspector.views.main_window import MainWindow

WAIT = 30_000


def test_from_the_start_page_to_the_result_request(
    window: MainWindow, app_context: AppContext, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPACTOSCOPE_DATA", str(tmp_path / "data"))
    before = Path(resource("sample", "tide-tables.jsonl")).read_bytes()
    QTest.mouseClick(window.start_page.sample_button, Qt.MouseButton.LeftButton)
    assert app_context.runner.wait_until_idle()
    document = window.current_document
    assert document is not None
    # The orphan and its reason stand in the findings, which are open from the start.
    qtbot.waitUntil(lambda: "1" in document.diagnosis.badge(), timeout=WAIT)
    report = document.diagnosis.report
    assert report is not None
    orphan = next(finding for finding in report.findings if finding.severity == "error")
    assert orphan.rule == "R02"
    assert orphan.message
    assert orphan.repairs
    # Compare, by its action.
    assert app_context.actions.run("session.compare")
    view = window.view_widget("compare")
    assert isinstance(view, CompareView)
    qtbot.waitUntil(lambda: not any(c.stale for c in view.workbench.columns), timeout=WAIT)
    QTest.mouseClick(view.apply_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(window.documents) == 2, timeout=WAIT)
    assert app_context.runner.wait_until_idle()
    derived = window.current_document
    assert derived is not None
    assert derived.parent_document is document
    # Export as the request that the API takes, and read it.
    dialog = ExportDialog(app_context, derived)
    qtbot.addWidget(dialog)
    dialog.format.setCurrentIndex(dialog.format.findData("messages"))
    target = tmp_path / "request.json"
    dialog.target.setText(str(target))
    dialog.write.click()
    qtbot.waitUntil(lambda: dialog.written is not None, timeout=WAIT)
    body = json.loads(target.read_text("utf-8"))
    results = [b for m in body["messages"] for b in m["content"] if b.get("type") == "tool_result"]
    assert any("[Old tool result content cleared]" in str(b["content"]) for b in results)
    assert window.show_view("as_sent") is not None
    assert app_context.runner.wait_until_idle()
    assert Path(resource("sample", "tide-tables.jsonl")).read_bytes() == before
