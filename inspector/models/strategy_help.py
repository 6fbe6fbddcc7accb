"""What a strategy does in three sentences with the section its rules come from, out of resources/docs/strategies.md."""

from __future__ import annotations

import re
from functools import cache

from compaction.resources import resource
from compaction.strategies.registry import STRATEGIES
from compaction.strategies.settings import specs_of

_SECTION = re.compile(r"^## [^\n]+\n\n`([a-z-]+)`\n\n(.+?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`])")
_SPECIFICATION = re.compile(r"\b(?:compaction|api|api-rules|transcript-format)\.md [0-9]+(?:\.[0-9]+)?")
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
    found: dict[str, None] = {}
    for spec in specs_of(STRATEGIES[name].settings_type):
        found.update(dict.fromkeys(_SPECIFICATION.findall(spec.source)))
    return ", ".join(list(found)[:3]) or "compaction.md"
