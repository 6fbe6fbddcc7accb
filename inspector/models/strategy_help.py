"""What a strategy does in three sentences with the section its rules come from, out of resources/docs/strategies.md."""

from __future__ import annotations

import re
from functools import cache

from compaction.resources import resource
from compaction.strategies.registry import STRATEGIES
from compaction.strategies.settings import specs_of

_SECTION = re.compile(r"^## [^\n]+\n\n`([a-z-]+)`\n\n(.+?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`])")
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_CITED = re.compile(rf"\b(compaction|api|api-rules|transcript-format)\.md ({_NUMBER}(?:(?:, | and ){_NUMBER})*)")
_DOCUMENTS = {
    "compaction": "compaction specification",
    "api": "API specification",
    "api-rules": "specification of the API's rules",
    "transcript-format": "transcript specification",
}
"""What the documents are for people; their file names are ours and in no installation."""
_SENTENCES = 3


@cache
def _sections() -> dict[str, str]:
    text = resource("docs", "strategies.md").read_text("utf-8")
    return {name: " ".join(paragraph.split()) for name, paragraph in _SECTION.findall(text)}


@cache
def strategy_help(name: str) -> str:
    """Up to three sentences about the strategy and "Source: …"; "" for a name that the documentation does not have."""
    paragraph = _sections().get(name, "")
    if not paragraph:
        return ""
    plain = re.sub(r"\*\*|`", "", re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", paragraph))
    sentences = _SENTENCE_END.split(plain)[:_SENTENCES]
    return f"{' '.join(sentences)} Source: {source_of(name)}."


def source_of(name: str) -> str:
    """The sections of the specification that the strategy's settings cite, in their order."""
    found: dict[str, dict[str, None]] = {}
    for spec in specs_of(STRATEGIES[name].settings_type):
        for document, sections in _CITED.findall(spec.source):
            found.setdefault(document, {}).update(dict.fromkeys(re.findall(_NUMBER, sections)))
    cited = "; ".join(_sections_in(document, list(sections)) for document, sections in found.items())
    return cited or "the compaction specification"


def plain_source(source: str) -> str:
    """The source of a setting with its documents named as people know them."""
    return _CITED.sub(lambda cited: _sections_in(cited[1], re.findall(_NUMBER, cited[2])), source)


def _sections_in(document: str, sections: list[str]) -> str:
    *first, last = sections
    numbers = f"{', '.join(first)} and {last}" if first else last
    return f"section{'s' if first else ''} {numbers} of the {_DOCUMENTS[document]}"
