"""Keeps the window answering while workers compute: how Python shares its lock, and when it looks for garbage."""

from __future__ import annotations

import gc
import sys

from PySide6.QtCore import QObject, QTimer

from inspector.work.jobs import JobRunner

SWITCH_SECONDS = 0.0001
"""How long a worker may hold Python's lock while the window waits for it. Painting takes the lock once a cell, so the
default of 5 ms would add up to a visible stall."""
YOUNG_OBJECTS = 5_000
"""New objects after which the young generation is looked through."""
MIDDLE_EVERY = 20
"""Looks at the young generation before one at the middle one."""
TICK_MILLISECONDS = 100
QUIET_SECONDS = 20
"""Without any work before a full collection."""


class IdleCollector(QObject):
    """Garbage is collected on the GUI thread only, and in full only once work has ended.

    Python collects in whichever thread happens to allocate. A worker that does so can end the life of widgets and
    models that lie in reference cycles, off the thread they belong to, which corrupts Qt (seen as crashes in later
    collections). A full collection holds Python's lock for a tenth of a second when a large session is open.
    """

    def __init__(self, runner: JobRunner) -> None:
        super().__init__(runner)
        self._runner = runner
        self._quiet = 0
        self._ticks = 0
        self._looks = 0
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.disable()
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MILLISECONDS)
        self._timer.timeout.connect(self._on_tick)
        self._timer.start()

    def stop(self) -> None:
        """Leave collecting to Python again. Without it the timer could fire while this object itself is collected."""
        self._timer.stop()
        gc.enable()

    def _on_tick(self) -> None:
        if gc.get_count()[0] > YOUNG_OBJECTS:
            self._looks += 1
            gc.collect(1 if self._looks % MIDDLE_EVERY == 0 else 0)
        self._ticks += 1
        if self._ticks % (1000 // TICK_MILLISECONDS) == 0:
            self._on_second()

    def _on_second(self) -> None:
        self._quiet = 0 if self._runner.jobs else self._quiet + 1
        if self._quiet == QUIET_SECONDS:
            gc.collect()
