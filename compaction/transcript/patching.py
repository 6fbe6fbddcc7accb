"""Changes inside one JSON line that leave every other byte as it is: numbers, key order, escapes, invalid UTF-8."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

Path = tuple[str | int, ...]
"""Where a value lies in a JSON document: keys and 0-based list positions, outermost first; `()` is the whole."""

_BLANK = re.compile(rb"[ \t\r\n]*+")
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SCALAR = re.compile(rb"[^ \t\r\n,:\]}\[{\"]++")
_STRUCTURE = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]]', re.DOTALL)


class PathNotFoundError(LookupError):
    """The path names nothing in the document, or the document is not JSON up to there; the text says which part."""


@dataclass(frozen=True, slots=True)
class _Member:
    """One member of a container: where its key starts (list items: the value), and its value's span."""

    key: str | int
    key_start: int
    start: int
    stop: int


def find_span(data: bytes, path: Path) -> tuple[int, int]:
    """The byte span `[start, stop)` of the value at `path` in the JSON document `data`.

    Works on bytes, so invalid UTF-8 inside strings does not matter. Of a repeated key the last one counts, as for
    `json.loads`. Time is linear in the bytes before and inside the containers on the path.

    Raises:
        PathNotFoundError: a part of the path is absent.
    """
    start = _skip_blank(data, 0)
    stop = _value_end(data, start)
    for depth, part in enumerate(path):
        found = None
        for member in _members(data, start):
            if member.key == part and isinstance(member.key, str) == isinstance(part, str):
                found = member
                if isinstance(part, int):
                    break
        if found is None:
            raise PathNotFoundError(f"no {part!r} at {_show(path[:depth])}")
        start, stop = found.start, found.stop
    return start, stop


def has_value(data: bytes, path: Path) -> bool:
    """Whether `path` names a value in the JSON document `data`."""
    try:
        find_span(data, path)
    except PathNotFoundError:
        return False
    return True


def read_value(data: bytes, path: Path) -> Any:
    """The decoded value at `path`; undecodable bytes become lone surrogates (`surrogateescape`)."""
    start, stop = find_span(data, path)
    return json.loads(data[start:stop].decode("utf-8", "surrogateescape"), strict=False)


