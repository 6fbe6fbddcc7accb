"""A line to look for text in the shown section."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QToolButton, QWidget


class FindBar(QWidget):
    """Text field with next, previous and close.

    Signals:
        wanted(text, backward): look for the text.
        closed(): Esc or the close button.
    """

    wanted = Signal(str, bool)
    closed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.field = QLineEdit()
        self.field.setPlaceholderText("Find in this section")
        self.field.setAccessibleName("Find in this section")
        self.field.setClearButtonEnabled(True)
        self.field.returnPressed.connect(self._on_next)
        self.status = QLabel()
        self.status.setTextFormat(Qt.TextFormat.PlainText)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(6, 4, 6, 4)
        layout.addWidget(self.field, 1)
        layout.addWidget(self.status)
        for text, name, slot in (
            ("▲", "Previous (Shift+Enter)", self._on_previous),
            ("▼", "Next (Enter)", self._on_next),
            ("✕", "Close (Esc)", self.closed.emit),
        ):
            button = QToolButton()
            button.setText(text)
            button.setToolTip(name)
            button.setAccessibleName(name)
            button.clicked.connect(slot)
            layout.addWidget(button)

    def open(self) -> None:
        """Show the bar and put the focus in its field."""
        self.status.clear()
        self.show()
        self.field.setFocus()
        self.field.selectAll()

    def tell(self, found: bool) -> None:
        """Say whether the text was found."""
        self.status.setText("" if found else "Not found")

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Esc closes, Shift+Enter goes back."""
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if event.key() == Qt.Key.Key_Escape:
            self.closed.emit()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and shift:
            self._on_previous()
        else:
            super().keyPressEvent(event)

    def _on_next(self) -> None:
        self.wanted.emit(self.field.text(), False)

    def _on_previous(self) -> None:
        self.wanted.emit(self.field.text(), True)
