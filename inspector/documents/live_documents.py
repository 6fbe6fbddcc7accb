"""Following for every open session of a window: settings, the end kept in view, notices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication, QSystemTrayIcon

from compaction.transcript.following import Happening, What
from inspector.context import AppContext
from inspector.documents.live import LiveDocument
from inspector.documents.live_notices import Level, Notices, notices_between
from inspector.settings import FOLLOW_END, FOLLOW_LIVE, NOTIFY, NOTIFY_PERCENT
from inspector.work.jobs import Op

if TYPE_CHECKING:
    from inspector.documents.document import Document
    from inspector.views.main_window import MainWindow

_SENTENCES = {
    What.TRUNCATED: "{} became shorter or was rewritten: it was read anew",
    What.REPLACED: "{} was replaced by another file: it was read anew",
    What.RENAMED: "the session is called {} now",
    What.DELETED: "{} was deleted; what was read stays",
    What.RETURNED: "{} is there again: it was read anew",
    What.SUBAGENT: "subagent started: {}",
    What.UNREADABLE: "{} cannot be read at the moment",
}


class _Scrolls(Protocol):
    def show_end(self) -> None: ...


class LiveDocuments(QObject):
    """Makes a `LiveDocument` for each session that is opened from a file, and acts on what they tell.

    Attributes:
        by_document: what is followed now.
    """

    def __init__(self, context: AppContext, window: MainWindow) -> None:
        super().__init__(window)
        self._context = context
        self._window = window
        self.by_document: dict[Document, LiveDocument] = {}
        self._levels: dict[Document, Level] = {}
        self._tray: QSystemTrayIcon | None = None
        window.current_document_changed.connect(self._on_current)

    def follow(self, document: Document) -> LiveDocument | None:
        """Follow a document from now on; None when it has no file or following is switched off."""
        if not self._context.settings.get(FOLLOW_LIVE) or document.path is None or str(document.path) == "-":
            return None
        live = self.by_document.get(document)
        if live is None:
            live = self.by_document[document] = LiveDocument(document, self._context.runner)
            live.happened.connect(self._on_happened)
            live.updated.connect(self._on_updated)
            document.diagnosis.changed.connect(self._on_diagnosis)
            document.destroyed.connect(self._prune)
        return live

    def stop(self) -> None:
        """Follow nothing any more."""
        for live in self.by_document.values():
            live.stop()
        self.by_document.clear()
        self._levels.clear()

    def apply_settings(self) -> None:
        """Start or stop following after a change of the settings."""
        if not self._context.settings.get(FOLLOW_LIVE):
            self.stop()
            return
        for document in self._window.documents:
            self.follow(document)

    def _on_current(self, document: Document | None) -> None:
        self._prune()
        if document is not None:
            self.follow(document)

    def _prune(self) -> None:
        """Forget the documents whose tabs are closed."""
        open_now = set(self._window.documents)
        for document in [d for d in self.by_document if d not in open_now]:
            self.by_document.pop(document).stop()
            self._levels.pop(document, None)

    def _on_happened(self, happening: Happening) -> None:
        self._window.tell(_SENTENCES[happening.what].format(happening.path.name), 10_000)

    def _on_updated(self, _step: object) -> None:
        live = self.sender()
        if not isinstance(live, LiveDocument):
            return
        document = live.document
        if document is self._window.current_document and self._context.settings.get(FOLLOW_END):
            self.show_end()
        if self._context.settings.get(NOTIFY):
            self._compare(document)

    def _on_diagnosis(self) -> None:
        diagnosis = self.sender()
        document = next((d for d in self.by_document if d.diagnosis is diagnosis), None)
        if document is not None and self._context.settings.get(NOTIFY):
            self._compare(document)

    def show_end(self) -> None:
        """Bring the newest row of the tree in front into view."""
        tree = self._window.view_widget("tree")
        if tree is not None and hasattr(tree, "show_end"):
            # The rows of a large session are arranged in the background; the view scrolls when they are there.
            QTimer.singleShot(0, tree, cast(_Scrolls, tree).show_end)

    def _compare(self, document: Document) -> None:
        """Tell what is new since the last look, in a worker: the context of a large session takes a moment."""
        conversation = document.conversation
        if conversation is None:
            return
        report = document.diagnosis.report
        errors = len(report.errors()) if report is not None else None
        client = document.diagnosis.client
        op = Op("Looking at the context", lambda _progress: Level.of(conversation, client, errors), quiet=True)

        def done(level: Level) -> None:
            before = self._levels.get(document)
            self._levels[document] = level
            if before is not None:
                self._notify(document, notices_between(before, level, self._context.settings.get(NOTIFY_PERCENT)))

        self._context.runner.start(op).success(done)

    def _notify(self, document: Document, notices: Notices) -> None:
        for text in notices:
            self._window.tell(f"{document.title}: {text}", 15_000)
            if self._window.isActiveWindow() and document is self._window.current_document:
                continue
            QApplication.alert(self._window)
            if QSystemTrayIcon.isSystemTrayAvailable():
                self._tray_icon().showMessage(document.title, text)

    def _tray_icon(self) -> QSystemTrayIcon:
        if self._tray is None:
            self._tray = QSystemTrayIcon(self._context.theme.icon("app", "accent"), self)
        self._tray.show()
        return self._tray
