from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Protocol, TypeVar

from compaction.errors import CompactoscopeError
from compaction.progress import Progress


class _Sized(Protocol):
    """A job that knows its file and how many bytes of it are to be read."""

    @property
    def work_bytes(self) -> int: ...

    @property
    def path(self) -> str: ...


Job = TypeVar("Job", bound=_Sized)
Result = TypeVar("Result")

_POLL_SECONDS = 0.1
_IN_THIS_PROCESS_BYTES = 1 << 20
"""Up to this much work is done in the calling process: starting workers would take longer than the work."""

_DEATHS = 6
"""So many worker processes killed in a row, with none that finished, are no fault of the files."""

_COLLECTED_AFTER = 100_000
"""Objects that a worker makes between two garbage collections."""

_NICE = 5
"""How far a worker steps back behind other processes that want the processor."""

AHEAD = 2
"""Batches handed out for each worker: one to work on, one waiting. More would only hold results in memory."""


class Workers:
    """Worker processes, started when there is work for them and stopped at the end.

    Spawned, not forked: the window has threads, and a forked child would inherit their locks.
    """

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._pool: ProcessPoolExecutor | None = None
        self._deaths = 0
        self._deadly: list[str] = []

    @property
    def deadly(self) -> tuple[str, ...]:
        """The files whose work killed its process twice; they were left out."""
        return tuple(self._deadly)

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def run(
        self,
        work: Callable[[list[Job]], list[Result]],
        batches: Iterator[list[Job]],
        store: Callable[[list[Result]], Iterable[list[Job]]],
        progress: Progress,
        ahead: int = AHEAD,
    ) -> None:
        """Do every batch, and the batches that `store` returns for the results of one, until none is left.

        `store` runs in the calling thread, one batch of results at a time.

        Args:
            ahead: batches handed out for each worker, so that it has work while `store` takes its time.

        Raises:
            Cancelled: between two batches.
            CompactoscopeError: worker processes die again and again, whatever they work on.
        """
        first = next(batches, None)
        if first is None:
            return
        second = next(batches, None)
        if second is None and sum(job.work_bytes for job in first) <= _IN_THIS_PROCESS_BYTES:
            waiting = [first]
            while waiting:
                progress.check()
                waiting += store(work(waiting.pop()))
            return
        ready = _chain(first, second, batches)
        running: dict[Future[list[Result]], list[Job]] = {}
        more: list[list[Job]] = []
        try:
            self._drive(work, ready, store, progress, running, more, ahead)
        finally:
            for future in running:
                future.cancel()

    def _drive(
        self,
        work: Callable[[list[Job]], list[Result]],
        ready: Iterator[list[Job]],
        store: Callable[[list[Result]], Iterable[list[Job]]],
        progress: Progress,
        running: dict[Future[list[Result]], list[Job]],
        more: list[list[Job]],
        ahead: int,
    ) -> None:
        died: set[str] = set()
        finished: SimpleQueue[Future[list[Result]]] = SimpleQueue()
        while True:
            # After a death one batch at a time, so that it is known whose work kills.
            while len(running) < (1 if died else self._processes * ahead):
                # The next slice of a file that is being read comes before new files.
                batch = more.pop() if more else next(ready, None)
                if batch is None:
                    break
                future = self._submit(work, batch)
                running[future] = batch
                future.add_done_callback(finished.put)
            if not running:
                return
            progress.check()
            try:
                future = finished.get(timeout=_POLL_SECONDS)
            except Empty:
                continue
            if future not in running:
                continue  # one that was lost with others, and is done again
            batch = running.pop(future)
            try:
                more += store(future.result())
                self._deaths = 0
            except BrokenProcessPool as error:
                more += self._after_death(batch, running, died, error)

    def _after_death(
        self, batch: list[Job], running: dict[Future[list[Result]], list[Job]], died: set[str], error: Exception
    ) -> list[list[Job]]:
        """A worker was killed (out of memory, by hand): every batch that was running is done again, file by file."""
        lost = [job for other in [batch, *running.values()] for job in other]
        running.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
        self._deaths += 1
        if len(lost) == 1 and lost[0].path in died:
            if self._deaths >= _DEATHS:
                raise CompactoscopeError(
                    "worker processes are killed whatever they read", "is there enough memory?", lost[0].path
                ) from error
            self._deadly.append(lost[0].path)
            return []
        died.update(job.path for job in lost)
        self._processes = 1
        return [[job] for job in lost]

    def _submit(self, work: Callable[[list[Job]], list[Result]], batch: list[Job]) -> Future[list[Result]]:
        if self._pool is None:
            # There is a worker for each processor: numpy's own threads, which spin at its start, would only take turns.
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
            self._pool = ProcessPoolExecutor(
                self._processes, mp_context=multiprocessing.get_context("spawn"), initializer=_prepare
            )
        return self._pool.submit(work, batch)


def _prepare() -> None:
    """Set a worker process up."""
    # Ctrl+C in a terminal reaches every process; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The process that stores what comes of it, and draws the window, goes first.
    if hasattr(os, "nice"):
        os.nice(_NICE)
    # Records are many and hold no cycles: with the usual threshold a seventh of the time goes into looking for some.
    gc.freeze()
    gc.set_threshold(_COLLECTED_AFTER)


def _chain(first: list[Job], second: list[Job] | None, rest: Iterator[list[Job]]) -> Iterator[list[Job]]:
    yield first
    if second is not None:
        yield second
        yield from rest
