from __future__ import annotations

from dataclasses import dataclass


@dataclass
class CompactoscopeError(Exception):
    """Base of every error the engine raises on purpose.

    Attributes:
        cause: what is wrong, one sentence without a full stop.
        hint: what the person can do about it, or "".
        file: the file it is about, or "".
        line: its 1-based line, or None.
    """

    cause: str
    hint: str = ""
    file: str = ""
    line: int | None = None

    def facts(self) -> list[tuple[str, str]]:
        """Names and values that a person needs to decide what to do next; shown below the message."""
        return []

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file and self.line else f"{self.file}: " if self.file else ""
        return f"{place}{self.cause}" + (f" ({self.hint})" if self.hint else "")


class InputUnreadable(CompactoscopeError):
    """The input could not be opened or read at all (command-line exit code 3)."""


class UsageError(CompactoscopeError):
    """The caller asked for something that does not exist (command-line exit code 2)."""


class NothingWritten(CompactoscopeError):
    """An output was asked for and not made (command-line exit code 1)."""


class Cancelled(CompactoscopeError):
    """The person stopped the job."""

    def __init__(self) -> None:
        super().__init__("cancelled")
