from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy import Connection

from compaction.catalogue.discovery import place_of
from compaction.catalogue.entries import BUCKETS
from compaction.catalogue.passages import Passage
from compaction.catalogue.responses import RESPONSE_COLUMNS, SCANNED, ScannedResponses
from compaction.catalogue.scan import SliceResult, Summary
from compaction.catalogue.tables import FACT, PASSAGE, RESPONSE, TRANSCRIPT
from compaction.catalogue.totals import FileTotals, shows_main_context, totals_of

_IN_AT_ONCE = 500
UNLINKED = "unlinked"
"""Fact: files were stored since `link` ran last."""
PRICES = "prices"
"""Fact: what the stored costs were computed with (`pricing.price_fingerprint`), and how responses are told apart."""


def empty_row(owner: str, folder_id: int, path: str) -> dict[str, Any]:
    """The values of a transcript's row before anything was read of it."""
    place = place_of(path)
    texts = ("session_id", "title", "custom_title", "ai_title", "first_prompt", "project", "branch", "forked_from")
    numbers = (
        *("first_ms", "last_ms", "lines", "records", "damaged"),
        *("compactions", "api_errors", "tool_errors", "examined_bytes"),
        *("prefix_bytes", "prefix_hash", "lineage_key", "indexed_bytes", "indexed_newlines", "tail_hash"),
        *("text_bytes", "text_newlines"),
    )
    return {
        "owner": owner,
        "folder_id": folder_id,
        "path": path,
        "kind": place.kind,
        "agent_id": place.agent_id,
        "parent_id": None,
        **dict.fromkeys(texts, ""),
        **dict.fromkeys(numbers, 0),
        **{name: [] for name in ("versions", "models", "tools", "finding_codes")},
        **dict.fromkeys(("findings_error", "findings_warning", "findings_info")),
        **FileTotals()._asdict(),
        "examination_problem": "",
        "bytes": -1,
        "mtime_ns": 0,
    }


def apply_slices(
    connection: Connection, owner: str, folder_of: dict[str, int], results: Sequence[SliceResult]
) -> dict[str, int]:
    """Store what workers found, in the caller's transaction: all of it or nothing.

    A slice is dropped when the row no longer stands where the slice begins: another writer was faster.

    Args:
        folder_of: folder id by path, for files without a row.

    Returns:
        Row id by path, of the slices that were stored.
    """
    rows = _current_rows(connection, owner, [r.job.path for r in results])
    fresh: list[tuple[SliceResult, dict[str, Any]]] = []
    known: list[tuple[SliceResult, dict[str, Any]]] = []
    for result in results:
        row = rows.get(result.job.path)
        if result.problem or (row is None) != (result.job.transcript_id == 0):
            continue
        if row is None:
            fresh.append((result, empty_row(owner, folder_of[result.job.path], result.job.path)))
        elif _stands_where_expected(result, row):
            known.append((result, row))
    for result, row in known:
        if result.start == 0 and (result.job.start or row["indexed_bytes"]) and result.job.summary:
            _forget_content(connection, row)
    for result, row in fresh:
        _merge(result, row, result.summary.totals if result.summary is not None else None)
    _insert_rows(connection, [row for _, row in fresh])
    _add_responses(connection, [(row["id"], r.summary.responses) for r, row in fresh if r.summary is not None])
    slices = [(result, row) for result, row in known if result.summary is not None]
    _join_responses(connection, [(row["id"], r.summary.responses) for r, row in slices if r.summary is not None])
    # A long file is totalled when its last slice is there; until then its row tells of a file that is being read.
    totals = _totals_of(connection, [row for result, row in slices if result.finished])
    for result, row in known:
        _merge(result, row, totals.get(row["id"]))
    _update_rows(connection, [row for _, row in known])
    if any(result.summary is not None for result, _ in [*fresh, *known]):
        # In the same transaction, so that `link` runs even when this program is killed before.
        set_fact(connection, owner, UNLINKED, "yes")
    for result, row in [*fresh, *known]:
        if result.passages:
            _write_passages(connection, row["id"], result.passages)
    return {result.job.path: row["id"] for result, row in [*fresh, *known]}


