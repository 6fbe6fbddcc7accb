"""The second look at an exported transcript: read again from disk and compared with the original and the edits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from compaction.conversation import build_conversation
from compaction.errors import NothingWritten
from compaction.transcript.edits import Edit, InsertRecord, RemoveRecord, ReplaceRecord
from compaction.transcript.kinds import RecordKind
from compaction.transcript.transcript import Transcript, open_transcript

_FAULT = "nothing was written; this is a fault of the program, please report it"


def transcript_check(
    original: Transcript, edits: Sequence[Edit], *, keep_damage: bool = True
) -> Callable[[Path], None]:
    """A check for `write_new_file`: every record of the file is the expected one, byte for byte, and the chain holds.

    Untouched records must be byte-identical, changed and inserted ones what the edits say, none may be damaged that
    was sound, and no record may have lost its parent that had one.
    """

    def check(path: Path) -> None:
        written = open_transcript(path)
        count = 0
        for count, wanted in enumerate(_expected(original, edits, keep_damage), start=1):
            if count > len(written) or written.record_bytes(count - 1) != wanted:
                line = int(written.line[count - 1]) if count <= len(written) else None
                raise NothingWritten("the re-read found another record than expected", _FAULT, str(path), line)
        if len(written) != count:
            raise NothingWritten(f"the re-read found {len(written)} records, not {count}", _FAULT, str(path))
        _check_chain(original, written, path)

    return check


def _expected(original: Transcript, edits: Iterable[Edit], keep_damage: bool) -> Iterator[bytes]:
    replaced = {e.record: e.data for e in edits if isinstance(e, ReplaceRecord)}
    removed = {e.record for e in edits if isinstance(e, RemoveRecord)}
    inserted: dict[int, list[bytes]] = {}
    for edit in edits:
        if isinstance(edit, InsertRecord):
            inserted.setdefault(edit.after, []).append(edit.data)
    yield from inserted.get(-1, ())
    for record in range(len(original)):
        if record in replaced:
            yield replaced[record]
        elif record not in removed and (keep_damage or original.kind[record] != RecordKind.DAMAGED):
            yield original.record_bytes(record)
        yield from inserted.get(record, ())


def _check_chain(original: Transcript, written: Transcript, path: Path) -> None:
    before, after = build_conversation(original), build_conversation(written)
    if len(after.dangling) > len(before.dangling):
        first = after.dangling[0]
        raise NothingWritten(
            f"the new file would have {len(after.dangling)} records without their parent, the original has "
            f"{len(before.dangling)}",
            _FAULT,
            str(path),
            int(written.line[first]),
        )
