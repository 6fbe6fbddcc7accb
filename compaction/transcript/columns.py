from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

RECORD = np.dtype(
    [
        ("offset", "<i8"),
        ("length", "<i4"),
        ("line", "<i4"),
        ("uuid_key", "<u8"),
        ("parent_key", "<u8"),
        ("message_key", "<u8"),
        ("request_key", "<u8"),
        ("timestamp_ms", "<i8"),
        ("first_block", "<i4"),
        ("flags", "<u4"),
        ("agent", "<u4"),
        ("session", "<u4"),
        ("type", "<u2"),
        ("version", "<u2"),
        ("model", "<u2"),
        ("kind", "u1"),
    ]
)
"""One record: 79 bytes. Keys are xxh3_64 of the id string, 0 = absent; agent, session, type, version and model are
numbers of interned strings; `first_block` is the row of the record's first content block."""

BLOCK = np.dtype(
    [
        ("record", "<i4"),
        ("chars", "<i4"),
        ("key", "<u8"),
        ("tool", "<u2"),
        ("position", "<u2"),
        ("type", "u1"),
        ("flags", "u1"),
    ]
)
"""One content block: 22 bytes. `chars` is characters of text (JSON characters of a tool_use's input; 0 of an image);
`position` is its index in `message.content`, capped at 65,535."""

USAGE = np.dtype(
    [
        ("record", "<i4"),
        ("input", "<i4"),
        ("output", "<i4"),
        ("cache_read", "<i4"),
        ("cache_creation", "<i4"),
        ("write_5m", "<i4"),
        ("write_1h", "<i4"),
        ("thinking", "<i4"),
        ("web_search", "<u2"),
        ("web_fetch", "<u2"),
        ("speed", "<u2"),
        ("geo", "<u2"),
        ("tier", "<u2"),
        ("flags", "u1"),
    ]
)
"""The `usage` stored on one record, tokens. `cache_creation` is the flat field; `write_5m`/`write_1h` the nested ones
(−1 when the nested object is missing), `thinking` −1 when not given."""

USAGE_NESTED = 1
"""`USAGE.flags`: the nested 5-minute / 1-hour split is present."""
USAGE_ITERATIONS = 2
"""`USAGE.flags`: more than one entry in `usage.iterations`; read them from the payload."""
USAGE_STOP_REASON_NULL = 4
"""`USAGE.flags`: the record's `stop_reason` is null, so `output` may be a placeholder."""


class Table:
    """A structured array that grows by batches.

    Its buffer is over-allocated (untouched pages cost no memory) and written only beyond the published length, so
    views of an earlier length stay valid while a worker appends.
    """

    def __init__(self, dtype: np.dtype[Any], capacity: int) -> None:
        self._rows = np.empty(max(capacity, 16), dtype)
        self.length = 0

    def extend(self, rows: list[tuple[Any, ...]] | npt.NDArray[Any]) -> None:
        """Append rows: an array of the dtype, or tuples in the order of its fields."""
        if not len(rows):
            return
        end = self.length + len(rows)
        if end > len(self._rows):
            grown = np.empty(max(end, len(self._rows) * 3 // 2), self._rows.dtype)
            grown[: self.length] = self._rows[: self.length]
            self._rows = grown
        if isinstance(rows, np.ndarray) and rows.dtype == self._rows.dtype and rows.flags.c_contiguous:
            # As plain bytes: numpy copies structured rows field by field, in ten times the time.
            size = rows.itemsize
            self._rows.view(np.uint8)[self.length * size : end * size] = rows.view(np.uint8)
        else:
            self._rows[self.length : end] = rows
        self.length = end

    def view(self) -> npt.NDArray[Any]:
        """The rows so far, without copying."""
        return self._rows[: self.length]


class Names:
    """Strings as small numbers; number 0 is "" or None (absent), names beyond the limit share the last number."""

    def __init__(self, limit: int = 0xFFFF) -> None:
        self.names: list[str] = [""]
        self._numbers = _Numbers(self.names, limit)

    def number(self, name: str) -> int:
        """The number of a name, given out on first sight."""
        return self._numbers[name]

    def of(self, names: list[Any]) -> npt.NDArray[np.int64]:
        """The numbers of many names (str or None)."""
        if names and names.count(names[0]) == len(names):
            # Most batches are of one session: comparing takes a fifth of the time of looking up.
            return np.full(len(names), self._numbers[names[0]], np.int64)
        return np.fromiter(map(self._numbers.__getitem__, names), np.int64, len(names))


class _Numbers(dict[Any, int]):
    def __init__(self, names: list[str], limit: int) -> None:
        super().__init__({"": 0, None: 0})
        self._names = names
        self._limit = limit

    def __missing__(self, name: str) -> int:
        if len(self._names) >= self._limit:
            self._names[-1] = "(other)"
            return self._limit - 1
        number = self[name] = len(self._names)
        self._names.append(name)
        return number
