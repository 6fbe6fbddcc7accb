"""The rows a client puts into its conversation: the walk from the leaf, what the walk misses, the boundary cut."""

from __future__ import annotations

from bisect import bisect_right

from compaction.request.rows import BOUNDARY, MISSING, SIDECHAIN, SYSTEM, LoadedRows
from compaction.request.siblings import recover_siblings


def chain_rows(rows: LoadedRows, leaf: int) -> list[int]:
    """The slots of the conversation that ends at `leaf`, in the order the client sends them.

    clients.md ("What resume sends"): parents from the leaf, gaps as the profile has it, siblings and hanging records
    put back, then everything before the last compact boundary on the way left out.
    """
    chain, seen = _walk(rows, leaf)
    if rows.profile.recovers_siblings:
        chain = recover_siblings(rows, chain, seen)
    if rows.profile.keeps_trailing_descendants:
        chain += _hanging_below(rows, leaf, seen)
    return _after_boundary(rows, chain)


def _walk(rows: LoadedRows, leaf: int) -> tuple[list[int], set[int]]:
    healer = _GapHealer(rows) if rows.profile.heals_gaps else None
    chain: list[int] = []
    seen: set[int] = set()
    row = leaf
    while row >= 0:
        seen.add(row)
        chain.append(row)
        parent = rows.parent[row]
        broken = parent == MISSING or (parent >= 0 and (parent in seen or not rows.alive[parent]))
        if broken:
            parent = healer.row_before(row, seen) if healer else -1
        row = parent
    chain.reverse()
    return chain, seen


class _GapHealer:
    """Finds the record that stands in for a missing parent: the nearest earlier one in time, of the same side."""

    def __init__(self, rows: LoadedRows) -> None:
        self.rows = rows
        self.window = rows.profile.heals_gaps * 1000
        self.sides: dict[bool, tuple[list[int], list[int]]] = {}

    def _side(self, sidechain: bool) -> tuple[list[int], list[int]]:
        if sidechain not in self.sides:
            rows = self.rows
            members = [
                row
                for row in range(rows.limit)
                if rows.alive[row]
                and rows.flag(row, SIDECHAIN) == sidechain
                and rows.time[rows.content[row]]
                and rows.transcript.type_name(rows.content[row]) != "system/file_snapshot"
            ]
            # Of equal times the earlier record in the file comes last, and so is found first.
            members.sort(key=lambda row: (rows.time[rows.content[row]], -row))
            self.sides[sidechain] = (members, [rows.time[rows.content[row]] for row in members])
        return self.sides[sidechain]

    def row_before(self, row: int, seen: set[int]) -> int:
        rows = self.rows
        at = rows.time[rows.content[row]]
        if not at:
            return -1
        members, times = self._side(rows.flag(row, SIDECHAIN))
        for position in range(bisect_right(times, at) - 1, -1, -1):
            if at - times[position] > self.window:
                break
            if members[position] not in seen:
                return members[position]
        return -1


def _hanging_below(rows: LoadedRows, leaf: int, seen: set[int]) -> list[int]:
    """Attachments and system records below the leaf that the walk did not pass, by time."""
    found: list[int] = []
    queue = [leaf]
    for row in queue:
        for child in rows.children.get(row, []):
            if child not in seen and not rows.speaks(child):
                seen.add(child)
                found.append(child)
                queue.append(child)
    found.sort(key=lambda row: rows.time[rows.content[row]])
    return found


def _after_boundary(rows: LoadedRows, chain: list[int]) -> list[int]:
    for position in range(len(chain) - 1, -1, -1):
        if rows.is_kind(chain[position], SYSTEM) and rows.flag(chain[position], BOUNDARY):
            return chain[position:]
    return chain
