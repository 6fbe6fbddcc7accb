"""Summaries in the window: audit, fresh summaries, consent before anything is sent (issue 8)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from compaction.conversation import open_session
from compaction.resources import resource
from inspector.context import AppContext
from inspector.documents.document import Document
from inspector.models.audit import AuditModel
from inspector.settings import API_BASE_URL, API_MODEL
from inspector.views.summaries.api_dialog import ApiDialog
from inspector.views.summaries.audit_page import AuditPage
from inspector.views.summaries.consent_dialog import ConsentDialog
from inspector.views.summaries.prompt_dialog import PromptDialog
from inspector.views.summaries.server_page import ServerPage
from inspector.views.summaries.view import SummariesView
from tests.unit.summaries.loopback import ANSWER, Api, body, serving, stream
from tests.unit.summaries.test_dry_run import BLOCK, compaction

SUMMARY_DONE = 15_000


@pytest.fixture
def document() -> Document:
    found = Document(Path(resource("sample", "tide-tables.jsonl")))
    found.set_session(open_session(found.main_path))
    return found


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, app_context: AppContext) -> Iterator[Api]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
    with serving() as found:
        app_context.settings.set(API_BASE_URL, found.url)
        yield found


def answer_consent(*, send: bool) -> list[ConsentDialog]:
    """Press a button of the consent dialog as soon as it is there; the list holds the dialog afterwards."""
    seen: list[ConsentDialog] = []
    timer = QTimer()
    timer.setInterval(20)

    def look() -> None:
        found = QApplication.activeModalWidget()
        if isinstance(found, ConsentDialog):
            timer.stop()
            seen.append(found)
            found.show_request.setChecked(True)
            (found.accept if send else found.reject)()

    timer.timeout.connect(look)
    timer.start()
    seen_timer[:] = [timer]
    return seen


seen_timer: list[QTimer] = []


def page(app_context: AppContext, document: Document, qtbot: QtBot) -> AuditPage:
    found = AuditPage(app_context, document)
    qtbot.addWidget(found)
    qtbot.waitUntil(lambda: bool(found.model.rows), timeout=SUMMARY_DONE)
    return found


def test_the_recorded_summary_stands_beside_the_audit_of_its_sources(
    app_context: AppContext, document: Document, qtbot: QtBot
) -> None:
    found = page(app_context, document, qtbot)
    QAbstractItemModelTester(found.model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    assert found.compaction.count() == 3
    assert len(found.recorded_text.text) > 100
    kinds = {row.kind for row in found.model.rows}
    assert {"user message", "file"} <= kinds
    found.missing.setChecked(True)
    assert all(not row.recorded_present for row in found.model.rows)


def test_an_offline_summary_is_compared_without_any_request(
    app_context: AppContext, document: Document, qtbot: QtBot, api: Api
) -> None:
    found = page(app_context, document, qtbot)
    qtbot.mouseClick(found.offline, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: any(row.fresh is not None for row in found.model.rows), timeout=SUMMARY_DONE)
    assert "made offline" in found.fresh_text.text
    assert api.requests == []


def test_nothing_is_sent_when_the_person_declines(
    app_context: AppContext, document: Document, qtbot: QtBot, api: Api
) -> None:
    found = page(app_context, document, qtbot)
    seen = answer_consent(send=False)
    qtbot.mouseClick(found.model_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(seen) and found.model_button.isEnabled(), timeout=SUMMARY_DONE)
    assert api.requests == []
    assert '"messages"' in seen[0].text.text


def test_a_model_is_asked_after_consent_and_its_summary_is_audited(
    app_context: AppContext, document: Document, qtbot: QtBot, api: Api
) -> None:
    api.replies = [stream()]
    found = page(app_context, document, qtbot)
    answer_consent(send=True)
    qtbot.mouseClick(found.model_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: any(row.fresh is not None for row in found.model.rows), timeout=SUMMARY_DONE)
    assert "build it" in found.fresh_text.text
    assert "<analysis>" not in found.fresh_text.text
    assert len(api.requests) == 1
    assert ANSWER not in str(api.requests[0]["body"])


def test_a_failure_is_explained_and_nothing_is_kept(
    app_context: AppContext, document: Document, qtbot: QtBot, api: Api
) -> None:
    api.replies = [stream("no summary in here")]
    found = page(app_context, document, qtbot)
    answer_consent(send=True)
    qtbot.mouseClick(found.model_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "no <summary> block" in found.state.text(), timeout=SUMMARY_DONE)
    qtbot.waitUntil(found.model_button.isEnabled)
    assert found.fresh_text.text.startswith("None yet")


def test_enter_in_the_consent_dialog_does_not_send(qtbot: QtBot) -> None:
    dialog = ConsentDialog([("host", "example.org")], {"messages": []})
    qtbot.addWidget(dialog)
    dialog.show()
    qtbot.keyClick(dialog, Qt.Key.Key_Return)
    assert dialog.result() == 0


def test_the_prompt_is_read_changed_and_restored(qtbot: QtBot) -> None:
    dialog = PromptDialog("standard", "")
    qtbot.addWidget(dialog)
    assert dialog.prompt() == ""
    dialog.editor.setPlainText("another")
    assert dialog.prompt() == "another"
    dialog.restore.click()
    assert dialog.prompt() == ""


def test_memory_and_the_apis_count(app_context: AppContext, document: Document, qtbot: QtBot, api: Api) -> None:
    api.replies = [body({"input_tokens": 1200, "context_management": {"original_input_tokens": 3400}})]
    view = SummariesView(app_context, document)
    qtbot.addWidget(view)
    qtbot.waitUntil(lambda: "no memory yet" in view.memory.state.text(), timeout=SUMMARY_DONE)
    view.memory.update_button.click()
    qtbot.waitUntil(lambda: "kept by Compactoscope" in view.memory.state.text(), timeout=SUMMARY_DONE)
    assert "1. Primary Request and Intent" in view.memory.text.text
    view.dry_run.strategy.setCurrentIndex(view.dry_run.strategy.findData("api-clear-thinking"))
    qtbot.waitUntil(lambda: "clear_thinking_20251015" in view.dry_run.request.text, timeout=SUMMARY_DONE)
    answer_consent(send=True)
    view.dry_run.ask.click()
    qtbot.waitUntil(lambda: "3,400 → 1,200" in view.dry_run.theirs.text(), timeout=SUMMARY_DONE)
    sent = api.requests[0]
    assert "count_tokens" in sent["path"]
    assert sent["body"]["context_management"]["edits"][0]["type"] == "clear_thinking_20251015"


def test_api_settings_are_kept_and_the_key_is_not(app_context: AppContext, qtbot: QtBot) -> None:
    dialog = ApiDialog(app_context.settings, app_context.runner)
    qtbot.addWidget(dialog)
    dialog.model.setCurrentText("claude-opus-5-5")
    dialog.key.setText("sk-ant-secret")
    dialog._on_accept()
    assert app_context.settings.get(API_MODEL) == "claude-opus-5-5"
    app_context.settings.sync()
    stored = Path(app_context.settings._store.fileName()).read_text()
    assert "sk-ant-secret" not in stored


def test_the_audit_model_is_quiet_when_empty() -> None:
    model = AuditModel()
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_audits(None, None)
    assert model.rowCount() == 0


def test_the_api_compacts_after_consent_and_its_block_is_saved(
    app_context: AppContext, document: Document, qtbot: QtBot, api: Api, tmp_path: Path
) -> None:
    api.replies = [compaction(BLOCK)]
    found = ServerPage(app_context, document)
    qtbot.addWidget(found)
    qtbot.waitUntil(found.ask.isEnabled, timeout=SUMMARY_DONE)
    assert api.requests == []
    answer_consent(send=True)
    found.ask.click()
    qtbot.waitUntil(found.save.isEnabled, timeout=SUMMARY_DONE)
    assert found.text.text == "what happened"
    target = tmp_path / "continued.json"
    found.write(target)
    qtbot.waitUntil(lambda: "Written" in found.state.text(), timeout=SUMMARY_DONE)
    assert json.loads(target.read_bytes())["messages"] == [{"role": "assistant", "content": [BLOCK]}]
