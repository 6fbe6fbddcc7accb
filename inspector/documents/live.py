"""Open sessions that are being written: taken in as they grow, off the GUI thread."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer, Signal

from compaction.conversation import Conversation, Session
from compaction.conversation.running import running_calls
from compaction.progress import Progress
from compaction.transcript.following import Follower, Happening, Step, What
from inspector.documents.document import Document, LoadState
from inspector.work.jobs import Job, JobRunner, Op

POLL_MILLISECONDS = 1000
"""One look a second beside the file system's events: network folders have none, and a replaced file loses its watch."""

QUIET_SECONDS = 90.0
"""A session nobody has written to for this long is not at work any more: its unanswered calls were cut off."""

_QUICK = 100
_LONGEST_PAUSE = 5000
"""Milliseconds: a look that took longer than the first is followed by a pause, at most the second."""

_RELOADS = (What.APPENDED, What.TRUNCATED, What.REPLACED, What.RETURNED, What.RENAMED, What.SUBAGENT)


@dataclass(frozen=True, slots=True)
class News:
    """What one look found: the step, and the session made of it (None when nothing changed)."""

    step: Step
    session: Session | None


class LiveDocument(QObject):
    """Follows the file of one document.

    Signals:
        happened(Happening): something other than growth happened to the file.
        updated(Step): the document shows the new state.

    Attributes:
        document: the document; its `reloaded` tells the views, which keep the person's place.
    """

    happened = Signal(object)
    updated = Signal(object)

    def __init__(self, document: Document, runner: JobRunner, poll_milliseconds: int = POLL_MILLISECONDS) -> None:
        super().__init__(document)
        self.document = document
        self._runner = runner
        self._follower: Follower | None = None
        self._followed: Session | None = None
        self._agent_sizes: dict[Path, int] = {}
        self._job: Job[News] | None = None
        self._again = False
        self._pause = 0
        self._watcher = QFileSystemWatcher(self)
        self._watcher.fileChanged.connect(self._on_event)
        self._watcher.directoryChanged.connect(self._on_event)
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self.look)
        self._poll = QTimer(self)
        self._poll.setInterval(poll_milliseconds)
        self._poll.timeout.connect(self.look)
        self._poll.start()
        self._watch()

    def stop(self) -> None:
        """End following; the document stays as it is."""
        self._poll.stop()
        self._soon.stop()
        watched = [*self._watcher.files(), *self._watcher.directories()]
        if watched:
            self._watcher.removePaths(watched)
        if self._job is not None:
            self._job.cancel()

    @property
    def following(self) -> bool:
        """Whether the document shows its file (and not a derived state), so that growth can be taken in."""
        session = self.document.session
        return (
            session is not None
            and self.document.state is LoadState.READY
            and session.transcript.path is not None
            and session.transcript.path == self.document.path
            and self.document.undo_stack.index() == 0
        )

    def look(self) -> None:
        """See whether anything happened; at most one look runs, a further wish waits for its end."""
        if self._job is not None:
            self._again = True
            return
        session = self.document.session
        if session is None or not self.following:
            return
        if self._followed is not session:
            # Read again by hand, or shown again after an undo: follow what is shown now.
            self._followed, self._follower = session, None
        op = Op(f"Following {self.document.title}", lambda progress: self._work(session, progress), quiet=True)
        self._job = self._runner.start(op)
        self._job.success(lambda news: self._take(session, news)).finished(self._on_finished)

    def _work(self, session: Session, progress: Progress) -> News:
        """In a worker: poll, and build the new structure when something changed."""
        if self._follower is None:
            self._follower = Follower(session.transcript)
            self._agent_sizes = {path: _size(path) for path in self._follower.agent_files}
        step = self._follower.poll(progress)
        sizes = {path: _size(path) for path in self._follower.agent_files}
        changed = sizes != self._agent_sizes or any(h.what in _RELOADS for h in step.happenings)
        self._agent_sizes = sizes
        if not changed and _running_now(session.conversation) == session.conversation.running:
            return News(step, None)
        conversation = Conversation(step.transcript)
        conversation.running = _running_now(conversation)
        fresh = Session(conversation)
        _keep_opened(session, fresh, sizes)
        return News(step, fresh)

    def _take(self, session: Session, news: News) -> None:
        """On the GUI thread: show the new state, and tell."""
        if self.document.session is not session or not self.following:
            self._followed = None
            return
        if news.session is not None:
            self._show(session, news.session, news.step)
        for happening in news.step.happenings:
            if happening.what is not What.APPENDED:
                self._tell(happening)

    def _show(self, old: Session, new: Session, step: Step) -> None:
        selection = self.document.selection
        appended = all(h.what not in (What.TRUNCATED, What.REPLACED, What.RETURNED) for h in step.happenings)
        self.document.path = new.transcript.path
        self._followed = new
        self.document.set_session(new)
        if appended and selection.conversation is old.conversation:
            # Appending renumbers nothing, so the same numbers mean the same records.
            self.document.select(replace(selection, conversation=new.conversation))
        self._watch()
        self.updated.emit(step)

    def _tell(self, happening: Happening) -> None:
        if happening.what is What.RENAMED:
            self.document.set_title(happening.path.name)
        self.happened.emit(happening)

    def _on_finished(self) -> None:
        # A very large session takes a moment to take in: rest twice as long, so that the rest of the program runs.
        milliseconds = int(self._job.seconds * 1000) if self._job is not None else 0
        self._pause = min(2 * milliseconds, _LONGEST_PAUSE) if milliseconds > _QUICK else 0
        self._job = None
        if self._again:
            self._again = False
            self._soon.start(self._pause)

    def _on_event(self, _path: str) -> None:
        # An atomic replacement takes the watch away with the old file; many appends come as one event.
        self._watch()
        self._soon.start(self._pause)

    def _watch(self) -> None:
        path = self.document.path
        if path is None:
            return
        nested = path.with_suffix("") / "subagents"
        wanted = [str(p) for p in (path, path.parent, nested) if p.exists()]
        have = {*self._watcher.files(), *self._watcher.directories()}
        missing = [p for p in wanted if p not in have]
        if missing:
            self._watcher.addPaths(missing)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1  # gone; it counts as changed once


def _running_now(conversation: Conversation) -> frozenset[int]:
    """The calls at work, none when the file has been quiet for `QUIET_SECONDS`."""
    path = conversation.transcript.path
    try:
        quiet = path is None or time.time() - os.stat(path).st_mtime > QUIET_SECONDS
    except OSError:
        return frozenset()  # nobody writes to a file that is gone
    return frozenset() if quiet else running_calls(conversation)


def _keep_opened(old: Session, new: Session, sizes: dict[Path, int]) -> None:
    """Carry over subagents' conversations that were read already and whose files did not change."""
    opened = {file.path: file for file in old.subagents}
    for file in new.subagents:
        before = opened.get(file.path)
        conversation = before._conversation if before is not None else None
        if conversation is not None and conversation.transcript.read_end == sizes.get(file.path):
            file._conversation = conversation
