"""The window stays smooth: Python's lock is handed over soon, full collections wait until work has ended."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QTimer

from inspector.context import AppContext
from inspector.work.jobs import Op
from inspector.work.smooth import QUIET_SECONDS, YOUNG_OBJECTS, IdleCollector


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    interval = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval)
    gc.enable()


@pytest.fixture
def collector(app_context: AppContext) -> Iterator[IdleCollector]:
    made = IdleCollector(app_context.runner)
    yield made
    made.stop()


def test_a_stopped_collector_leaves_collecting_to_python(collector: IdleCollector) -> None:
    assert not gc.isenabled()
    collector.stop()
    assert gc.isenabled()
    assert not collector.findChildren(QTimer)[0].isActive()


def test_full_collections_wait_for_quiet(
    app_context: AppContext, collector: IdleCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sys.getswitchinterval() < 0.005
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


def test_garbage_is_collected_on_the_gui_thread_only(app_context: AppContext, collector: IdleCollector) -> None:
    """A worker that collects could end a widget's life off the thread it belongs to (seen as crashes)."""
    assert not gc.isenabled()
    threads: list[threading.Thread] = []

    def seen(phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            threads.append(threading.current_thread())

    gc.callbacks.append(seen)
    try:
        job = app_context.runner.start(Op("Allocating", lambda _progress: [[n] for n in range(20 * YOUNG_OBJECTS)]))
        kept: list[list[list[int]]] = []
        job.success(kept.append)
        assert app_context.runner.wait_until_idle()
        collector._on_tick()
    finally:
        gc.callbacks.remove(seen)
    assert threads
    assert set(threads) == {threading.main_thread()}
