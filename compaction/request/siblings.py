"""Blocks and results of a response that the parent walk misses, put back where they belong.

A response is several records and its parallel results hang on different ones of them, so a walk from the leaf passes
only one line of them (transcript-format.md §6). Newer clients put the rest back: the other blocks by `message.id`, the
results by their parent, by `sourceToolAssistantUUID` or by the call's id, and what hangs on those results.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field

from compaction.request.rows import ASSISTANT, META, SIDECHAIN, USER, LoadedRows, RowTable


@dataclass(slots=True)
class _Segment:
    """One stretch of the chain with the rows to weave in: positions [start, end), rows, rows anchored behind a row."""

    start: int
    end: int
    rows: list[int]
    anchored: dict[int, list[int]] = field(default_factory=dict)


class SiblingIndex:
    """The rows of every response, the row of every call, and the results that hang on every row; made once a file."""

    def __init__(self, table: RowTable) -> None:
        self.rows = LoadedRows(table)
        self.responses: dict[int, list[int]] = {}
        self.owner: dict[int, int] = {}
        self.results_of: dict[int, dict[int, None]] = {}
        results = []
        for row, loaded in enumerate(table.loaded):
            if not loaded:
                continue
            if self.rows.is_kind(row, ASSISTANT) and self.rows.message_key(row):
                self.responses.setdefault(self.rows.message_key(row), []).append(row)
                self._own(row)
            elif self.rows.is_result(row):
                results.append(row)
        for row in results:
            self._hang(row)

    def _own(self, row: int) -> None:
        """The row of each call's id; −1 where two responses use the same id."""
        for key in self.rows.calls(row):
            other = self.owner.get(key, row)
            same = other >= 0 and self.rows.message_key(other) == self.rows.message_key(row)
            self.owner[key] = row if same else -1

    def _hang(self, row: int) -> None:
        """By its parent, by `sourceToolAssistantUUID` and by the call's id."""
        rows = self.rows
        parent = rows.parent(row)
        if parent >= 0:
            self.results_of.setdefault(parent, {})[row] = None
        answers = rows.answers(row)
        if answers and parent >= 0 and set(rows.calls(parent)).issuperset(answers):
            return
        source = rows.slot_of_uuid(rows.transcript.payload(rows.content(row)).get("sourceToolAssistantUUID"))
        for host in [source, *(self.owner.get(key, -1) for key in answers)]:
            if host >= 0 and host != parent and self._same_side(row, host):
                self.results_of.setdefault(host, {})[row] = None

    def _same_side(self, one: int, other: int) -> bool:
        rows, t = self.rows, self.rows.transcript
        agents = t.agent_id(rows.content(one)), t.agent_id(rows.content(other))
        return rows.flag(one, SIDECHAIN) == rows.flag(other, SIDECHAIN) and agents[0] == agents[1]


def recover_siblings(rows: LoadedRows, index: SiblingIndex, chain: list[int], seen: set[int]) -> list[int]:
    """`chain` with the missed rows woven in by file order; `seen` gains them."""
    finder = _Finder(rows, index, chain, seen)
    segments = []
    done: set[int] = set()
    for position, row in enumerate(chain):
        key = rows.message_key(row)
        if not rows.is_kind(row, ASSISTANT) or not key or key in done:
            continue
        done.add(key)
        segment = finder.segment(row, position, key)
        if segment is not None:
            segments.append(segment)
    return finder.woven(segments) if segments else chain


