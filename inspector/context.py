from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from inspector.actions.registry import ActionRegistry
from inspector.settings import Settings
from inspector.theme import Theme
from inspector.work.errors import ErrorCenter
from inspector.work.jobs import JobRunner

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from inspector.documents.document import Document


class Workspace(Protocol):
    """What actions and views may ask of the main window."""

    @property
    def current_document(self) -> Document | None: ...

    def open_path(self, path: str | Path) -> Document:
        """Open a session in a new tab (or show the tab that has it)."""

    def add_document(self, document: Document) -> None:
        """Show a document made elsewhere (a derived session) in a tab of its own."""

    def show_view(self, view_id: str) -> QWidget | None:
        """Show and focus a view of the current document; its widget, None without a document."""

    def view_widget(self, view_id: str) -> QWidget | None:
        """The view's widget for the current document if it was made already."""

    def current_view(self) -> str:
        """Id of the center view in front, "" without a document."""

    def tell(self, text: str, milliseconds: int = 5000) -> None:
        """Say one plain-text line in the status bar."""

    def window_widget(self) -> QWidget:
        """The window itself, as parent of dialogs."""


@dataclass(slots=True)
class AppContext:
    """What every view and action is given; there are no globals. One for each window.

    Attributes:
        settings: typed settings in our own config folder.
        runner: background work; `errors`: where its errors and those of handlers go.
        actions: every user action by id.
        theme: palette, semantic colours, icons.
        workspace: the main window (None before it exists and in tests of single views).
    """

    settings: Settings
    theme: Theme
    runner: JobRunner = field(default_factory=JobRunner)
    errors: ErrorCenter = field(default_factory=ErrorCenter)
    actions: ActionRegistry = field(default_factory=ActionRegistry)
    workspace: Workspace | None = None

    def __post_init__(self) -> None:
        self.runner.failed.connect(lambda job, error, errors=self.errors: errors.report(error, job.op.title))

    @property
    def current_document(self) -> Document | None:
        """The document of the current tab."""
        return self.workspace.current_document if self.workspace is not None else None
