"""What every presenter uses: the surroundings of a block, and the parts that several kinds of content share."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from inspector.rendering import ansi
from inspector.rendering.parts import Code, Fields, Part, Picture, Terminal
from inspector.rendering.visible_text import bytes_text

Json = Mapping[str, Any]

IMAGE_LIMIT = 32 * 1024 * 1024
"""Most base64 characters of an image that is decoded for display."""

PLAIN_ABOVE = 256 * 1024
"""Longer texts are shown as they are, without colours or line numbers of their own: the rich view folds them."""

ODD_SHAPE = (TypeError, ValueError, KeyError, AttributeError, IndexError, RecursionError)
"""What a presenter may raise on content of another shape than expected."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a block alone does not say.

    Attributes:
        role: role of the message the block lies in, "" when unknown.
        tool_name: name of the tool a result belongs to, "" when its call is unknown.
        tool_input: the input of that call, {} when unknown.
        tool_use_result: the client's own copy of the result (`toolUseResult`; never sent), None when absent.
    """

    role: str = ""
    tool_name: str = ""
    tool_input: Json | None = None
    tool_use_result: Any = None


NOTHING = Surroundings()


def json_code(value: object) -> Code:
    """A value as indented JSON."""
    try:
        return Code(json.dumps(value, ensure_ascii=False, indent=2, default=str), language="json")
    except RecursionError:
        return Code("(nested too deeply to be shown as text; see the JSON section)")


def output(text: str) -> Part:
    """Text of a program: with its colours when it holds escapes and is not folded anyway, else as it is."""
    if len(text) > PLAIN_ABOVE:
        return Code(text)
    return Terminal(text, tuple(ansi.parse(text))) if ansi.has_escapes(text) else Code(text)


def picture(data: str, media_type: str) -> Picture:
    """An image of base64 characters; what cannot be decoded is said in `problem`."""
    if len(data) > IMAGE_LIMIT:
        return Picture(b"", media_type, f"The image has {bytes_text(len(data))} of base64 and is not decoded.")
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        return Picture(b"", media_type, f"The image's base64 cannot be decoded: {error}.")
    return Picture(decoded, media_type, "" if decoded else "The image is empty.")


def numbered_code(text: str, path: str) -> Code:
    """Output of Read: its line numbers go into the margin when every line has the next one ("   12→text")."""
    if len(text) > PLAIN_ABOVE:
        return Code(text, file_name=path)
    lines = text.split("\n")
    stripped: list[str] = []
    first = 0
    for line in lines:
        number, arrow, rest = line.partition("→")
        if not arrow:
            number, arrow, rest = line.partition("\t")
        if not arrow or not number.strip().isdecimal() or len(number) > 12:
            break
        if not first:
            first = int(number)
        if int(number) != first + len(stripped):
            break
        stripped.append(rest)
    if not stripped or len(stripped) < len(lines):
        return Code(text, file_name=path)
    return Code("\n".join(stripped), file_name=path, first_line=first)


def rest(given: Json, shown: set[str] | frozenset[str]) -> Iterator[Part]:
    """What was not shown yet: short values as fields, structured ones as JSON."""
    rows: list[tuple[str, str]] = []
    nested: dict[str, Any] = {}
    for name, value in given.items():
        if name in shown:
            continue
        if isinstance(value, (Mapping, list)) and value:
            nested[str(name)] = value
        else:
            rows.append((str(name), value_text(value)))
    if rows:
        yield Fields(tuple(rows))
    if nested:
        yield json_code(nested)


def value_text(value: object) -> str:
    """A value in one text: texts as they are, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
