from __future__ import annotations

import os
import stat
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


def is_stream(path: Path) -> bool:
    """Whether an input is no file or folder but a pipe, a socket or a device: read once, from its beginning.

    Raises:
        InputUnreadable: there is nothing, or the system does not let it be looked at.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise InputUnreadable("there is no such file", "check the path", str(path)) from None
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else None
        raise InputUnreadable(
            f"cannot be read: {cause or error}", "check the path and its permissions", str(path)
        ) from error
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def read_stream(path: Path) -> bytes:
    """Everything that a pipe or a terminal gives; /dev/null gives nothing.

    Raises:
        InputUnreadable: the system refused, or it is a device that never ends.
    """
    try:
        with path.open("rb") as stream:
            if not (stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode) or stream.isatty()) and stream.read(1):
                raise InputUnreadable("is a device, not a session file", "name a file, or - for a pipe", str(path))
            return stream.read()
    except OSError as error:
        raise InputUnreadable(
            f"cannot be read: {error.strerror or error}", "check the path and its permissions", str(path)
        ) from error


def read_chunks(source: Source, start: int, end: int) -> Iterator[bytes]:
    """The bytes from `start` to `end` in pieces of `CHUNK`; stops early when the input has become shorter."""
    while start < end:
        data = source.read(start, min(CHUNK, end - start))
        if not data:
            return
        start += len(data)
        yield data
