from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from compaction.transcript.kinds import KIND_OF_TYPE


@dataclass(frozen=True, slots=True)
class Damage:
    """One damaged line: what is wrong, how many records came out of it, how many bytes are in no record.

    Attributes:
        line: 1-based line number.
        kind: nul_padding, spliced_record, two_records_one_line, blank_line, truncated_last_line, invalid_json,
            invalid_escape, invalid_utf8, byte_order_mark, not_an_object, nested_too_deeply.
        recovered: records recovered from the line.
        lost_bytes: bytes of the line that belong to no recovered record.
        offset, length: the whole line's place in the file, in bytes, without its line ending.
    """

    line: int
    kind: str
    recovered: int
    lost_bytes: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a line: a recovered record (`value` is its object) or bytes that are none (`value` is None)."""

    start: int
    end: int
    value: dict[str, Any] | None


_SPACE = " \t\r\n\x0b\x0c"


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


# A number that JSON cannot hold (NaN, Infinity, 1e999) reads as null, which is what the client would write for it: so
# every value of a payload can be written again.
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None, parse_float=_finite)
_RECORD_START = re.compile(
    r'\{\s*"(?:type|uuid|parentUuid|sessionId|isSidechain|leafUuid|messageId|logicalParentUuid)"'
)
_ESCAPE = re.compile(r'\\\\|\\u[0-9a-fA-F]{4}|\\["/bfnrt]|(\\)')
_MAXIMUM_RESTARTS = 64
"""Places tried after a stub before the rest of the line counts as lost: keeps a hostile line linear."""


def decode_object(data: bytes) -> tuple[Any, str]:
    """Decode one JSON value that the strict decoders refuse.

    Returns:
        The value and why it needed leniency: "" (lone surrogate; NaN, read as null), "invalid_utf8" (kept as surrogate
        escapes), "invalid_escape" (a lone backslash read as itself) or "nested_too_deeply" (only top-level scalars).

    Raises:
        ValueError: it is not one JSON value, even leniently.
    """
    text = data.decode("utf-8", "surrogateescape").strip(_SPACE + "\0\ufeff")
    found = _value_at(text, 0)
    if found is None or found.end != len(text):
        raise ValueError("not one JSON value")
    return found.value, found.why or ("" if _is_utf8(data) else "invalid_utf8")


def take_apart(data: bytes, *, last: bool) -> tuple[list[Piece], str]:
    """Recover the records of a line that the fast decoder refused (transcript-format.md §2).

    Args:
        data: the line without its line ending.
        last: the file ends with this line and no line ending follows: a cut object is a truncated last line.

    Returns:
        The pieces in order (whitespace belongs to none), and the line's damage kind, "" when it is valid JSON after
        all (a lone surrogate escape, NaN).
    """
    text = data.decode("utf-8", "surrogateescape")
    if not text.strip(_SPACE + "\ufeff"):
        return [], "blank_line"
    kinds = [] if _is_utf8(data) else ["invalid_utf8"]
    at = 0
    if text.startswith("\ufeff"):
        at = 1
        kinds.append("byte_order_mark")
    spans: list[_Found] = []
    while (at := _skip(text, at)) < len(text):
        if text[at] == "\0":
            end = len(text) - len(text[at:].lstrip("\0"))
            spans.append(_Found(at, end, None, "nul_padding"))
        else:
            spans.extend(_next(text, at, "truncated_last_line" if last else "invalid_json"))
        at = spans[-1].end
    kinds.extend(span.why for span in spans if span.why)
    pieces = _to_bytes(text, spans)
    return pieces, _main_kind(kinds, pieces)


@dataclass(frozen=True, slots=True)
class _Found:
    start: int
    end: int
    value: Any
    why: str


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _to_bytes(text: str, spans: list[_Found]) -> list[Piece]:
    """The spans in characters as pieces in bytes; encodes each stretch of the line once."""
    pieces: list[Piece] = []
    characters = offset = 0
    for span in spans:
        offset += _width(text[characters : span.start])
        end = offset + _width(text[span.start : span.end])
        pieces.append(Piece(offset, end, span.value if isinstance(span.value, dict) else None))
        characters, offset = span.end, end
    return pieces


def _width(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _next(text: str, at: int, otherwise: str) -> list[_Found]:
    """The next value at `at`; or a stub and the record after it; or the rest of the line as one broken piece."""
    found = _value_at(text, at)
    if found is not None:
        if isinstance(found.value, dict):
            return [found]
        return [_Found(at, found.end, None, "not_an_object")]
    found = _restart(text, at)
    if found is None:
        return [_Found(at, len(text), None, otherwise)]
    return [_Found(at, found.start, None, "spliced_record"), found]


def _main_kind(kinds: list[str], pieces: list[Piece]) -> str:
    for kind in ("nul_padding", "spliced_record", "truncated_last_line", "invalid_json", "not_an_object"):
        if kind in kinds:
            return kind
    if sum(piece.value is not None for piece in pieces) > 1:
        return "two_records_one_line"
    return kinds[0] if kinds else ""


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _value_at(text: str, at: int) -> _Found | None:
    """The JSON value that begins at `at`, or None when there is no complete one.

    A bare word, number or string that is followed by more text is no value: it is the rest of something cut.
    """
    try:
        value, end = _DECODER.raw_decode(text, at)
    except RecursionError:
        return _deep_value_at(text, at)
    except ValueError:
        return _with_mended_escapes(text, at)
    if not isinstance(value, (dict, list)) and text[end:].strip(_SPACE):
        return None
    return _Found(at, end, value, "")


def _with_mended_escapes(text: str, at: int) -> _Found | None:
    """The value at `at` when its only fault is a backslash that escapes nothing; it must end the line."""
    rest = text[at:]
    mended = _ESCAPE.sub(lambda match: "\\\\" if match.group(1) else match.group(), rest)
    if mended == rest:
        return None
    try:
        value, end = _DECODER.raw_decode(mended)
    except (ValueError, RecursionError):
        return None
    return None if mended[end:].strip(_SPACE) else _Found(at, len(text), value, "invalid_escape")


def _restart(text: str, at: int) -> _Found | None:
    """The first whole record after a stub: an object that looks like a record and is followed by the line's end,
    another object or padding (an object nested in a cut record is followed by a comma or a bracket)."""
    for attempt, match in enumerate(_RECORD_START.finditer(text, at + 1)):
        if attempt >= _MAXIMUM_RESTARTS:
            return None
        try:
            value, end = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        after = _skip(text, end)
        if (after >= len(text) or text[after] in "{\0") and isinstance(value, dict) and _looks_like_record(value):
            return _Found(match.start(), end, value, "")
    return None


def _looks_like_record(value: dict[str, Any]) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and (kind in KIND_OF_TYPE or "uuid" in value or "sessionId" in value)


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def _deep_value_at(text: str, at: int) -> _Found | None:
    """A value that is nested too deeply for the decoder: its span and, of an object, its top-level scalars.

    One pass without recursion, so that the record's ids are still there and the chain stays whole.
    """
    depth = 0
    key: str | None = None
    expect_key = True
    members: dict[str, Any] = {}
    for match in _TOKEN.finditer(text, at):
        token = match.group()
        if token in "{[":
            depth += 1
        elif token in "}]":
            depth -= 1
            if depth == 0:
                return _Found(at, match.end(), members if text[at] == "{" else [], "nested_too_deeply")
        elif depth != 1:
            continue
        elif token == ",":
            expect_key, key = True, None
        elif token == ":":
            expect_key = False
        else:
            try:
                scalar = _DECODER.decode(token)
            except ValueError:
                return None
            if expect_key:
                key = str(scalar)
            elif key is not None:
                members[key] = scalar
    return None
