"""Search over the sessions: what is found, how it is filtered, and that no secret is shown (issue 7)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from compaction.catalogue.database import Catalogue, open_catalogue
from compaction.catalogue.indexer import refresh
from compaction.catalogue.query import fts5_expression, parse_query
from compaction.catalogue.search import snippet
from compaction.errors import UsageError
from tests.unit.catalogue.library import build
from tests.unit.catalogue.search_rules import RULES


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalogue]:
    folder = tmp_path_factory.mktemp("library")
    build(folder / "projects")
    opened = open_catalogue(folder=folder / "data")
    refresh(opened, [folder / "projects"], findings=False, processes=1)
    yield opened
    opened.close()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_on_sqlite(catalogue: Catalogue, rule: Callable[[Catalogue], None]) -> None:
    rule(catalogue)


@pytest.mark.parametrize("text", ["", "  ", "-without", "***", '""', "!!"])
def test_something_must_be_looked_for(text: str) -> None:
    with pytest.raises(UsageError):
        parse_query(text)


def test_fts5_operators_cannot_come_in() -> None:
    assert fts5_expression(parse_query('a AND b" NEAR')) == '("a") AND ("AND") AND ("b") AND ("NEAR")'


def test_a_snippet_is_one_line_and_cuts_no_secret_in_half() -> None:
    key = "ghp_" + "a1B2" * 9
    for before in range(0, 120, 7):
        text = "x " * before + f"gauge\n\n{key} " + "y " * 400
        line, matches = snippet(text, re.compile("gauge"))
        assert "\n" not in line
        assert len(line) <= 200
        assert not re.search("a1B2a1B2", line)
        assert matches
