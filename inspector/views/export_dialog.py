"""Write a session as a new file: which form, where, under which name; the original is never written."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from compaction.export.formats import FORMATS, ExportOptions
from compaction.export.writer import Written
from compaction.progress import Progress
from inspector.context import AppContext
from inspector.documents.derived import client_folder, folder_of, left_behind, suggested_name
from inspector.documents.document import Document
from inspector.documents.written import FileWritten, Write
from inspector.views.detail.pages import plain_label
from inspector.work.errors import report_of
from inspector.work.jobs import Op

_NAMES = (("A new session id", True), ("A name of its own", False))


class ExportDialog(QDialog):
    """Says what will be written where, writes it off the GUI thread, and can be undone."""

    def __init__(self, context: AppContext, document: Document, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._document = document
        self.written: Written | None = None
        self.setWindowTitle(f"Export {document.title}")
        self.format = QComboBox()
        for name, found in FORMATS.items():
            self.format.addItem(found.title, name)
        self.naming = QComboBox()
        for title, new_id in _NAMES:
            self.naming.addItem(title, new_id)
        self.naming.setToolTip("Clients take a session's id from its file name.")
        self.naming.setCurrentIndex(1)
        self.target = QLineEdit()
        self.browse = QPushButton("Choose…")
        self.client_folder = QPushButton("Where the client finds it")
        self.client_folder.setToolTip(
            "The project folder of the session's working folder, so that the client lists it."
        )
        self.open_after = QCheckBox("Open it when it is written")
        self.state = plain_label()
        self.state.setWordWrap(True)
        self._build()
        self.format.currentIndexChanged.connect(lambda _i: self._suggest())
        self.naming.currentIndexChanged.connect(lambda _i: self._suggest())
        self.browse.clicked.connect(self._on_browse)
        self.client_folder.clicked.connect(self._on_client_folder)
        self.target.textChanged.connect(lambda _t: self._describe())
        self._folder = folder_of(document)
        self._suggest()

    def _build(self) -> None:
        form = QFormLayout()
        form.addRow("&Form", self.format)
        form.addRow("&Name", self.naming)
        row = QHBoxLayout()
        row.addWidget(self.target, 1)
        row.addWidget(self.browse)
        label = QLabel("New &file")
        label.setBuddy(self.target)
        form.addRow(label, row)
        form.addRow("", self.client_folder)
        form.addRow("", self.open_after)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.write = buttons.addButton("Write the file", QDialogButtonBox.ButtonRole.AcceptRole)
        self.write.setDefault(True)
        # Return writes from wherever the focus is, not the button that happens to come first.
        for button in (self.browse, self.client_folder):
            button.setAutoDefault(False)
        buttons.accepted.connect(self._on_write)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        if self._document.lineage:
            lineage = plain_label("Made from " + "\n→ ".join(self._document.lineage))
            lineage.setWordWrap(True)
            layout.addWidget(lineage)
        layout.addLayout(form)
        layout.addWidget(self.state)
        layout.addStretch(1)
        layout.addWidget(buttons)
        self.resize(620, self.sizeHint().height())

    def _suggest(self) -> None:
        chosen = FORMATS[str(self.format.currentData())]
        resumable = chosen.suffix == ".jsonl"
        self.naming.setEnabled(resumable)
        self.client_folder.setEnabled(resumable and client_folder(self._document) is not None)
        self.open_after.setEnabled(chosen.suffix in (".jsonl", ".json"))
        new_id = bool(self.naming.currentData()) and resumable
        self.target.setText(str(self._folder / suggested_name(self._document, chosen.suffix, new_id=new_id)))
        self._describe()

    def _describe(self) -> None:
        path = Path(self.target.text().strip()).expanduser()
        self.write.setEnabled(bool(self.target.text().strip()))
        if path.exists():
            self.state.setText("▲ A file of that name exists: it is not overwritten, choose another name.")
        else:
            self.state.setText(
                "A new file is written: first under a temporary name, read again and checked, then renamed. "
                "The original stays as it is; Undo removes the new file." + left_behind(self._document)
            )

    def _on_browse(self) -> None:
        chosen, _ = QFileDialog.getSaveFileName(self, "New file", self.target.text())
        if chosen:
            self.target.setText(chosen)

    def _on_client_folder(self) -> None:
        folder = client_folder(self._document)
        if folder is not None:
            self._folder = folder
            self.naming.setCurrentIndex(0)
            self._suggest()

    def _on_write(self) -> None:
        session = self._document.session
        if session is None:
            return
        target = Path(self.target.text().strip()).expanduser()
        chosen = FORMATS[str(self.format.currentData())]
        options = ExportOptions(steps=self._document.lineage)

        def write(progress: Progress) -> tuple[Written, ...]:
            return (chosen.write(session, target, options, progress),)

        self.write.setEnabled(False)
        self.state.setText(f"Writing {target.name} …")
        job = self._context.runner.start(Op(f"Writing {target.name}", write))
        job.success(lambda files: self._on_written(files, write)).failure(self._on_failure)

    def _on_failure(self, error: Exception) -> None:
        self.write.setEnabled(True)
        self.state.setText(f"✖ {report_of(error, 'Writing').sentence()}")

    def _on_written(self, files: tuple[Written, ...], write: Write) -> None:
        self.written = files[0]
        path = self.written.path
        self._document.undo_stack.push(FileWritten(self._context, f"Export to {path.name}", files, write))
        if self._context.workspace is not None:
            self._context.workspace.tell(f"Wrote {path}")
            if self.open_after.isChecked() and self.open_after.isEnabled():
                self._context.workspace.open_path(path)
        self.accept()
