"""An open session: the engine's objects, what is selected in them, and what can be undone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Generic, TypeVar

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QUndoStack

from compaction.conversation import Conversation, Session, open_session_snapshots
from compaction.progress import Progress
from inspector.documents.diagnosis import Diagnosis
from inspector.work.jobs import Job, JobRunner, Op

Value = TypeVar("Value")


class Latest(Generic[Value]):
    """One slot between a worker and the GUI thread: the worker puts, the poll takes the newest (or None)."""

    def __init__(self) -> None:
        self._value: Value | None = None

    def put(self, value: Value) -> None:
        """Replace what was there."""
        self._value = value

    def take(self) -> Value | None:
        """The newest value once; None when there is no new one."""
        value, self._value = self._value, None
        return value


class Scope(Enum):
    """What kind of row is selected."""

    NONE = "nothing"
    SESSION = "session"
    EPOCH = "epoch"
    ROUND = "API round"
    RESPONSE = "response"
    RECORD = "record"
    BLOCK = "block"
    SUBAGENT = "subagent"


@dataclass(frozen=True, slots=True)
class Selection:
    """What the person looks at; every view follows it.

    Attributes:
        scope: what was selected.
        conversation: the conversation whose record and block numbers are meant (main or a subagent's), None only
            for Scope.NONE. Compare it with `document.conversation` to tell the main one.
        record: the selected or first record, -1 none.
        block: row of the block table for Scope.BLOCK, else -1.
        records: all records of the selection in file order (of a response, round or epoch), possibly long.
        response, round, epoch: numbers of the conversation, -1 when not applicable.
        agent_id: "" for the main conversation.
    """

    scope: Scope = Scope.NONE
    conversation: Conversation | None = None
    record: int = -1
    block: int = -1
    records: Sequence[int] = ()
    response: int = -1
    round: int = -1
    epoch: int = -1
    agent_id: str = ""


NOTHING = Selection()


class LoadState(Enum):
    """Where a document is in its life."""

    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Document(QObject):
    """One session in one tab.

    Signals:
        reloaded(): `session` and `conversation` are new objects (first load, snapshot while loading, F5, live data).
            Views drop what they hold of the old ones and keep the person's place by line and id.
        selection_changed(Selection): the selection in `selection`.
        state_changed(): `state` changed.
        title_changed(): `title` changed.
        load_failed(Exception): a reload could not be done; what was shown stays.
        show_settings_changed(): which records the tree shows changed.

    Attributes:
        path: the file, None for a session made in memory (a derived one not yet written).
        parent_document: the document a derived session was made from; `lineage` says how, one line a step.
        undo_stack: applied compactions and repairs of this tab.
        diagnosis: what the doctor says about the session, and for which client.
    """

    reloaded = Signal()
    selection_changed = Signal(object)
    state_changed = Signal()
    title_changed = Signal()
    show_settings_changed = Signal()
    load_failed = Signal(object)

    def __init__(self, path: Path | None, title: str = "", parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.path = path
        self._title = title or (path.name if path is not None else "Session")
        self.session: Session | None = None
        self.conversation: Conversation | None = None
        self.selection = NOTHING
        self.state = LoadState.LOADING
        self.error: Exception | None = None
        self.undo_stack = QUndoStack(self)
        self.parent_document: Document | None = None
        self.lineage: tuple[str, ...] = ()
        self.loading: Job[Session] | None = None
        self.diagnosis = Diagnosis(self)

    @property
    def title(self) -> str:
        """What the tab shows."""
        return self._title

    def set_title(self, title: str) -> None:
        """Rename the tab."""
        self._title = title
        self.title_changed.emit()

    @property
    def main_path(self) -> str:
        """The path as text, "" for a session in memory."""
        return str(self.path) if self.path is not None else ""

    def load(self, runner: JobRunner) -> Job[Session]:
        """Read the file off the GUI thread (first time or again); the old content stays until the new one is there."""
        path = self.path
        if path is None:
            raise ValueError("a session in memory has no file to read")
        first_time = self.session is None
        if first_time:
            self._set_state(LoadState.LOADING)
        snapshots: Latest[Session] = Latest()

        def work(progress: Progress) -> Session:
            progress.unit = "bytes"
            for session in open_session_snapshots(path, progress):
                progress.check()
                if first_time and not session.transcript.complete:
                    snapshots.put(session)
            return session

        job = runner.start(Op(f"Opening {path.name}", work, token=f"open {id(self)}"))
        self.loading = job

        def on_progress(running: object) -> None:
            session = snapshots.take() if running is job else None
            if session is not None:
                self.set_session(session)

        runner.progressed.connect(on_progress)
        job.success(self.set_session).failure(self._on_failure).finished(self._on_finished)
        job.finished(lambda: runner.progressed.disconnect(on_progress))
        return job

    def set_session(self, session: Session) -> None:
        """Take a loaded, partly loaded or derived session and tell the views."""
        self.session = session
        self.conversation = session.conversation
        self.error = None
        self.selection = NOTHING
        self._set_state(LoadState.READY if session.transcript.complete else LoadState.LOADING)
        self.reloaded.emit()

    def select(self, selection: Selection) -> None:
        """Change the selection; the same one again is not told."""
        if selection != self.selection:
            self.selection = selection
            self.selection_changed.emit(selection)

    def select_record(self, record: int, conversation: Conversation | None = None, block: int = -1) -> None:
        """Select one record (or one of its blocks) by number: what links, findings and charts call to jump."""
        target = conversation if conversation is not None else self.conversation
        if target is None or not 0 <= record < len(target.transcript):
            return
        self.select(
            Selection(
                scope=Scope.BLOCK if block >= 0 else Scope.RECORD,
                conversation=target,
                record=record,
                block=block,
                records=(record,),
                response=int(target.response_of[record]),
                round=int(target.round_of[record]),
                epoch=int(target.epoch_of[record]),
            )
        )

    def close(self) -> None:
        """Stop reading and let the undo stack go; called when the tab goes."""
        # WORKAROUND PySide 6.11: when stack and commands are collected as one cycle, a command's wrapper can delete it
        # before the stack does, which crashes in ~QUndoStack. Emptied by hand, the stack owns nothing any more.
        self.undo_stack.clear()
        if self.loading is not None:
            self.loading.cancel()

    def _on_failure(self, error: Exception) -> None:
        self.error = error
        if self.session is None:
            self._set_state(LoadState.FAILED)
        else:
            self._set_state(LoadState.READY)
            self.load_failed.emit(error)

    def _on_finished(self) -> None:
        self.loading = None
        if self.state is LoadState.LOADING:
            self._set_state(LoadState.CANCELLED)

    def _set_state(self, state: LoadState) -> None:
        if state is not self.state:
            self.state = state
        self.state_changed.emit()
