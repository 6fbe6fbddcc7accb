from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from compaction.conversation.conversation import Conversation
from compaction.progress import Progress
from compaction.transcript import Transcript, open_transcript, read_snapshots


@dataclass(slots=True)
class SubagentFile:
    """A subagent's own transcript beside the session (transcript-format.md §1, §8).

    Attributes:
        agent_id: from the file's name.
        path: the file.
        kind: subagent, compaction (the compaction's own API call) or workflow.
        tool_use_block: block of the main conversation whose call started it, −1 when not known.
        tool_use_id: that call's id, "" when not known.
        details: the `.meta.json` beside it, {} when there is none.
    """

    agent_id: str
    path: Path
    kind: str
    tool_use_block: int = -1
    tool_use_id: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    _conversation: Conversation | None = None

    def open(self, progress: Progress | None = None) -> Conversation:
        """The subagent's conversation, read when first asked for.

        Raises:
            InputUnreadable: the file cannot be read.
        """
        if self._conversation is None:
            self._conversation = Conversation(open_transcript(self.path, progress))
        return self._conversation


class Session:
    """A main transcript with the files that belong to it."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation

    @property
    def transcript(self) -> Transcript:
        """The main file's transcript."""
        return self.conversation.transcript

    @cached_property
    def subagents(self) -> list[SubagentFile]:
        """The subagent files in both file layouts, linked to the calls that started them, by path."""
        path = self.transcript.path
        if path is None or self.conversation.is_subagent_file:
            return []
        files = [_described(p) for p in subagent_paths(path, self._session_id())]
        starters = self._starters()
        for file in files:
            file.tool_use_block = starters.get(file.agent_id, -1)
            if file.tool_use_block >= 0:
                file.tool_use_id = str(self.transcript.block(file.tool_use_block).get("id", ""))
        return files

    @property
    def tool_results_folder(self) -> Path | None:
        """Where outputs too large for the transcript were kept, None when there is no such folder."""
        path = self.transcript.path
        folder = path.with_suffix("") / "tool-results" if path is not None else None
        return folder if folder is not None and folder.is_dir() else None

    def _session_id(self) -> str:
        t = self.transcript
        return next((t.session(i) for i in range(min(len(t), 200)) if t.session(i)), "")

    def _starters(self) -> dict[str, int]:
        """agent id → the tool_use block that started it, from results and progress records."""
        t = self.transcript
        wanted = {**t.agent_of_tool_use, **t.agent_of_result}
        if not wanted:
            return {}
        found: dict[str, int] = {}
        for block in range(len(t.block_key)):
            agent = wanted.get(int(t.block_key[block]))
            if agent is not None and t.block_tool_number[block]:
                found.setdefault(agent, block)
        return found


def subagent_paths(path: Path, session_id: str) -> list[Path]:
    """The transcripts of a session's subagents, nested and beside it, in the order of `Session.subagents`."""
    return _nested(path) + _beside(path, session_id)


def _nested(path: Path) -> list[Path]:
    folder = path.with_suffix("") / "subagents"
    return (
        sorted(p for p in folder.rglob("*.jsonl") if p.name.startswith("agent-") and p.is_file())
        if folder.is_dir()
        else []
    )


def _beside(path: Path, session_id: str) -> list[Path]:
    """Sibling `agent-*.jsonl` files whose records carry this session's id (2.0.28 … 2.0.60)."""
    if not session_id:
        return []
    return sorted(
        p for p in path.parent.glob("agent-*.jsonl") if p != path and p.is_file() and _session_of(p) == session_id
    )


def _session_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            first = json.loads(file.readline(1 << 20))
    except (OSError, ValueError, RecursionError):
        return ""  # not readable as a subagent's file, so it is not one of this session
    value = first.get("sessionId") if isinstance(first, dict) else None
    return value if isinstance(value, str) else ""


def _described(path: Path) -> SubagentFile:
    agent = path.stem.removeprefix("agent-")
    kind = "workflow" if "workflows" in path.parts else "compaction" if agent.startswith("acompact") else "subagent"
    details: dict[str, Any] = {}
    try:
        found = json.loads(path.with_name(f"{path.stem}.meta.json").read_bytes())
        details = found if isinstance(found, dict) else {}
    except FileNotFoundError:
        details = {}
    except (OSError, ValueError, RecursionError) as error:
        details = {"unreadable": str(error)}
    return SubagentFile(agent, path, kind, details=details)


def open_session(path: str | Path, progress: Progress | None = None) -> Session:
    """Open a transcript completely, with its structure and the subagent files that belong to it.

    Raises:
        InputUnreadable: the file cannot be opened or read.
        Cancelled: `progress.cancel()` was called.
    """
    return Session(Conversation(open_transcript(path, progress)))


def open_session_snapshots(path: str | Path, progress: Progress | None = None) -> Iterator[Session]:
    """Like `open_session`, but yields usable sessions while the rest of a large file is read; the last is complete
    (`session.transcript.complete`)."""
    for transcript in read_snapshots(path, progress):
        yield Session(Conversation(transcript))