def encode_value(value: Any) -> bytes:
    """`value` as compact JSON, non-ASCII as it is; a text that UTF-8 cannot hold is written with `\\u` escapes."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def replace_value(data: bytes, path: Path, value: Any) -> bytes:
    """`data` with the value at `path` replaced by `value`; every byte outside that value's span is kept.

    Raises:
        PathNotFoundError: nothing lies at `path`.
    """
    start, stop = find_span(data, path)
    return data[:start] + encode_value(value) + data[stop:]


def replace_values(data: bytes, changes: Iterable[tuple[Path, Any]]) -> bytes:
    """`replace_value` for several places at once; the paths are those of the unchanged `data` and must not nest.

    Raises:
        PathNotFoundError: nothing lies at one of the paths.
        ValueError: one place lies inside another.
    """
    spans = sorted((*find_span(data, path), encode_value(value)) for path, value in changes)
    pieces: list[bytes] = []
    position = 0
    for start, stop, encoded in spans:
        if start < position:
            raise ValueError("two changes overlap")
        pieces += [data[position:start], encoded]
        position = stop
    return b"".join([*pieces, data[position:]])


def set_member(data: bytes, path: Path, value: Any) -> bytes:
    """Replace the object member at `path`, or append it as the last member when its object exists and lacks it.

    Raises:
        PathNotFoundError: the object that should hold it is absent or no object.
    """
    if not path or not isinstance(path[-1], str):
        raise PathNotFoundError(f"{_show(path)} names no object member")
    if has_value(data, path):
        return replace_value(data, path, value)
    start, stop = find_span(data, path[:-1])
    if data[start : start + 1] != b"{":
        raise PathNotFoundError(f"{_show(path[:-1])} is no object")
    empty = not any(True for _ in _members(data, start))
    member = (b"" if empty else b",") + encode_value(path[-1]) + b":" + encode_value(value)
    return data[: stop - 1] + member + data[stop - 1 :]


def remove_value(data: bytes, path: Path) -> bytes:
    """`data` without the member or list item at `path` and the comma that belonged to it.

    Of a repeated key only the last one goes, so call again until `has_value` is false to remove all.

    Raises:
        PathNotFoundError: nothing lies at `path`, or it is the whole document.
    """
    if not path:
        raise PathNotFoundError("the whole document cannot be removed from itself")
    start, _ = find_span(data, path)
    container, _ = find_span(data, path[:-1])
    members = list(_members(data, container))
    number = next(n for n, member in enumerate(members) if member.start == start)
    if number + 1 < len(members):
        return data[: members[number].key_start] + data[members[number + 1].key_start :]
    cut = members[number - 1].stop if number else members[number].key_start
    return data[:cut] + data[members[number].stop :]


def insert_item(data: bytes, path: Path, position: int, value: Any) -> bytes:
    """`data` with `value` put into the list at `path` before its item `position` (its length = at the end).

    Raises:
        PathNotFoundError: no list lies at `path`.
        IndexError: `position` is outside 0 … length.
    """
    start, _ = find_span(data, path)
    if data[start : start + 1] != b"[":
        raise PathNotFoundError(f"{_show(path)} is no list")
    items = list(_members(data, start))
    if not 0 <= position <= len(items):
        raise IndexError(f"position {position} is outside the {len(items)} items of {_show(path)}")
    encoded = encode_value(value)
    if position < len(items):
        at = items[position].start
        return data[:at] + encoded + b"," + data[at:]
    at = items[-1].stop if items else start + 1
    return data[:at] + (b"," if items else b"") + encoded + data[at:]


def _members(data: bytes, start: int) -> Iterator[_Member]:
    """The members of the container that opens at `start`; nothing for a scalar."""
    opening = data[start : start + 1]
    if opening not in (b"{", b"["):
        return
    closing = b"}" if opening == b"{" else b"]"
    position = _skip_blank(data, start + 1)
    if data[position : position + 1] == closing:
        return
    number = 0
    while True:
        key_start, key = position, number
        name: str | int = key
        if opening == b"{":
            key_stop = _string_end(data, position)
            name = json.loads(data[position:key_stop].decode("utf-8", "surrogateescape"), strict=False)
            position = _skip_blank(data, key_stop)
            _expect(data, position, b":")
            position = _skip_blank(data, position + 1)
        stop = _value_end(data, position)
        yield _Member(name, key_start, position, stop)
        number += 1
        position = _skip_blank(data, stop)
        if data[position : position + 1] == closing:
            return
        _expect(data, position, b",")
        position = _skip_blank(data, position + 1)


def _value_end(data: bytes, start: int) -> int:
    """Where the value that starts at `start` ends; containers are skipped without recursion."""
    first = data[start : start + 1]
    if first == b'"':
        return _string_end(data, start)
    if first in (b"{", b"["):
        depth = 0
        for token in _STRUCTURE.finditer(data, start):
            mark = data[token.start()]
            if mark in b"{[":
                depth += 1
            elif mark in b"}]":
                depth -= 1
                if depth == 0:
                    return token.end()
        raise PathNotFoundError(f"the container at byte {start} does not end")
    scalar = _SCALAR.match(data, start)
    if scalar is None:
        raise PathNotFoundError(f"no JSON value at byte {start}")
    return scalar.end()


def _string_end(data: bytes, start: int) -> int:
    found = _STRING.match(data, start)
    if found is None:
        raise PathNotFoundError(f"no whole string at byte {start}")
    return found.end()


def _skip_blank(data: bytes, position: int) -> int:
    found = _BLANK.match(data, position)
    return found.end() if found else position


def _expect(data: bytes, position: int, mark: bytes) -> None:
    if data[position : position + 1] != mark:
        raise PathNotFoundError(f"expected {mark.decode()!r} at byte {position}")


def _show(path: Path) -> str:
    return "/".join(str(part) for part in path) or "the top"
