"""Every real session and every case opens in the window: no error, rows to see, each view can be made (issue 2)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from inspector.context import AppContext
from inspector.documents.document import LoadState
from inspector.models.outline import Column
from inspector.views.main_window import MainWindow
from inspector.views.outline_view import OutlineView
from inspector.views.registry import VIEWS
from tests.support import case_folders, corpus_files, needs_shared

pytestmark = [pytest.mark.slow, needs_shared]


def inputs() -> list[Path]:
    cases = [path for folder in case_folders() for path in sorted(folder.rglob("*.json*")) if "expect" not in path.name]
    return [*corpus_files(), *cases]


@pytest.mark.parametrize("path", inputs(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_file_opens_without_an_error(window: MainWindow, app_context: AppContext, qtbot: QtBot, path: Path) -> None:
    document = window.open_path(path)
    assert app_context.runner.wait_until_idle(120)
    assert document.state is LoadState.READY
    tree = window.show_view("tree")
    assert isinstance(tree, OutlineView)
    tree.expand_all()
    assert app_context.runner.wait_until_idle(120)
    assert tree.model is not None
    for row in range(0, tree.model.rowCount(), max(1, tree.model.rowCount() // 100)):
        assert tree.model.cells(row).texts[Column.WHAT]
    for spec in VIEWS:
        window.show_view(spec.id)
        qtbot.wait(1)
        assert app_context.runner.wait_until_idle(120)
    assert [report.title + report.details for report in app_context.errors.reports] == []
