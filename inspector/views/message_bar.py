from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QMessageBox, QPushButton, QSizePolicy, QToolButton, QWidget

from inspector.context import AppContext
from inspector.work.errors import ErrorReport


class MessageBar(QFrame):
    """A strip above the tabs that tells the last error: what, where, why, what to do. Plain text only."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._reports: list[ErrorReport] = []
        self.setObjectName("message_bar")
        self.setAccessibleName("Message")
        self._icon = QLabel()
        self._text = QLabel()
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setWordWrap(True)
        self._text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._text.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._details = QPushButton("Details…")
        self._details.clicked.connect(self._show_details)
        self.action = QPushButton()
        self.action.clicked.connect(lambda _on=False: self._act())
        self._act: Callable[[], object] = self.dismiss
        self._notice = ""
        copy = QPushButton("Copy")
        copy.clicked.connect(self._copy)
        self._close = QToolButton()
        self._close.setAccessibleName("Dismiss the message")
        self._close.setToolTip("Dismiss (Esc)")
        self._close.clicked.connect(self.dismiss)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(12, 6, 8, 6)
        for widget in (self._icon, self._text, self.action, self._details, copy, self._close):
            layout.addWidget(widget)
        layout.setStretch(1, 1)
        context.errors.reported.connect(self.show_report)
        context.theme.changed.connect(self._retint)
        self._retint()
        self.hide()

    @property
    def text(self) -> str:
        """What the bar says now."""
        return self._text.text()

    def show_report(self, report: ErrorReport) -> None:
        """Show a report; several at once are counted and kept in Details."""
        self._reports.append(report)
        self._notice = ""
        self._retint()
        more = f"  (and {len(self._reports) - 1} more)" if len(self._reports) > 1 else ""
        self._text.setText(f"{report.title}: {report.sentence()}{more}")
        self._details.setVisible(report.unexpected or len(self._reports) > 1)
        self.action.hide()
        self.show()

    def show_notice(self, text: str, button: str, act: Callable[[], object]) -> None:
        """Say something that is no error, with one thing that can be done about it; an error shown stays in front."""
        if self._reports:
            return
        self._notice, self._act = text, act
        self._text.setText(text)
        self.action.setText(button)
        self.action.show()
        self._details.hide()
        self._retint()
        self.show()

    def dismiss(self) -> None:
        """Hide the bar and forget what it held."""
        self._reports.clear()
        self._notice = ""
        self.hide()

    def full_text(self) -> str:
        """All reports with their details, for copying."""
        if self._notice:
            return self._notice
        return "\n\n".join(f"{r.title}: {r.sentence()}\n{r.details}".strip() for r in self._reports)

    def _show_details(self) -> None:
        box = QMessageBox(self.window())
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setWindowTitle("Details")
        box.setText("\n".join(f"{r.title}: {r.sentence()}" for r in self._reports[-10:]))
        box.setDetailedText(self.full_text())
        box.exec()

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.full_text())

    def _retint(self) -> None:
        colours = self._context.theme.colours
        sign: Literal["warning", "error"] = "warning" if self._notice else "error"
        fill = colours.changed if self._notice else colours.removed
        self._icon.setPixmap(self._context.theme.pixmap(sign, 20, sign, self.devicePixelRatioF()))
        self._close.setIcon(self._context.theme.icon("close", "muted"))
        self.setStyleSheet(f"#message_bar {{ background: {fill}; border-bottom: 1px solid {colours.border}; }}")
