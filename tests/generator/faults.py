"""What goes wrong with transcripts, each a function on the bytes of a file; they compose by calling one after another.

Every function takes the file and the 1-based line it strikes (`line`; None strikes the middle line) and returns the
damaged file. Line endings are LF; a last line without one is left as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

Fault = Callable[[bytes, int | None], bytes]

_LINE_SEPARATOR = "\u2028".encode()


def nul_padding(data: bytes, line: int | None = None, *, length: int = 512) -> bytes:
    """A run of NUL bytes before the record: the file system allocated the block and the machine went down."""
    lines, at = _split(data, line)
    lines[at] = b"\0" * length + lines[at]
    return b"".join(lines)


def two_records_on_one_line(data: bytes, line: int | None = None) -> bytes:
    """No newline between a record and the next (resume in 2.0.76–2.1.17)."""
    lines, at = _split(data, line)
    lines[at] = lines[at].rstrip(b"\n")
    return b"".join(lines)


def cut_last_line(data: bytes, line: int | None = None, *, keep: float = 0.5) -> bytes:
    """The process died while it wrote: the file ends inside the line (the last one by default)."""
    lines, at = _split(data, line)
    at = len(lines) - 1 if line is None else at
    return b"".join(lines[:at]) + lines[at][: max(1, int(len(lines[at]) * keep))]


def blank_lines(data: bytes, line: int | None = None, *, count: int = 2) -> bytes:
    """Empty lines before the record."""
    lines, at = _split(data, line)
    lines.insert(at, b"\n" * count)
    return b"".join(lines)


def byte_order_mark(data: bytes, line: int | None = None) -> bytes:
    """A UTF-8 byte order mark before the first line (an editor saved the file)."""
    return b"\xef\xbb\xbf" + data


def carriage_returns(data: bytes, line: int | None = None) -> bytes:
    """CRLF line endings throughout."""
    return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def invalid_utf8(data: bytes, line: int | None = None) -> bytes:
    """Bytes that are no UTF-8 inside a text of the record."""
    return _into_text(data, line, b"\xc3\x28\xff")


def lone_surrogate(data: bytes, line: int | None = None) -> bytes:
    """Half an emoji, as an escape: tool output was cut in the middle of it."""
    return _into_text(data, line, rb"\ud83d")


def line_separator(data: bytes, line: int | None = None) -> bytes:
    """A raw U+2028 inside a text: a line break to some readers, not to JSON lines."""
    return _into_text(data, line, _LINE_SEPARATOR)


def invalid_escape(data: bytes, line: int | None = None) -> bytes:
    """A backslash escape that JSON does not know."""
    return _into_text(data, line, rb"\q")


def non_object_line(data: bytes, line: int | None = None, *, text: bytes = b'[1, "two", null]') -> bytes:
    """A line before the record that is JSON but no object."""
    lines, at = _split(data, line)
    lines.insert(at, text + b"\n")
    return b"".join(lines)


def garbage_line(data: bytes, line: int | None = None) -> bytes:
    """A line before the record that is no JSON at all."""
    return non_object_line(data, line, text=b"Segmentation fault (core dumped)")


def deep_nesting(data: bytes, line: int | None = None, *, depth: int = 100_000) -> bytes:
    """A field of the record that nests deeper than any recursive reader can go."""
    lines, at = _split(data, line)
    ending = lines[at][len(lines[at].rstrip(b"\n")) :]
    record = lines[at].rstrip(b"\n")
    lines[at] = record[:-1] + b',"nested":' + b"[" * depth + b"]" * depth + b"}" + ending
    return b"".join(lines)


def huge_line(data: bytes, line: int | None = None, *, length: int = 20_000_000) -> bytes:
    """A field of `length` characters in the record."""
    lines, at = _split(data, line)
    ending = lines[at][len(lines[at].rstrip(b"\n")) :]
    lines[at] = lines[at].rstrip(b"\n")[:-1] + b',"padding":"' + b"x" * length + b'"}' + ending
    return b"".join(lines)


def unknown_type(data: bytes, line: int | None = None) -> bytes:
    """A record of a type that no client has written yet, before the record."""
    lines, at = _split(data, line)
    lines.insert(at, b'{"type":"moon-phase","phase":"waxing","illumination":0.42}\n')
    return b"".join(lines)


def drop_record(data: bytes, line: int | None = None) -> bytes:
    """The record is gone; what hung on it hangs in the air."""
    lines, at = _split(data, line)
    del lines[at]
    return b"".join(lines)


def duplicate_record(data: bytes, line: int | None = None) -> bytes:
    """The record stands twice, one after the other."""
    lines, at = _split(data, line)
    lines.insert(at, lines[at] if lines[at].endswith(b"\n") else lines[at] + b"\n")
    return b"".join(lines)


def reorder_record(data: bytes, line: int | None = None, *, by: int = 3) -> bytes:
    """The record stands `by` lines later than it was written."""
    lines, at = _split(data, line)
    moved = lines.pop(at)
    lines.insert(min(at + by, len(lines)), moved)
    return _joined(lines)


def relink_parent(data: bytes, line: int | None = None, *, parent: str | None = None) -> bytes:
    """The record's parentUuid names `parent` (by default a record that exists nowhere)."""
    lines, at = _split(data, line)
    start = lines[at].find(b'"parentUuid":')
    if start < 0:
        return data
    start += len(b'"parentUuid":')
    end = min(where for where in (lines[at].find(b",", start), lines[at].find(b"}", start)) if where >= 0)
    new = json.dumps(parent if parent is not None else "00000000-0000-4000-8000-00000000dead").encode()
    lines[at] = lines[at][:start] + new + lines[at][end:]
    return b"".join(lines)


