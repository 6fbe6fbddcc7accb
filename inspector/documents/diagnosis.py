"""What the doctor says about an open session: one report for a client, made in the background, shared by the views."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from compaction.progress import Progress
from inspector.documents.diagnose_file import diagnose_file
from inspector.work.jobs import Job, JobRunner, Op, in_process

if TYPE_CHECKING:
    from compaction.conversation import Session
    from compaction.diagnosis.model import Finding, Report
    from inspector.documents.document import Document

AGAIN_MILLISECONDS = 1500
"""A session that grows is diagnosed again when it was quiet for so long."""

PROCESS_BYTES = 16 * 1024 * 1024
"""Larger sessions are diagnosed in a process: a Python loop of seconds in a thread makes every repaint wait."""

_ORDER = ("error", "warning", "info")


class Diagnosis(QObject):
    """The report of one document, and the client generation it is for.

    Signals:
        changed(): `report`, `running` or `error` is another.
        client_changed(): another client generation was chosen.

    Attributes:
        client: version of the client profile; "" until a session is there.
        report: the newest report, None before the first one.
        running: a report is being made.
        error: why it could not be made, or None.
    """

    changed = Signal()
    client_changed = Signal()

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._document = document
        self._runner: JobRunner | None = None
        self._diagnosed: Session | None = None
        self._by_record: dict[int, list[Finding]] = {}
        self.client = ""
        self._chosen = False
        self._job: Job[Report] | None = None
        self.report: Report | None = None
        self.running = False
        self.error: Exception | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._start)

    def ensure(self, runner: JobRunner) -> None:
        """See to it that the present session is diagnosed; a complete one at once, a growing one when it is quiet."""
        self._runner = runner
        session = self._document.session
        if session is None or session is self._diagnosed or not session.transcript.complete:
            return
        if not self._chosen:
            from compaction.request import default_client

            self.client = default_client(session.conversation)
            self.client_changed.emit()
        self._timer.start(AGAIN_MILLISECONDS if self.report is not None else 0)

    def set_client(self, client: str) -> None:
        """Choose a client generation and diagnose for it."""
        if client and client != self.client:
            self.client = client
            self._chosen = True
            self._diagnosed = None
            self.client_changed.emit()
            self._timer.start(0)

    def of_record(self, record: int) -> tuple[Finding, ...]:
        """The findings about a record of the main conversation, worst first."""
        return tuple(self._by_record.get(record, ()))

    def worst_of_record(self, record: int) -> str:
        """The worst severity of a record's findings, "" without any."""
        findings = self._by_record.get(record)
        return findings[0].severity if findings else ""

    @property
    def records(self) -> tuple[int, ...]:
        """Every record that a finding is about, in file order."""
        return tuple(sorted(self._by_record))

    def counts(self) -> dict[str, int]:
        """How many findings of each severity there are."""
        found = Counter(finding.severity for finding in self.report.findings) if self.report is not None else Counter()
        return {severity: found[severity] for severity in _ORDER}  # type: ignore[index]

    def badge(self) -> str:
        """The count for a tab: errors and warnings, "" when there are none."""
        counts = self.counts()
        words = [f"✖ {counts['error']}"] if counts["error"] else []
        words += [f"▲ {counts['warning']}"] if counts["warning"] else []
        return " ".join(words)

    def _start(self) -> None:
        session, runner = self._document.session, self._runner
        if session is None or runner is None:
            return
        client = self.client
        self._diagnosed = session

        path = self._document.main_path
        apart = session.transcript.size > PROCESS_BYTES and path not in ("", "-")

        def work(progress: Progress) -> Report:
            if apart:
                return in_process(progress, diagnose_file, path, client)
            from compaction.diagnosis.doctor import diagnose

            return diagnose(session, client, progress)

        job = runner.start(Op("Diagnosing", work, token=f"diagnose {id(self)}"))
        job.success(self._on_report).failure(self._on_failure).finished(lambda: self._on_finished(job))
        self._job = job
        self.running = True
        self.changed.emit()

    def _on_report(self, report: Report) -> None:
        self.report, self.error = report, None
        self._by_record = {}
        for finding in sorted(report.findings, key=lambda found: _ORDER.index(found.severity)):
            for record in dict.fromkeys(finding.records):
                self._by_record.setdefault(record, []).append(finding)

    def _on_failure(self, error: Exception) -> None:
        self.error = error

    def _on_finished(self, job: Job[Report]) -> None:
        if job is self._job:
            self.running = False
            self.changed.emit()
