from __future__ import annotations

import re
from dataclasses import dataclass

from compaction.errors import UsageError


@dataclass(frozen=True, slots=True)
class Term:
    """One word or phrase: `text` as typed without its marks, `prefix` for `word*`, `excluded` for `-word`."""

    text: str
    prefix: bool = False
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for: every group of `wanted` must occur, by one of its terms; no term of `excluded` may."""

    wanted: tuple[tuple[Term, ...], ...]
    excluded: tuple[Term, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The texts that a hit shows."""
        return tuple(term.text for group in self.wanted for term in group)


_TOKEN = re.compile(r'(-?)(?:"([^"]*)"?|(\S+))')


def parse_query(text: str) -> Query:
    """Read what a person typed: words (all must occur), "phrases", word* (beginnings), -word (must not), a OR b.

    Everything else is taken literally: no character is an error, except that something must be looked for.

    Raises:
        UsageError: there is nothing to look for.
    """
    text = text.encode("utf-8", "replace").decode()  # no text in the catalogue holds a lone surrogate
    groups: list[list[Term]] = []
    excluded: list[Term] = []
    join = False
    for match in _TOKEN.finditer(text):
        minus, phrase, word = match.groups()
        if word == "OR" and not minus and groups:
            join = True
            continue
        term = _term(phrase, word or "")
        if term is None:
            continue
        if minus:
            excluded.append(Term(term.text, term.prefix, True))
        elif join:
            groups[-1].append(term)
        else:
            groups.append([term])
        join = False
    if not groups:
        raise UsageError("nothing to search for", 'give words, "a phrase", begin*, -without, this OR that')
    return Query(tuple(tuple(group) for group in groups), tuple(excluded))


def _term(phrase: str | None, word: str) -> Term | None:
    prefix = phrase is None and word.endswith("*")
    text = (phrase if phrase is not None else word.rstrip("*").replace('"', "")).replace("\0", " ").strip()
    # Without a letter or digit there is no token to look for.
    return Term(text, prefix) if any(c.isalnum() for c in text) else None


def fts5_expression(query: Query) -> str:
    """The query for SQLite's MATCH; every text is a quoted string, so none of its operators can come in.

    >>> fts5_expression(parse_query('read fi* -"two words"'))
    '(("read") AND ("fi" *)) NOT ("two words")'
    """
    groups = " AND ".join(f"({' OR '.join(_quoted(term) for term in group)})" for group in query.wanted)
    if not query.excluded:
        return groups
    return f"({groups}) NOT ({' OR '.join(_quoted(term) for term in query.excluded)})"


def _quoted(term: Term) -> str:
    text = term.text.replace('"', '""')
    return f'"{text}" *' if term.prefix else f'"{text}"'
