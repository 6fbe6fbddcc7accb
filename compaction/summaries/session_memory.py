from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from compaction.conversation import Conversation
from compaction.data_folder import data_folder, ensure
from compaction.errors import CompactoscopeError
from compaction.resources import resource
from compaction.strategies.context import ContextView
from compaction.strategies.parts import Part
from compaction.strategies.summariser import Summariser, SummaryTask

EXTRACTION_WAIT_SECONDS = 15.0
"""How long a compaction waits for a running extraction (compaction.md §8)."""
_STALE_SECONDS = 300.0
"""An extraction that has not finished by then died: its mark is ignored."""
_SECTION = re.compile(r"^(\d)\. (.+?):?[ \t]*$", re.MULTILINE)
_REPLACED = (8, 9)
"""Sections about the present moment: the newest extract replaces them, the others grow."""
_BULLETS_PER_SECTION = 60


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """The memory of one session (compaction.md §8).

    Attributes:
        text: nine sections.
        last_summarised_uuid: the last record it covers, "" when unknown (a client's own file does not say).
        source: where it is from, for the person.
        path: the file.
    """

    text: str
    last_summarised_uuid: str
    source: str
    path: Path

    @property
    def is_empty_template(self) -> bool:
        """Whether nothing was noted yet: then compaction falls back to a model's summary."""
        return is_empty_template(self.text)


@dataclass(frozen=True, slots=True)
class _Facts:
    session_id: str
    last_summarised_uuid: str
    summariser: str


class MemoryUnreadable(CompactoscopeError):
    """A memory file is there and cannot be read."""


def is_empty_template(text: str) -> bool:
    """Whether a memory is blank or equals the empty template, whatever its spacing."""
    return " ".join(text.split()) in ("", " ".join(_template().split()))


def _template() -> str:
    return resource("prompts", "session-memory-template.md").read_text("utf-8")


def session_id_of(conversation: Conversation) -> str:
    """The session's id: the newest record's that has one; "" for a request without session."""
    t = conversation.transcript
    return next((t.session(i) for i in range(len(t) - 1, -1, -1) if t.session(i)), "")


def memory_path(session_id: str) -> Path:
    """Where our own memory of a session is kept; the name is made safe, ids come from untrusted files."""
    return data_folder() / "session-memory" / (re.sub(r"[^A-Za-z0-9._-]", "_", session_id)[:128] + ".md")


def client_memory_paths(conversation: Conversation) -> list[Path]:
    """The client's own session-memory files of this session: `<session>/session-memory/*.md` beside the transcript."""
    path = conversation.transcript.path
    if path is None:
        return []
    folder = path.with_suffix("") / "session-memory"
    return sorted(folder.glob("*.md")) if folder.is_dir() else []


def find_memory(conversation: Conversation) -> SessionMemory | None:
    """The memory that a session-memory compaction would use: our own, else the client's own; None when there is none.

    Raises:
        MemoryUnreadable: the file is there and cannot be read.
    """
    session = session_id_of(conversation)
    own = memory_path(session)
    if session and own.is_file():
        return SessionMemory(_read(own), _facts(own).last_summarised_uuid, "kept by Compactoscope", own)
    for path in client_memory_paths(conversation):
        return SessionMemory(_read(path), "", "kept by the client", path)
    return None


