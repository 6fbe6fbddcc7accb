"""Every GUI test leaves the process as it found it: no thread, no window, no object waiting to be deleted."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from inspector.app import make_context
from inspector.context import AppContext
from inspector.settings import Settings
from inspector.views.main_window import MainWindow
from inspector.work.smooth import IdleCollector

_GRACE_SECONDS = 5.0


@pytest.fixture(autouse=True)
def nothing_leaks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a running thread or a visible window behind.

    `qtbot` only posts the deletion of its widgets; without delivering it here the next test would meet them.
    """
    threads_before = set(threading.enumerate())
    yield
    app = QApplication.instance()
    if app is None:
        return
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    gc.collect()
    deadline = time.monotonic() + _GRACE_SECONDS
    while (left := _running(threads_before)) and time.monotonic() < deadline:
        QCoreApplication.processEvents()
        time.sleep(0.01)
    assert not left, f"threads still run after the test: {[thread.name for thread in left]}"
    shown = [widget for widget in QApplication.topLevelWidgets() if widget.isVisible()]
    for widget in shown:
        widget.close()
    assert not shown, f"windows are still open after the test: {shown}"


@pytest.fixture
def app_context(qtbot: QtBot, tmp_path: Path) -> Iterator[AppContext]:
    """A whole context as the program makes it, with every action bound and settings of this test alone."""
    context = make_context(Settings(tmp_path / "config"), "light")
    collector = IdleCollector(context.runner)  # as the program does: garbage is collected on the GUI thread only
    yield context
    context.runner.close()
    context.actions.release()
    context.workspace = None
    collector.stop()


@pytest.fixture
def window(app_context: AppContext, qtbot: QtBot) -> MainWindow:
    """The main window, shown, with the default layout."""
    shown = MainWindow(app_context)
    qtbot.addWidget(shown)
    shown.restore_layout()
    shown.resize(1280, 800)
    shown.show()
    shown.activateWindow()
    qtbot.waitUntil(shown.isActiveWindow, timeout=5000)
    return shown


def _running(before: set[threading.Thread]) -> list[threading.Thread]:
    # Threads without a Python frame of ours (Qt's own, pytest-timeout's timer) are not made by the test.
    return [
        thread
        for thread in threading.enumerate()
        if thread not in before
        and thread.is_alive()
        and not isinstance(thread, (threading._DummyThread, threading.Timer))
    ]
