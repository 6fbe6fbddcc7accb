from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection

from compaction.catalogue.database import Catalogue
from compaction.catalogue.entries import BUCKETS, DAY_MS, SessionEntry, SessionFilter, Totals, UsagePoint
from compaction.catalogue.tables import RESPONSE, TRANSCRIPT
from compaction.catalogue.totals import read_series

_IN_AT_MOST = 20_000
"""Values of an IN (…): SQLite takes 32,766 in a statement, PostgreSQL 65,535."""


def list_sessions(
    catalogue: Catalogue, wanted: SessionFilter | None = None, *, limit: int | None = None
) -> list[SessionEntry]:
    """The main sessions that pass a filter, the one used last first."""
    wanted = wanted or SessionFilter()
    with catalogue.reading() as connection:
        query = sa.select(TRANSCRIPT).where(TRANSCRIPT.c.kind == "main", *conditions(wanted))
        query = query.order_by(TRANSCRIPT.c.last_ms.desc(), TRANSCRIPT.c.id).limit(limit)
        rows = connection.execute(query).mappings().all()
        below = _subagent_totals(connection)
    entries = [_entry(row, *below.get(row["id"], (0, Totals()))) for row in rows]
    return [e for e in entries if _affordable(e, wanted)]


def conditions(wanted: SessionFilter, table: sa.FromClause = TRANSCRIPT) -> list[ColumnElement[bool]]:
    """The filter as conditions on the main session's row (cost is checked on the total, after adding subagents)."""
    t = table.c
    found: list[ColumnElement[bool]] = []
    if wanted.project:
        found.append(t.project.icontains(wanted.project, autoescape=True))
    if wanted.owner:
        found.append(t.owner == wanted.owner)
    for text, column in ((wanted.model, t.models), (wanted.tool, t.tools)):
        if text:
            found.append(sa.cast(column, sa.Text).icontains(text, autoescape=True))
    if wanted.since_ms is not None:
        found.append(t.last_ms >= wanted.since_ms)
    if wanted.until_ms is not None:
        found.append((t.first_ms < wanted.until_ms) & (t.first_ms > 0))
    if wanted.minimum_context is not None:
        found.append(t.context_tokens >= wanted.minimum_context)
    if wanted.maximum_context is not None:
        found.append(t.context_tokens <= wanted.maximum_context)
    if wanted.finding:
        found.append(_has_finding(wanted.finding, table))
    if wanted.compaction:
        found.append(t.compactions > 0)
    if wanted.error:
        found.append((t.api_errors > 0) | (t.tool_errors > 0))
    for word in wanted.words:
        places = (t.title, t.first_prompt, t.project, t.branch, t.session_id)
        found.append(sa.or_(*(place.icontains(word, autoescape=True) for place in places)))
    return found


def _has_finding(finding: str, table: sa.FromClause) -> ColumnElement[bool]:
    t = table.c
    columns = {"error": t.findings_error, "warning": t.findings_warning, "info": t.findings_info}
    if finding in columns:
        return columns[finding] > 0
    if finding == "any":
        return sa.or_(*(column > 0 for column in columns.values()))
    return sa.cast(t.finding_codes, sa.Text).contains(f'"{finding}"', autoescape=True)


def _affordable(entry: SessionEntry, wanted: SessionFilter) -> bool:
    low, high = wanted.minimum_cost, wanted.maximum_cost
    cost = entry.total.cost_usd
    return (low is None or cost >= low) and (high is None or cost <= high)


def _subagent_totals(connection: Connection) -> dict[int, tuple[int, Totals]]:
    t = TRANSCRIPT.c
    numbers = (
        t.responses,
        *(t[bucket] for bucket in BUCKETS),
        t.cost_usd,
        t.unpriced_responses,
        t.uncertain_responses,
    )
    query = (
        sa.select(t.parent_id, sa.func.count(), *(sa.func.sum(number) for number in numbers))
        .where(t.parent_id.is_not(None))
        .group_by(t.parent_id)
    )
    return {parent: (count, _totals(values)) for parent, count, *values in connection.execute(query)}


def _totals(values: Sequence[Any]) -> Totals:
    """Numbers of a row in the order of `Totals`; a database's sums may be decimals or NULL."""
    responses, fresh, output, read, write_5m, write_1h, cost, unpriced, uncertain = (value or 0 for value in values)
    return Totals(
        int(responses), int(fresh), int(output), int(read), int(write_5m), int(write_1h),
        float(cost), int(unpriced), int(uncertain),
    )  # fmt: skip