def splice(data: bytes, line: int | None = None) -> bytes:
    """The beginning of the record with the next record written into it: two processes wrote at once."""
    lines, at = _split(data, line)
    if at + 1 < len(lines):
        lines[at] = lines[at][: len(lines[at]) // 2]
    return b"".join(lines)


FAULTS: dict[str, Fault] = {
    fault.__name__: fault
    for fault in (
        nul_padding,
        two_records_on_one_line,
        cut_last_line,
        blank_lines,
        byte_order_mark,
        carriage_returns,
        invalid_utf8,
        lone_surrogate,
        line_separator,
        invalid_escape,
        non_object_line,
        garbage_line,
        deep_nesting,
        huge_line,
        unknown_type,
        drop_record,
        duplicate_record,
        reorder_record,
        relink_parent,
        splice,
    )
}


def apply_faults(data: bytes, faults: Sequence[str]) -> bytes:
    """Apply the faults named, in order; `name@12` strikes line 12.

    Raises:
        KeyError: there is no fault of that name.
    """
    for entry in faults:
        name, _, line = entry.partition("@")
        data = FAULTS[name](data, int(line) if line else None)
    return data


def _split(data: bytes, line: int | None) -> tuple[list[bytes], int]:
    lines = data.split(b"\n")
    lines = [part + b"\n" for part in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    at = len(lines) // 2 if line is None else line - 1
    if not 0 <= at < len(lines):
        raise IndexError(f"there is no line {line} in a file of {len(lines)} lines")
    return lines, at


def _joined(lines: list[bytes]) -> bytes:
    return b"".join(part if part.endswith(b"\n") else part + b"\n" for part in lines)


def _into_text(data: bytes, line: int | None, inserted: bytes) -> bytes:
    """Insert bytes at the start of the record's first content text (or of its last string value)."""
    lines, at = _split(data, line)
    for key in (b'"text":"', b'"content":"', b'"thinking":"', b'"command":"'):
        start = lines[at].find(key)
        if start >= 0:
            start += len(key)
            break
    else:
        start = lines[at].rfind(b':"') + 2
        if start < 2:
            return data
    lines[at] = lines[at][:start] + inserted + lines[at][start:]
    return b"".join(lines)
