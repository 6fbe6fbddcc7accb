from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QToolButton, QWidget

from inspector.context import AppContext
from inspector.work.jobs import Job

SHOW_AFTER = 0.15
"""Seconds before a job is shown at all: quick ones do not flicker (qt.md §3.1)."""
CANCEL_AFTER = 1.0
"""Seconds before the cancel button appears."""


class JobBar(QWidget):
    """The status bar's progress area: the oldest running job, how far it is, and a cancel button."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._job: Job[Any] | None = None
        self._label = QLabel()
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setFixedWidth(self.fontMetrics().averageCharWidth() * 18)
        self._bar.setFixedHeight(8)
        self._bar.setAccessibleName("Progress")
        self._cancel = QToolButton()
        self._cancel.setAutoRaise(True)
        self._cancel.setToolTip("Cancel")
        self._cancel.setAccessibleName("Cancel the running work")
        self._cancel.clicked.connect(self._on_cancel)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        for widget in (self._label, self._bar, self._cancel):
            layout.addWidget(widget, 0, Qt.AlignmentFlag.AlignVCenter)
        context.runner.progressed.connect(self._on_progress)
        context.runner.ended.connect(self._on_ended)
        context.theme.changed.connect(self._retint)
        self._retint()
        self._set_shown(False)

    def _on_progress(self, job: Job[Any]) -> None:
        shown = next((j for j in self._context.runner.jobs if not j.op.quiet and j.running), None)
        if shown is None or shown.seconds < SHOW_AFTER:
            return
        self._job = shown
        progress = shown.progress
        self._label.setText(describe(shown))
        # Ints of Qt are 32 bits wide: show thousandths, not bytes.
        self._bar.setRange(0, 1000 if progress.total else 0)
        self._bar.setValue(min(1000, progress.done * 1000 // progress.total) if progress.total else 0)
        self._set_shown(True)
        self._cancel.setVisible(shown.seconds >= CANCEL_AFTER)

    def _on_ended(self, job: Job[Any]) -> None:
        if job is self._job or not self._context.runner.jobs:
            self._job = None
            self._set_shown(False)

    def _on_cancel(self) -> None:
        if self._job is not None:
            self._job.cancel()

    def _set_shown(self, shown: bool) -> None:
        for widget in (self._label, self._bar, self._cancel):
            widget.setVisible(shown)

    def _retint(self) -> None:
        self._cancel.setIcon(self._context.theme.icon("close", "muted"))


def describe(job: Job[Any]) -> str:
    """One line about a running job: what, how far in its own unit."""
    progress = job.progress
    text = progress.text or job.op.title
    if not progress.total:
        return f"{text}…"
    if progress.unit == "bytes":
        return f"{text}… {progress.done / 1e6:,.0f} of {progress.total / 1e6:,.0f} MB"
    return f"{text}… {progress.done:,} of {progress.total:,} {progress.unit}".rstrip()
