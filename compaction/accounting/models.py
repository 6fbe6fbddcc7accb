from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

TokenizerFamily = Literal["old", "new"]

SYNTHETIC = "<synthetic>"
"""The model name of records that the client wrote by itself: no request, no tokens, no cost."""

_REGION = re.compile(r"^(?:[a-z]{2,6}(?:-gov)?\.)?anthropic\.")
_SUFFIXES = re.compile(r"(?:-v\d+(?::\d+)*(?::\d+k)?|:[a-z][\w-]*|@(?:\d{8}|default|latest)|-\d{8}|-latest)$")
_VERSION = re.compile(r"(?:^|-)(\d{1,2})(?:-(\d{1,2}))?(?=-|$)")


@lru_cache(maxsize=4096)
def model_key(model: str) -> str:
    """The name under which prices and windows are kept: no vendor prefix, date, `[1m]` or `claude-`.

    `us.anthropic.claude-opus-4-5-20251101-v1:0`, `anthropic/claude-opus-4.5`, `claude-opus-4-5@20251101` and
    `claude-opus-4-5[1m]` are all `opus-4-5` (prices.md, last paragraph). Unknown names come back as they are, folded.
    """
    name = model.strip().lower()
    name = name.replace("[1m]", "").rsplit("/", 1)[-1]
    name = _REGION.sub("", name)
    while (shorter := _SUFFIXES.sub("", name)) != name:
        name = shorter
    name = re.sub(r"(?<=\d)\.(?=\d)", "-", name)
    return name.removeprefix("claude-")


def has_long_context_suffix(model: str) -> bool:
    """Whether the id carries `[1m]`: a 1,000,000 window whatever the model's own (prices.md)."""
    return "[1m]" in model.lower()


def is_synthetic(model: str) -> bool:
    """Whether the record was written by the client itself, not by a model."""
    return model == SYNTHETIC


@lru_cache(maxsize=4096)
def model_version(model: str) -> tuple[int, int] | None:
    """Major and minor number of a model, such as (4, 6); None when the name has none."""
    found = _VERSION.search(model_key(model))
    return (int(found[1]), int(found[2] or 0)) if found else None


def tokenizer_family(model: str) -> TokenizerFamily:
    """ "new" from Opus 4.7 on and for every 5.x model, "old" before (api.md section 5); unknown names count as new."""
    version = model_version(model)
    return "old" if version is not None and version < (4, 7) else "new"


def strips_earlier_thinking(model: str) -> bool:
    """Whether the API drops earlier turns' thinking itself (api.md 2.4): up to Opus 4.1, Sonnet 4.5, Haiku 4.5."""
    key, version = model_key(model), model_version(model)
    if version is None:
        return False
    if "opus" in key:
        return version < (4, 5)
    if "sonnet" in key:
        return version < (4, 6)
    return "haiku" in key and version <= (4, 5)
