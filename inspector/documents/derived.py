"""Sessions made from others: a compaction applied in a tab of its own, undone and redone, the original untouched."""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtGui import QUndoCommand

from compaction.conversation import Session
from compaction.progress import Progress
from compaction.resources import resource
from compaction.strategies.apply import derived
from compaction.strategies.plan import no_edits
from inspector.documents.document import Document
from inspector.documents.workbench import Column, Point, Workbench
from inspector.work.jobs import Job, Op

if TYPE_CHECKING:
    from compaction.strategies.plan import Plan
    from inspector.context import AppContext


class PlanApplied(QUndoCommand):
    """A plan applied to a derived session in memory; undo shows the session before it again."""

    def __init__(self, document: Document, after: Session, step: str) -> None:
        super().__init__(step)
        if document.session is None:
            raise ValueError("a plan is applied to a loaded session")
        self._document = document
        self._before: Session = document.session
        self._after = after
        self._lineage_before = document.lineage
        self._lineage_after = (*document.lineage, step)

    def redo(self) -> None:
        """Show the session after the plan."""
        self._document.lineage = self._lineage_after
        self._document.set_session(self._after)

    def undo(self) -> None:
        """Show the session before the plan."""
        self._document.lineage = self._lineage_before
        self._document.set_session(self._before)


def step_text(column: Column, plan: Plan, point: Point) -> str:
    """One line of lineage: what was applied, where, with what effect."""
    where = {"end": "at the end", "round": f"before API round {point.number}"}.get(point.kind, "before a compaction")
    return f"{column.title} {where}: {plan.tokens_before:,} → {plan.tokens_after:,} tokens"


def can_apply(column: Column | None) -> bool:
    """Whether a column's plan is there, current, changes records, and breaks no API rule."""
    return not why_not(column)


def why_not(column: Column | None) -> str:
    """Why a column cannot be carried out on a copy, one sentence for the person; "" when it can."""
    if column is None:
        return "Choose a strategy first: the session as it is has nothing to apply."
    if column.error:
        return f"The plan failed: {column.error}"
    plan = column.plan
    if plan is None or column.stale:
        return "The plan is still being computed."
    if not plan.applies:
        return f"There is nothing to apply: {plan.reason}."
    if not _changes_records(plan):
        return "The API does this itself at each request: no record of the file would change."
    broken = next((violation for violation in plan.violations if violation.severity == "error"), None)
    return f"The API would refuse the result: {broken.message}" if broken is not None else ""


def _changes_records(plan: Plan) -> bool:
    """Whether there is anything to carry out; the edits themselves are made in a worker, they can take long."""
    if plan.server_edit is not None:
        return bool(plan.edits)
    return plan.make_edits is not no_edits


def apply_column(context: AppContext, document: Document, workbench: Workbench, column: Column) -> Job[Session]:
    """Carry a column's plan out on a copy.

    On a session with a file the result opens as a derived session in a tab of its own; on a derived session it is
    one more step of the same tab. Nothing is written.

    Raises:
        ValueError: the column has no plan that applies.
    """
    plan, given = column.plan, workbench.given
    if plan is None or given is None or not can_apply(column):
        raise ValueError("the column has nothing to apply")
    step = step_text(column, plan, workbench.point)

    def work(_progress: Progress) -> Session:
        return Session(derived(given, plan))

    def show(session: Session) -> None:
        target = document if document.parent_document is not None else _derived(document, column)
        if target is not document and context.workspace is not None:
            context.workspace.add_document(target)
        target.undo_stack.push(PlanApplied(target, session, step))

    return context.runner.start(Op(f"Applying {column.strategy.title}", work)).success(show)


def _derived(parent: Document, column: Column) -> Document:
    """A new document in memory that begins as its parent is, so that undo leads back to it."""
    if parent.session is None:
        raise ValueError("the parent is not loaded")
    document = Document(None, f"{Path(parent.title).stem} · {column.strategy.title}")
    document.parent_document = parent
    document.lineage = (parent.title,)
    document.set_session(parent.session)
    return document


def bundled_folder() -> Path | None:
    """The folder of the bundled sample, None when this installation has none."""
    try:
        return resource("sample")
    except FileNotFoundError:
        return None


def folder_of(document: Document) -> Path:
    """The folder of a document's file, or of the file it was derived from; the home folder for the bundled sample.

    What is made of the sample belongs to the person, not into the program's own folder.
    """
    found: Document | None = document
    while found is not None:
        if found.path is not None:
            folder = found.path.parent
            return Path.home() if folder == bundled_folder() else folder
        found = found.parent_document
    return Path.cwd()


def suggested_name(document: Document, suffix: str, *, new_id: bool) -> str:
    """A file name for an export: a session id of its own, or the title made safe."""
    if new_id:
        return f"{uuid.uuid4()}{suffix}"
    stem = document.path.stem if document.path is not None else document.title
    return re.sub(r"[^\w.-]+", "-", stem).strip("-") + (".copy" if document.path is not None else "") + suffix


def left_behind(document: Document) -> str:
    """What a copy of a session does not take along, as a sentence after another; "" when there is nothing.

    A client looks for the files of subagents in a folder that is named after the session.
    """
    count = len(document.session.subagents) if document.session is not None else 0
    if not count:
        return ""
    files = "file of a subagent stays" if count == 1 else "files of subagents stay"
    return f" {count} {files} with the original and {'is' if count == 1 else 'are'} not copied."


def client_folder(document: Document) -> Path | None:
    """Where the client keeps the sessions of this one's working folder (transcript-format.md §1); None when the
    records name no working folder."""
    conversation = document.conversation
    if conversation is None:
        return None
    transcript = conversation.transcript
    for record in range(len(transcript) - 1, max(-1, len(transcript) - 200), -1):
        cwd = transcript.payload(record).get("cwd")
        if isinstance(cwd, str) and cwd:
            base = os.environ.get("CLAUDE_CONFIG_DIR") or str(Path.home() / ".claude")
            return Path(base) / "projects" / re.sub(r"[^A-Za-z0-9]", "-", cwd)
    return None
