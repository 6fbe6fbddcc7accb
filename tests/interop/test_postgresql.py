"""The shared library on a real PostgreSQL server that these tests start (issue 7)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from compaction.catalogue.database import Catalogue, open_catalogue
from compaction.catalogue.entries import SessionFilter
from compaction.catalogue.errors import CatalogueUnreachable
from compaction.catalogue.indexer import refresh
from compaction.catalogue.sessions import list_sessions, usage
from compaction.catalogue.tables import Base
from compaction.resources import resource
from tests.support import ROOT
from tests.support_postgres import running_server, server_programs
from tests.unit.catalogue.library import build
from tests.unit.catalogue.search_rules import RULES
from tests.unit.catalogue.support import content, make_library

_PROGRAMS = server_programs()
pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(_PROGRAMS is None, reason="no PostgreSQL server (initdb, postgres) is installed"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    assert _PROGRAMS is not None
    with running_server(_PROGRAMS) as url:
        yield url


@pytest.fixture
def url(server: str, request: pytest.FixtureRequest) -> str:
    """An empty database of its own for one test."""
    name = f"library_{abs(hash(request.node.name)) % 10**8}"
    engine = sa.create_engine(sa.make_url(server).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.replace("/postgres?", f"/{name}?")


@pytest.fixture(scope="module")
def searched(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalogue]:
    folder = tmp_path_factory.mktemp("library")
    build(folder / "projects")
    opened = open_catalogue(server)
    refresh(opened, [folder / "projects"], findings=False, processes=1)
    yield opened
    opened.close()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_on_postgresql(searched: Catalogue, rule: Callable[[Catalogue], None]) -> None:
    rule(searched)


def test_the_migrations_make_exactly_the_declared_tables(url: str) -> None:
    opened = open_catalogue(url)
    with opened.reading() as connection:
        different = compare_metadata(MigrationContext.configure(connection), Base.metadata)
    # The full text's column and index exist on PostgreSQL only, so no model declares them.
    left = [d for d in different if "document" not in str(d) and "passage_full_text" not in str(d)]
    assert left == []
    opened.close()


def test_the_same_content_as_on_sqlite(url: str, tmp_path: Path) -> None:
    make_library(tmp_path, 4, rounds=15)
    found = []
    for opened in (open_catalogue(url, owner="ada@desk"), open_catalogue(folder=tmp_path / "data")):
        refresh(opened, [tmp_path / "projects"], processes=1)
        found.append(content(opened))
        opened.close()
    for row in found[0]["transcript"]:
        assert row.pop("owner") == "ada@desk"
    for row in found[1]["transcript"]:
        assert row.pop("owner") == ""
    assert found[0] == found[1]


def test_two_people_index_their_own_folders_into_it(url: str, tmp_path: Path) -> None:
    for owner, seed in (("ada@desk", 0), ("ben@desk", 1)):
        make_library(tmp_path / owner, 3, rounds=8 + seed)

    def work(owner: str) -> None:
        opened = open_catalogue(url, owner=owner)
        refresh(opened, [tmp_path / owner / "projects"], findings=False, processes=1)
        opened.close()

    with ThreadPoolExecutor(2) as people:
        list(people.map(work, ("ada@desk", "ben@desk")))
    opened = open_catalogue(url, owner="ada@desk")
    assert len(list_sessions(opened)) == 6
    assert len(list_sessions(opened, SessionFilter(owner="ben@desk"))) == 3
    assert sum(point.totals.responses for point in usage(opened, ["day"])) > 0
    for path in (tmp_path / "ada@desk" / "projects").rglob("s0.jsonl"):
        path.unlink()
    report = refresh(opened, [tmp_path / "ada@desk" / "projects"], findings=False)
    assert report.removed == 1, "one person's refresh never touches another's files"
    assert len(list_sessions(opened)) == 5
    opened.close()


def test_two_programs_that_start_together_migrate_once(url: str) -> None:
    with ThreadPoolExecutor(4) as programs:
        for opened in programs.map(lambda _: open_catalogue(url), range(4)):
            opened.close()


def test_the_command_line_uses_it_by_url(url: str, tmp_path: Path) -> None:
    build(tmp_path / "projects")
    for command in (["index", "--no-findings", str(tmp_path / "projects")], ["search", "tide", "--json"], ["sessions"]):
        done = subprocess.run(
            [sys.executable, "-m", "inspector", *command], capture_output=True, text=True, timeout=60, check=True,
            env={**os.environ, "COMPACTOSCOPE_DATABASE": url, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert done.stdout


def test_a_server_that_is_not_there_is_said_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(CatalogueUnreachable) as caught:
        open_catalogue(f"postgresql://someone:Sturmflut@/none?host={tmp_path}")
    assert "Sturmflut" not in str(caught.value)
    assert "database server" in str(caught.value)


def test_the_documented_commands_set_it_up_and_take_it_down(server: str, tmp_path: Path) -> None:
    """The SQL of resources/docs/library.md, run as it stands there."""
    page = resource("docs", "library.md").read_text("utf-8")
    blocks = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    set_up, take_out = (block.strip().split(";\n") for block in blocks)
    engine = sa.create_engine(sa.make_url(server).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in set_up:
            connection.exec_driver_sql(statement)
    engine.dispose()
    url = server.replace("owner@", "compactoscope@").replace("/postgres?", "/library?")
    build(tmp_path / "projects")
    opened = open_catalogue(url, owner="ada@desk")
    refresh(opened, [tmp_path / "projects"], findings=False, processes=1)
    assert len(list_sessions(opened)) == 2
    with opened.writing() as connection:
        for statement in take_out:
            connection.exec_driver_sql(statement)
        assert connection.execute(sa.text("SELECT count(*) FROM passage")).scalar() == 0
        assert connection.execute(sa.text("SELECT count(*) FROM response")).scalar() == 0
    assert list_sessions(opened) == []
    opened.close()


def test_the_same_owner_on_two_programs_indexes_every_file_once(url: str, tmp_path: Path) -> None:
    make_library(tmp_path, 6, rounds=8)

    def work(_number: int) -> None:
        opened = open_catalogue(url, owner="ada@desk")
        refresh(opened, [tmp_path / "projects"], findings=False, processes=1)
        opened.close()

    with ThreadPoolExecutor(3) as programs:
        list(programs.map(work, range(3)))
    opened = open_catalogue(url, owner="ada@desk")
    alone = open_catalogue(folder=tmp_path / "data")
    refresh(alone, [tmp_path / "projects"], findings=False, processes=1)
    shared, expected = content(opened), content(alone)
    for row in shared["transcript"] + expected["transcript"]:
        row.pop("owner")
    assert shared == expected
    opened.close()
    alone.close()
