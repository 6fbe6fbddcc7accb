"""Keeps the window answering while workers compute: how Python shares its lock, and when it looks for garbage."""

from __future__ import annotations

import gc
import sys

from PySide6.QtCore import QObject, QTimer

from inspector.work.jobs import JobRunner

SWITCH_SECONDS = 0.0001
"""How long a worker may hold Python's lock while the window waits for it. Painting takes the lock once a cell, so the
default of 5 ms would add up to a visible stall."""
NEVER = 1_000_000
"""Collections of the middle generation before a full one starts by itself."""
QUIET_SECONDS = 20
"""Without any work before a full collection."""


class IdleCollector(QObject):
    """Full garbage collections happen once work has ended: they hold Python's lock for a tenth of a second when a large
    session is open. The young generations are collected as ever."""

    def __init__(self, runner: JobRunner) -> None:
        super().__init__(runner)
        self._runner = runner
        self._quiet = 0
        sys.setswitchinterval(SWITCH_SECONDS)
        young, middle, _old = gc.get_threshold()
        gc.set_threshold(young, middle, NEVER)
        self._timer = QTimer(self)
        self._timer.setInterval(1000)
        self._timer.timeout.connect(self._on_second)
        self._timer.start()

    def _on_second(self) -> None:
        self._quiet = 0 if self._runner.jobs else self._quiet + 1
        if self._quiet == QUIET_SECONDS:
            gc.collect()
