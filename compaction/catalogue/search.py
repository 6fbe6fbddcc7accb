from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement

from compaction.catalogue.database import Catalogue
from compaction.catalogue.entries import SessionFilter
from compaction.catalogue.masking import mask_secrets
from compaction.catalogue.query import Query, Term, fts5_expression, parse_query
from compaction.catalogue.sessions import conditions
from compaction.catalogue.tables import PASSAGE, TRANSCRIPT

SNIPPET_CHARACTERS = 180
_BEFORE = 60


@dataclass(frozen=True, slots=True)
class Hit:
    """A place where the query occurs.

    Attributes:
        path: the file to open (a subagent's own file where it is one); line: 1-based line of the record.
        kind: of `passages.KINDS`; tool: the tool's name of a call or result, "" otherwise.
        snippet: one line of text around the hit, secrets masked; matches: (start, length) of the hits in it.
    """

    transcript_id: int
    path: str
    line: int
    kind: str
    tool: str
    timestamp_ms: int
    snippet: str
    matches: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class SessionHits:
    """The hits in one session (its subagents' included), the best session first."""

    session_id: str
    session_row: int
    owner: str
    path: str
    title: str
    project: str
    last_ms: int
    hits: tuple[Hit, ...]


def hits_in(found: Sequence[SessionHits]) -> str:
    """How much was found, in words: "29 hits in 1 session"."""
    hits, sessions = sum(len(session.hits) for session in found), len(found)
    return f"{hits:,} {'hit' if hits == 1 else 'hits'} in {sessions:,} {'session' if sessions == 1 else 'sessions'}"


def search(
    catalogue: Catalogue,
    text: str,
    wanted: SessionFilter | None = None,
    *,
    kinds: Sequence[str] = (),
    limit: int = 200,
) -> list[SessionHits]:
    """Look for words in all sessions of the catalogue.

    Args:
        text: see `parse_query`.
        wanted: restricts the sessions; its `tool` restricts the passages to calls and results of that tool.
        kinds: restricts the passages, of `passages.KINDS`.
        limit: hits in all, the best ones.

    Raises:
        UsageError: there is nothing to look for.
    """
    query = parse_query(text)
    best = _best(catalogue, query, wanted or SessionFilter(), kinds, limit)
    session = TRANSCRIPT.alias("session")
    p, t = PASSAGE.c, TRANSCRIPT.c
    statement = (
        sa.select(
            *(p.transcript_id, p.line, p.kind, p.tool, p.timestamp_ms, p.text, t.path),
            session.c.id.label("session_row"),
            *(session.c.session_id, session.c.owner, session.c.path.label("session_path")),
            *(session.c.title, session.c.project, session.c.last_ms),
        )
        .join(best, best.c.id == p.id)
        .join(TRANSCRIPT, t.id == p.transcript_id)
        .join(session, session.c.id == sa.func.coalesce(t.parent_id, t.id))
        .order_by(best.c.place, session.c.last_ms.desc(), p.transcript_id, p.line)
    )
    with catalogue.reading() as connection:
        rows = connection.execute(statement).all()
    return _grouped(rows, query)


def _best(catalogue: Catalogue, query: Query, wanted: SessionFilter, kinds: Sequence[str], limit: int) -> sa.Subquery:
    """The best passages by number and place in the ranking; texts are not touched before it is known which they are,
    and other tables only when a filter asks for them."""
    session = TRANSCRIPT.alias("filtered")
    filters = _on_session(wanted, session)
    if kinds:
        filters.append(PASSAGE.c.kind.in_(kinds))
    if wanted.tool:
        filters.append(sa.func.lower(PASSAGE.c.tool) == wanted.tool.lower())
    if catalogue.is_postgresql:
        rank, test = _postgresql(query)
        statement = sa.select(PASSAGE.c.id, rank.label("place")).select_from(PASSAGE)
    else:
        rank, test = _sqlite(query)
        statement = sa.select(_FTS.c.rowid.label("id"), rank.label("place")).select_from(_FTS)
        if filters:
            statement = statement.join(PASSAGE, PASSAGE.c.id == _FTS.c.rowid)
    if filters:
        statement = statement.join(TRANSCRIPT, TRANSCRIPT.c.id == PASSAGE.c.transcript_id).join(
            session, session.c.id == sa.func.coalesce(TRANSCRIPT.c.parent_id, TRANSCRIPT.c.id)
        )
    return statement.where(test, *filters).order_by(sa.literal_column("place")).limit(limit).subquery("best")


