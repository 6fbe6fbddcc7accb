"""The catalogue's file under trouble, with the real thing: two writers, kill -9, full disk, lock, damage, read-only."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from compaction.catalogue import database
from compaction.catalogue.database import FILE_NAME, HEAD, open_catalogue
from compaction.catalogue.errors import CatalogueBusy, CatalogueFull
from compaction.catalogue.indexer import refresh
from compaction.catalogue.sessions import list_sessions
from compaction.catalogue.tables import Base
from compaction.errors import InputUnreadable, UsageError
from tests.support import ROOT
from tests.unit.catalogue.support import content, make_library

PROGRAM = [sys.executable, "-m", "inspector"]


def environment(data: Path) -> dict[str, str]:
    return {**os.environ, "COMPACTOSCOPE_DATA": str(data), "PYTHONPATH": str(ROOT)}


def run_index(data: Path, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, "index", "--no-findings", *more, str(folder)],
        env=environment(data), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def fresh(folder: Path, place: Path) -> dict[str, list[dict[str, object]]]:
    opened = open_catalogue(folder=place)
    try:
        refresh(opened, [folder], findings=False, processes=1)
        return content(opened)
    finally:
        opened.close()


def test_the_migrations_make_exactly_the_declared_tables(own_data_folder: Path) -> None:
    opened = open_catalogue(folder=own_data_folder)
    with opened.reading() as connection:
        context = MigrationContext.configure(
            connection,
            opts={"include_name": lambda name, kind, _: not (kind == "table" and name.startswith("passage_"))},
        )
        assert compare_metadata(context, Base.metadata) == []
    opened.close()


def test_a_catalogue_of_the_first_migration_keeps_what_it_holds(tmp_path: Path, own_data_folder: Path) -> None:
    make_library(tmp_path, 2)
    opened = open_catalogue(folder=own_data_folder)
    refresh(opened, [tmp_path / "projects"], findings=False)
    before = content(opened)
    assert before["response"]
    config = Config()
    config.set_main_option("script_location", str(Path(database.__file__).parent / "migrations"))
    with opened.writing() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "r0001")
    opened.close()
    with contextlib.closing(sqlite3.connect(own_data_folder / FILE_NAME)) as first:
        assert "response_by_message" in schema(first)
        assert "WITHOUT ROWID" not in schema(first)
    again = open_catalogue(folder=own_data_folder)
    assert content(again) == before
    again.close()
    with contextlib.closing(sqlite3.connect(own_data_folder / FILE_NAME)) as now:
        assert "response_by_message" not in schema(now)
        assert schema(now).count("WITHOUT ROWID") == 1
        now.execute("PRAGMA foreign_keys=ON")
        now.execute("DELETE FROM transcript")
        assert now.execute("SELECT count(*) FROM response").fetchone() == (0,), "responses go with their file"


def schema(connection: sqlite3.Connection) -> str:
    """The statements that made the tables and indexes of our own, without the full text's."""
    query = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'passage%'"
    return "\n".join(row[0] for row in connection.execute(query))


def test_the_newest_migration_is_the_one_named_in_the_code() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(database.__file__).parent / "migrations"))
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


