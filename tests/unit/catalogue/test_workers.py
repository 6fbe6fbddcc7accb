"""Worker processes: work is done once, a killed worker's work again, a file that kills workers is named."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from compaction.catalogue.workers import Workers
from compaction.errors import Cancelled, CompactoscopeError
from compaction.progress import Progress


@dataclass(frozen=True)
class Task:
    path: str
    work_bytes: int = 1 << 21


def process_ids(tasks: list[Task]) -> list[tuple[str, int]]:
    return [(task.path, os.getpid()) for task in tasks]


def die_once(tasks: list[Task]) -> list[str]:
    """Kills its process for a path that does not exist yet, as the system does when memory runs out."""
    for task in tasks:
        if not Path(task.path).exists():
            Path(task.path).touch()
            os._exit(9)
    return [task.path for task in tasks]


def die_always(_tasks: list[Task]) -> list[str]:
    os._exit(9)


def test_small_work_stays_in_this_process() -> None:
    seen: list[tuple[str, int]] = []

    def store(results: list[tuple[str, int]]) -> list[list[Task]]:
        seen.extend(results)
        return [[Task("again", 10)]] if results[0][0] == "first" else []

    with Workers(2) as workers:
        workers.run(process_ids, iter([[Task("first", 10)]]), store, Progress())
    assert seen == [("first", os.getpid()), ("again", os.getpid())]


def test_large_work_goes_to_other_processes_and_follow_ups_too() -> None:
    seen: list[tuple[str, int]] = []

    def store(results: list[tuple[str, int]]) -> list[list[Task]]:
        seen.extend(results)
        return [[Task(path + "+")] for path, _ in results if "+" not in path]

    with Workers(2) as workers:
        workers.run(process_ids, iter([[Task("a")], [Task("b")], [Task("c")]]), store, Progress())
    assert sorted(path for path, _ in seen) == ["a", "a+", "b", "b+", "c", "c+"]
    assert os.getpid() not in {number for _, number in seen}


def test_the_work_of_a_killed_worker_is_done_again(tmp_path: Path) -> None:
    done: list[str] = []
    paths = [str(tmp_path / name) for name in ("a", "b")]

    def store(results: list[str]) -> Iterator[list[Task]]:
        done.extend(results)
        return iter(())

    Path(paths[1]).touch()
    with Workers(2) as workers:
        workers.run(die_once, iter([[Task(path)] for path in paths]), store, Progress())
    assert sorted(set(done)) == paths


def die_at_b(tasks: list[Task]) -> list[str]:
    if any(task.path == "b" for task in tasks):
        os._exit(9)
    return [task.path for task in tasks]


@pytest.mark.parametrize("batches", [["a", "b", "c"], ["ab", "cd", "e"], ["abc"]])
def test_a_file_that_kills_its_worker_is_left_out_and_named(batches: list[str]) -> None:
    done: list[str] = []

    def store(results: list[str]) -> list[list[Task]]:
        done.extend(results)
        return []

    with Workers(2) as workers:
        workers.run(die_at_b, iter([[Task(path) for path in batch] for batch in batches]), store, Progress())
    assert sorted(set(done)) == sorted(set("".join(batches)) - {"b"})
    assert workers.deadly == ("b",)


def test_workers_that_always_die_end_the_index() -> None:
    tasks = iter([[Task(str(number))] for number in range(1000)])
    with pytest.raises(CompactoscopeError, match="whatever they read"), Workers(2) as workers:
        workers.run(die_always, tasks, lambda results: [], Progress())


def test_cancelling_stops_between_batches() -> None:
    progress = Progress()
    done: list[int] = []

    def store(results: list[tuple[str, int]]) -> list[list[Task]]:
        done.append(1)
        progress.cancel()
        return []

    with pytest.raises(Cancelled), Workers(1) as workers:
        workers.run(process_ids, iter([[Task(str(n), 10)] for n in range(50)]), store, progress)
    assert len(done) < 50
