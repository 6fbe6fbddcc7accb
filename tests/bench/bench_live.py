"""A line appended to an open session: until the tree shows it, in the real window (offscreen)."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from tests.bench.table import Table

if TYPE_CHECKING:
    from PySide6.QtCore import QEventLoop

    from inspector.views.outline_view import OutlineView

APPENDS = 25


def append_to_window(path: str) -> dict[str, Any]:
    """Open a session in the window and append lines to it: milliseconds from the write to the updated tree, and those
    of a bare file watcher for the same write."""
    from PySide6.QtCore import QElapsedTimer, QEventLoop, QFileSystemWatcher, QTimer

    from inspector.app import application, make_context
    from inspector.documents.live_documents import LiveDocuments
    from inspector.views.main_window import MainWindow
    from inspector.views.outline_view import OutlineView

    application()
    context = make_context(mode="light")
    window = MainWindow(context)
    window.live = LiveDocuments(context, window)
    window.show()
    document = window.open_path(path)
    context.runner.wait_until_idle(120)
    window.show_view("tree")
    live = window.live.by_document[document]
    live.look()
    context.runner.wait_until_idle(120)
    watcher = QFileSystemWatcher([path])
    session = document.session
    assert session is not None
    line = session.transcript.record_bytes(len(session.transcript) - 1) + b"\n"
    size = Path(path).stat().st_size
    seen: list[float] = []
    noticed: list[float] = []
    clock = QElapsedTimer()
    watcher.fileChanged.connect(lambda _path: noticed.append(clock.nsecsElapsed() / 1e6))
    try:
        for _ in range(APPENDS):
            noticed.clear()
            loop = QEventLoop()
            tree = window.view_widget("tree")
            assert isinstance(tree, OutlineView)
            count = len(document.session.transcript) if document.session is not None else 0

            look = partial(_end_when_shown, loop, tree, count)
            live.updated.connect(look)
            again = QTimer()
            again.timeout.connect(look)
            again.start(1)
            QTimer.singleShot(20_000, loop.quit)
            with open(path, "ab") as file:
                file.write(line)
            clock.start()
            loop.exec()
            seen.append(clock.nsecsElapsed() / 1e6 - (noticed[0] if noticed else 0.0))
            again.stop()
            live.updated.disconnect(look)
            context.runner.wait_until_idle(20)
            time.sleep(0.02)
    finally:
        with open(path, "rb+") as file:
            file.truncate(size)
        window.live.stop()
        window.close()
        context.runner.close()
    return {"median": median(seen), "worst": max(seen)}


def _end_when_shown(loop: QEventLoop, tree: OutlineView, count: int, *_: object) -> None:
    """End waiting when the tree's rows are those of more records."""
    structure = tree.structure
    if structure is not None and len(structure.conversation.transcript) > count:
        loop.quit()


def run(table: Table) -> None:
    """Issue "All sessions at hand, and live ones followed": 50 ms at the median beyond the watcher's own latency."""
    for records in (2_000, 20_000):
        count = max(500, round(records * table.scale))
        path = table.session(f"live-{count}", seed=4, records=count)
        table.heading(f"Live: one line appended to {count:,} records")
        measured = table.child(append_to_window, path).result
        table.within("appended line to updated tree, median", measured["median"], 50, "ms")
        table.fact("appended line to updated tree, worst", measured["worst"], "ms")
