"""R39–R40: characters that break the request body (api-rules.md A5)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from compaction.diagnosis.model import Violation
from compaction.diagnosis.view import Placed, RequestView

LONE_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a UTF-16 pair. Decoded JSON joins whole pairs, so any that is left stands alone."""
NUL = "\0"

FieldPath = tuple[str | int, ...]


def strings_in(value: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, str]]:
    """Every string value inside a block and the path to it, without recursion."""
    waiting: list[tuple[FieldPath, Any]] = [(path, value)]
    while waiting:
        place, item = waiting.pop()
        if isinstance(item, str):
            yield place, item
        elif isinstance(item, dict):
            waiting += [((*place, key), child) for key, child in reversed(item.items()) if isinstance(key, str)]
        elif isinstance(item, list):
            waiting += [((*place, number), child) for number, child in reversed(list(enumerate(item)))]


def _odd_strings(view: RequestView) -> list[tuple[Placed, FieldPath, str]]:
    """The strings of a request that hold a lone surrogate or a NUL; one pass for both rules."""
    if "odd strings" not in view.memo:
        view.memo["odd strings"] = [
            (block, path, text)
            for block in view.blocks()
            for path, text in strings_in(block.value)
            if NUL in text or (not text.isascii() and LONE_SURROGATE.search(text))
        ]
    found: list[tuple[Placed, FieldPath, str]] = view.memo["odd strings"]
    return found


def _found(view: RequestView, rule: str, code: str, what: str, api_error: str) -> Iterator[Violation]:
    for block, path, text in _odd_strings(view):
        offsets = _offsets(text, code)
        if offsets:
            yield _violation(block, path, offsets, rule, code, what, api_error)


def _offsets(text: str, code: str) -> list[int]:
    if code == "nul_character":
        return [n for n, c in enumerate(text) if c == NUL]
    return [found.start() for found in LONE_SURROGATE.finditer(text)]


def _violation(
    block: Placed, path: FieldPath, offsets: list[int], rule: str, code: str, what: str, api_error: str
) -> Violation:
    return Violation(
        rule=rule,
        path=".".join((block.path, *map(str, path))),
        message=f"{what} at character {offsets[0]} of the field"
        + (f" and {len(offsets) - 1} more" if len(offsets) > 1 else "")
        + ".",
        api_error=api_error,
        code=code,
        places=(block.place,),
        details={"offset": offsets[0], "count": len(offsets), "field": list(path)},
    )


def lone_surrogate(view: RequestView) -> Iterator[Violation]:
    """R39: half of a surrogate pair (an emoji cut in two) makes the body invalid JSON for the API."""
    yield from _found(
        view,
        "R39",
        "lone_surrogate",
        "Half of a character (a lone surrogate)",
        "The request body is not valid JSON: no low surrogate in string: line 1 column C (char C-1)",
    )


def nul_character(view: RequestView) -> Iterator[Violation]:
    """R40: U+0000 in a string truncates the body that a client sends."""
    yield from _found(
        view,
        "R40",
        "nul_character",
        "A NUL character (U+0000)",
        "The request body is not valid JSON: unexpected end of data: line 1 column N (char N-1)",
    )
