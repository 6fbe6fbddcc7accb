"""A field for a list of names that shows all of them, however many lines they take."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QPlainTextEdit, QSizePolicy


class NamesEdit(QPlainTextEdit):
    """Names separated by commas; Enter or leaving the field tells a change.

    Signals:
        changed(list[str]): other names than before.
    """

    changed = Signal(object)

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(", ".join(names))
        self._names = list(names)
        self.setPlaceholderText("names, separated by commas")
        self.setTabChangesFocus(True)
        self.setProperty("framed", True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.textChanged.connect(self._fit)
        self._fit()

    def names(self) -> list[str]:
        """What is written, as names."""
        return [name.strip() for name in self.toPlainText().replace("\n", ",").split(",") if name.strip()]

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter tells the change, as in a field of one line."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._tell()
        else:
            super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Tell the change."""
        super().focusOutEvent(event)
        self._tell()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width takes another number of lines."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        lines = max(1, int(self.document().size().height()))
        around = self.height() - self.viewport().height() + 2 * self.document().documentMargin()
        self.setFixedHeight(math.ceil(lines * self.fontMetrics().lineSpacing() + around))

    def _tell(self) -> None:
        names = self.names()
        if names != self._names:
            self._names = names
            self.changed.emit(names)
