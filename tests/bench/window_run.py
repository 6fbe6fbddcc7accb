"""What `bench_window` runs in a process of its own: the real window, offscreen."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QEvent, QEventLoop, QMessageLogContext, QObject, QTimer, QtMsgType, qInstallMessageHandler
from PySide6.QtWidgets import QApplication, QTableView

from inspector.app import application, make_context
from inspector.documents.document import LoadState
from inspector.views.main_window import MainWindow
from inspector.work.smooth import IdleCollector

_PATIENCE_SECONDS = 300


class FirstRows(QObject):
    """Remembers when a table first painted rows."""

    def __init__(self) -> None:
        super().__init__()
        self.when = 0.0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Let everything pass; look at paint events of table viewports."""
        if not self.when and event.type() == QEvent.Type.Paint:
            table = watched.parent()
            if isinstance(table, QTableView) and table.objectName() == "outline" and table.model() is not None:
                self.when = time.time() if table.model().rowCount() else 0.0
        return False


class Gaps:
    """The longest time in which the GUI thread answered nothing, in seconds."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._last = time.perf_counter()
        self._timer = QTimer()
        self._timer.timeout.connect(self._tick)
        self._timer.start(4)

    def _tick(self) -> None:
        now = time.perf_counter()
        self.longest = max(self.longest, now - self._last)
        self._last = now


def start_up(launched: float) -> float:
    """Seconds from the launch of the process to the painted start page."""
    window = _window()
    seconds = time.time() - launched
    window.close()
    return seconds


def open_file(path: str, launched: float) -> dict[str, Any]:
    """Open a session in the window.

    Returns seconds from the launch to the first painted rows and to all of them, the longest gap of the GUI thread, and
    milliseconds of scrolling by a page (median and worst of 200 places), all rows open.
    """
    watch = FirstRows()
    app = application()
    app.installEventFilter(watch)
    window = _window()
    gaps = Gaps()
    document = window.open_path(path)
    runner = window._context.runner
    _wait(lambda: bool(watch.when) and document.state is LoadState.READY and not runner.jobs)
    complete = time.time() - launched
    gap = gaps.longest
    table = window.findChild(QTableView, "outline")
    pages = _scroll(app, table)
    rows = table.model().rowCount()
    records = len(document.session.transcript)
    window.close()
    return {
        "first_rows": watch.when - launched,
        "complete": complete,
        "longest_gap_ms": gap * 1000,
        "page_ms": statistics.median(pages),
        "worst_page_ms": max(pages),
        "rows": rows,
        "records": records,
    }


def _wait(done: Callable[[], bool]) -> None:
    """Run the event loop as the program does until `done`; a busy loop would take the workers' share of Python."""
    loop, timer, deadline = QEventLoop(), QTimer(), time.time() + _PATIENCE_SECONDS
    timer.timeout.connect(lambda: loop.quit() if done() or time.time() > deadline else None)
    timer.start(20)
    loop.exec()


def _window() -> MainWindow:
    qInstallMessageHandler(_on_message)
    app = application()
    context = make_context()
    IdleCollector(context.runner)  # as `inspector.app.run` does
    window = MainWindow(context)
    window.resize(1280, 800)
    window.show()
    app.processEvents()
    return window


def _on_message(_kind: QtMsgType, _where: QMessageLogContext, text: str) -> None:
    # The offscreen platform has no window manager to tell size hints to, and says so for each window.
    if "propagateSizeHints" not in text:
        sys.stderr.write(text + "\n")


def _scroll(app: QApplication, table: QTableView, places: int = 200) -> list[float]:
    """Milliseconds of GUI-thread time of going to a place and painting the page there, at evenly spread places."""
    bar = table.verticalScrollBar()
    times = []
    for number in range(places):
        before = time.perf_counter()
        bar.setValue(bar.maximum() * number // places)
        table.viewport().repaint()
        times.append((time.perf_counter() - before) * 1000)
        app.processEvents()
    return times
