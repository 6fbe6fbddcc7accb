"""The window stays smooth: Python's lock is handed over soon, full collections wait until work has ended."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator

import pytest

from inspector.context import AppContext
from inspector.work.jobs import Op
from inspector.work.smooth import NEVER, QUIET_SECONDS, IdleCollector


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*thresholds)


def test_full_collections_wait_for_quiet(app_context: AppContext, monkeypatch: pytest.MonkeyPatch) -> None:
    collector = IdleCollector(app_context.runner)
    assert sys.getswitchinterval() < 0.005
    assert gc.get_threshold()[2] == NEVER
    collected: list[bool] = []
    monkeypatch.setattr(gc, "collect", lambda *_: collected.append(True))
    free = threading.Event()
    job = app_context.runner.start(Op("Working", lambda _progress: free.wait(30)))
    for _ in range(2 * QUIET_SECONDS):
        collector._on_second()
    assert not collected
    free.set()
    assert app_context.runner.wait_until_idle()
    assert not job.running
    for _ in range(3 * QUIET_SECONDS):
        collector._on_second()
    assert collected == [True]
