"""The one place that writes a file for the user: whole or not at all, never over another, checked before named."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compaction.errors import Cancelled, NothingWritten, UsageError
from compaction.export.journal import Journal, JournalEntry, file_sha256
from compaction.export.liveness import liveness
from compaction.progress import Progress

Check = Callable[[Path], None]
"""Reads the finished temporary file again and raises `NothingWritten` when it is not what it should be."""


@dataclass(frozen=True, slots=True)
class Written:
    """A finished output: its path, size in bytes, SHA-256, journal entry, and warnings for the person."""

    path: Path
    size: int
    sha256: str
    entry: JournalEntry
    warnings: tuple[str, ...] = ()


def write_new_file(
    target: str | Path,
    chunks: Iterable[bytes],
    *,
    operation: str,
    journal: Journal | None = None,
    source: Path | None = None,
    lineage: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    check: Check | None = None,
    progress: Progress | None = None,
) -> Written:
    """Write `chunks` to `target`: journal, temporary file beside it, sync, re-read, rename, sync of the folder.

    Args:
        operation: what is being done ("compact", "repair", "export"), for the journal.
        source: the original that the output derives from; it is never written, whatever `overwrite` says.
        lineage: how the output came about, JSON values.
        overwrite: replace a file that stands at `target`; a session that is being written is refused all the same.
        check: a last look at the finished file before it gets its name.

    Raises:
        UsageError: `target` is a folder, lies in no folder, or is the original itself.
        NothingWritten: it exists already, is being written, the disk refused, or the re-read found a difference.
        Cancelled: through `progress`; the temporary file is removed.
    """
    path = Path(os.path.expanduser(target)).absolute()
    try:
        _check_target(path, source, overwrite)
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else None
        raise NothingWritten(f"cannot be written: {cause or error}", "name another file", str(path)) from error
    replaced = file_sha256(path) if path.exists() else ""
    journal = journal if journal is not None else Journal()
    entry = journal.begin(operation, path, source=source, replaced_sha256=replaced, lineage=lineage)
    temporary = Path(entry.temporary)
    try:
        size, digest = _write(temporary, chunks, progress)
        if file_sha256(temporary) != digest:
            raise NothingWritten("what was read back differs from what was written", "check the disk", str(path))
        if check is not None:
            check(temporary)
        entry = journal.ready(entry, size, digest)
        _give_name(temporary, path, overwrite)
    except (NothingWritten, Cancelled) as error:
        temporary.unlink(missing_ok=True)
        journal.fail(entry, error.cause)
        raise
    except OSError as error:
        temporary.unlink(missing_ok=True)
        cause = f"cannot be written: {error.strerror or error}"
        journal.fail(entry, cause)
        raise NothingWritten(cause, "choose another folder, or free some space", str(path)) from error
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        journal.fail(entry, f"stopped: {type(error).__name__}")
        raise
    return Written(path, size, digest, journal.finish(entry, size, digest), _warnings(source, entry))


def _check_target(path: Path, source: Path | None, overwrite: bool) -> None:
    if "\0" in str(path):
        raise UsageError("the name of the output holds a NUL character", "name another file", str(path))
    if path.is_dir():
        raise UsageError("the output is a folder", "name a file", str(path))
    if not path.parent.is_dir():
        raise UsageError("the output's folder does not exist", "create it first", str(path))
    if path.exists() and not path.is_file():
        # A finished file takes its name by renaming, which would put a file in the place of /dev/null or a pipe.
        raise UsageError("the output is a device or a pipe", "name a file", str(path))
    if source is None and path.exists() and _is_standard_input(path):
        raise UsageError("the output is the file that standard input comes from", "name a new file", str(path))
    if source is not None and path.exists() and source.exists() and path.samefile(source):
        age = liveness(path, time.time())
        reason = f"; besides, {age.reason}" if age.live else ""
        raise UsageError(
            f"the output is the original itself, which is never changed{reason}", "name a new file", str(path)
        )
    if not os.path.lexists(path):
        return
    if not path.exists():
        raise NothingWritten("the output is a symbolic link that leads nowhere", "name a new file", str(path))
    if not overwrite:
        raise NothingWritten("the output exists already", "name a new file, or ask for it to be replaced", str(path))
    state = liveness(path, time.time())
    if state.live:
        raise NothingWritten(
            f"the file to replace is being written right now: {state.reason}",
            "close the session that writes it, or name a new file",
            str(path),
        )


def _is_standard_input(path: Path) -> bool:
    """Whether `path` is what the shell redirected standard input from; False where there is no standard input."""
    try:
        return os.path.samestat(os.fstat(0), path.stat())
    except OSError:
        return False


def _write(temporary: Path, chunks: Iterable[bytes], progress: Progress | None) -> tuple[int, str]:
    """Write and sync the temporary file; returns its size and SHA-256."""
    digest = hashlib.sha256()
    size = 0
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        for chunk in chunks:
            if progress is not None:
                progress.check()
            stream.write(chunk)
            digest.update(chunk)
            size += len(chunk)
            if progress is not None:
                progress.done = size
        stream.flush()
        os.fsync(stream.fileno())
    return size, digest.hexdigest()


def _give_name(temporary: Path, path: Path, overwrite: bool) -> None:
    """Move the finished file to its name; without `overwrite` a file that appeared meanwhile is not replaced."""
    if overwrite:
        temporary.replace(path)
    else:
        try:
            os.link(temporary, path)
            temporary.unlink()
        except FileExistsError as error:
            raise NothingWritten("the output appeared meanwhile", "name a new file", str(path)) from error
        except OSError:
            # The file system has no hard links: the check and the rename are then two steps.
            if path.exists():
                raise NothingWritten("the output appeared meanwhile", "name a new file", str(path)) from None
            temporary.rename(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name durable; where folders cannot be opened (Windows) the file's own sync has to do."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _warnings(source: Path | None, entry: JournalEntry) -> tuple[str, ...]:
    if source is None or not source.exists():
        return ()
    size = source.stat().st_size
    if size == entry.source_size:
        return ()
    return (
        f"the original changed from {entry.source_size:,} to {size:,} bytes meanwhile: the copy lacks what came after",
    )
