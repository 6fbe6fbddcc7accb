from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

SKIPPED_FOLDERS = frozenset({"tool-results", ".git", "node_modules", "__pycache__"})
"""Never hold transcripts: the client's saved tool output, and what projects keep beside them."""

_AGENT = re.compile(r"agent-(?:acompact-)?([0-9a-zA-Z]+)\.jsonl$")


@dataclass(frozen=True, slots=True)
class Place:
    """What a file's path says about it (transcript-format.md §1); everything else is read from its records.

    Attributes:
        kind: main, subagent, compaction_call, workflow_agent.
        agent_id: of a subagent's file, else "".
        session_path: the session file it belongs to by its place, "" for a main session and for a subagent in a file
            beside its session (there the records' sessionId tells).
    """

    kind: str
    agent_id: str
    session_path: str


class FoundFile(NamedTuple):
    """A file that discovery saw, with the result of its one stat: size in bytes, modification time in nanoseconds.

    A tuple, since a start with nothing changed makes one for every file and little else.
    """

    path: str
    bytes: int
    mtime_ns: int


def client_folders(environment: Mapping[str, str], home: Path) -> list[Path]:
    """Where the client keeps its sessions: `projects` under `~/.claude`, or under each folder of `CLAUDE_CONFIG_DIR`.

    Folders that do not exist are left out.
    """
    configured = environment.get("CLAUDE_CONFIG_DIR", "")
    bases = [Path(part).expanduser() for part in configured.split(os.pathsep) if part] or [
        home / ".claude",
        home / ".config" / "claude",
    ]
    return [base / "projects" for base in bases if (base / "projects").is_dir()]


def place_of(path: str) -> Place:
    """Kind, agent and session of a transcript file from its path alone.

    >>> place_of("/p/-a/5d/subagents/agent-1f.jsonl")
    Place(kind='subagent', agent_id='1f', session_path='/p/-a/5d.jsonl')
    """
    folder, name = os.path.split(path)
    found = _AGENT.match(name)
    if not found:
        return Place("main", "", "")
    kind = "compaction_call" if name.startswith("agent-acompact-") else "subagent"
    parts = folder.split(os.sep)
    if "subagents" not in parts:
        return Place(kind, found.group(1), "")
    at = len(parts) - 1 - parts[::-1].index("subagents")
    if "workflows" in parts[at:]:
        kind = "workflow_agent"
    return Place(kind, found.group(1), os.sep.join(parts[:at]) + ".jsonl")


def find_transcripts(root: str | os.PathLike[str], problems: list[str] | None = None) -> Iterator[FoundFile]:
    """Every `*.jsonl` file under a folder (or the file itself), one stat each, nothing read.

    Args:
        root: a folder or one file.
        problems: receives one sentence for each folder that could not be listed; they do not stop the walk.

    Symbolic links are followed; a folder reached twice is walked once.
    """
    start = os.fspath(root)
    if os.path.isfile(start):
        status = os.stat(start)
        yield FoundFile(os.path.abspath(start), status.st_size, status.st_mtime_ns)
        return
    waiting = [os.path.abspath(start)]
    seen_links: set[tuple[int, int]] = set()
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                found = _files_of(entries, waiting, seen_links, problems)
        except OSError as error:
            if problems is not None:
                problems.append(f"{folder}: cannot be listed: {error.strerror or error}")
            continue
        yield from found


def _files_of(
    entries: Iterable[os.DirEntry[str]],
    waiting: list[str],
    seen_links: set[tuple[int, int]],
    problems: list[str] | None,
) -> list[FoundFile]:
    """The session files among the entries of a folder; its folders join `waiting`."""
    found: list[FoundFile] = []
    for entry in entries:
        name = entry.name
        try:
            if name.endswith(".jsonl"):
                if not _is_utf8(entry.path):
                    raise OSError(errno.EILSEQ, "its name is not UTF-8, which the catalogue cannot hold; rename it")
                status = entry.stat()
                if not stat.S_ISREG(status.st_mode):
                    raise OSError(errno.EINVAL, "it is a folder, a pipe or a device")
                found.append(FoundFile(entry.path, status.st_size, status.st_mtime_ns))
            elif name not in SKIPPED_FOLDERS and entry.is_dir() and _first_visit(entry, seen_links):
                waiting.append(entry.path)
        except FileNotFoundError:
            continue  # it vanished between the listing and its stat: it is simply gone
        except OSError as error:  # a link to itself, say: that entry alone is left out
            if problems is not None:
                problems.append(f"{entry.path}: cannot be read: {error.strerror or error}")
    return found


def _is_utf8(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _first_visit(entry: os.DirEntry[str], seen_links: set[tuple[int, int]]) -> bool:
    """True unless this is a link to a folder that was taken already, or one that holds itself."""
    if not entry.is_symlink():
        return True
    status = entry.stat()
    key = (status.st_dev, status.st_ino)
    inside_itself = os.path.realpath(entry.path) in _ancestors(entry.path)
    if key in seen_links or inside_itself:
        return False
    seen_links.add(key)
    return True


def _ancestors(path: str) -> set[str]:
    return {str(parent) for parent in Path(os.path.realpath(os.path.dirname(path))).parents} | {
        os.path.realpath(os.path.dirname(path))
    }
