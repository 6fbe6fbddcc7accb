from __future__ import annotations

import contextlib
import getpass
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, event, exc

from compaction.catalogue.errors import CatalogueBusy, CatalogueDamaged, CatalogueFull, CatalogueUnreachable
from compaction.data_folder import FolderUnwritable, data_folder, ensure
from compaction.errors import CompactoscopeError, InputUnreadable, UsageError

FILE_NAME = "catalogue.sqlite"
HEAD = "r0002"
"""The newest migration; kept here so that a start with a current catalogue imports no Alembic (a test compares)."""

BUSY_SECONDS = 20.0
"""How long a writer waits for another one. Each transaction only stores what is ready, so waits are short."""

_RETRY_SECONDS = 0.005
_BEGIN = "compactoscope_begin"
_WRITE = "BEGIN IMMEDIATE"
_MIGRATIONS = Path(__file__).resolve().parent / "migrations"
_MIGRATION_LOCK = 0x636F6D70  # any constant of our own: the key of PostgreSQL's advisory lock around migrating
_WRITER_LOCK = 0x6C696272
_CACHE_KIB = 32 * 1024


@dataclass(frozen=True, slots=True)
class Place:
    """Where a catalogue is: `kind` sqlite, memory or postgresql; `name` a path or a URL without its password."""

    kind: str
    name: str


class Catalogue:
    """An open catalogue; safe to use from several threads.

    Attributes:
        place: where it is.
        owner: whose files the paths belong to; "" in a local catalogue, user@host in a shared one.
        notice: what the person must know (held in memory, rebuilt, not there yet), "" when all is as expected.
    """

    def __init__(self, engine: Engine, place: Place, owner: str, notice: str) -> None:
        self.place = place
        self.owner = owner
        self.notice = notice
        self._engine = engine
        self._only_connection = threading.RLock() if place.kind == "memory" else None

    @property
    def is_postgresql(self) -> bool:
        return self.place.kind == "postgresql"

    @property
    def engine(self) -> Engine:
        return self._engine

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection in a read transaction: one consistent state, never waiting for a writer.

        Raises:
            CatalogueBusy, CatalogueDamaged, CatalogueUnreachable.
        """
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection in a write transaction that is committed at the end, or rolled back when the body raises.

        The lock is taken at the beginning, so a second writer waits there and never fails half-way.

        Raises:
            CatalogueBusy, CatalogueFull, CatalogueDamaged, CatalogueUnreachable.
        """
        with self._transaction(_WRITE) as connection:
            yield connection

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        with (
            self._only_connection or contextlib.nullcontext(),
            translated(self.place),
            self._engine.connect() as connection,
        ):
            connection = connection.execution_options(**{_BEGIN: begin})
            with connection.begin():
                if self.is_postgresql and begin == _WRITE:
                    # Writers of one owner take turns, as SQLite's do; different people do not wait for each other.
                    owner = sa.func.hashtext(self.owner)
                    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_WRITER_LOCK, owner)))
                yield connection

    def rebuild(self, why: str) -> None:
        """Put a damaged SQLite file aside as `catalogue.sqlite.damaged` and start an empty catalogue in its place."""
        if self.place.kind != "sqlite":
            raise CatalogueDamaged(why, "restore the database from its backup", self.place.name)
        self._engine.dispose()
        path = Path(self.place.name)
        _put_aside(path)
        self._engine = _sqlite_engine(path)
        _migrate(self)
        self.notice = f"the catalogue was damaged ({why}) and is being made again; the old file is {path.name}.damaged"

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()


def open_catalogue(url: str = "", folder: Path | None = None, *, owner: str = "", create: bool = True) -> Catalogue:
    """Open the catalogue and bring its tables up to date.

    Args:
        url: a SQLAlchemy URL of PostgreSQL (`postgresql://user@host/name`); "" for SQLite in our own data folder.
        folder: the data folder, default `compaction.data_folder.data_folder()`.
        owner: the name that a shared catalogue keeps our files under; default user@host.
        create: False for a reading command: a catalogue that is not there is not made.

    Returns:
        The catalogue. When the data folder cannot be written it is held in memory, when the file was damaged it is new;
        `notice` says so.

    Raises:
        UsageError: the URL is of no supported kind.
        CatalogueUnreachable: the server does not answer.
        CatalogueBusy: another program keeps the file locked.
    """
    if url:
        return _open_postgresql(url, owner)
    folder = folder or data_folder()
    path = folder / FILE_NAME
    if not create and not path.exists():
        return _in_memory(None, "no catalogue yet: run `compactoscope index`")
    try:
        if create:
            ensure(folder)
        if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
            raise FolderUnwritable("cannot be written", file=str(folder))
    except FolderUnwritable as error:
        return _in_memory(path, f"the catalogue is held in memory and lost at the end: {error}")
    catalogue = Catalogue(_sqlite_engine(path), Place("sqlite", str(path)), "", "")
    try:
        _migrate(catalogue)
    except CatalogueDamaged as error:
        catalogue.rebuild(error.cause)
    except CatalogueFull as error:
        catalogue.close()
        return _in_memory(path, f"the catalogue is held in memory and lost at the end: {error}")
    return catalogue


