from __future__ import annotations

from pathlib import Path

from compaction.conversation import Session
from compaction.export.formats.base import ExportOptions
from compaction.export.transcripts import write_edits
from compaction.export.writer import Written
from compaction.progress import Progress
from compaction.strategies.session_at import first_record_after, prefix_of


class JsonLines:
    """The transcript itself: every byte as in the original (of a request document, the document)."""

    name = "jsonl"
    title = "Transcript (JSON Lines), byte-identical"
    suffix = ".jsonl"

    def write(
        self, session: Session, target: str | Path, options: ExportOptions, progress: Progress | None = None
    ) -> Written:
        """Copy the transcript, up to a round when one is asked for."""
        transcript = session.transcript
        source = transcript.path or ""
        if options.at is not None:
            transcript = prefix_of(transcript, first_record_after(session.conversation, options.at))
        return write_edits(
            target,
            transcript,
            (),
            operation="export",
            source=source,
            lineage={"format": self.name, "at": options.at, "steps": list(options.steps)},
            overwrite=options.overwrite,
            journal=options.journal,
            progress=progress,
        )
