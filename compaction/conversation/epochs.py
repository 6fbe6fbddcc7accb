from __future__ import annotations

from dataclasses import dataclass

SILENT_DROP_TOKENS = 15_000
"""A fall of the context between two rounds with no record of it is a silent compaction above this (issue 3;
transcript-format.md §7 measured 21,000 to 48,000 for real ones and about 1,000 for dropped thinking)."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """One compaction that the transcript shows (transcript-format.md §7).

    Attributes:
        record: the boundary record (of a silent one the first record of the round after the drop).
        line: its 1-based line.
        round: the last API round before it, 0 when it comes first.
        kind: auto, manual, micro, legacy (a summary without boundary), silent.
        pre_tokens, post_tokens: as recorded, None where they are not.
        context_before, context_after: recorded context of the nearest responses, tokens; None where unknown.
        preserved: messages kept verbatim after the summary.
    """

    record: int
    line: int
    round: int
    kind: str
    pre_tokens: int | None
    post_tokens: int | None
    context_before: int | None
    context_after: int | None
    preserved: int


@dataclass(frozen=True, slots=True)
class Epoch:
    """The stretch of a file between two compactions, by file position.

    Attributes:
        number: 0-based.
        first_record, end_record: its records, end exclusive.
        boundary_record: the record that begins it, −1 for the first.
        kind: start, auto, manual, legacy.
        pre_tokens, post_tokens: of the compaction that began it.
    """

    number: int
    first_record: int
    end_record: int
    boundary_record: int
    kind: str
    pre_tokens: int | None
    post_tokens: int | None


@dataclass(frozen=True, slots=True)
class Fork:
    """A real branch: one record followed by more than one prompt or response (a rewind, an interrupted retry).

    Parallel tool results, progress and hook records beside each other are no forks (transcript-format.md §6).
    """

    parent: int
    children: tuple[int, ...]