@contextlib.contextmanager
def translated(place: Place) -> Iterator[None]:
    """Turn the driver's errors into ours, by what happened and what to do."""
    try:
        yield
    except exc.DBAPIError as error:
        mistakes = _MISTAKES[:2] if place.kind == "postgresql" else _MISTAKES
        if isinstance(error, mistakes):
            raise  # of ours: it says nothing about the database that the person could act on
        raise _meaning(error, place) from error


# PostgreSQL's missing rights are programming errors to the driver; SQLite knows no rights.
_MISTAKES = (exc.IntegrityError, exc.DataError, exc.ProgrammingError, exc.NotSupportedError)


def _meaning(error: exc.DBAPIError, place: Place) -> CompactoscopeError:
    text = str(error.orig).splitlines()[0] if str(error.orig) else type(error.orig).__name__
    if place.kind == "postgresql":
        if isinstance(error, exc.OperationalError):
            if "disk" in text.lower() or "space" in text.lower():
                return CatalogueFull(f"the server cannot write: {text}", "free space on it", place.name)
            return CatalogueUnreachable(f"the database server: {text}", "check the URL and the server", place.name)
        return InputUnreadable(f"the database server: {text}", "check rights and version of the server", place.name)
    if "locked" in text or "busy" in text:
        return CatalogueBusy("is locked by another program", "try again when that one is done", place.name)
    if "malformed" in text or "not a database" in text or "corrupt" in text:
        return CatalogueDamaged(text, "run `compactoscope index`: it makes the catalogue again", place.name)
    if "full" in text or "disk I/O" in text or "readonly" in text or "unable to open" in text:
        return CatalogueFull(f"cannot be written: {text}", "free disk space or check its permissions", place.name)
    return CatalogueDamaged(text, "run `compactoscope index`: it makes the catalogue again", place.name)


def default_owner() -> str:
    """user@host: whose files the paths in a shared catalogue are."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


def _open_postgresql(url: str, owner: str) -> Catalogue:
    try:
        parsed = sa.make_url(url)
    except exc.ArgumentError as error:
        raise UsageError("the database URL cannot be read", "write postgresql://user@host/name") from error
    if parsed.get_backend_name() != "postgresql":
        raise UsageError(f"a shared catalogue needs PostgreSQL, not {parsed.get_backend_name()}")
    place = Place("postgresql", parsed.render_as_string(hide_password=True))
    engine = sa.create_engine(
        parsed.set(drivername="postgresql+psycopg"), pool_pre_ping=True, connect_args={"connect_timeout": 10}
    )
    catalogue = Catalogue(engine, place, owner or default_owner(), "")
    _migrate(catalogue)
    return catalogue


def _sqlite_engine(path: Path) -> Engine:
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path)),
        connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
    )
    _explicit_transactions(engine)
    return engine


def _explicit_transactions(engine: Engine) -> None:
    """BEGIN as we say it: the driver's own would start late and could not take the write lock at the beginning."""

    def connected(driver: Any, _record: Any) -> None:
        driver.isolation_level = None
        cursor = driver.cursor()
        _use_wal(cursor)
        # With WAL, NORMAL survives a killed program; only a power cut may lose the last transactions, never the file.
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        cursor.close()

    def began(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))

    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", began)


def _use_wal(cursor: sqlite3.Cursor) -> None:
    """Switch to write-ahead logging, waiting for other programs: SQLite gives this statement up at once when two that
    open a new file do it together, whatever the timeout."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() >= until:
                raise
        time.sleep(_RETRY_SECONDS)


def _in_memory(path: Path | None, notice: str) -> Catalogue:
    """A catalogue without a file; what a read-only file at `path` holds is copied into it."""
    engine = sa.create_engine(
        "sqlite://", poolclass=sa.pool.StaticPool, connect_args={"check_same_thread": False, "timeout": BUSY_SECONDS}
    )
    _explicit_transactions(engine)
    if path is not None and path.exists():
        with contextlib.closing(engine.raw_connection()) as memory:
            notice += _copied(path, memory.driver_connection)
    catalogue = Catalogue(engine, Place("memory", ":memory:"), "", notice)
    _migrate(catalogue)
    return catalogue


def _copied(path: Path, memory: Any) -> str:
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as disk:
            disk.backup(memory)
    except sqlite3.DatabaseError as error:
        return f"; what {path.name} holds could not be read: {error}"
    return ""


def _put_aside(path: Path) -> None:
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    if path.exists():
        path.replace(path.with_name(path.name + ".damaged"))


def _migrate(catalogue: Catalogue) -> None:
    """Bring the tables to `HEAD`; two programs that start together do it once."""
    with catalogue.reading() as connection:
        if _revision(connection) == HEAD:
            return
    with catalogue.writing() as connection:
        if catalogue.is_postgresql:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
        if _revision(connection) != HEAD:
            _run_alembic(connection, catalogue.place)


def _revision(connection: Connection) -> str:
    if not sa.inspect(connection).has_table("alembic_version"):
        return ""
    return connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar() or ""


def _run_alembic(connection: Connection, place: Place) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util.exc import CommandError

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise InputUnreadable(
            f"the catalogue was made by a newer version: {error}",
            "use that version, or another data folder",
            place.name,
        ) from error
