"""A text document that can be given untrusted content: it never reads a file and never reaches the network."""

from __future__ import annotations

from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QColor, QImage, QTextDocument

OWN_SCHEME = "compactoscope-image"


def placeholder_image() -> QImage:
    """One transparent point, shown for every resource the session names."""
    image = QImage(1, 1, QImage.Format.Format_ARGB32)
    image.fill(QColor(0, 0, 0, 0))
    return image


class SafeDocument(QTextDocument):
    """A `QTextDocument` whose resources are only the images it was given.

    Qt reads a local file named by an image when `loadResource` returns nothing or bytes that do not decode, even
    with `MarkdownNoHTML` (measured, qt.md 2d); a valid image of our own stops it.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._images: dict[str, QImage] = {}
        self._placeholder = placeholder_image()
        self.refused: list[str] = []
        self.setUndoRedoEnabled(False)

    def add_image(self, image: QImage) -> str:
        """Keep an image of our own and return the name to insert it by."""
        name = f"{OWN_SCHEME}:{len(self._images)}"
        self._images[name] = image
        return name

    def loadResource(self, kind: int, name: QUrl | str) -> QImage:
        """The image we issued under this name, else the placeholder."""
        text = name.toString() if isinstance(name, QUrl) else str(name)
        image = self._images.get(text)
        if image is not None:
            return image
        if len(self.refused) < 100:
            self.refused.append(text)
        return self._placeholder
