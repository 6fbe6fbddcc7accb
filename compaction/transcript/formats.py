from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from compaction.progress import Progress
from compaction.transcript.index import Index
from compaction.transcript.source import Source


@dataclass(slots=True)
class Position:
    """Where indexing stands.

    Attributes:
        offset: bytes consumed, whole lines only.
        lines: whole lines seen.
        pending: bytes of a last line without its ending; its rows lie beyond `complete`.
        complete: the index's lengths (`Index.lengths`) after the whole lines.
    """

    offset: int = 0
    lines: int = 0
    pending: int = 0
    complete: tuple[int, ...] = ()


class Format(Protocol):
    """One transcript format: one module, one registration line in `FORMATS`."""

    name: str
    title: str
    message_path: tuple[str, ...]
    """Where, inside a record's own JSON, the API message is."""

    def recognises(self, head: bytes, source: Source) -> bool:
        """Whether an input that begins with `head` (up to 64 KB) is in this format."""

    def index(self, source: Source, index: Index, at: Position, progress: Progress) -> Iterator[None]:
        """Read from `at` to the end, adding records; yields between batches so that the caller can publish them."""

    def decode(self, data: bytes, number: int, role: str) -> dict[str, Any]:
        """A record's payload from its bytes, `{}` where they are none; `message` holds the API message."""

    def document(self, source: Source) -> dict[str, Any]:
        """What stands beside the records (model, system, tools), `{}` where the format has nothing such."""


def formats() -> tuple[Format, ...]:
    """Every registered format, the most specific first; the last takes whatever is left."""
    from compaction.transcript.claude_code import ClaudeCode
    from compaction.transcript.messages_api import MessagesApi

    return (MessagesApi(), ClaudeCode())


def format_of(source: Source) -> Format:
    """The format of an input, by its content and never by its name."""
    head = source.read(0, 1 << 16)
    candidates = formats()
    return next((f for f in candidates if f.recognises(head, source)), candidates[-1])
