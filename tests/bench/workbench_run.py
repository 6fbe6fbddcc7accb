"""What `bench_workbench` runs in a process of its own: Compare in the real window, offscreen."""

from __future__ import annotations

import statistics
import time
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtWidgets import QSpinBox

from inspector.documents.document import LoadState
from inspector.documents.workbench import DEBOUNCE_MILLISECONDS
from inspector.views.compare.view import CompareView
from inspector.work.smooth import IdleCollector
from tests.bench.window_run import _wait, _window

CHANGES = 15
STRATEGY, SETTING = "microcompact-time", "keep_recent"


class Heartbeat(QObject):
    """A timer of 1 ms on the GUI thread: how late its beats come, in milliseconds."""

    def __init__(self) -> None:
        super().__init__()
        self.late: list[float] = []
        self._last = time.perf_counter()
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._beat)
        self._timer.start(1)

    def _beat(self) -> None:
        now = time.perf_counter()
        self.late.append((now - self._last) * 1000 - 1)
        self._last = now

    def since(self, place: int) -> list[float]:
        """How late the beats after the first `place` came."""
        return self.late[place:] or [0.0]


class Busy:
    """The longest stretch of processor time that the GUI thread itself spent between two beats, in milliseconds.

    What the operating system and the workers' share of Python take from it does not count.
    """

    def __init__(self) -> None:
        self.worst = 0.0
        self._last = time.thread_time()
        self._timer = QTimer()
        self._timer.timeout.connect(self._beat)
        self._timer.start(1)

    def _beat(self) -> None:
        now = time.thread_time()
        self.worst = max(self.worst, (now - self._last) * 1000)
        self._last = now


def change_settings(path: str) -> dict[str, Any]:
    """Open a session, compare, and step one setting up and down; milliseconds of what a person would wait for."""
    window = _window()
    document = window.open_path(path)
    runner = window._context.runner
    IdleCollector(runner)  # as `inspector.app.run` does
    _wait(lambda: document.state is LoadState.READY and not runner.jobs)
    began = time.perf_counter()
    view = window.show_view("compare")
    assert isinstance(view, CompareView)
    workbench = view.workbench
    _wait(lambda: not any(column.stale for column in workbench.columns) and not runner.jobs)
    first = (time.perf_counter() - began) * 1000
    column = next(c for c in workbench.columns if c.strategy.name == STRATEGY)
    workbench.choose(column)
    editor = view.form.editors[SETTING]
    assert isinstance(editor, QSpinBox)
    heart = Heartbeat()
    rest = time.perf_counter()
    _wait(lambda: time.perf_counter() - rest > 1.0)
    idle = max(heart.since(50))
    beats, busy = len(heart.late), Busy()
    times = []
    for number in range(CHANGES):
        done: list[float] = []

        def updated(changed: object, done: list[float] = done) -> None:
            if changed is column and not column.stale:
                done.append(time.perf_counter())

        workbench.column_updated.connect(updated)
        start = time.perf_counter()
        editor.setValue(editor.value() + (1 if number % 2 == 0 else -1))
        _wait(partial(bool, done))
        times.append((done[0] - start) * 1000)
        workbench.column_updated.disconnect(updated)
    late = sorted(heart.since(beats))
    window.close()
    return {
        "first_comparison_ms": first,
        "result_ms": statistics.median(times),
        "worst_result_ms": max(times),
        "debounce_ms": DEBOUNCE_MILLISECONDS,
        "busy_ms": busy.worst,
        "late_99_ms": late[min(len(late) - 1, round(len(late) * 0.99))],
        "late_worst_ms": late[-1],
        "idle_worst_ms": idle,
    }
