from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from compaction.errors import InputUnreadable

CHUNK = 4 << 20
"""Bytes asked from the file at once: large enough for few calls, small enough to keep progress and memory smooth."""


class Source(Protocol):
    """Random access to the bytes of an input; never writes."""

    name: str

    def size(self) -> int: ...

    def read(self, offset: int, length: int) -> bytes: ...


class BytesSource:
    """An input that is in memory (standard input, tests)."""

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        self._data = data

    def size(self) -> int:
        return len(self._data)

    def read(self, offset: int, length: int) -> bytes:
        return self._data[offset : offset + length]


class FileSource:
    """A file read with `pread`.

    A memory map would be faster still, but a file that is truncated while mapped kills the process (SIGBUS).
    Opened anew for each read series so that no descriptor stays open and a replaced file is noticed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)
        self._descriptor = -1
        self.bytes_read = 0
        self._open()

    def _open(self) -> None:
        try:
            if self.path.is_dir():
                raise InputUnreadable("is a folder, not a session file", "open one of the files in it", self.name)
            self._descriptor = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except OSError as error:
            raise InputUnreadable(
                f"cannot be read: {error.strerror or error}", "check the path and its permissions", self.name
            ) from error

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset`; fewer at the end of the file.

        Raises:
            InputUnreadable: the system refused the read.
        """
        try:
            data = os.pread(self._descriptor, length, offset)
            while len(data) < length:
                more = os.pread(self._descriptor, length - len(data), offset + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            raise InputUnreadable(f"cannot be read: {error.strerror or error}", "", self.name) from error
        self.bytes_read += len(data)
        return data

    def close(self) -> None:
        """Give the descriptor back; reading afterwards is an error."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()


def read_chunks(source: Source, start: int, end: int) -> Iterator[bytes]:
    """The bytes from `start` to `end` in pieces of `CHUNK`; stops early when the input has become shorter."""
    while start < end:
        data = source.read(start, min(CHUNK, end - start))
        if not data:
            return
        start += len(data)
        yield data
