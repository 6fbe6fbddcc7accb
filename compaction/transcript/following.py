from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from compaction.errors import InputUnreadable
from compaction.progress import Progress
from compaction.transcript.source import Source
from compaction.transcript.transcript import Transcript, open_transcript, transcript_from_bytes

TAIL_BYTES = 256
"""Compared before appended bytes are believed: a file rewritten in place keeps its inode and may be longer."""

_FIRST_LINE_BYTES = 1 << 20
_RECENT_CHUNKS = 8


class What(Enum):
    """What happened to a followed file."""

    APPENDED = "appended"
    """Records are new, or the last one is more complete than before."""
    TRUNCATED = "truncated"
    """It became shorter, or its bytes changed in place: read anew."""
    REPLACED = "replaced"
    """Another file has its name: read anew."""
    RENAMED = "renamed"
    """It has another name now; following goes on there."""
    DELETED = "deleted"
    """Nothing has its name; what was read stays, and a file that comes back is read."""
    RETURNED = "returned"
    """A file has the name again: read anew."""
    SUBAGENT = "subagent"
    """A subagent's file appeared; `path` is that file."""
    UNREADABLE = "unreadable"
    """It is there and cannot be read now; the next poll tries again."""


@dataclass(frozen=True, slots=True)
class Happening:
    """One event of a followed file: what, the file concerned, and for UNREADABLE why."""

    what: What
    path: Path
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """What one `Follower.poll` found.

    Attributes:
        transcript: the state now; a new object when anything changed, the old one stays as it was.
        first: the first record that is new or different from before; `len(transcript)` when none is.
        happenings: in the order they were noticed, () when nothing happened.
        bytes_read: bytes read from the file for it.
    """

    transcript: Transcript
    first: int
    happenings: tuple[Happening, ...] = ()
    bytes_read: int = 0


class PendingSource:
    """A file's source that keeps the bytes of an unfinished last line, so that only appended bytes are ever read."""

    def __init__(self, inner: Source) -> None:
        self._inner = inner
        self.name = inner.name
        self._start = 0
        self._kept = b""
        self._recent: list[tuple[int, bytes]] = []
        self._collecting = False
        self.bytes_read = int(getattr(inner, "bytes_read", 0))

    def size(self) -> int:
        """Bytes in the file now."""
        return self._inner.size()

    def read(self, offset: int, length: int) -> bytes:
        """Like the file's own `read`; what is held is not read again."""
        end = self._start + len(self._kept)
        if not self._start <= offset < end:
            return self._from_file(offset, length)
        held = self._kept[offset - self._start : offset - self._start + length]
        missing = length - len(held)
        return held + self._from_file(end, missing) if missing > 0 else held

    def from_file(self, offset: int, length: int) -> bytes:
        """The bytes as they are in the file now, whatever is held."""
        data = self._inner.read(offset, length)
        self.bytes_read += len(data)
        return data

    def collect(self) -> None:
        """From now until `keep`, remember what is read from the file: an append is about to be read."""
        self._collecting = True

    def keep(self, start: int, end: int) -> None:
        """Hold the bytes from `start` to `end` (the unfinished last line and a little before it) in memory; those
        that were just read are not read again."""
        parts: list[bytes] = []
        at = start
        for offset, data in [(self._start, self._kept), *self._recent]:
            if offset <= at < offset + len(data) and at < end:
                parts.append(data[at - offset : end - offset])
                at += len(parts[-1])
        if at < end:
            parts.append(self.from_file(at, end - at))
        self._start, self._kept = start, b"".join(parts)
        self._recent.clear()
        self._collecting = False

    def _from_file(self, offset: int, length: int) -> bytes:
        data = self.from_file(offset, length)
        if self._collecting:
            self._recent.append((offset, data))
            # Of a large append only the end can belong to the last line.
            while len(self._recent) > _RECENT_CHUNKS:
                del self._recent[0]
        return data


