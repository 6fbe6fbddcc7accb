"""What a step has of one kind, or a sentence why it has nothing of it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QStackedWidget, QWidget

from inspector.views.detail.pages import plain_label


class ContentPage(QStackedWidget):
    """A widget for the content, and in its place a sentence where there is none."""

    def __init__(self, content: QWidget) -> None:
        super().__init__()
        self.sentence = plain_label()
        self.sentence.setWordWrap(True)
        self.sentence.setContentsMargins(9, 8, 9, 8)
        self.sentence.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        self.addWidget(content)
        self.addWidget(self.sentence)

    @property
    def has_content(self) -> bool:
        """Whether the content is shown, not the sentence."""
        return self.currentIndex() == 0

    def show_content(self, has_content: bool, reason: str) -> None:
        """Show the content, or why there is none."""
        self.sentence.setText(reason)
        self.setCurrentIndex(0 if has_content else 1)
