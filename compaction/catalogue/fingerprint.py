from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum

import xxhash

PREFIX_BYTES = 4096
"""Enough to tell sessions apart (the first record holds its session id and time), little enough to read for all."""

TAIL_BYTES = 512
"""Compared before a file is taken as appended to."""


class Change(Enum):
    """How a file differs from what the catalogue knows of it."""

    UNCHANGED = "unchanged"
    GROWN = "grown"
    REWRITTEN = "rewritten"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What the catalogue keeps of a file's bytes; hashes are xxh3_64 as signed numbers (databases have no others)."""

    prefix_bytes: int
    prefix_hash: int
    tail_hash: int


NOTHING = Fingerprint(0, 0, 0)
"""Of a file that was not read."""


def signed(key: int) -> int:
    """An unsigned 64-bit number as a signed one with the same bits.

    >>> signed(2**64 - 1)
    -1
    """
    return key - (1 << 64) if key >= 1 << 63 else key


def key_of(data: bytes) -> int:
    """The signed xxh3_64 of some bytes."""
    return signed(xxhash.xxh3_64_intdigest(data))


def prefix_of(descriptor: int) -> tuple[int, int]:
    """Length and hash of a file's first bytes, at most `PREFIX_BYTES`."""
    head = os.pread(descriptor, PREFIX_BYTES, 0)
    return len(head), key_of(head)


def tail_of(descriptor: int, end: int) -> int:
    """Hash of the last bytes before offset `end`, at most `TAIL_BYTES`."""
    start = max(0, end - TAIL_BYTES)
    return key_of(os.pread(descriptor, end - start, start))


def what_changed(descriptor: int, size: int, known: Fingerprint, indexed_bytes: int) -> Change:
    """Compare a file whose stat differs with what is known; reads at most `PREFIX_BYTES + TAIL_BYTES`.

    Growth is believed only when the beginning and the bytes before the old end are as they were. A changed file of the
    same size is read again: the place of the change is unknown.
    """
    if size <= indexed_bytes or size < known.prefix_bytes:
        return Change.REWRITTEN
    head = os.pread(descriptor, known.prefix_bytes, 0)
    if key_of(head) != known.prefix_hash or tail_of(descriptor, indexed_bytes) != known.tail_hash:
        return Change.REWRITTEN
    return Change.GROWN
