"""What an earlier run left unfinished: looked up when the window starts, told once, tidied on request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from compaction.export.journal import Journal, JournalEntry, stands
from compaction.progress import Progress
from inspector.work.jobs import Job, Op

if TYPE_CHECKING:
    from inspector.context import AppContext
    from inspector.views.message_bar import MessageBar

_NAMED = 3
"""Outputs that the message names; the others are counted."""


def tell_unfinished(context: AppContext, bar: MessageBar) -> Job[list[tuple[JournalEntry, bool]]]:
    """Read the journal off the GUI thread and say in the message bar what was left, with a button to tidy it.

    Nothing is changed before that button is pressed; dismissed, the message comes again at the next start.
    """

    def look(_progress: Progress) -> list[tuple[JournalEntry, bool]]:
        return [(entry, stands(entry)) for entry in Journal().unfinished()]

    def show(found: list[tuple[JournalEntry, bool]]) -> None:
        if found:
            entries = [entry for entry, _stands in found]
            bar.show_notice(sentence(found), "Tidy up", lambda: _settle(context, bar, entries))

    op = Op("Looking for unfinished outputs", look, token="unfinished", quiet=True)
    return context.runner.start(op).success(show)


def sentence(found: list[tuple[JournalEntry, bool]]) -> str:
    """What was left, for the person: each output with whether the file is whole or was never named."""
    parts = []
    for entry, whole in found[:_NAMED]:
        name = Path(entry.target).name
        state = "is whole, only its note in the journal is missing" if whole else "was not finished and does not exist"
        if not whole and Path(entry.target).exists():
            state = "was not written; the file that stood there is unchanged"
        parts.append(f"{name} ({entry.operation}, {entry.started[:16].replace('T', ' ')} UTC) {state}")
    more = f", and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return (
        f"An earlier run ended while it wrote: {'; '.join(parts)}{more}. "
        "Originals are as they were. Tidy up removes the temporary files."
    )


def _settle(context: AppContext, bar: MessageBar, entries: list[JournalEntry]) -> None:
    def work(_progress: Progress) -> int:
        journal = Journal()
        return len([journal.settle(entry) for entry in entries])

    def done(count: int) -> None:
        bar.dismiss()
        if context.workspace is not None:
            context.workspace.tell(f"Tidied {count} unfinished output{'' if count == 1 else 's'}")

    context.runner.start(Op("Tidying unfinished outputs", work)).success(done)
