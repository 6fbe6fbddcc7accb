"""The next start says what an earlier run left unfinished, and tidies it on request only (issue 6, "Must hold")."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from compaction.errors import NothingWritten
from compaction.export.journal import Journal, file_sha256
from inspector.context import AppContext
from inspector.documents.unfinished import tell_unfinished
from inspector.views.main_window import MainWindow

WAIT = 5000


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    monkeypatch.setenv("COMPACTOSCOPE_DATA", str(tmp_path / "data"))
    return Journal()


def start(context: AppContext, window: MainWindow) -> None:
    tell_unfinished(context, window.message_bar)
    assert context.runner.wait_until_idle()


def test_a_start_after_a_clean_end_says_nothing(window: MainWindow, app_context: AppContext, journal: Journal) -> None:
    start(app_context, window)
    assert not window.message_bar.isVisible()
    assert not journal.folder.exists()


def test_what_was_left_is_told_and_tidied_by_the_button(
    window: MainWindow, app_context: AppContext, journal: Journal, tmp_path: Path, qtbot: QtBot
) -> None:
    half = journal.begin("compact", tmp_path / "half.jsonl")
    Path(half.temporary).write_bytes(b"ha")
    whole = journal.begin("export", tmp_path / "whole.html")
    Path(whole.target).write_bytes(b"all of it")
    journal.ready(whole, 9, file_sha256(Path(whole.target)))
    start(app_context, window)
    bar = window.message_bar
    assert bar.isVisible()
    assert "half.jsonl (compact" in bar.text
    assert "was not finished and does not exist" in bar.text
    assert "is whole" in bar.text
    assert Path(half.temporary).exists()
    bar.dismiss()
    start(app_context, window)
    assert bar.isVisible()
    bar.action.click()
    qtbot.waitUntil(lambda: not bar.isVisible(), timeout=WAIT)
    assert not Path(half.temporary).exists()
    assert Path(whole.target).read_bytes() == b"all of it"
    assert {e.state for e in journal.entries()} == {"failed", "done"}
    start(app_context, window)
    assert not bar.isVisible()


def test_what_another_process_writes_right_now_is_not_unfinished(
    window: MainWindow, app_context: AppContext, journal: Journal, tmp_path: Path
) -> None:
    code = (
        "import sys, pathlib; from compaction.export.journal import Journal; "
        "Journal().begin('export', pathlib.Path(sys.argv[1])); print('begun', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "other.md")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "begun\n"
        start(app_context, window)
        assert not window.message_bar.isVisible()
        other.stdin.close()
    start(app_context, window)
    assert "other.md" in window.message_bar.text


def test_an_error_stays_in_front_of_the_notice_and_replaces_it(
    window: MainWindow, app_context: AppContext, journal: Journal, tmp_path: Path
) -> None:
    journal.begin("compact", tmp_path / "half.jsonl")
    start(app_context, window)
    app_context.errors.report(NothingWritten("the disk is full"), "Writing")
    bar = window.message_bar
    assert "the disk is full" in bar.text
    assert not bar.action.isVisible()
    start(app_context, window)
    assert "the disk is full" in bar.text
