"""Responses that other rows split are brought together again (profile flag `regroups_responses`)."""

from __future__ import annotations

from compaction.request.entries import Entry


def regrouped(entries: list[Entry]) -> list[Entry]:
    """The rows with every split response made whole and every early result behind its call.

    A response is left as it is when something that belongs to another turn stands inside it.
    """
    plan = _Plan(entries)
    if not plan.split and not plan.early:
        return entries
    return plan.reordered()


def _is_delivery(entry: Entry) -> bool:
    return entry.payload.get("turnCompanion") is True or isinstance(entry.payload.get("sourceToolUseID"), str)


class _Plan:
    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries
        self.first: dict[str, int] = {}
        self.last: dict[str, int] = {}
        self.count: dict[str, int] = {}
        self.owner: dict[str, str | None] = {}
        self._measure()
        self.fenced: set[str] = set()
        self.split: set[str] = set()
        for response in self.first:
            self._classify(response)
        self.next_boundary = self._boundaries()
        self.moved: set[int] = set()
        self.early: dict[str, list[int]] = {}
        for position, entry in enumerate(entries):
            self._note_early(position, entry)

    def _measure(self) -> None:
        for position, entry in enumerate(self.entries):
            if entry.role != "assistant" or not entry.response:
                continue
            response = entry.response
            self.first.setdefault(response, position)
            self.last[response] = position
            self.count[response] = self.count.get(response, 0) + 1
            for call in entry.calls():
                same = self.owner.get(call, response) == response
                self.owner[call] = response if same else None

    def _kind(self, entry: Entry, response: str) -> str:
        if entry.role == "assistant":
            return "block" if entry.response == response else "boundary"
        if entry.role == "user":
            return "result" if entry.answers() else "delivery" if _is_delivery(entry) else "boundary"
        if entry.role == "system" and (entry.is_boundary or entry.is_local_command):
            return "boundary"
        return "delivery"

    def _boundaries(self) -> list[int]:
        """For every place the first row at or behind it that begins something new (no response)."""
        count = len(self.entries)
        found = [count] * (count + 1)
        for position in range(count - 1, -1, -1):
            entry = self.entries[position]
            ends = entry.role != "assistant" and self._kind(entry, "") == "boundary"
            found[position] = position if ends else found[position + 1]
        return found

    def _classify(self, response: str) -> None:
        first, last = self.first[response], self.last[response]
        if last - first + 1 == self.count[response]:
            return
        for position in range(first + 1, last):
            kind = self._kind(self.entries[position], response)
            if kind == "boundary":
                self.split.discard(response)
                self.fenced.add(response)
                return
            if kind == "delivery":
                self.split.add(response)

    def _note_early(self, position: int, entry: Entry) -> None:
        answers = entry.answers()
        owners = {self.owner.get(call) for call in answers}
        if len(owners) != 1:
            return
        response = owners.pop()
        if response is None or response in self.fenced or position >= self.first[response]:
            return
        if self.next_boundary[position + 1] < self.first[response]:
            return
        rows = self.early.setdefault(response, [])
        rows.append(position)
        self.moved.add(position)
        for follower in range(position + 1, self.first[response]):
            if self._kind(self.entries[follower], response) != "delivery":
                break
            rows.append(follower)
            self.moved.add(follower)

    def reordered(self) -> list[Entry]:
        """All rows once, in the new order."""
        out: list[Entry] = []
        done: set[int] = set()
        waiting = list(range(len(self.entries) - 1, -1, -1))
        while waiting:
            position = waiting.pop()
            if position in done or (position in self.moved and not self._is_head(position)):
                continue
            if not self._is_head(position):
                out.append(self.entries[position])
                done.add(position)
                continue
            later = self._response(position, out, done)
            waiting += later[::-1]
        out += [entry for position, entry in enumerate(self.entries) if position not in done]
        return out

    def _is_head(self, position: int) -> bool:
        entry = self.entries[position]
        response = entry.response if entry.role == "assistant" else ""
        return (
            bool(response) and self.first[response] == position and (response in self.split or response in self.early)
        )

    def _response(self, position: int, out: list[Entry], done: set[int]) -> list[int]:
        response = self.entries[position].response
        whole = response in self.split
        later = []
        for row in range(position, self.last[response] + 1):
            if row in done or row in self.moved:
                continue
            if not whole or self.entries[row].response == response:
                out.append(self.entries[row])
                done.add(row)
            else:
                later.append(row)
        for row in self.early.get(response, []):
            if row not in done:
                out.append(self.entries[row])
                done.add(row)
        return later