def test_a_current_catalogue_is_opened_without_alembic(own_data_folder: Path) -> None:
    open_catalogue(folder=own_data_folder).close()
    code = (
        "import sys; from compaction.catalogue.database import open_catalogue; open_catalogue().close();"
        "sys.exit('alembic' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], env=environment(own_data_folder), check=True)


def test_the_folder_is_private(own_data_folder: Path) -> None:
    open_catalogue(folder=own_data_folder).close()
    assert own_data_folder.stat().st_mode & 0o077 == 0


def test_a_reading_command_makes_no_catalogue(own_data_folder: Path) -> None:
    opened = open_catalogue(folder=own_data_folder, create=False)
    assert list_sessions(opened) == []
    assert "compactoscope index" in opened.notice
    assert not own_data_folder.exists()
    opened.close()


def test_two_writers_at_once_index_the_same_folder_as_one(tmp_path: Path, own_data_folder: Path) -> None:
    make_library(tmp_path, 8, rounds=10)
    folder = tmp_path / "projects"
    command = [*PROGRAM, "index", "--no-findings", "--json", str(folder)]
    both = [
        subprocess.Popen(command, env=environment(own_data_folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    for writer in both:
        _, complaints = writer.communicate(timeout=120)
        assert writer.returncode == 0, complaints.decode()
    opened = open_catalogue(folder=own_data_folder)
    assert content(opened) == fresh(folder, tmp_path / "other")
    opened.close()


def test_a_killed_indexer_loses_nothing(tmp_path: Path, own_data_folder: Path) -> None:
    make_library(tmp_path, 24, rounds=60, subagents=0)
    folder = tmp_path / "projects"
    path = own_data_folder / FILE_NAME
    writer = subprocess.Popen(
        [*PROGRAM, "index", "--no-findings", "--processes", "1", str(folder)], env=environment(own_data_folder),
        start_new_session=True,
    )  # fmt: skip
    while writer.poll() is None and rows_in(path) == 0:
        time.sleep(0.01)
    os.killpg(writer.pid, signal.SIGKILL)
    writer.wait(timeout=30)
    kept = rows_in(path)
    assert kept > 0
    assert is_sound(path)
    opened = open_catalogue(folder=own_data_folder)
    assert opened.notice == ""
    report = refresh(opened, [folder], findings=False)
    assert report.indexed <= 24 - kept + 1, "what was stored is not read again"
    assert content(opened) == fresh(folder, tmp_path / "other")
    opened.close()


def is_sound(path: Path) -> bool:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return bool(connection.execute("PRAGMA integrity_check").fetchone() == ("ok",))


def rows_in(path: Path) -> int:
    try:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM transcript WHERE bytes > 0").fetchone()[0])
    except sqlite3.Error:
        return 0  # not there yet


def test_a_full_disk_is_said_and_what_was_stored_stays(tmp_path: Path, own_data_folder: Path) -> None:
    """A limit on the size of files stands for the disk: the kernel refuses the write just as it does there."""
    import resource

    make_library(tmp_path, 10, rounds=60)
    folder = tmp_path / "projects"
    open_catalogue(folder=own_data_folder).close()
    done = subprocess.run(
        [*PROGRAM, "index", "--no-findings", str(folder)], env=environment(own_data_folder), capture_output=True,
        text=True, timeout=120, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000)),
    )  # fmt: skip
    assert done.returncode == 1
    assert "catalogue.sqlite: cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert is_sound(own_data_folder / FILE_NAME)
    assert run_index(own_data_folder, folder).returncode == 0
    opened = open_catalogue(folder=own_data_folder)
    assert content(opened) == fresh(folder, tmp_path / "other")
    opened.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_disk_without_room_is_said(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "none", str(disk)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("this machine does not let us mount")
    try:
        make_library(tmp_path, 10, rounds=60)
        done = run_index(disk / "data", tmp_path / "projects")
        assert done.returncode == 1
        assert "free disk space" in done.stderr
        assert is_sound(disk / "data" / FILE_NAME)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_new_file_that_another_program_is_writing_is_waited_for(own_data_folder: Path) -> None:
    own_data_folder.mkdir(exist_ok=True)
    other = sqlite3.connect(own_data_folder / FILE_NAME, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.3, other.execute, ["COMMIT"])
    timer.start()
    opened = open_catalogue(folder=own_data_folder)
    assert opened.place.kind == "sqlite"
    assert opened.notice == ""
    assert list_sessions(opened) == []
    opened.close()
    timer.join()
    other.close()


def test_a_locked_catalogue_can_be_read_and_says_so_to_a_writer(
    tmp_path: Path, own_data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.2)
    make_library(tmp_path, 2)
    opened = open_catalogue(folder=own_data_folder)
    refresh(opened, [tmp_path / "projects"], findings=False, processes=1)
    holder = sqlite3.connect(own_data_folder / FILE_NAME, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert len(list_sessions(opened)) == 2
    (tmp_path / "projects" / "new.jsonl").write_bytes(b'{"type":"user"}\n')
    with pytest.raises(CatalogueBusy, match="locked by another program"):
        refresh(opened, [tmp_path / "projects"], findings=False, processes=1)
    holder.execute("ROLLBACK")
    holder.close()
    assert refresh(opened, [tmp_path / "projects"], findings=False, processes=1).indexed == 1
    opened.close()


@pytest.mark.parametrize("damage", ["no database", "pages overwritten"])
def test_a_damaged_catalogue_is_made_again_and_said_so(tmp_path: Path, own_data_folder: Path, damage: str) -> None:
    make_library(tmp_path, 6, rounds=40)
    folder = tmp_path / "projects"
    assert run_index(own_data_folder, folder).returncode == 0
    path = own_data_folder / FILE_NAME
    size = path.stat().st_size
    with path.open("r+b") as file:
        if damage == "no database":
            file.write(b"this is not a database" * 100)
        else:
            file.seek(4096)
            file.write(b"\xa5" * (size - 4096))
    done = run_index(own_data_folder, folder)
    assert done.returncode == 0, done.stderr
    assert "was damaged" in done.stderr
    assert path.with_name(f"{FILE_NAME}.damaged").exists()
    opened = open_catalogue(folder=own_data_folder)
    assert content(opened) == fresh(folder, tmp_path / "other")
    opened.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="a read-only file system needs root to mount")
def test_a_read_only_home_works_in_memory(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    make_library(tmp_path, 2)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", str(home)], check=False, capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine does not let us mount")
    try:
        opened = open_catalogue(folder=home / "data")
        assert "held in memory" in opened.notice
        refresh(opened, [tmp_path / "projects"], findings=False, processes=1)
        assert len(list_sessions(opened)) == 2
        opened.close()
        assert "held in memory" in run_index(home / "data", tmp_path / "projects").stderr
    finally:
        subprocess.run(["umount", str(home)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="a read-only file system needs root to mount")
def test_a_catalogue_on_a_read_only_disk_can_still_be_asked(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    make_library(tmp_path, 2)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "none", str(home)], check=False, capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine does not let us mount")
    try:
        opened = open_catalogue(folder=home / "data")
        refresh(opened, [tmp_path / "projects"], findings=False, processes=1)
        before = content(opened)
        opened.close()
        subprocess.run(["mount", "-o", "remount,ro", str(home)], check=True)
        opened = open_catalogue(folder=home / "data", create=False)
        assert "held in memory" in opened.notice
        assert content(opened) == before
        opened.close()
    finally:
        subprocess.run(["umount", str(home)], check=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_write_permission_works_in_memory(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o500)
    opened = open_catalogue(folder=tmp_path / "home" / "data")
    assert "held in memory" in opened.notice
    opened.close()


def test_the_catalogue_in_memory_serves_several_threads(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    make_library(tmp_path, 2)
    opened = database._in_memory(None, "")
    refresh(opened, [tmp_path / "projects"], findings=False, processes=1)
    with ThreadPoolExecutor(4) as threads:
        assert {len(found) for found in threads.map(lambda _: list_sessions(opened), range(20))} == {2}
    opened.close()


def test_a_catalogue_of_a_newer_version_is_left_alone(own_data_folder: Path) -> None:
    opened = open_catalogue(folder=own_data_folder)
    with opened.writing() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = 'r9999'"))
    opened.close()
    with pytest.raises(InputUnreadable, match="newer version"):
        open_catalogue(folder=own_data_folder)


def test_a_failing_write_leaves_nothing_half_done(own_data_folder: Path) -> None:
    opened = open_catalogue(folder=own_data_folder)

    def fail_half_way() -> None:
        with opened.writing() as connection:
            connection.execute(sa.text("INSERT INTO fact VALUES ('a', 'b')"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    with opened.reading() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM fact")).scalar() == 0
    opened.close()


@pytest.mark.parametrize("url", ["mysql://a@b/c", "no url at all"])
def test_only_postgresql_can_be_shared(url: str) -> None:
    with pytest.raises(UsageError):
        open_catalogue(url)


def test_the_limit_of_pages_is_a_full_disk(tmp_path: Path, own_data_folder: Path) -> None:
    make_library(tmp_path, 4, rounds=40)
    opened = open_catalogue(folder=own_data_folder)
    sa.event.listen(opened.engine, "connect", lambda driver, _: driver.execute("PRAGMA max_page_count = 60"))
    opened.engine.dispose()
    with pytest.raises(CatalogueFull, match="full"):
        refresh(opened, [tmp_path / "projects"], findings=False, processes=1)
    opened.close()