class Follower:
    """Follows a session file as it grows, by polling: no clock, no thread, no file-system events of its own.

    Call `poll` whenever something may have happened; it costs one stat when nothing did. Appended bytes are read once;
    what else can happen to a file (truncation, replacement, rename, deletion) is told and never an error.
    """

    def __init__(self, transcript: Transcript) -> None:
        if transcript.path is None:
            raise InputUnreadable("only a file can be followed", "save the session first", transcript.name)
        self.path: Path = transcript.path
        self._gone = False
        self._unreadable = ""
        self._folders: dict[Path, int] = {}
        self._agents: set[Path] = set()
        self._take(transcript)
        self._agents.update(self._agent_files())

    @property
    def transcript(self) -> Transcript:
        """The state after the last poll."""
        return self._transcript

    @property
    def agent_files(self) -> tuple[Path, ...]:
        """The subagents' files seen so far, by path."""
        return tuple(sorted(self._agents))

    def _take(self, transcript: Transcript) -> None:
        source = transcript.source
        if not isinstance(source, PendingSource):
            transcript = transcript.snapshot()
            source = PendingSource(source)
            transcript.source = source
        self._source = source
        self._transcript = transcript
        self._identity = _identity(self.path)
        self._remember()

    def _remember(self) -> None:
        """Keep the last whole line's end and the unfinished line in memory, for the next comparison and read."""
        t = self._transcript
        self._line_end, self._read_end = t.whole_lines_end, t.read_end
        self._source.keep(max(0, self._line_end - TAIL_BYTES), self._read_end)

    def poll(self, progress: Progress | None = None) -> Step:
        """Look at the file and take in what is new.

        Raises:
            Cancelled: `progress.cancel()` was called while a replaced file was read.
        """
        source, before = self._source, self._source.bytes_read
        happenings: list[Happening] = []
        first = len(self._transcript)
        try:
            first = self._look(happenings, progress or Progress())
            self._unreadable = ""
        except (InputUnreadable, OSError) as error:
            reason = str(error)
            if reason != self._unreadable:
                self._unreadable = reason
                happenings.append(Happening(What.UNREADABLE, self.path, reason))
        happenings += [Happening(What.SUBAGENT, path) for path in self._new_agent_files()]
        read = self._source.bytes_read - (before if self._source is source else 0)
        return Step(self._transcript, first, tuple(happenings), read)

    def _look(self, happenings: list[Happening], progress: Progress) -> int:
        """One poll of the main file; returns the first changed record."""
        unchanged = len(self._transcript)
        identity = _identity(self.path)
        if identity is None:
            moved = None if self._gone else self._find_renamed()
            if moved is None:
                if not self._gone:
                    happenings.append(Happening(What.DELETED, self.path))
                self._gone = True
                return unchanged
            self.path = moved
            self._transcript = self._transcript.snapshot()
            self._transcript.path, self._transcript.name = moved, str(moved)
            happenings.append(Happening(What.RENAMED, moved))
            identity = self._identity
        if identity != self._identity:
            what = What.RETURNED if self._gone else What.REPLACED
            return self._read_anew(what, happenings, progress)
        size = self._source.size()
        if size == self._read_end and not self._gone:
            return unchanged
        self._gone = False
        if size < self._read_end or self._changed_in_place():
            return self._read_anew(What.TRUNCATED, happenings, progress)
        following = self._transcript.snapshot()
        self._source.collect()
        result = following.append_new(progress)
        if result.replaced:
            return self._read_anew(What.REPLACED, happenings, progress)
        self._transcript = following
        self._remember()
        happenings.append(Happening(What.APPENDED, self.path))
        return result.first

    def _changed_in_place(self) -> bool:
        start = max(0, self._line_end - TAIL_BYTES)
        length = self._line_end - start
        return self._source.from_file(start, length) != self._source.read(start, length)

    def _read_anew(self, what: What, happenings: list[Happening], progress: Progress) -> int:
        transcript = open_transcript(self.path, progress)
        self._gone = False
        self._take(transcript)
        happenings.append(Happening(what, self.path))
        return 0

    def _find_renamed(self) -> Path | None:
        """The file under another name in the same folder, by its inode."""
        with contextlib.suppress(OSError), os.scandir(self.path.parent) as entries:
            for entry in entries:
                if entry.name.endswith(".jsonl") and entry.inode() == (self._identity or (0, 0))[1]:
                    found = Path(entry.path)
                    if _identity(found) == self._identity:
                        return found
        return None

    def _new_agent_files(self) -> list[Path]:
        new = [path for path in self._agent_files() if path not in self._agents]
        self._agents.update(new)
        return new

    def _agent_files(self) -> list[Path]:
        """Subagents' files in both layouts (transcript-format.md §1)."""
        found: list[Path] = []
        nested = self.path.with_suffix("") / "subagents"
        for folder in (nested, *_folders_below(nested)):
            with contextlib.suppress(OSError):
                found += sorted(folder.glob("agent-*.jsonl"))
        # The folder of a project may hold thousands of sessions: it is listed only when it has changed.
        if self._changed(self.path.parent):
            beside = sorted(p for p in self.path.parent.glob("agent-*.jsonl") if p != self.path)
            found += [p for p in beside if p in self._agents or _session_of(p) in self._session_ids()]
        return found

    def _session_ids(self) -> set[str]:
        return {name for name in self._transcript.session_names if name}

    def _changed(self, folder: Path) -> bool:
        try:
            time = folder.stat().st_mtime_ns
        except OSError:
            return False  # not there (yet)
        if self._folders.get(folder) == time:
            return False
        self._folders[folder] = time
        return True


def _folders_below(folder: Path) -> list[Path]:
    """Sub-folders two levels down: workflows/ and the runs in it."""
    found: list[Path] = []
    with contextlib.suppress(OSError):
        for inner in folder.iterdir():
            if inner.is_dir():
                found += [inner, *(p for p in inner.iterdir() if p.is_dir())]
    return found


def _session_of(path: Path) -> str:
    """The sessionId in a file's first line, "" when it cannot be told yet."""
    try:
        with path.open("rb") as file:
            line = file.readline(_FIRST_LINE_BYTES)
    except OSError:
        return ""  # gone again, or not ours to read: then it is no subagent of this session
    first = transcript_from_bytes(line)
    return first.session(0) if len(first) else ""


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return (status.st_dev, status.st_ino)
