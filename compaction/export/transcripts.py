"""Plans and edits written out as new transcripts, with their lineage."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from compaction import __version__
from compaction.export.journal import Journal
from compaction.export.liveness import QUIET_SECONDS
from compaction.export.verify import transcript_check
from compaction.export.writer import Written, write_new_file
from compaction.progress import Progress
from compaction.strategies.apply import apply_plan
from compaction.strategies.plan import Plan
from compaction.strategies.settings import settings_json
from compaction.transcript import Transcript
from compaction.transcript.edits import Edit, apply_edits


def write_plan(
    target: str | Path,
    transcript: Transcript,
    plan: Plan,
    *,
    source: str | Path = "",
    at: int | None = None,
    overwrite: bool = False,
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> Written:
    """Write the transcript that a plan makes of `transcript` (the one it was made on) as a new file.

    Args:
        source: the original's path ("" or "-": none), for the journal and so that it is never written.
        at: the API round that the plan stands before, None for the end of the session.

    Raises:
        UsageError, NothingWritten, Cancelled: as `write_new_file`; also when the re-read differs from the plan.
    """
    written = write_new_file(
        target,
        apply_plan(transcript, plan),
        operation="compact",
        journal=journal,
        source=_original(source),
        lineage=plan_lineage(plan, at),
        overwrite=overwrite,
        check=transcript_check(transcript, plan.edits),
        progress=progress,
    )
    return _with_liveness(written, transcript)


def write_edits(
    target: str | Path,
    transcript: Transcript,
    edits: tuple[Edit, ...],
    *,
    operation: str,
    source: str | Path = "",
    lineage: Mapping[str, Any] | None = None,
    keep_damage: bool = True,
    overwrite: bool = False,
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> Written:
    """Write the transcript that `edits` make as a new file (repairs, plain copies); see `write_new_file`."""
    written = write_new_file(
        target,
        apply_edits(transcript, edits, keep_damage=keep_damage),
        operation=operation,
        journal=journal,
        source=_original(source),
        lineage={"program": f"compactoscope {__version__}", **(lineage or {})},
        overwrite=overwrite,
        check=transcript_check(transcript, edits, keep_damage=keep_damage),
        progress=progress,
    )
    return _with_liveness(written, transcript)


def _with_liveness(written: Written, transcript: Transcript) -> Written:
    """The output with a warning when its original is being written right now (api-rules.md G1)."""
    newest = int(transcript.timestamp_ms.max()) / 1000 if len(transcript) else 0.0
    age = time.time() - newest
    if not newest or not 0 <= age < QUIET_SECONDS:
        return written
    text = f"the session is being written right now (its newest record is {age:.0f} seconds old): the copy ends there"
    return replace(written, warnings=(*written.warnings, text))


def plan_lineage(plan: Plan, at: int | None) -> dict[str, Any]:
    """How a plan's output came about, JSON values: enough to make it again from the same original."""
    return {
        "program": f"compactoscope {__version__}",
        "strategy": plan.strategy,
        "settings": settings_json(plan.settings),
        "client": plan.request.client,
        "at": at,
        "trigger": plan.trigger,
        "tokens_before": plan.tokens_before,
        "tokens_after": plan.tokens_after,
        "edits": len(plan.edits),
    }


def _original(source: str | Path) -> Path | None:
    path = Path(source) if str(source) not in ("", "-") else None
    return path if path is not None and path.is_file() else None
