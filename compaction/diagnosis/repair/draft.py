"""A new version of a transcript in the making: the original's records, what became of each, and the file it makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from compaction.transcript import RecordKind, Transcript, transcript_from_bytes
from compaction.transcript.document_edits import SetMember
from compaction.transcript.edits import Edit, InsertRecord, RemoveRecord, ReplaceRecord, apply_edits


@dataclass(slots=True)
class Slot:
    """One record of the new version: `origin` is its number in the original (-1: new), `data` None while unchanged.

    `home` is the original's record that a new one stands behind (None: the start), `behind` the new ones behind it.
    """

    origin: int
    data: bytes | None = None
    removed: bool = False
    home: Slot | None = None
    behind: list[Slot] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def note(self, finding: str, reason: str) -> None:
        """Remember why this record changes; the same reason once."""
        if reason not in self.reasons:
            self.findings.append(finding)
            self.reasons.append(reason)


class Draft:
    """The original plus changes. `transcript()` opens the version so far, so that every rule can judge it again.

    Attributes:
        original: never changed.
        keep_damage: False once the damaged bytes between the records are to be left out.
        members: what changes beside the messages of an API document.
    """

    def __init__(self, original: Transcript) -> None:
        self.original = original
        self.keep_damage = True
        self.members: dict[str, SetMember] = {}
        self._start = Slot(-1, removed=True)
        self._slots = [Slot(record) for record in range(len(original))]

    @property
    def changed(self) -> bool:
        """Whether the new version differs from the original at all."""
        return not self.keep_damage or bool(self.members) or any(True for _ in self._record_edits())

    def slots(self) -> list[Slot]:
        """The records of the new version, in its order."""
        return [s for s in self.all_slots() if not s.removed and not self._left_out(s)]

    def all_slots(self) -> list[Slot]:
        """The same with what was removed at its old place."""
        found = list(self._start.behind)
        for slot in self._slots:
            found.append(slot)
            found += slot.behind
        return found

    def _left_out(self, slot: Slot) -> bool:
        return not self.keep_damage and slot.origin >= 0 and self.original.kind[slot.origin] == RecordKind.DAMAGED

    def insert_behind(self, slot: Slot | None, data: bytes) -> Slot:
        """A new record behind `slot` (None: at the start)."""
        home = self._start if slot is None else slot.home or slot
        new = Slot(-1, data, home=home)
        place = next((n + 1 for n, other in enumerate(home.behind) if other is slot), 0)
        home.behind.insert(place, new)
        return new

    def data_of(self, slot: Slot) -> bytes:
        """The record's bytes in the new version."""
        return self.original.record_bytes(slot.origin) if slot.data is None else slot.data

    def edits(self) -> list[Edit]:
        """The changes against the original, for `apply_edits`."""
        return [*self._record_edits(), *self.members.values()]

    def _record_edits(self) -> Iterator[Edit]:
        behind = -1
        for slot in self.all_slots():
            if slot.origin < 0:
                if not slot.removed and slot.data is not None:
                    yield InsertRecord(behind, slot.data)
                continue
            behind = slot.origin
            if self._left_out(slot):
                continue
            if slot.removed:
                yield RemoveRecord(slot.origin)
            elif slot.data is not None:
                yield ReplaceRecord(slot.origin, slot.data)

    def chunks(self) -> Iterator[bytes]:
        """The whole new file."""
        return apply_edits(self.original, self.edits(), keep_damage=self.keep_damage)

    def transcript(self) -> Transcript:
        """The version so far, opened; the original itself while nothing has changed."""
        if not self.changed:
            return self.original
        return transcript_from_bytes(b"".join(self.chunks()), self.original.name)
