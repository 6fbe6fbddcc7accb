"""What this program wrote, kept in our own data folder: intent first, then hashes and lineage, so it can be undone."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from compaction.data_folder import data_folder, ensure
from compaction.errors import CompactoscopeError, NothingWritten
from compaction.export.liveness import process_lives

_LONGEST_WRITE = timedelta(hours=6)

State = Literal["intent", "done", "failed", "undone"]


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One output.

    Attributes:
        id: name of the entry; also part of the temporary file's name.
        operation: what was done, such as "compact", "repair", "export".
        started, finished: ISO 8601 in UTC; "" while unfinished.
        target, temporary: the file to be written, and the file it is written to first (same folder).
        source, source_size, source_sha256: the original that it derives from ("" and 0 when there is none).
        replaced_sha256: SHA-256 of the file that stood at `target` before and was replaced on request, or "".
        size, sha256: what was written, in bytes; 0 and "" until all of it is on disk under the temporary name.
        lineage: how the output came about (strategy, settings, client profile, findings …), JSON values.
        note: why it failed or was undone.
        process: id of the process that writes it; 0 in entries of older versions.
    """

    id: str
    operation: str
    started: str
    target: str
    temporary: str
    source: str = ""
    source_size: int = 0
    source_sha256: str = ""
    replaced_sha256: str = ""
    finished: str = ""
    state: State = "intent"
    size: int = 0
    sha256: str = ""
    lineage: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    process: int = 0


class Journal:
    """The folder of entries, one JSON file each, written whole and synced, so that a crash leaves intents behind."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder if folder is not None else data_folder() / "journal"

    def begin(
        self,
        operation: str,
        target: Path,
        *,
        source: Path | None = None,
        replaced_sha256: str = "",
        lineage: Mapping[str, Any] | None = None,
    ) -> JournalEntry:
        """Record the intent to write `target`; the entry is on disk when this returns."""
        name = uuid.uuid4().hex[:12]
        target = target.absolute()
        entry = JournalEntry(
            id=name,
            operation=operation,
            started=_now(),
            target=str(target),
            temporary=str(target.parent / f".{target.name}.{name}.part"),
            source=str(source.absolute()) if source is not None else "",
            source_size=source.stat().st_size if source is not None else 0,
            source_sha256=file_sha256(source) if source is not None else "",
            replaced_sha256=replaced_sha256,
            lineage=dict(lineage or {}),
            process=os.getpid(),
        )
        self._write(entry)
        return entry

    def ready(self, entry: JournalEntry, size: int, sha256: str) -> JournalEntry:
        """Record what the target will hold, right before it gets its name: a crash in between can then be judged."""
        ready = replace(entry, size=size, sha256=sha256)
        self._write(ready)
        return ready

    def finish(self, entry: JournalEntry, size: int, sha256: str) -> JournalEntry:
        """Record that the target stands under its name with `size` bytes and that hash."""
        done = replace(entry, state="done", finished=_now(), size=size, sha256=sha256)
        self._write(done)
        return done

    def fail(self, entry: JournalEntry, note: str) -> JournalEntry:
        """Record that nothing was written, and why."""
        failed = replace(entry, state="failed", finished=_now(), note=note)
        self._write(failed)
        return failed

    def entries(self) -> list[JournalEntry]:
        """Every readable entry, oldest first; reading creates nothing."""
        found = []
        if not self.folder.is_dir():
            return []
        for path in self.folder.glob("*.json"):
            try:
                found.append(JournalEntry(**json.loads(path.read_text("utf-8"))))
            except (OSError, ValueError, TypeError):
                # An entry that another version wrote or a disk fault cut: it proves nothing, so it offers no undo.
                continue
        return sorted(found, key=lambda e: (e.started, e.id))

    def entry(self, name: str) -> JournalEntry | None:
        """The entry called `name`, or None."""
        return next((e for e in self.entries() if e.id == name), None)

    def unfinished(self) -> list[JournalEntry]:
        """Outputs that were begun and neither finished nor failed: a crash or power cut came between.

        What another process of ours is writing at this moment is not among them.
        """
        return [e for e in self.entries() if e.state == "intent" and not _being_written(e)]

    def settle(self, entry: JournalEntry) -> JournalEntry:
        """Tidy one unfinished output: its temporary file goes; a target is never touched.

        A target that holds what was to be written had got its name already: that output counts as done, and can be
        undone like any other.
        """
        complete = stands(entry)
        Path(entry.temporary).unlink(missing_ok=True)
        if complete:
            return self.finish(entry, entry.size, entry.sha256)
        return self.fail(entry, "left unfinished; its temporary file was removed")

    def undo(self, entry: JournalEntry) -> JournalEntry:
        """Remove the file that `entry` wrote, but only while its content is still what was written.

        Raises:
            NothingWritten: it was not finished, it replaced another file, it is gone, or it has changed since.
        """
        target = Path(entry.target)
        if entry.state != "done":
            raise NothingWritten(f"entry {entry.id} is {entry.state}: there is nothing to undo", file=entry.target)
        if entry.replaced_sha256:
            raise NothingWritten("it replaced another file on request, which undo cannot bring back", file=entry.target)
        if not target.is_file():
            raise NothingWritten("the file is not there any more", file=entry.target)
        if file_sha256(target) != entry.sha256:
            raise NothingWritten(
                "the file was changed after it was written, so it is kept",
                "remove it by hand if you want it gone",
                entry.target,
            )
        target.unlink()
        undone = replace(entry, state="undone", finished=_now(), note="removed by undo")
        self._write(undone)
        return undone

    def _write(self, entry: JournalEntry) -> None:
        ensure(self.folder)
        path = self.folder / f"{entry.id}.json"
        part = self.folder / f"{entry.id}.part"
        try:
            with part.open("w", encoding="utf-8") as stream:
                json.dump(asdict(entry), stream, ensure_ascii=True, indent=1)
                stream.flush()
                os.fsync(stream.fileno())
            part.replace(path)
        except OSError as error:
            raise CompactoscopeError(
                f"the journal cannot be written: {error.strerror or error}",
                "free some space, or move the data folder with COMPACTOSCOPE_DATA",
                str(path),
            ) from error


def stands(entry: JournalEntry) -> bool:
    """Whether an entry's target is there and holds what was to be written."""
    target = Path(entry.target)
    return bool(entry.sha256) and target.is_file() and file_sha256(target) == entry.sha256


def _being_written(entry: JournalEntry) -> bool:
    """Whether the process that began an entry lives and may still write it."""
    if entry.process in (0, os.getpid()):
        # A start asks before it writes anything: its own id stands for an earlier process that had the same one.
        return False
    age = datetime.now(UTC) - datetime.fromisoformat(entry.started)
    # Ids are given out again after a while: nothing takes longer to write than this.
    return age < _LONGEST_WRITE and process_lives(entry.process)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
