"""What a search must do, as functions of an indexed catalogue: both databases have to pass every one of them."""

from __future__ import annotations

import sqlalchemy as sa

from compaction.catalogue.database import Catalogue
from compaction.catalogue.entries import SessionFilter
from compaction.catalogue.search import SessionHits, search
from compaction.catalogue.sessions import list_sessions, totals_of, usage
from compaction.catalogue.tables import PASSAGE
from tests.unit.catalogue.library import KEY


def names(found: list[SessionHits]) -> list[str]:
    return sorted(session.project.rsplit("/", 1)[-1] for session in found)


def projects(catalogue: Catalogue, text: str, wanted: SessionFilter | None = None, **more: object) -> list[str]:
    return names(search(catalogue, text, wanted, **more))  # type: ignore[arg-type]


def words_are_found_in_prompts_answers_calls_and_results(catalogue: Catalogue) -> None:
    kinds = {hit.kind for session in search(catalogue, "gauge") for hit in session.hits}
    assert kinds == {"prompt", "answer", "tool_use"}
    assert projects(catalogue, "Brouwershaven") == ["harbour"]
    assert projects(catalogue, "wc") == ["bakery"]
    assert projects(catalogue, "datum", kinds=["thinking"]) == ["harbour"]
    assert projects(catalogue, "counted", kinds=["summary"]) == ["bakery"]


def the_query_language_means_the_same_everywhere(catalogue: Catalogue) -> None:
    assert projects(catalogue, "tide") == ["bakery", "harbour"]
    assert projects(catalogue, "tide gauge") == ["harbour"]
    assert projects(catalogue, "tide -loaves") == ["harbour"]
    assert projects(catalogue, "gauge OR loaves") == ["bakery", "harbour"]
    assert projects(catalogue, "Brouw*") == ["harbour"]
    assert projects(catalogue, "Brouw") == []
    assert projects(catalogue, '"tide gauge"') == ["harbour"]
    assert projects(catalogue, '"gauge tide"') == []
    assert projects(catalogue, "TIDE GAUGE") == ["harbour"]
    assert projects(catalogue, "höhe") == ["harbour"]
    assert projects(catalogue, "read_file") == ["harbour"]


def no_character_of_a_query_is_an_error(catalogue: Catalogue) -> None:
    for text in (
        "a'b",
        'tide "',
        "tide)",
        "((tide",
        "tide:*",
        "tide & | !",
        "NEAR(tide)",
        "tide <-> x",
        "col:tide",
        "'; DROP TABLE passage; --",
    ):
        search(catalogue, text)


def a_hit_opens_at_its_line(catalogue: Catalogue) -> None:
    [session] = search(catalogue, "Brouwershaven")
    [hit] = session.hits
    with open(hit.path, "rb") as file:
        assert b"Brouwershaven" in file.read().split(b"\n")[hit.line - 1]
    assert (hit.kind, hit.tool) == ("tool_result", "Read")
    start, length = hit.matches[0]
    assert hit.snippet[start : start + length] == "Brouwershaven"


def filters_restrict_the_sessions(catalogue: Catalogue) -> None:
    for wanted, expected in (
        (SessionFilter(project="HARBOUR"), ["harbour"]),
        (SessionFilter(model="opus"), ["bakery"]),
        (SessionFilter(since_ms=1_785_000_000_000), ["bakery"]),
        (SessionFilter(until_ms=1_785_000_000_000), ["harbour"]),
        (SessionFilter(minimum_cost=1000.0), []),
        (SessionFilter(maximum_cost=1000.0), ["bakery", "harbour"]),
        (SessionFilter(maximum_context=1), []),
        (SessionFilter(minimum_context=1), ["bakery", "harbour"]),
        (SessionFilter(compaction=True), ["bakery"]),
        (SessionFilter(error=True), ["bakery"]),
        (SessionFilter(project="100%"), []),
    ):
        assert projects(catalogue, "tide", wanted) == expected, wanted
        assert sorted(e.project.rsplit("/", 1)[-1] for e in list_sessions(catalogue, wanted)) == expected, wanted
    assert projects(catalogue, "loaves", SessionFilter(tool="bash")) == ["bakery"]
    assert projects(catalogue, "tide", SessionFilter(tool="bash")) == []
    assert [e.project for e in list_sessions(catalogue, SessionFilter(tool="Read"))] == ["/home/someone/harbour"]
    assert [e.project for e in list_sessions(catalogue, SessionFilter(words=("GAUGE",)))] == ["/home/someone/harbour"]


def secrets_are_neither_shown_nor_stored(catalogue: Catalogue) -> None:
    [session] = search(catalogue, "station")
    assert KEY not in session.hits[0].snippet
    assert "•••" in session.hits[0].snippet
    with catalogue.reading() as connection:
        texts = connection.execute(sa.select(PASSAGE.c.text)).scalars().all()
    assert not [text for text in texts if KEY in text or "Sturmflut1953" in text]
    assert search(catalogue, "Sturmflut1953") == []


def usage_adds_up_by_day_project_and_model(catalogue: Catalogue) -> None:
    whole = totals_of(catalogue, [entry.id for entry in list_sessions(catalogue)])
    for by in (["day"], ["project"], ["model"], ["day", "project", "model"]):
        points = usage(catalogue, by)
        assert sum(point.totals.responses for point in points) == whole.responses
        assert abs(sum(point.totals.cost_usd for point in points) - whole.cost_usd) < 1e-9
    days = [point.day for point in usage(catalogue, ["day"])]
    assert days[0] == 1_780_000_000_000 // 86_400_000
    assert {point.project for point in usage(catalogue, ["project"], SessionFilter(model="opus"))} == {
        "/home/someone/bakery"
    }


RULES = (
    words_are_found_in_prompts_answers_calls_and_results,
    the_query_language_means_the_same_everywhere,
    no_character_of_a_query_is_an_error,
    a_hit_opens_at_its_line,
    filters_restrict_the_sessions,
    secrets_are_neither_shown_nor_stored,
    usage_adds_up_by_day_project_and_model,
)
