"""Rows of a large text: where its lines start and how they wrap at a number of columns, without copying the text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_CHUNK = 1 << 20
_MANY = 2000
"""Newlines in a chunk above which they are found in one vector step."""
PROSE_LIMIT = 2_000_000
"""Characters above which rows do not break at blanks: looking for them would be felt with every change of the width."""


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

    A row is a part of a line: at most `columns` characters and the blank behind them. It ends behind a blank where
    there is one; a longer word is broken. In a text of more than `PROSE_LIMIT` characters, which nobody reads as
    prose, every row but a line's last has `columns` characters. Building is O(characters), each look-up O(log rows).

    Attributes:
        row_count: rows at the present width.
        line_count: lines of the text.
    """

    def __init__(self, text: str, columns: int) -> None:
        self._text = text
        self._starts = line_starts(text)
        self._ends = np.append(self._starts[1:] - 1, len(text))
        self.line_count = len(self._starts)
        self.columns = 0
        self.row_count = 0
        self._first_rows: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self._row_starts: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self.wrap(columns)

    def wrap(self, columns: int) -> None:
        """Wrap every line at so many characters."""
        columns = max(columns, 1)
        if columns == self.columns:
            return
        self.columns = columns
        lengths = self._ends - self._starts
        if len(self._text) > PROSE_LIMIT:
            counts = np.maximum((lengths + columns - 1) // columns, 1)
            self._first_rows = _sums(counts)
            within = np.arange(int(self._first_rows[-1])) - np.repeat(self._first_rows[:-1], counts)
            self._row_starts = np.repeat(self._starts, counts) + within * columns
        else:
            counts = np.ones(self.line_count, dtype=np.int64)
            long = {int(line): self._wrapped(int(line)) for line in np.flatnonzero(lengths > columns)}
            for line, starts in long.items():
                counts[line] = len(starts)
            self._first_rows = _sums(counts)
            self._row_starts = np.repeat(self._starts, counts)
            for line, starts in long.items():
                first = int(self._first_rows[line])
                self._row_starts[first : first + len(starts)] = starts
        self.row_count = int(self._first_rows[-1])

    def _wrapped(self, line: int) -> list[int]:
        """Where the rows of a line start."""
        text, columns = self._text, self.columns
        start, end = int(self._starts[line]), int(self._ends[line])
        starts = [start]
        while end - start > columns:
            blank = text.rfind(" ", start, start + columns + 1)
            # Blanks alone make no row: a word too long for its row would stand below its own indentation.
            start = blank + 1 if blank > start and not text[start:blank].isspace() else start + columns
            if start < end:
                starts.append(start)
        return starts

    def span(self, row: int) -> tuple[int, int]:
        """Start and end offset of a row."""
        line = int(np.searchsorted(self._first_rows, row, side="right")) - 1
        start = int(self._row_starts[row])
        last = row + 1 == int(self._first_rows[line + 1])
        return start, int(self._ends[line]) if last else int(self._row_starts[row + 1])

    def last_offset(self, row: int) -> int:
        """The last offset that lies in a row: behind its text in a line's last row, else before its last character."""
        end = self.span(row)[1]
        return end if row + 1 >= self.row_count or self.starts_line(row + 1) >= 0 else end - 1

    def row_of(self, offset: int) -> int:
        """The row an offset lies in; the end of a full row counts as the start of the next one of the line."""
        return max(0, int(np.searchsorted(self._row_starts, offset, side="right")) - 1)

    def line_of(self, offset: int) -> int:
        """The 0-based line an offset lies in."""
        return int(np.searchsorted(self._starts, offset, side="right")) - 1

    def starts_line(self, row: int) -> int:
        """The 0-based line that starts with this row, or -1 for a continued row."""
        line = int(np.searchsorted(self._first_rows, row, side="right")) - 1
        return line if int(self._first_rows[line]) == row else -1


def _sums(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sums of the first 0, 1, 2, … counts."""
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))
