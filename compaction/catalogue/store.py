from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from compaction.catalogue.discovery import place_of
from compaction.catalogue.entries import BUCKETS
from compaction.catalogue.passages import Passage, storable
from compaction.catalogue.responses import ScannedResponse
from compaction.catalogue.scan import SliceResult, Summary
from compaction.catalogue.tables import FACT, PASSAGE, RESPONSE, TRANSCRIPT

SPARK_POINTS = 48
"""Points of a row's context line: more than its pixels would be waste."""

_IN_AT_ONCE = 500
UNLINKED = "unlinked"
"""Fact: files were stored since `link` ran last."""
PRICES = "prices"
"""Fact: what the stored costs were computed with (`pricing.price_fingerprint`)."""


def empty_row(owner: str, folder_id: int, path: str) -> dict[str, Any]:
    """The values of a transcript's row before anything was read of it."""
    place = place_of(path)
    texts = ("session_id", "title", "custom_title", "ai_title", "first_prompt", "project", "branch", "forked_from")
    numbers = (
        *("first_ms", "last_ms", "lines", "records", "damaged", "responses", *BUCKETS),
        *("unpriced_responses", "uncertain_responses", "compactions", "api_errors", "tool_errors", "examined_bytes"),
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
        **dict.fromkeys(("findings_error", "findings_warning", "findings_info", "context_tokens")),
        "examination_problem": "",
        "cost_usd": 0.0,
        "context_series": b"",
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
    old_responses = _responses_of(connection, [row["id"] for result, row in known if result.summary is not None])
    merged = [(row, _merge(result, row, old_responses.get(row.get("id", 0), {}))) for result, row in [*fresh, *known]]
    _write_rows(connection, [row for _, row in fresh], [row for _, row in known])
    with_old = {row["id"] for _, row in known}
    _write_responses(connection, [(row["id"], *r) for row, responses in merged for r in responses], with_old)
    if any(result.summary is not None for result, _ in [*fresh, *known]):
        # In the same transaction, so that `link` runs even when this program is killed before.
        set_fact(connection, owner, UNLINKED, "yes")
    for result, row in [*fresh, *known]:
        _write_passages(connection, row["id"], result.passages or [])
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


def _responses_of(connection: Connection, ids: Sequence[int]) -> dict[int, dict[int, ScannedResponse]]:
    """What is stored of some transcripts' responses, by message key."""
    found: dict[int, dict[int, ScannedResponse]] = {}
    columns = [RESPONSE.c[name] for name in ScannedResponse._fields]
    for part in in_parts(ids):
        query = sa.select(RESPONSE.c.transcript_id, *columns).where(RESPONSE.c.transcript_id.in_(part))
        # The driver's own tuples: a long file's later slices each look at all responses before.
        for number, *values in connection.execute(query).cursor.fetchall():
            response = ScannedResponse(*values)
            found.setdefault(number, {})[response.message_key] = response
    return found


def _merge(result: SliceResult, row: dict[str, Any], old: dict[int, ScannedResponse]) -> list[ScannedResponse]:
    """Bring a row up to date with a slice; returns the responses to write."""
    written: list[ScannedResponse] = []
    if result.summary is not None:
        written = [_joined(response, old.get(response.message_key)) for response in result.summary.responses]
        old.update((response.message_key, response) for response in written)
        _merge_summary(result.summary, row)
        _total(row, list(old.values()))
        row["indexed_bytes"], row["indexed_newlines"] = result.end, result.newlines
        row["prefix_bytes"], row["prefix_hash"] = result.fingerprint.prefix_bytes, result.fingerprint.prefix_hash
        row["tail_hash"] = result.fingerprint.tail_hash
        # Until the last slice is stored no stat equals this, so that a killed indexer takes the file up again.
        row["bytes"], row["mtime_ns"] = (result.job.bytes, result.job.mtime_ns) if result.finished else (-1, 0)
    if result.passages is not None:
        row["text_bytes"], row["text_newlines"] = result.end, result.newlines
    return written


def _joined(response: ScannedResponse, before: ScannedResponse | None) -> ScannedResponse:
    """A response that began in an earlier slice keeps its place and time, and the larger figures."""
    if before is None:
        return response
    larger = before if before.output_tokens > response.output_tokens else response
    return larger._replace(
        line=before.line,
        timestamp_ms=before.timestamp_ms or response.timestamp_ms,
        uncertain=bool(response.uncertain and before.uncertain),
    )


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
    if row["kind"] == "main" and not found.messages and not row["responses"] and not row["first_prompt"]:
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


def _total(row: dict[str, Any], responses: list[ScannedResponse]) -> None:
    responses.sort(key=attrgetter("line"))
    row["responses"] = len(responses)
    for bucket in BUCKETS:
        row[bucket] = sum(map(attrgetter(bucket), responses))
    costs = [response.cost_usd for response in responses]
    row["cost_usd"] = sum(cost or 0.0 for cost in costs)
    row["unpriced_responses"] = costs.count(None)
    row["uncertain_responses"] = sum(map(attrgetter("uncertain"), responses))
    main = row["kind"] in ("main", "other")
    contexts = [r.context_tokens for r in responses if r.context_tokens and not (main and r.sidechain)]
    row["context_tokens"] = contexts[-1] if contexts else None
    row["context_series"] = context_series(contexts)


def context_series(contexts: Sequence[int]) -> bytes:
    """At most `SPARK_POINTS` maxima of equal shares of a session's context sizes, as little-endian uint32.

    >>> read_series(context_series([1, 5, 2]))
    [1, 5, 2]
    """
    count = len(contexts)
    points = min(count, SPARK_POINTS)
    maxima = [max(contexts[i * count // points : (i + 1) * count // points]) for i in range(points)]
    return b"".join(min(value, 2**32 - 1).to_bytes(4, "little") for value in maxima)


def read_series(data: bytes) -> list[int]:
    """The context sizes (tokens) of a stored series."""
    return [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data) - 3, 4)]


def _write_rows(connection: Connection, fresh: list[dict[str, Any]], known: list[dict[str, Any]]) -> None:
    for row in (*fresh, *known):
        row.update({name: _storable(value) for name, value in row.items()})
    if fresh:
        query = sa.insert(TRANSCRIPT).returning(TRANSCRIPT.c.id, sort_by_parameter_order=True)
        for row, number in zip(fresh, connection.execute(query, fresh).scalars(), strict=True):
            row["id"] = number
    if known:
        query_ = sa.update(TRANSCRIPT).where(TRANSCRIPT.c.id == sa.bindparam("row_id"))
        values: dict[str, Any] = {name: sa.bindparam(name) for name in known[0] if name != "id"}
        connection.execute(query_.values(values), [{**row, "row_id": row["id"]} for row in known])


def _storable(value: Any) -> Any:
    """A column's value with every text in it, and in its lists and objects, as a database takes it."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    return value


def _write_responses(connection: Connection, rows: list[tuple[Any, ...]], with_old: set[int]) -> None:
    replaced = [row[:2] for row in rows if row[0] in with_old]
    for part in in_parts(replaced):
        connection.execute(
            sa.delete(RESPONSE).where(sa.tuple_(RESPONSE.c.transcript_id, RESPONSE.c.message_key).in_(part))
        )
    _insert(connection, RESPONSE, ("transcript_id", *ScannedResponse._fields), rows)


def _insert(connection: Connection, table: sa.Table, names: Sequence[str], rows: list[tuple[Any, ...]]) -> None:
    """Insert tuples through the driver: making a dictionary of each and binding it by name takes four times as long."""
    if not rows:
        return
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    marks = ", ".join([mark] * len(names))
    connection.exec_driver_sql(f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks})", rows)


def _write_passages(connection: Connection, transcript_id: int, passages: list[Passage]) -> None:
    missing = [p.use_key for p in passages if p.kind == "tool_result" and not p.tool and p.use_key]
    tools: dict[int, str] = {}
    for part in in_parts(missing):
        query = sa.select(PASSAGE.c.use_key, PASSAGE.c.tool).where(
            PASSAGE.c.transcript_id == transcript_id, PASSAGE.c.use_key.in_(part), PASSAGE.c.tool != ""
        )
        tools.update((row.use_key, row.tool) for row in connection.execute(query))
    rows = [
        (transcript_id, p.line, p.kind, p.tool or tools.get(p.use_key, ""), p.use_key, p.timestamp_ms, p.text)
        for p in passages
    ]
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