def _entry(row: Any, subagents: int, below: Totals) -> SessionEntry:
    own = _totals(
        [
            row["responses"],
            *(row[b] for b in BUCKETS),
            row["cost_usd"],
            row["unpriced_responses"],
            row["uncertain_responses"],
        ]
    )
    current = row["examined_bytes"] == row["bytes"] and row["findings_error"] is not None
    findings = (row["findings_error"], row["findings_warning"], row["findings_info"]) if current else None
    same = ("id", "owner", "session_id", "path", "kind", "title", "project", "branch", "first_ms", "last_ms", "bytes")
    more = ("mtime_ns", "lines", "records", "damaged", "context_tokens", "compactions", "api_errors", "tool_errors")
    return SessionEntry(
        **{name: row[name] for name in (*same, *more, "forked_from")},
        models=tuple(row["models"]),
        versions=tuple(row["versions"]),
        tools=tuple(row["tools"]),
        own=own,
        total=own + below,
        subagents=subagents,
        series=tuple(read_series(row["context_series"])),
        findings=findings,
        finding_codes=tuple(row["finding_codes"]) if current else (),
        problem=row["examination_problem"],
    )


def usage(catalogue: Catalogue, by: Sequence[str], wanted: SessionFilter | None = None) -> list[UsagePoint]:
    """Usage summed by any of "day", "project", "model", every API response counted once across all files.

    Copies of a response in resumed and forked files share its message.id (transcript-format.md §6); the copy with the
    most output tokens stands for all.
    """
    wanted = wanted or SessionFilter()
    responses = _distinct_responses(_meant(wanted))
    columns: dict[str, ColumnElement[Any]] = {
        "day": (responses.c.timestamp_ms - responses.c.timestamp_ms % DAY_MS) / DAY_MS,
        "project": responses.c.project,
        "model": responses.c.model,
    }
    chosen = [columns[name].label(name) for name in by]
    query = sa.select(*chosen, *_sums(responses)).group_by(*chosen)
    for bound, test in (
        (wanted.since_ms, responses.c.timestamp_ms.__ge__),
        (wanted.until_ms, responses.c.timestamp_ms.__lt__),
    ):
        if bound is not None:
            query = query.where(test(bound))
    points = []
    with catalogue.reading() as connection:
        for row in connection.execute(query):
            named = dict(zip(by, row[: len(by)], strict=True))
            totals = _totals(row[len(by) :])
            points.append(
                UsagePoint(int(named.get("day", 0)), named.get("project", ""), named.get("model", ""), totals)
            )
    return sorted(points, key=lambda p: (p.day, p.project, p.model))


def totals_of(catalogue: Catalogue, ids: Sequence[int]) -> Totals:
    """What some sessions together used, subagents included, every response counted once."""
    found: dict[int, Any] = {}
    with catalogue.reading() as connection:
        if len(ids) <= _IN_AT_MOST:
            return _totals(connection.execute(sa.select(*_sums(_distinct_responses(_family(ids))))).one())
        # More than one statement takes: the copies of a response are told apart here.
        for start in range(0, len(ids), _IN_AT_MOST):
            family = _family(ids[start : start + _IN_AT_MOST])
            query = sa.select(RESPONSE).join(TRANSCRIPT, TRANSCRIPT.c.id == RESPONSE.c.transcript_id).where(family)
            for row in connection.execute(query).mappings():
                other = found.get(row["message_key"])
                if other is None or row["output_tokens"] > other["output_tokens"]:
                    found[row["message_key"]] = row
    whole = Totals()
    for row in found.values():
        numbers = [1, *(row[b] for b in BUCKETS), row["cost_usd"], row["cost_usd"] is None, row["uncertain"]]
        whole += _totals(numbers)
    return whole


def _family(ids: Sequence[int]) -> ColumnElement[bool]:
    """The files of some sessions: their own and their subagents'."""
    return sa.func.coalesce(TRANSCRIPT.c.parent_id, TRANSCRIPT.c.id).in_(ids)


def _meant(wanted: SessionFilter) -> ColumnElement[bool]:
    tests = conditions(wanted)
    if not tests:
        return sa.true()
    main = sa.select(TRANSCRIPT.c.id).where(TRANSCRIPT.c.kind == "main", *tests)
    return TRANSCRIPT.c.id.in_(main) | TRANSCRIPT.c.parent_id.in_(main)


def _distinct_responses(meant: ColumnElement[bool]) -> sa.Subquery:
    rank = sa.func.row_number().over(
        partition_by=RESPONSE.c.message_key, order_by=(RESPONSE.c.output_tokens.desc(), RESPONSE.c.transcript_id)
    )
    ranked = (
        sa.select(RESPONSE, TRANSCRIPT.c.project, rank.label("place"))
        .join(TRANSCRIPT, TRANSCRIPT.c.id == RESPONSE.c.transcript_id)
        .where(meant)
        .subquery()
    )
    return sa.select(ranked).where(ranked.c.place == 1).subquery()


def _sums(responses: sa.Subquery) -> list[ColumnElement[Any]]:
    c = responses.c
    unpriced = sa.func.sum(sa.case((c.cost_usd.is_(None), 1), else_=0))
    uncertain = sa.func.sum(sa.case((c.uncertain, 1), else_=0))
    return [sa.func.count(), *(sa.func.sum(c[b]) for b in BUCKETS), sa.func.sum(c.cost_usd), unpriced, uncertain]
