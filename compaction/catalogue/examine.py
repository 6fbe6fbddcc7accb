from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import Connection

from compaction.catalogue.tables import TRANSCRIPT
from compaction.errors import CompactoscopeError


@dataclass(frozen=True, slots=True)
class ExamineJob:
    """A file to diagnose, for a worker process; `bytes` is the size that the findings will hold for."""

    transcript_id: int
    path: str
    bytes: int

    @property
    def work_bytes(self) -> int:
        """Bytes that a worker reads for it."""
        return self.bytes


@dataclass(frozen=True, slots=True)
class Examination:
    """What the whole structure of a session says; None and () where `problem` tells why it could not be had.

    `context_tokens` is what `inspect` tells: the recorded context with what was added since.
    """

    job: ExamineJob
    damaged: int | None = None
    compactions: int | None = None
    context_tokens: int | None = None
    errors: int | None = None
    warnings: int | None = None
    infos: int | None = None
    codes: tuple[str, ...] = ()
    problem: str = ""


def examine_all(jobs: list[ExamineJob]) -> list[Examination]:
    """Diagnose some files; runs in a worker process and writes nothing."""
    return [examine(job) for job in jobs]


def examine(job: ExamineJob) -> Examination:
    """Read a session whole and count its findings by severity and its compactions, silent ones included.

    A fault in a rule concerns that file only: it is kept as the row's problem and shown, the index goes on.
    """
    from compaction.accounting.current import context_summary
    from compaction.conversation.session import open_session
    from compaction.diagnosis import diagnose
    from compaction.request import default_client

    try:
        session = open_session(job.path)
        client = default_client(session.conversation)
        report = diagnose(session, client)
        context = context_summary(session.conversation, client)
    except CompactoscopeError as error:
        return Examination(job, problem=error.cause)
    except Exception as error:  # noqa: BLE001 - one session must not stop the library; the row shows what happened
        return Examination(job, problem=f"{type(error).__name__}: {error}"[:500])
    conversation = session.conversation
    severities = [finding.severity for finding in report.findings]
    return Examination(
        job,
        len(conversation.transcript.damage),
        len(conversation.compactions),
        context["tokens"],
        severities.count("error"),
        severities.count("warning"),
        severities.count("info"),
        tuple(sorted({finding.code for finding in report.findings})),
    )


def apply_examinations(connection: Connection, results: Sequence[Examination]) -> None:
    """Store what was found, for the rows whose file still has the size that was examined."""
    for result in results:
        values: dict[str, object] = {
            "examined_bytes": result.job.bytes,
            "examination_problem": result.problem,
            "findings_error": result.errors,
            "findings_warning": result.warnings,
            "findings_info": result.infos,
            "finding_codes": list(result.codes),
        }
        if result.compactions is not None:
            # A cut last line counts now: until here it might have been one that is still being written.
            values["damaged"] = result.damaged
            values["compactions"] = result.compactions
            values["context_tokens"] = result.context_tokens
        same = (TRANSCRIPT.c.id == result.job.transcript_id) & (TRANSCRIPT.c.bytes == result.job.bytes)
        connection.execute(sa.update(TRANSCRIPT).where(same).values(**values))
