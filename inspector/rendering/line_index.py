"""Rows of a large text: where its lines start and how they wrap at a number of columns, without copying the text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_CHUNK = 1 << 20
_MANY = 2000
"""Newlines in a chunk above which they are found in one vector step."""


def line_starts(text: str) -> NDArray[np.int64]:
    """Offset (characters) of the start of every line; "\\n" ends a line. At least one line."""
    found: list[NDArray[np.int64]] = [np.zeros(1, dtype=np.int64)]
    for start in range(0, len(text), _CHUNK):
        piece = text[start : start + _CHUNK]
        count = piece.count("\n")
        if count > _MANY:
            found.append(_positions(piece) + (start + 1))
        elif count:
            found.append(np.fromiter(_places(piece), np.int64, count) + (start + 1))
    return np.concatenate(found)


def _places(piece: str) -> Iterator[int]:
    """Offsets of the newlines, one search each: quickest where there are few, as in a record of one line."""
    at = piece.find("\n")
    while at >= 0:
        yield at
        at = piece.find("\n", at + 1)


def _positions(piece: str) -> NDArray[np.int64]:
    """Offsets of the newlines in one vector step."""
    if piece.isascii():
        return np.flatnonzero(np.frombuffer(piece.encode("ascii"), dtype=np.uint8) == 10).astype(np.int64)
    codes = np.frombuffer(piece.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return np.flatnonzero(codes == 10).astype(np.int64)


class LineIndex:
    """Lines and wrapped rows of a text.

    A row is a part of a line of at most `columns` characters; building is O(lines), each look-up O(log lines).

    Attributes:
        row_count: rows at the present width.
        line_count: lines of the text.
    """

    def __init__(self, text: str, columns: int) -> None:
        self._length = len(text)
        self._starts = line_starts(text)
        ends = np.append(self._starts[1:] - 1, self._length)
        self._lengths = ends - self._starts
        self.line_count = len(self._starts)
        self.columns = 0
        self.row_count = 0
        self._first_rows: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self.wrap(columns)

    def wrap(self, columns: int) -> None:
        """Wrap every line after `columns` characters."""
        columns = max(columns, 1)
        if columns == self.columns:
            return
        self.columns = columns
        rows = np.maximum((self._lengths + columns - 1) // columns, 1)
        self._first_rows = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(rows)))
        self.row_count = int(self._first_rows[-1])

    def span(self, row: int) -> tuple[int, int]:
        """Start and end offset of a row."""
        line = int(np.searchsorted(self._first_rows, row, side="right")) - 1
        start = int(self._starts[line]) + (row - int(self._first_rows[line])) * self.columns
        return start, min(start + self.columns, int(self._starts[line] + self._lengths[line]))

    def row_of(self, offset: int) -> int:
        """The row an offset lies in; the end of a full row counts as the start of the next one of the line."""
        line = self.line_of(offset)
        within = offset - int(self._starts[line])
        last = int(self._first_rows[line + 1]) - 1
        return min(int(self._first_rows[line]) + within // self.columns, last)

    def line_of(self, offset: int) -> int:
        """The 0-based line an offset lies in."""
        return int(np.searchsorted(self._starts, offset, side="right")) - 1

    def starts_line(self, row: int) -> int:
        """The 0-based line that starts with this row, or -1 for a continued row."""
        line = int(np.searchsorted(self._first_rows, row, side="right")) - 1
        return line if int(self._first_rows[line]) == row else -1
