"""The one place through which errors reach the person: file, line, cause, what to do."""

from __future__ import annotations

import hashlib
import logging
import traceback
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from compaction.errors import CompactoscopeError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """What is shown of one error, all of it plain text.

    Attributes:
        title: what was being done ("Opening session.jsonl").
        cause, hint, file, line: as in `compaction.errors.CompactoscopeError`.
        details: the traceback when it is a fault of the program, else "".
    """

    title: str
    cause: str
    hint: str = ""
    file: str = ""
    line: int | None = None
    details: str = ""

    @property
    def unexpected(self) -> bool:
        """True for a fault of the program: the window shows the details behind a button."""
        return bool(self.details)

    def sentence(self) -> str:
        """One plain-text line: place, cause, hint."""
        place = f"{self.file}, line {self.line}: " if self.file and self.line else f"{self.file}: " if self.file else ""
        return f"{place}{self.cause}" + (f". {self.hint[:1].upper()}{self.hint[1:]}." if self.hint else ".")


def report_of(error: BaseException, title: str) -> ErrorReport:
    """Describe any exception; engine errors keep their fields, others carry their traceback."""
    if isinstance(error, CompactoscopeError):
        return ErrorReport(title, error.cause, error.hint, error.file, error.line)
    if isinstance(error, OSError) and error.strerror:
        return ErrorReport(title, error.strerror.lower(), file=str(error.filename or ""))
    details = "".join(traceback.format_exception(error))
    return ErrorReport(
        title,
        f"{type(error).__name__}: {error}" if str(error) else type(error).__name__,
        "this is a fault of Compactoscope; the details can be copied",
        details=details,
    )


class ErrorCenter(QObject):
    """Collects reports and tells the window; the same traceback is told once per run."""

    reported = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.reports: list[ErrorReport] = []
        self._seen: set[str] = set()

    def report(self, error: BaseException, title: str) -> ErrorReport:
        """Log the error, remember it and emit `reported(ErrorReport)`."""
        report = report_of(error, title)
        log.warning("%s: %s", title, report.details or report.sentence())
        key = hashlib.sha256(report.details.encode("utf-8", "replace")).hexdigest() if report.details else ""
        if key and key in self._seen:
            return report
        self._seen.add(key)
        self.reports.append(report)
        self.reported.emit(report)
        return report
