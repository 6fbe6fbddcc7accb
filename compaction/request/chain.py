"""The rows a client puts into its conversation: the walk from the leaf, what the walk misses, the boundary cut."""

from __future__ import annotations

from bisect import bisect_right

from compaction.request.rows import BOUNDARY, MISSING, SIDECHAIN, SYSTEM, LoadedRows
from compaction.request.siblings import SiblingIndex, recover_siblings


def chain_rows(rows: LoadedRows, leaf: int, index: SiblingIndex | None = None) -> list[int]:
    """The slots of the conversation that ends at `leaf`, in the order the client sends them.

    clients.md ("What resume sends"): parents from the leaf, gaps as the profile has it, siblings and hanging records
    put back, then everything before the last compact boundary on the way left out. `index` saves work when many chains
    of one transcript are asked for.
    """
    chain, seen = _walk(rows, leaf)
    if rows.profile.recovers_siblings:
        chain = recover_siblings(rows, index or SiblingIndex(rows.table), chain, seen)
    if rows.profile.keeps_trailing_descendants:
        chain += _hanging_below(rows, leaf, seen)
    return _after_boundary(rows, chain)


def _walk(rows: LoadedRows, leaf: int) -> tuple[list[int], set[int]]:
    chain: list[int] = []
    seen: set[int] = set()
    row = leaf
    while row >= 0:
        seen.add(row)
        chain.append(row)
        parent = rows.parent(row)
        if parent == MISSING or parent in seen:
            parent = _row_before(rows, row, seen) if rows.profile.heals_gaps else -1
        row = parent
    chain.reverse()
    return chain, seen


def _row_before(rows: LoadedRows, row: int, seen: set[int]) -> int:
    """What stands in for a missing parent: the nearest earlier record in time, of the same side; −1 for none."""
    at = rows.time(row)
    if not at:
        return -1
    members, times = rows.table.by_time[rows.flag(row, SIDECHAIN)]
    for position in range(bisect_right(times, at) - 1, -1, -1):
        if at - times[position] > rows.profile.heals_gaps * 1000:
            break
        if members[position] not in seen and rows.alive(members[position]):
            return members[position]
    return -1


def _hanging_below(rows: LoadedRows, leaf: int, seen: set[int]) -> list[int]:
    """Attachments and system records below the leaf that the walk did not pass, by time."""
    found: list[int] = []
    queue = [leaf]
    for row in queue:
        for child in rows.children(row):
            if child not in seen and not rows.speaks(child):
                seen.add(child)
                found.append(child)
                queue.append(child)
    found.sort(key=rows.time)
    return found


def _after_boundary(rows: LoadedRows, chain: list[int]) -> list[int]:
    for position in range(len(chain) - 1, -1, -1):
        if rows.is_kind(chain[position], SYSTEM) and rows.flag(chain[position], BOUNDARY):
            return chain[position:]
    return chain
