"""Background work: one runner, one poll, results on the GUI thread.

Workers are `concurrent.futures` threads (C-level work releases the GIL; for long Python loops use `in_process`).
A worker never touches Qt: it writes a `Progress`, the runner polls all of them from one timer (qt.md section 3.1).
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, ParamSpec, TypeVar

import shiboken6
from PySide6.QtCore import QCoreApplication, QEventLoop, QObject, QTimer, Signal

from compaction.errors import Cancelled
from compaction.progress import Progress

Result = TypeVar("Result")
Parameters = ParamSpec("Parameters")

POLL_MILLISECONDS = 15
"""How often finished work and progress are looked at; under one frame, so a result shows in the next one."""
THREADS = 4


@dataclass(frozen=True, slots=True)
class Op(Generic[Result]):
    """One piece of background work.

    Attributes:
        title: what it does, for the person ("Opening session.jsonl").
        work: called in a worker thread with the `Progress` it has to write and to `check()`.
        token: when not "", starting an Op supersedes every running job of the same token: the older one is
            cancelled and its result is dropped, whatever it was (live previews, searches).
        quiet: not shown in the window's progress area (short look-ups).
    """

    title: str
    work: Callable[[Progress], Result]
    token: str = ""
    quiet: bool = False


class JobState(Enum):
    """Where a job is in its life; SUPERSEDED and CANCELLED deliver nothing but `finished`."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"


class Job(Generic[Result]):
    """A started `Op`. Handlers run on the GUI thread, in the order they were added."""

    def __init__(self, op: Op[Result]) -> None:
        self.op = op
        self.progress = Progress(text=op.title)
        self.state = JobState.RUNNING
        self.started = time.monotonic()
        self._future: Future[Result] | None = None
        self._success: list[Callable[[Result], object]] = []
        self._failure: list[Callable[[Exception], object]] = []
        self._finished: list[Callable[[], object]] = []

    def success(self, handler: Callable[[Result], object]) -> Job[Result]:
        """Call `handler(result)` when the work returns."""
        self._success.append(handler)
        return self

    def failure(self, handler: Callable[[Exception], object]) -> Job[Result]:
        """Call `handler(error)` instead of the runner's error signal when the work raises (not on cancel)."""
        self._failure.append(handler)
        return self

    def finished(self, handler: Callable[[], object]) -> Job[Result]:
        """Call `handler()` at the end in every case, also after cancel."""
        self._finished.append(handler)
        return self

    def cancel(self) -> None:
        """Ask the work to stop; its result is dropped even if it does not notice in time."""
        self.progress.cancel()

    @property
    def running(self) -> bool:
        return self.state is JobState.RUNNING

    @property
    def seconds(self) -> float:
        """Wall time since the start, in seconds."""
        return time.monotonic() - self.started


class JobRunner(QObject):
    """Runs `Op`s: `runner.start(Op("Opening x", work)).success(show).failure(tell)`.

    Signals:
        started(Job), progressed(Job), ended(Job): for the window's progress area.
        failed(Job, Exception): work raised and no `failure` handler was added.
    """

    started = Signal(object)
    progressed = Signal(object)
    ended = Signal(object)
    failed = Signal(object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="work")
        self._jobs: list[Job[Any]] = []
        self._timer = QTimer(self)
        self._timer.setInterval(POLL_MILLISECONDS)
        self._timer.timeout.connect(self._poll)
        self._closed = False

    def start(self, op: Op[Result]) -> Job[Result]:
        """Queue the work and return its job; add the handlers to that (none runs before the next poll).

        After `close` the job is cancelled at once: the window is going, nobody waits for the result.
        """
        job = Job(op)
        if self._closed:
            job.state = JobState.CANCELLED
            return job
        if op.token:
            self.supersede(op.token)
        job._future = self._threads.submit(op.work, job.progress)
        self._jobs.append(job)
        self.started.emit(job)
        self._timer.start()
        return job

    def supersede(self, token: str) -> None:
        """Cancel the running jobs of a token and drop their results."""
        for job in self._jobs:
            if job.op.token == token and job.running:
                job.state = JobState.SUPERSEDED
                job.cancel()

    @property
    def jobs(self) -> tuple[Job[Any], ...]:
        """The jobs that are not finished, oldest first."""
        return tuple(self._jobs)

    def cancel_all(self) -> None:
        """Cancel everything that runs."""
        for job in self._jobs:
            job.cancel()

    def wait_until_idle(self, seconds: float = 30.0) -> bool:
        """Process events until no job is left; for the screenshot command and tests. False when time ran out."""
        limit = time.monotonic() + seconds
        while self._jobs and time.monotonic() < limit:
            QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, POLL_MILLISECONDS)
            self._poll()
            time.sleep(0.001)
        return not self._jobs

    def close(self, seconds: float = 5.0) -> None:
        """Cancel everything, wait at most `seconds` for the workers and refuse further work."""
        self._closed = True
        self._timer.stop()
        self.cancel_all()
        limit = time.monotonic() + seconds
        for job in self._jobs:
            if job._future is not None and not job._future.cancel():
                try:
                    job._future.exception(max(0.0, limit - time.monotonic()))
                except FutureTimeout:
                    break  # it does not look at its Progress; the interpreter joins it at exit
        self._jobs.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _poll(self) -> None:
        for job in list(self._jobs):
            if job._future is not None and job._future.done():
                self._jobs.remove(job)
                self._deliver(job, job._future)
            elif job.running:
                self.progressed.emit(job)
        if not self._jobs:
            self._timer.stop()

    def _deliver(self, job: Job[Any], future: Future[Any]) -> None:
        try:
            if job.state is JobState.SUPERSEDED:
                return
            if job.progress.cancelled or future.cancelled():
                job.state = JobState.CANCELLED
                return
            error = future.exception()
            if error is None:
                job.state = JobState.DONE
                for handler in filter(_alive, job._success):
                    handler(future.result())
            elif isinstance(error, Cancelled):
                job.state = JobState.CANCELLED
            elif isinstance(error, Exception):
                job.state = JobState.FAILED
                for failure in filter(_alive, job._failure):
                    failure(error)
                if not job._failure:
                    self.failed.emit(job, error)
            else:
                raise error
        finally:
            for finished in filter(_alive, job._finished):
                finished()
            self.ended.emit(job)


def _alive(handler: Callable[..., object]) -> bool:
    """Whether the Qt objects a handler belongs to still exist: a closed tab's results have nobody to go to."""
    owners = [getattr(handler, "__self__", None)]
    owners += [cell.cell_contents for cell in getattr(handler, "__closure__", None) or ()]
    return all(shiboken6.isValid(owner) for owner in owners if isinstance(owner, QObject))


def in_process(
    progress: Progress, function: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """Run a picklable function in a fresh process and wait for it; for Python loops that would starve painting.

    Call it inside an `Op.work`. A cancelled `progress` kills the process and raises `Cancelled`.
    """
    pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
    try:
        future = pool.submit(function, *args, **kwargs)
        while True:
            try:
                return future.result(timeout=0.05)
            except FutureTimeout:
                if future.done():
                    raise
                if progress.cancelled:
                    for process in list((pool._processes or {}).values()):
                        process.terminate()
                    raise Cancelled from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
