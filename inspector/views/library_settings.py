"""Where the library's catalogue is and which folders it looks at."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from compaction.catalogue.settings import URL_VARIABLE, LibrarySettings

_EXPLANATION = (
    "Without a database the catalogue is a file in Compactoscope's own data folder. With a PostgreSQL database several "
    "people share one library: the prompts, answers and tool results of your sessions are sent there, with recognised "
    "secrets masked, and everybody who may read the database can read them."
)


class LibrarySettingsDialog(QDialog):
    """Edits a `LibrarySettings`; `settings()` is what the fields say."""

    def __init__(self, settings: LibrarySettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Library settings")
        self.url = QLineEdit(settings.database_url)
        self.url.setPlaceholderText("postgresql://user@host/name – empty: a file of this machine")
        self.owner = QLineEdit(settings.owner)
        self.owner.setPlaceholderText("user@host")
        self.folders = QListWidget()
        self.folders.addItems(list(settings.folders))
        self.folders.setAccessibleName("Folders besides the client's own")
        add, remove = QPushButton("Add…"), QPushButton("Remove")
        add.clicked.connect(self._add)
        remove.clicked.connect(self.remove_selected)
        explanation = QLabel(f"{_EXPLANATION} The variable {URL_VARIABLE} overrides the field.")
        explanation.setTextFormat(Qt.TextFormat.PlainText)
        explanation.setWordWrap(True)
        form = QFormLayout()
        form.addRow("&Database", self.url)
        form.addRow("&Owner of your files there", self.owner)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        below = QHBoxLayout()
        below.addStretch(1)
        below.addWidget(add)
        below.addWidget(remove)
        label = QLabel("&Folders besides the client's own")
        label.setBuddy(self.folders)
        layout = QVBoxLayout(self)
        layout.addLayout(form)
        layout.addWidget(explanation)
        layout.addWidget(label)
        layout.addWidget(self.folders)
        layout.addLayout(below)
        layout.addWidget(buttons)
        self.resize(560, 420)

    def settings(self) -> LibrarySettings:
        """The settings as the fields say them."""
        folders = tuple(self.folders.item(row).text() for row in range(self.folders.count()))
        return LibrarySettings(self.url.text().strip(), self.owner.text().strip(), folders)

    def _add(self) -> None:
        name = QFileDialog.getExistingDirectory(self, "Index a folder")
        if name:
            self.folders.addItem(name)

    def remove_selected(self) -> None:
        """Take the chosen folders off the list."""
        for item in self.folders.selectedItems():
            self.folders.takeItem(self.folders.row(item))
