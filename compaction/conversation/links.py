from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Keys = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

ROOT = -1
"""`parent` of a record that has none."""
DANGLING = -2
"""`parent` of a record whose parent is not in the file."""


def resolve_parents(uuid_key: Keys, parent_key: Keys) -> Ints:
    """The record number of every record's parent, `ROOT` or `DANGLING`.

    Where a uuid stands twice in one file (a replay after resume), the nearest earlier record is meant, else the first.
    """
    named = np.flatnonzero(uuid_key)
    order = named[np.argsort(uuid_key[named], kind="stable")]
    keys = uuid_key[order]
    parent = np.full(len(uuid_key), ROOT, np.int32)
    asking = np.flatnonzero(parent_key)
    left = np.searchsorted(keys, parent_key[asking], "left")
    right = np.searchsorted(keys, parent_key[asking], "right")
    found = right > left
    parent[asking] = DANGLING
    parent[asking[found]] = order[left[found]]
    for row in np.flatnonzero(right - left > 1):
        record = asking[row]
        candidates = order[left[row] : right[row]]
        earlier = np.searchsorted(candidates, record, "left")
        parent[record] = candidates[earlier - 1] if earlier else candidates[0]
    # A record that names itself would make every walk endless.
    itself = parent == np.arange(len(parent), dtype=np.int32)
    parent[itself] = DANGLING
    return parent


def ancestors_within(parent: Ints, inside: Bools) -> Ints:
    """For every record of `inside`, the highest ancestor reached by parents that are all inside (itself if none).

    Pointer doubling: log2(n) vector steps; a cycle of parents ends at one of its own members.
    """
    top = np.arange(len(parent), dtype=np.int32)
    linked = inside & (parent >= 0)
    linked[linked] = inside[parent[linked]]
    top[linked] = parent[linked]
    for _ in range(max(1, len(parent).bit_length() + 1)):
        further = top[top]
        if np.array_equal(further, top):
            break
        top = further
    return top


def first_seen_numbers(keys: Keys) -> tuple[Ints, int]:
    """Numbers 0, 1, 2 … of equal keys in the order of their first appearance, and how many there are."""
    unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    rank = np.empty(len(unique), np.int32)
    rank[np.argsort(first, kind="stable")] = np.arange(len(unique), dtype=np.int32)
    return rank[inverse].astype(np.int32), len(unique)


def first_rows_by_key(rows: npt.NDArray[Any], keys: Keys, wanted: Keys) -> Ints:
    """For each wanted key the first of `rows` (ascending) that has it, −1 where none has."""
    if not len(rows):
        return np.full(len(wanted), -1, np.int32)
    order = np.argsort(keys, kind="stable")
    place = np.searchsorted(keys[order], wanted, "left")
    place_in = np.minimum(place, len(order) - 1)
    hit = (place < len(order)) & (keys[order[place_in]] == wanted)
    return np.where(hit, rows[order[place_in]], -1).astype(np.int32)
