"""Background work (qt.md §3.1): results and errors on the GUI thread, cancel, superseded results dropped."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
import shiboken6
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from compaction.errors import Cancelled, InputUnreadable
from compaction.progress import Progress
from inspector.work.errors import ErrorCenter, report_of
from inspector.work.jobs import Job, JobRunner, JobState, Op, in_process


@pytest.fixture
def runner(qtbot: QtBot) -> Iterator[JobRunner]:
    made = JobRunner()
    yield made
    made.close()


def until_cancelled(progress: Progress) -> str:
    while True:
        progress.check()
        time.sleep(0.001)


def test_a_result_is_delivered_on_the_gui_thread(runner: JobRunner) -> None:
    seen: list[tuple[int, bool, bool]] = []
    worker: list[bool] = []

    def work(_progress: Progress) -> int:
        worker.append(threading.current_thread() is threading.main_thread())
        return 41

    job = runner.start(Op("Adding", work))
    job.success(lambda value: seen.append((value + 1, threading.current_thread() is threading.main_thread(), True)))
    assert runner.wait_until_idle()
    assert seen == [(42, True, True)]
    assert worker == [False]
    assert job.state is JobState.DONE


def test_an_error_goes_to_its_handler_or_to_the_runner(runner: JobRunner) -> None:
    handled: list[Exception] = []
    unhandled: list[tuple[Job[object], Exception]] = []
    runner.failed.connect(lambda job, error: unhandled.append((job, error)))

    def work(_progress: Progress) -> None:
        raise InputUnreadable("there is no such file", "check the path", "x.jsonl", 3)

    runner.start(Op("One", work)).failure(handled.append)
    second = runner.start(Op("Two", work))
    assert runner.wait_until_idle()
    assert [type(error) for error in handled] == [InputUnreadable]
    assert [(job, type(error)) for job, error in unhandled] == [(second, InputUnreadable)]


def test_cancel_delivers_nothing_but_the_end(runner: JobRunner) -> None:
    heard: list[str] = []
    job = runner.start(Op("Waiting", until_cancelled))
    job.success(lambda _: heard.append("success")).failure(lambda _: heard.append("failure"))
    job.finished(lambda: heard.append("finished"))
    job.cancel()
    assert runner.wait_until_idle()
    assert heard == ["finished"]
    assert job.state is JobState.CANCELLED


def test_a_result_that_comes_after_cancel_is_dropped(runner: JobRunner) -> None:
    release = threading.Event()
    heard: list[object] = []
    job = runner.start(Op("Deaf", lambda _progress: release.wait(10))).success(heard.append)
    job.cancel()
    release.set()
    assert runner.wait_until_idle()
    assert heard == []


def test_the_newest_job_of_a_token_wins(runner: JobRunner) -> None:
    release = threading.Event()
    heard: list[str] = []

    def slow(_progress: Progress) -> str:
        release.wait(10)
        return "old"

    old = runner.start(Op("Old", slow, token="search"))
    old.success(heard.append)
    runner.start(Op("New", lambda _progress: "new", token="search")).success(heard.append)
    release.set()
    assert runner.wait_until_idle()
    assert heard == ["new"]
    assert old.state is JobState.SUPERSEDED


def test_progress_is_polled_while_the_work_runs(runner: JobRunner, qtbot: QtBot) -> None:
    release = threading.Event()

    def work(progress: Progress) -> None:
        progress.done, progress.total, progress.unit = 3, 10, "records"
        release.wait(10)

    job = runner.start(Op("Counting", work))
    with qtbot.waitSignal(
        runner.progressed, timeout=5000, check_params_cb=lambda running: running.progress.total == 10
    ):
        pass
    assert (job.progress.done, job.progress.unit) == (3, "records")
    release.set()
    assert runner.wait_until_idle()


def test_close_cancels_what_runs_and_starts_nothing_more(qtbot: QtBot) -> None:
    runner = JobRunner()
    job = runner.start(Op("Waiting", until_cancelled))
    runner.close()
    assert job.progress.cancelled
    heard: list[object] = []
    late = runner.start(Op("Late", heard.append)).success(heard.append)
    assert late.state is JobState.CANCELLED
    assert runner.jobs == ()
    assert heard == []


def test_a_result_for_a_deleted_object_is_dropped(runner: JobRunner) -> None:
    heard: list[object] = []
    gone = QObject()

    def closure(result: object) -> None:
        heard.append((gone, result))

    runner.start(Op("Late", lambda _progress: 1)).success(gone.setProperty).success(closure)  # type: ignore[arg-type]
    shiboken6.delete(gone)
    assert runner.wait_until_idle()
    assert heard == []


def test_a_handler_that_raises_does_not_stop_the_runner(runner: JobRunner, qtbot: QtBot) -> None:
    heard: list[str] = []

    def bad(_result: object) -> None:
        raise ValueError("a handler failed")

    with qtbot.captureExceptions() as caught:
        runner.start(Op("Bad", lambda _progress: 1)).success(bad).finished(lambda: heard.append("end"))
        qtbot.waitUntil(lambda: heard == ["end"], timeout=5000)
        runner.start(Op("Good", lambda _progress: 1)).success(lambda _: heard.append("good"))
        qtbot.waitUntil(lambda: "good" in heard, timeout=5000)
    assert [kind for kind, *_ in caught] == [ValueError]


def test_work_in_a_process_returns_its_value() -> None:
    assert in_process(Progress(), pow, 2, 10) == 1024


def test_work_in_a_process_stops_when_cancelled() -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(Cancelled):
        in_process(progress, time.sleep, 60)


def test_a_report_names_file_line_cause_and_what_to_do() -> None:
    report = report_of(InputUnreadable("it is cut off", "copy it again", "a.jsonl", 7), "Opening a.jsonl")
    assert report.sentence() == "a.jsonl, line 7: it is cut off. Copy it again."
    assert not report.unexpected


def test_a_fault_of_the_program_is_told_once_with_its_traceback(qtbot: QtBot) -> None:
    center = ErrorCenter()
    told: list[object] = []
    center.reported.connect(told.append)
    for _ in range(3):
        try:
            raise KeyError("missing")
        except KeyError as error:
            center.report(error, "Showing")
    assert len(told) == 1
    assert "KeyError" in center.reports[0].details
