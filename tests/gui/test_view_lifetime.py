"""Views of a document end with it: nothing long-lived holds them (qt.md 2f)."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from pytestqt.qtbot import QtBot

from compaction.conversation import open_session
from inspector.context import AppContext
from inspector.documents.document import Document
from inspector.settings import Settings
from inspector.theme import Theme
from inspector.views.as_sent_view import AsSentView
from inspector.views.detail.pane import DetailPane
from inspector.views.findings_view import FindingsView
from inspector.views.repair_dialog import RepairDialog


@pytest.fixture
def context(qtbot: QtBot, qapp: Any, tmp_path: Path) -> Iterator[AppContext]:
    found = AppContext(Settings(tmp_path), Theme(qapp, "light"))
    yield found
    found.runner.close()


@pytest.mark.parametrize("view", [DetailPane, AsSentView, FindingsView, RepairDialog])
def test_a_view_is_freed_when_it_is_deleted(context: AppContext, sample_session: Path, view: type[Any]) -> None:
    document = Document(sample_session)
    document.set_session(open_session(sample_session))
    document.diagnosis.ensure(context.runner)
    widget = view(context, document)
    widget.show()
    assert context.runner.wait_until_idle()
    document.select_record(5)
    QCoreApplication.processEvents()
    assert context.runner.wait_until_idle()
    freed = weakref.ref(widget)
    widget.close()
    widget.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    del widget
    gc.collect()
    assert freed() is None
    document.select_record(6)
    document.diagnosis.changed.emit()
    document.reloaded.emit()
    document.close()
