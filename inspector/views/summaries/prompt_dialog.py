"""The prompt of one summary run: read it, change it for this run, or take the standard one again."""

from __future__ import annotations

from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPlainTextEdit, QVBoxLayout, QWidget

from inspector.views.detail.pages import plain_label


class PromptDialog(QDialog):
    """Edits a prompt; `prompt()` is "" while it is the standard one."""

    def __init__(self, standard: str, current: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._standard = standard
        self.setWindowTitle("Prompt of the summary")
        note = plain_label(
            "What the model is asked, after the conversation. A change counts for this view until it is closed. The "
            "answer must hold one <summary> block."
        )
        note.setWordWrap(True)
        self.editor = QPlainTextEdit(current or standard)
        self.editor.setAccessibleName("Prompt")
        self.editor.setTabChangesFocus(True)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel)
        self.restore = buttons.addButton("Standard prompt", QDialogButtonBox.ButtonRole.ResetRole)
        self.restore.clicked.connect(lambda: self.editor.setPlainText(self._standard))
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.addWidget(note)
        layout.addWidget(self.editor, 1)
        layout.addWidget(buttons)
        self.resize(760, 560)

    def prompt(self) -> str:
        """The prompt for the run, "" for the standard one."""
        text = self.editor.toPlainText().strip()
        return "" if text == self._standard.strip() else text