class _Finder:
    def __init__(self, rows: LoadedRows, index: SiblingIndex, chain: list[int], seen: set[int]) -> None:
        self.rows = rows
        self.index = index
        self.chain = chain
        self.seen = seen
        self.position = {row: place for place, row in enumerate(chain)}
        self.rank: dict[int, float] = {}
        self.answered = {key for row in chain for key in rows.answers(row)}

    def _results_of(self, host: int) -> list[int]:
        return [row for row in self.index.results_of.get(host, ()) if self.rows.alive(row)]

    def key(self, row: int) -> tuple[float, int]:
        """Where a row stands: its file position, or behind its call when it was written before it."""
        return (self.rank.get(row, row), row)

    def segment(self, row: int, position: int, key: int) -> _Segment | None:
        """What is missing of the response that `row` belongs to; None when nothing is."""
        group = [r for r in self.index.responses.get(key, [row]) if self.rows.alive(r)]
        members = set(group)
        found = [r for r in group if r not in self.seen]
        found += self._results(group, members)
        self.seen.update(found)
        end = self._end(position, group, key)
        anchored: dict[int, list[int]] = {}
        if any(self.rows.calls(r) for r in group):
            for host in self._hosts(group, members):
                found += self._tails(host)
            for r in self.chain[position + 1 : end]:
                tails = self._tails(r) if self.rows.rides(r) else []
                if tails:
                    anchored[r] = tails
        if not found and not anchored:
            return None
        return _Segment(position, end, sorted(found, key=self.key), anchored)

    def _results(self, group: list[int], members: set[int]) -> list[int]:
        near: list[int] = []
        far: list[int] = []
        had: set[int] = set()
        for host in group:
            for row in self._results_of(host):
                if row not in self.seen and row not in had:
                    had.add(row)
                    (near if self.rows.parent(row) in members else far).append(row)
        if far:
            answered = {key for row in near for key in self.rows.answers(row)}
            last = max(group)
            for row in sorted(far, key=self.key):
                answers = self.rows.answers(row)
                open_keys = [key for key in answers if key not in answered and key not in self.answered]
                if any(self.index.owner.get(key, -1) in members for key in open_keys):
                    answered.update(answers)
                    self.rank[row] = max(float(row), last + 0.5)
                    near.append(row)
        return near

    def _end(self, position: int, group: list[int], key: int) -> int:
        """One past the stretch of the chain that belongs to the response: its blocks, results and what rides along."""
        end = position + 1
        for row in group:
            end = max(end, self.position.get(row, -1) + 1)
        while end < len(self.chain) and self._belongs(self.chain[end], key):
            end += 1
        return end

    def _belongs(self, row: int, key: int) -> bool:
        rows = self.rows
        if rows.is_kind(row, ASSISTANT):
            return rows.message_key(row) == key
        return rows.is_result(row) or rows.rides(row) or (rows.is_kind(row, USER) and rows.flag(row, META))

    def _hosts(self, group: list[int], members: set[int]) -> list[int]:
        hosts = list(group)
        for host in group:
            for row in self._results_of(host):
                if row in self.seen and row not in members:
                    members.add(row)
                    hosts.append(row)
        return hosts

    def _tails(self, host: int) -> list[int]:
        """Single lines of riding records below `host` that the walk did not pass."""
        found: list[int] = []
        for child in self.rows.children(host):
            for row in self._line(child, self.rows.flag(host, SIDECHAIN)):
                self.seen.add(row)
                found.append(row)
                if host in self.rank:
                    self.rank[row] = max(float(row), self.rank[host])
        return found

    def _line(self, row: int, sidechain: bool) -> list[int]:
        rows = self.rows
        line: list[int] = []
        while True:
            if row in self.seen or rows.flag(row, SIDECHAIN) != sidechain or not rows.rides(row):
                return []
            line.append(row)
            below = [r for r in rows.children(row) if r not in self.seen]
            if len(below) > 1:
                return []
            if not below or len(line) > rows.limit:
                return line
            row = below[0]

    def woven(self, segments: list[_Segment]) -> list[int]:
        """The chain with all segments' rows put in by file order inside their stretch."""
        merged: list[_Segment] = []
        for segment in segments:
            if merged and segment.start < merged[-1].end:
                last = merged[-1]
                last.end = max(last.end, segment.end)
                for row in segment.rows:
                    insort(last.rows, row, key=self.key)
                for row, tails in segment.anchored.items():
                    last.anchored[row] = last.anchored.get(row, []) + tails
            else:
                merged.append(segment)
        out: list[int] = []
        at = 0
        for segment in merged:
            out += self.chain[at : segment.start + 1]
            out += self._inside(segment)
            at = segment.end
        return out + self.chain[at:]

    def _inside(self, segment: _Segment) -> list[int]:
        out: list[int] = []
        next_row = 0
        for row in self.chain[segment.start + 1 : segment.end]:
            while next_row < len(segment.rows) and self.key(segment.rows[next_row])[0] < row:
                out.append(segment.rows[next_row])
                next_row += 1
            out.append(row)
            out += segment.anchored.get(row, [])
        return out + segment.rows[next_row:]
