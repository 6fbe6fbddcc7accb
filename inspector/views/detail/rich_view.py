"""The rich view: parts in a read-only text browser that follows no link by itself."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QMimeData, QUrl, Signal
from PySide6.QtGui import QTextCursor, QTextDocument, QTextOption
from PySide6.QtWidgets import QTextBrowser, QWidget

from inspector.rendering.parts import Part
from inspector.rendering.safe_document import SafeDocument
from inspector.rendering.tones import colours_for
from inspector.rendering.writer import DocumentWriter
from inspector.views.detail.links import confirm_and_open


class RichView(QTextBrowser):
    """Shows parts; a link of the session opens only after a confirmation that shows its target."""

    show_all = Signal(object)  # (name, text): a folded text the person wants to see whole

    place_chosen = Signal(object)  # Place: the person wants to go there

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._parts: tuple[Part, ...] = ()
        self._writer: DocumentWriter | None = None
        self.setOpenLinks(False)
        self.setOpenExternalLinks(False)
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setAccessibleName("Content of the selection")
        self.anchorClicked.connect(self._on_anchor)

    @property
    def folded(self) -> list[tuple[str, str]]:
        """The texts of which only the beginning is shown, as (name, whole text)."""
        return list(self._writer.folded) if self._writer else []

    def set_parts(self, parts: Sequence[Part]) -> None:
        """Show these parts from the top."""
        self._parts = tuple(parts)
        if self._writer:
            self._writer.highlighter.stop()
        document = SafeDocument(self)
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        document.setDefaultTextOption(option)
        document.setDocumentMargin(self.fontMetrics().height() * 0.6)
        self._writer = DocumentWriter(document, colours_for(self.palette()), self.font())
        self._writer.write(self._parts)
        old = self.document()
        self.setDocument(document)
        if isinstance(old, SafeDocument):
            old.deleteLater()
        self.moveCursor(QTextCursor.MoveOperation.Start)

    def finish_colours(self) -> None:
        """Lay all syntax colours now instead of when idle (for pictures)."""
        if self._writer:
            self._writer.highlighter.finish()

    def find_text(self, needle: str, backward: bool = False) -> bool:
        """Select the next place of a text, wrapping at the end; whether there is one."""
        flags = QTextDocument.FindFlag.FindBackward if backward else QTextDocument.FindFlag(0)
        if self.find(needle, flags):
            return True
        start = self.textCursor()
        edge = QTextCursor(self.document())
        edge.movePosition(QTextCursor.MoveOperation.End if backward else QTextCursor.MoveOperation.Start)
        self.setTextCursor(edge)
        if self.find(needle, flags):
            return True
        self.setTextCursor(start)
        return False

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """The document's own images only; `QTextBrowser` would look the name up on disk."""
        document = self.document()
        return (
            document.loadResource(kind, name)
            if isinstance(document, SafeDocument)
            else SafeDocument().loadResource(kind, name)
        )

    def createMimeDataFromSelection(self) -> QMimeData:
        """Copy plain text only: rich text would carry the session's links and images into other programs."""
        data = QMimeData()
        data.setText(self.textCursor().selection().toPlainText())
        return data

    def changeEvent(self, event: QEvent) -> None:
        """Write the parts again in the colours of a new palette or font."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange) and self._parts:
            self.set_parts(self._parts)

    def _on_anchor(self, url: QUrl) -> None:
        target = url.toString(QUrl.ComponentFormattingOption.FullyEncoded)
        folded = self._writer.fold_number(target) if self._writer else None
        place = self._writer.place_number(target) if self._writer else None
        if self._writer and folded is not None:
            self.show_all.emit(self._writer.folded[folded])
        elif self._writer and place is not None:
            self.place_chosen.emit(self._writer.places[place])
        else:
            confirm_and_open(target, self)
