"""When a changed file counts as grown, and when as rewritten."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compaction.catalogue.fingerprint import PREFIX_BYTES, Change, Fingerprint, prefix_of, signed, tail_of, what_changed

OLD = b"".join(b'{"n":%d}\n' % n for n in range(2000))


def change(tmp_path: Path, new: bytes) -> Change:
    path = tmp_path / "f"
    path.write_bytes(OLD)
    descriptor = os.open(path, os.O_RDONLY)
    known = Fingerprint(*prefix_of(descriptor), tail_of(descriptor, len(OLD)))
    os.close(descriptor)
    path.write_bytes(new)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return what_changed(descriptor, len(new), known, len(OLD))
    finally:
        os.close(descriptor)


def test_appended_bytes_are_growth(tmp_path: Path) -> None:
    assert change(tmp_path, OLD + b"{}\n") is Change.GROWN


@pytest.mark.parametrize(
    "new",
    [
        OLD,
        OLD[:-1],
        b"",
        b"x" + OLD[1:] + b"{}\n",
        OLD[: PREFIX_BYTES + 10] + b"inserted" + OLD[PREFIX_BYTES + 10 :],
        OLD[:-5] + b"other" + b"{}\n",
    ],
)
def test_anything_else_is_read_again(tmp_path: Path, new: bytes) -> None:
    assert change(tmp_path, new) is Change.REWRITTEN


def test_keys_keep_their_bits_as_signed_numbers() -> None:
    for key in (0, 1, 2**63 - 1, 2**63, 2**64 - 1):
        assert signed(key) % 2**64 == key
        assert -(2**63) <= signed(key) < 2**63
