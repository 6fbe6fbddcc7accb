from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QToolButton, QWidget

from inspector.context import AppContext
from inspector.models.filter_language import FIELDS

DEBOUNCE_MILLISECONDS = 150


class FindBar(QWidget):
    """One line for text and field filters, how many matches, next and previous, and "only matches".

    Signals:
        query_changed(str): 150 ms after the last key.
        stepped(int): +1 next, −1 previous.
        only_changed(bool): show only the matches, or everything.
        closed(): Escape or the close button.
    """

    query_changed = Signal(str)
    stepped = Signal(int)
    only_changed = Signal(bool)
    closed = Signal()

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self.setObjectName("find_bar")
        self.setAccessibleName("Find and filter")
        self.edit = QLineEdit()
        self.edit.setAccessibleName("Find")
        self.edit.setPlaceholderText("Find words, or fields:  tool:Bash  error:yes  tokens:>2000  type:user")
        self.edit.setClearButtonEnabled(True)
        self.edit.setToolTip(fields_help())
        self.edit.textChanged.connect(self._on_text)
        self.count = QLabel()
        self.count.setTextFormat(Qt.TextFormat.PlainText)
        self.count.setAccessibleName("Matches")
        self.previous = self._button(
            "previous", "Previous match (Shift+F3, Shift+Enter)", lambda: self.stepped.emit(-1)
        )
        self.next = self._button("next", "Next match (F3, Enter)", lambda: self.stepped.emit(1))
        self.only = self._button("filter", "Show only the matches", None)
        self.only.setCheckable(True)
        self.only.setText("Only matches")
        self.only.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.only.toggled.connect(self.only_changed)
        self._close = self._button("close", "Close (Esc)", self.close_bar)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(8, 5, 8, 5)
        layout.setSpacing(4)
        layout.addWidget(self.edit, 1)
        for widget in (self.count, self.previous, self.next, self.only, self._close):
            layout.addWidget(widget)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(DEBOUNCE_MILLISECONDS)
        self._timer.timeout.connect(lambda: self.query_changed.emit(self.edit.text()))
        context.theme.changed.connect(self.retint)
        self.retint()

    def open_bar(self, text: str | None = None) -> None:
        """Show the bar, focus its line, and put text into it when given."""
        self.show()
        self.edit.setFocus(Qt.FocusReason.ShortcutFocusReason)
        if text is not None:
            self.edit.setText(text)
        else:
            self.edit.selectAll()

    def close_bar(self) -> None:
        """Hide the bar and show everything again."""
        self._timer.stop()
        self.only.setChecked(False)
        self.hide()
        self.closed.emit()

    def tell(self, text: str, *, error: bool = False) -> None:
        """What stands beside the line: the number of matches, or why the filter cannot be read."""
        self.count.setText(text)
        self.count.setProperty("error", error)
        colour = self._context.theme.colours.error if error else self._context.theme.colours.muted
        self.count.setStyleSheet(f"color: {colour}; padding: 0 6px;")

    def retint(self) -> None:
        """Icons and colours of the theme."""
        for button in (self.previous, self.next, self.only, self._close):
            button.setIcon(self._context.theme.icon(button.objectName()))
        colours = self._context.theme.colours
        self.setStyleSheet(f"#find_bar {{ background: {colours.window}; border-bottom: 1px solid {colours.border}; }}")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.tell(self.count.text(), error=bool(self.count.property("error")))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter goes to the next match, Shift+Enter to the one before, Escape closes."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.stepped.emit(-1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1)
        elif event.key() == Qt.Key.Key_Escape:
            self.close_bar()
        else:
            super().keyPressEvent(event)

    def _on_text(self, _text: str) -> None:
        self._timer.start()

    def _button(self, icon: str, tip: str, slot: object) -> QToolButton:
        button = QToolButton()
        button.setObjectName(icon)
        button.setToolTip(tip)
        button.setAccessibleName(tip)
        if callable(slot):
            button.clicked.connect(lambda _checked=False: slot())
        return button


def fields_help() -> str:
    """The fields of the filter language, one a line, generated from the language itself."""
    lines = [field.help for field in FIELDS.values()]
    return 'Words must all occur; -word must not; "several words" is one text.\n' + "\n".join(lines)