def _current_rows(connection: Connection, owner: str, paths: Sequence[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for part in in_parts(paths):
        query = sa.select(TRANSCRIPT).where(TRANSCRIPT.c.owner == owner, TRANSCRIPT.c.path.in_(part))
        found.update((row["path"], dict(row)) for row in connection.execute(query).mappings())
    return found


def _stands_where_expected(result: SliceResult, row: dict[str, Any]) -> bool:
    job = result.job
    if job.summary and row["indexed_bytes"] != job.start:
        return False
    return not job.text or row["text_bytes"] == job.start


def _forget_content(connection: Connection, row: dict[str, Any]) -> None:
    """The file was rewritten: its old responses and passages are gone, its row begins anew."""
    connection.execute(sa.delete(RESPONSE).where(RESPONSE.c.transcript_id == row["id"]))
    connection.execute(sa.delete(PASSAGE).where(PASSAGE.c.transcript_id == row["id"]))
    kept = {"id": row["id"], "parent_id": row["parent_id"]}
    row.update({**empty_row(row["owner"], row["folder_id"], row["path"]), **kept})


def _merge(result: SliceResult, row: dict[str, Any], totals: FileTotals | None) -> None:
    """Bring a row up to date with a slice, and with the totals of the file's responses where they are given."""
    if totals is not None:
        row.update(totals._asdict())
    if result.summary is not None:
        _merge_summary(result.summary, row)
        row["indexed_bytes"], row["indexed_newlines"] = result.end, result.newlines
        row["prefix_bytes"], row["prefix_hash"] = result.fingerprint.prefix_bytes, result.fingerprint.prefix_hash
        row["tail_hash"] = result.fingerprint.tail_hash
        # Until the last slice is stored no stat equals this, so that a killed indexer takes the file up again.
        row["bytes"], row["mtime_ns"] = (result.job.bytes, result.job.mtime_ns) if result.finished else (-1, 0)
    if result.passages is not None:
        row["text_bytes"], row["text_newlines"] = result.end, result.newlines


def _merge_summary(found: Summary, row: dict[str, Any]) -> None:
    for name in ("custom_title", "ai_title", "branch"):
        row[name] = getattr(found, name) or row[name]
    for name in ("first_prompt", "project", "agent_id", "lineage_key"):
        row[name] = row[name] or getattr(found, name)
    for name in ("versions", "models"):
        row[name] = list(dict.fromkeys([*row[name], *getattr(found, name)]))
    row["tools"] = sorted({*row["tools"], *found.tools})
    for name in ("records", "damaged", "compactions", "api_errors", "tool_errors"):
        row[name] += getattr(found, name)
    row["lines"] = max(row["lines"], found.lines)
    row["first_ms"] = min(filter(None, (row["first_ms"], found.first_ms)), default=0)
    row["last_ms"] = max(row["last_ms"], found.last_ms)
    row["title"] = row["custom_title"] or row["ai_title"] or row["first_prompt"]
    row["session_id"] = _session_id(row, found.session_ids)
    answered = row["responses"] or len(found.responses)
    if row["kind"] == "main" and not found.messages and not answered and not row["first_prompt"]:
        row["kind"] = "other"
    elif row["kind"] == "other" and found.messages:
        row["kind"] = "main"


def _session_id(row: dict[str, Any], newest_first: Sequence[str]) -> str:
    """The file's own name when the records have it too (a resumed file holds older ids as well), else the newest id."""
    before: str = row["session_id"]
    stem = str(row["path"]).replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".jsonl")
    if before == stem or stem in newest_first:
        return stem
    return newest_first[0] if newest_first else before


def _insert_rows(connection: Connection, rows: list[dict[str, Any]]) -> None:
    """Add files that the catalogue does not have, and note the ids that their rows get."""
    if not rows:
        return
    newest = connection.execute(sa.select(sa.func.max(TRANSCRIPT.c.id))).scalar() or 0
    values = ([json.dumps(v) if isinstance(v, list) else v for v in row.values()] for row in rows)
    _insert(connection, TRANSCRIPT, list(rows[0]), values)
    # Asking for the ids afterwards: an INSERT that returns one runs once for each row.
    query = sa.select(TRANSCRIPT.c.path, TRANSCRIPT.c.id).where(
        TRANSCRIPT.c.owner == rows[0]["owner"], TRANSCRIPT.c.id > newest
    )
    ids: dict[str, int] = dict(connection.execute(query).cursor.fetchall())
    for row in rows:
        row["id"] = ids[row["path"]]


def _update_rows(connection: Connection, rows: list[dict[str, Any]]) -> None:
    if rows:
        query = sa.update(TRANSCRIPT).where(TRANSCRIPT.c.id == sa.bindparam("row_id"))
        values: dict[str, Any] = {name: sa.bindparam(name) for name in rows[0] if name != "id"}
        connection.execute(query.values(values), [{**row, "row_id": row["id"]} for row in rows])


def _add_responses(connection: Connection, found: Sequence[tuple[int, ScannedResponses]]) -> None:
    """Add responses to transcripts (by id) that have none with these keys."""
    rows = np.frombuffer(b"".join(responses.rows for _, responses in found), SCANNED)
    counts = [len(responses) for _, responses in found]
    bases = np.cumsum([0, *(len(responses.models) for _, responses in found)])[:-1]
    names = [name for _, responses in found for name in responses.models]
    columns: dict[str, Iterable[Any]] = {name: rows[name].tolist() for name in RESPONSE_COLUMNS}
    columns["model"] = map(names.__getitem__, (rows["model"] + np.repeat(bases, counts)).tolist())
    if np.isnan(rows["cost_usd"]).any():
        columns["cost_usd"] = [None if cost != cost else cost for cost in rows["cost_usd"].tolist()]
    ids = np.repeat(np.array([number for number, _ in found], np.int64), counts).tolist()
    _insert(connection, RESPONSE, ("transcript_id", *RESPONSE_COLUMNS), zip(ids, *columns.values(), strict=True))


def _join_responses(connection: Connection, found: Sequence[tuple[int, ScannedResponses]]) -> None:
    """Add responses to transcripts (by id) that may have some of them from an earlier slice.

    Such a response keeps its place and time, and the larger figures.
    """
    key = sa.tuple_(RESPONSE.c.transcript_id, RESPONSE.c.message_key)
    new = {(number, k) for number, responses in found for k in responses.array()["message_key"].tolist()}
    have: set[tuple[int, int]] = set()
    for part in in_parts(number for number, _ in found):
        # All keys of the files: asking for those of the slice would take longer for each than reading one.
        keys = sa.select(RESPONSE.c.transcript_id, RESPONSE.c.message_key).where(RESPONSE.c.transcript_id.in_(part))
        have.update(new.intersection(connection.execute(keys).cursor.fetchall()))
    columns = ("transcript_id", *RESPONSE_COLUMNS)
    before: dict[tuple[int, int], dict[str, Any]] = {}
    for part in in_parts(have):
        query = sa.select(*(RESPONSE.c[name] for name in columns)).where(key.in_(part))
        for row in connection.execute(query).mappings():
            before[row["transcript_id"], row["message_key"]] = dict(row)
    for part in in_parts(before):
        connection.execute(sa.delete(RESPONSE).where(key.in_(part)))
    _add_responses(connection, [(number, _joined(number, r, before)) for number, r in found])


def _joined(
    number: int, responses: ScannedResponses, before: dict[tuple[int, int], dict[str, Any]]
) -> ScannedResponses:
    rows = responses.array().copy()
    models = list(responses.models)
    for at, message_key in enumerate(rows["message_key"].tolist()):
        old = before.get((number, message_key))
        if old is None:
            continue
        row = rows[at]
        row["line"], row["timestamp_ms"] = old["line"], old["timestamp_ms"] or row["timestamp_ms"]
        row["uncertain"] &= old["uncertain"]
        if old["output_tokens"] > row["output_tokens"]:
            for name in (*BUCKETS, "context_tokens", "sidechain"):
                row[name] = old[name]
            row["cost_usd"] = np.nan if old["cost_usd"] is None else old["cost_usd"]
            row["model"] = len(models)
            models.append(old["model"])
    return ScannedResponses(rows.tobytes(), tuple(models))


_TOTALLED = np.dtype(
    [(name, SCANNED[name]) for name in (*BUCKETS, "context_tokens", "sidechain", "uncertain", "cost_usd")]
)


def _totals_of(connection: Connection, rows: Sequence[dict[str, Any]]) -> dict[int, FileTotals]:
    """What the responses stored of some files come to, by row id."""
    found: dict[int, FileTotals] = {}
    columns = [RESPONSE.c[name] for name in _TOTALLED.names or ()]
    for part in in_parts(rows):
        ids = [row["id"] for row in part]
        query = (
            sa.select(*columns, RESPONSE.c.transcript_id)
            .where(RESPONSE.c.transcript_id.in_(ids))
            .order_by(RESPONSE.c.transcript_id, RESPONSE.c.line)
        )
        # The driver's own tuples: a long file has tens of thousands.
        stored = connection.execute(query).cursor.fetchall()
        array = np.array([row[:-1] for row in stored], _TOTALLED)
        numbers = np.array([row[-1] for row in stored], np.int64)
        ordered = sorted(part, key=itemgetter("id"))
        starts = np.searchsorted(numbers, [row["id"] for row in ordered]).tolist()
        totals = totals_of(array, [*starts, len(stored)], [shows_main_context(row["kind"]) for row in ordered])
        found.update(zip(sorted(ids), totals, strict=True))
    return found


_ROWS_AT_ONCE = 20
"""In one statement: each takes a quarter less time than in one of its own; more hardly matter."""


def _insert(connection: Connection, table: sa.Table, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows through the driver: making a dictionary of each and binding it by name takes four times as long."""
    values = list(rows)
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    marks = f"({', '.join([mark] * len(names))})"
    insert = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES "
    whole = len(values) - len(values) % _ROWS_AT_ONCE
    if whole:
        together = [tuple(chain.from_iterable(values[n : n + _ROWS_AT_ONCE])) for n in range(0, whole, _ROWS_AT_ONCE)]
        connection.exec_driver_sql(insert + ", ".join([marks] * _ROWS_AT_ONCE), together)
    if values[whole:]:
        connection.exec_driver_sql(insert + marks, [tuple(row) for row in values[whole:]])


def _write_passages(connection: Connection, transcript_id: int, passages: list[Passage]) -> None:
    missing = [p.use_key for p in passages if p.kind == "tool_result" and not p.tool and p.use_key]
    tools: dict[int, str] = {}
    for part in in_parts(missing):
        query = sa.select(PASSAGE.c.use_key, PASSAGE.c.tool).where(
            PASSAGE.c.transcript_id == transcript_id, PASSAGE.c.use_key.in_(part), PASSAGE.c.tool != ""
        )
        tools.update((row.use_key, row.tool) for row in connection.execute(query))
    rows = (
        (transcript_id, p.line, p.kind, p.tool or tools.get(p.use_key, ""), p.use_key, p.timestamp_ms, p.text)
        for p in passages
    )
    _insert(connection, PASSAGE, ("transcript_id", "line", "kind", "tool", "use_key", "timestamp_ms", "text"), rows)


def set_fact(connection: Connection, owner: str, name: str, value: str) -> None:
    """Keep a fact about an owner's part of the catalogue; "" removes it."""
    key = f"{name} {owner}"
    connection.execute(sa.delete(FACT).where(FACT.c.name == key))
    if value:
        connection.execute(sa.insert(FACT), [{"name": key, "value": value}])


def facts_of(connection: Connection, owner: str) -> dict[str, str]:
    """What `set_fact` kept for an owner."""
    names = {f"{name} {owner}": name for name in (UNLINKED, PRICES)}
    found = connection.execute(sa.select(FACT.c.name, FACT.c.value).where(FACT.c.name.in_(list(names))))
    return {names[row.name]: row.value for row in found}


def link(connection: Connection, owner: str) -> None:
    """Put subagents under their sessions and name the origin of forks, for every row that lacks it.

    A subagent in its session's folder is found by place, one beside the session's file by the sessionId of its records
    (transcript-format.md §1). Files that share the first record's uuid are one lineage: the one that began to be
    written first is the original (§6).
    """
    t = TRANSCRIPT.c
    mains = {
        row.path: row for row in connection.execute(
            sa.select(t.id, t.path, t.session_id).where(t.owner == owner, t.kind.in_(("main", "other")))
        )
    }  # fmt: skip
    by_session = {row.session_id: row.id for row in mains.values()}
    lost = connection.execute(
        sa.select(t.id, t.path, t.session_id).where(
            t.owner == owner, t.parent_id.is_(None), t.kind.not_in(("main", "other"))
        )
    ).all()
    for row in lost:
        by_place = mains.get(place_of(row.path).session_path)
        parent = by_place.id if by_place is not None else by_session.get(row.session_id)
        if parent is not None:
            connection.execute(sa.update(TRANSCRIPT).where(t.id == row.id).values(parent_id=parent))
    _name_origins(connection, owner)
    set_fact(connection, owner, UNLINKED, "")


def _name_origins(connection: Connection, owner: str) -> None:
    t = TRANSCRIPT.c
    shared = (
        sa.select(t.lineage_key)
        .where(t.owner == owner, t.kind == "main", t.lineage_key != 0)
        .group_by(t.lineage_key)
        .having(sa.func.count() > 1)
    )
    query = (
        sa.select(t.id, t.lineage_key, t.session_id, t.forked_from)
        .where(t.owner == owner, t.kind == "main", t.lineage_key.in_(shared))
        .order_by(t.lineage_key, t.first_ms, t.last_ms, t.id)
    )
    original: dict[int, str] = {}
    for row in connection.execute(query).all():
        first = original.setdefault(row.lineage_key, row.session_id)
        origin = first if first != row.session_id else ""
        if origin != row.forked_from:
            connection.execute(sa.update(TRANSCRIPT).where(t.id == row.id).values(forked_from=origin))


def remove(connection: Connection, ids: Sequence[int]) -> None:
    """Forget transcripts that are no longer there; their subagents' rows stay and lose their session."""
    for part in in_parts(ids):
        # Passages by hand, so that the full text's trigger certainly sees each of them.
        connection.execute(sa.delete(PASSAGE).where(PASSAGE.c.transcript_id.in_(part)))
        connection.execute(sa.delete(TRANSCRIPT).where(TRANSCRIPT.c.id.in_(part)))


def in_parts(values: Iterable[Any]) -> Iterable[list[Any]]:
    """The values in lists short enough for an IN (…) of every database."""
    everything = list(values)
    for start in range(0, len(everything), _IN_AT_ONCE):
        yield everything[start : start + _IN_AT_ONCE]