def wait_for_extraction(
    session_id: str,
    seconds: float = EXTRACTION_WAIT_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Wait while an extraction of the session runs, at most `seconds`; False when it is still running then."""
    deadline = clock() + seconds
    while _is_running(memory_path(session_id)):
        if clock() >= deadline:
            return False
        sleep(0.1)
    return True


def extract_memory(view: ContextView, summariser: Summariser) -> SessionMemory:
    """Bring the session's memory up to date and keep it in our data folder.

    Only what came after the last summarised message is read. The offline summariser's bullets are added section by
    section; a model is given the memory so far and returns it whole.

    Raises:
        FolderUnwritable: our data folder cannot be written.
        SummaryFailure, Cancelled: from a model's summariser; the memory stays as it was.
    """
    conversation = view.conversation
    session = session_id_of(conversation) or conversation.transcript.name
    path = memory_path(session)
    before = SessionMemory(_read(path), _facts(path).last_summarised_uuid, "", path) if path.is_file() else None
    parts = _new_parts(view, before.last_summarised_uuid if before is not None else "")
    last = _last_uuid(view, parts)
    if before is not None and not parts:
        return before
    with _running(path):
        text = _updated(view, parts, before, summariser)
        _write(path, text, _Facts(session, last, summariser.name))
    return SessionMemory(text, last, f"kept by Compactoscope ({summariser.title})", path)


def _updated(view: ContextView, parts: list[Part], before: SessionMemory | None, summariser: Summariser) -> str:
    if before is None or before.is_empty_template:
        return summariser.summarise(SummaryTask(view, parts)).text
    if summariser.offline:
        return merge_sections(before.text, summariser.summarise(SummaryTask(view, parts)).text)
    guide = resource("prompts", "session-memory-update.md").read_text("utf-8")
    return summariser.summarise(SummaryTask(view, parts, custom_instructions=guide.format(memory=before.text))).text


def _new_parts(view: ContextView, last_uuid: str) -> list[Part]:
    """The blocks after the last summarised record; everything when it is unknown or no longer in the request."""
    if not last_uuid:
        return list(view.parts)
    t = view.conversation.transcript
    covered = [i for i, part in enumerate(view.parts) if part.origin and t.uuid(part.origin.record) == last_uuid]
    return list(view.parts[covered[-1] + 1 :]) if covered else list(view.parts)


def _last_uuid(view: ContextView, parts: list[Part]) -> str:
    t = view.conversation.transcript
    return next((t.uuid(p.origin.record) for p in reversed(parts) if p.origin is not None), "")


def sections_of(text: str) -> dict[int, tuple[str, str]]:
    """The numbered sections of a summary or memory: number → (title, body)."""
    marks = list(_SECTION.finditer(text))
    ends = [m.start() for m in marks[1:]] + [len(text)]
    return {int(m[1]): (m[2], text[m.end() : end].strip("\n")) for m, end in zip(marks, ends, strict=True)}


def merge_sections(old: str, new: str) -> str:
    """Two extracts as one: bullets of each section in order, none twice; the present moment from the newer one."""
    before, after = sections_of(old), sections_of(new)
    if not before or not after:
        return f"{old.rstrip()}\n\n{new.strip()}"
    head = new[: next(_SECTION.finditer(new)).start()].strip()
    merged = []
    for number in sorted({*before, *after}):
        title = (after.get(number) or before[number])[0]
        old_body, new_body = (found.get(number, ("", ""))[1] for found in (before, after))
        body = new_body if number in _REPLACED and new_body else "\n".join(_union(old_body, new_body))
        merged.append(f"{number}. {title}:\n{body}")
    return "\n\n".join([head, *merged])


def _union(old: str, new: str) -> list[str]:
    """Bullets (with their continuation lines) of both, the newest kept when a section grows beyond its limit."""
    bullets = dict.fromkeys(_bullets(old) + _bullets(new))
    return list(bullets)[-_BULLETS_PER_SECTION:]


def _bullets(body: str) -> list[str]:
    found: list[str] = []
    for line in body.splitlines():
        if line.startswith("- ") or not found:
            found.append(line)
        else:
            found[-1] += "\n" + line
    return [bullet for bullet in found if bullet.strip()]


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError as error:
        raise MemoryUnreadable(f"cannot be read: {error.strerror or error}", "", str(path)) from error


def _facts(path: Path) -> _Facts:
    try:
        value = json.loads(path.with_suffix(".json").read_bytes())
        return _Facts(str(value["session_id"]), str(value["last_summarised_uuid"]), str(value["summariser"]))
    except FileNotFoundError:
        return _Facts("", "", "")
    except (OSError, ValueError, KeyError, TypeError):
        # Without its facts the memory is still good; only everything is read again for the next update.
        return _Facts("", "", "")


def _write(path: Path, text: str, facts: _Facts) -> None:
    """Text first, facts last: an interrupted update is read again, never believed to cover more than it does."""
    ensure(path.parent)
    for target, content in ((path, text), (path.with_suffix(".json"), json.dumps(asdict(facts)))):
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        temporary.write_text(content, "utf-8", "replace")
        temporary.replace(target)


def _mark_of(path: Path) -> Path:
    return path.with_suffix(".running")


def _is_running(path: Path) -> bool:
    try:
        return time.time() - _mark_of(path).stat().st_mtime < _STALE_SECONDS
    except FileNotFoundError:
        return False


@contextmanager
def _running(path: Path) -> Iterator[None]:
    ensure(path.parent)
    _mark_of(path).write_text(str(os.getpid()))
    try:
        yield
    finally:
        _mark_of(path).unlink(missing_ok=True)