_FTS = sa.table("passage_text", sa.column("rowid"), sa.column("rank"), sa.column("passage_text"))


def _sqlite(query: Query) -> tuple[ColumnElement[float], ColumnElement[bool]]:
    return _FTS.c.rank, _FTS.c.passage_text.op("MATCH")(fts5_expression(query))


def _postgresql(query: Query) -> tuple[ColumnElement[float], ColumnElement[bool]]:
    document: ColumnElement[str] = sa.column("document")
    wanted: ColumnElement[str] | None = None
    for group in query.wanted:
        either = _lexemes(group[0])
        for term in group[1:]:
            either = either.op("||")(_lexemes(term))
        wanted = either if wanted is None else wanted.op("&&")(either)
    for term in query.excluded:
        assert wanted is not None  # parse_query refuses a query without a wanted term
        wanted = wanted.op("&&")(sa.func.tsquery_not(_lexemes(term)))
    return -sa.func.ts_rank(document, wanted), document.op("@@")(wanted)


def _lexemes(term: Term) -> ColumnElement[str]:
    configuration = sa.cast("simple", sa.Text).op("::")(sa.literal_column("regconfig"))
    phrase = sa.func.phraseto_tsquery(configuration, re.sub(r"[\W_]+", " ", term.text))
    if not term.prefix:
        return phrase
    # The server's own parser makes the lexemes; the mark for beginnings goes behind the last of them.
    return sa.cast(sa.cast(phrase, sa.Text).op("||")(":*"), sa.dialects.postgresql.TSQUERY)


def _on_session(wanted: SessionFilter, session: sa.FromClause) -> list[ColumnElement[bool]]:
    """The filter on the session's row; the tool is asked of the passage, the cost is the file's own here."""
    found = conditions(replace(wanted, tool=""), session)
    if wanted.minimum_cost is not None:
        found.append(session.c.cost_usd >= wanted.minimum_cost)
    if wanted.maximum_cost is not None:
        found.append(session.c.cost_usd <= wanted.maximum_cost)
    return found


def _grouped(rows: Sequence[Any], query: Query) -> list[SessionHits]:
    pattern = _pattern(query.words)
    groups: dict[int, list[Hit]] = {}
    heads: dict[int, Any] = {}
    for row in rows:
        heads.setdefault(row.session_row, row)
        text, matches = snippet(row.text, pattern)
        hit = Hit(row.transcript_id, row.path, row.line, row.kind, row.tool, row.timestamp_ms, text, matches)
        groups.setdefault(row.session_row, []).append(hit)
    return [
        SessionHits(head.session_id, number, head.owner, head.session_path, head.title, head.project, head.last_ms,
                    tuple(sorted(groups[number], key=lambda hit: (hit.path, hit.line))))
        for number, head in heads.items()
    ]  # fmt: skip


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    """Finds the query's words as the full text finds them: whatever stands between the words of a phrase, any case."""
    parts = ["[^0-9A-Za-z]+".join(re.escape(w) for w in re.findall(r"[^\W_]+", word)) for word in words]
    return re.compile("|".join(sorted((p for p in parts if p), key=len, reverse=True)) or r"(?!)", re.IGNORECASE)


def snippet(text: str, pattern: re.Pattern[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """One line around the first match, with its secrets masked, and where the matches are in it.

    The text is masked before it is cut, so no half of a secret is left. Accents are folded when nothing matches as it
    stands, as the full text does.
    """
    text = mask_secrets(text)
    found = pattern.search(text) or pattern.search(_without_accents(text))
    start = max(0, found.start() - _BEFORE) if found else 0
    piece = text[start : start + SNIPPET_CHARACTERS * 2]
    line = "".join(c if c.isprintable() else "·" for c in " ".join(piece.split()))[:SNIPPET_CHARACTERS]
    line = ("…" if start else "") + line + ("…" if start + len(piece) < len(text) or len(line) < len(piece) else "")
    return line, tuple((m.start(), m.end() - m.start()) for m in pattern.finditer(line))


def _without_accents(text: str) -> str:
    """The text with every letter's accents removed, character for character."""
    return "".join(unicodedata.normalize("NFD", c)[0] for c in text)
