from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QIcon, QKeyEvent, QKeySequence, QPixmap
from PySide6.QtWidgets import QDialog, QLineEdit, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from inspector.context import AppContext

SHOWN = 200
"""More than there are commands: an empty line lists them all."""


@dataclass(frozen=True, slots=True)
class Match:
    """An action that fits the typed text; a lower score is better."""

    score: int
    action_id: str


def score(typed: str, text: str) -> int | None:
    """How well `typed` fits `text`: None when its letters do not occur in order; whole words and starts win.

    Linear in the text.
    """
    needle, hay = typed.lower().replace(" ", ""), text.lower()
    if not needle:
        return 0
    found = hay.find(typed.lower().strip())
    if found >= 0:
        return found if found == 0 or not hay[found - 1].isalnum() else found + 20
    position, gaps = -1, 0
    for letter in needle:
        following = hay.find(letter, position + 1)
        if following < 0:
            return None
        gaps += following - position - 1
        position = following
    return 100 + gaps


class Palette(QDialog):
    """Ctrl+K: type a few letters of any command, press Enter. Lists every action that can run now, and below them those
    that were meant but cannot, with the reason."""

    def __init__(self, context: AppContext, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self._context = context
        self.setWindowTitle("Commands")
        self.setAccessibleName("Commands")
        self.edit = QLineEdit()
        self.edit.setPlaceholderText("Type a command…")
        self.edit.setAccessibleName("Command")
        self.edit.setClearButtonEnabled(True)
        self.edit.textChanged.connect(self.refresh)
        self.edit.installEventFilter(self)
        self.list = QListWidget()
        self.list.setAccessibleName("Matching commands")
        self.list.setUniformItemSizes(True)
        self.list.setIconSize(QSize(16, 16))
        # Commands without a picture get an empty one, so that their texts stand below the others.
        blank = QPixmap(16, 16)
        blank.fill(Qt.GlobalColor.transparent)
        self._blank = QIcon(blank)
        self.list.itemActivated.connect(self.run_current)
        self.list.itemClicked.connect(self.run_current)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 8)
        layout.addWidget(self.edit)
        layout.addWidget(self.list)
        colours = context.theme.colours
        self.setStyleSheet(
            f"QDialog {{ background: {colours.raised}; border: 1px solid {colours.border}; }}"
            f"QListWidget {{ background: {colours.raised}; }}"
            f"QListWidget::item {{ padding: 5px; border-radius: 4px; }}"
            f"QListWidget::item:selected {{ background: {colours.fill}; color: {colours.on_accent}; }}"
        )
        width = min(parent.width() - 80, self.fontMetrics().averageCharWidth() * 84)
        self.resize(width, min(parent.height() - 120, self.fontMetrics().height() * 24))
        corner = parent.mapToGlobal(parent.rect().topLeft())
        self.move(corner.x() + (parent.width() - width) // 2, corner.y() + 60)
        self.refresh("")

    def matches(self, typed: str) -> list[Match]:
        """The actions that fit, best first, those that cannot run now behind the others (and none without typing); the
        menu may stand before the name, as it is shown."""
        found = []
        typed = " ".join(typed.replace(":", " ").split())
        for action in self._context.actions:
            idle = not self._context.actions.enabled(action.id)
            if idle and not typed:
                continue
            text = f"{action.menu.value} {action.label}".replace("&", "") if typed else action.label
            value = min((s for s in (score(typed, action.label), score(typed, text)) if s is not None), default=None)
            if value is None and action.tip:
                tip = score(typed, action.tip)
                value = tip + 300 if tip is not None and tip < 100 else None
            if value is not None:
                found.append((idle, value, text, action.id))
        return [Match(value, action_id) for _, value, _, action_id in sorted(found)[:SHOWN]]

    def refresh(self, typed: str) -> None:
        """List what fits the text."""
        self.list.clear()
        for match in self.matches(typed):
            action = self._context.actions[match.action_id]
            keys = QKeySequence(action.keys[0]).toString(QKeySequence.SequenceFormat.NativeText) if action.keys else ""
            menu = action.menu.value.replace("&", "")
            text = f"{menu}: {action.label}" if menu else action.label
            missing = self._context.actions.missing(action.id)
            item = QListWidgetItem("    ".join(filter(None, (text, f"✕ {missing}" if missing else keys))))
            if missing:
                item.setForeground(self._context.theme.named("muted"))
            item.setIcon(self._context.theme.icon(action.icon) if action.icon else self._blank)
            item.setData(Qt.ItemDataRole.UserRole, action.id)
            item.setToolTip(action.tip)
            self.list.addItem(item)
        if not self.list.count():
            nothing = QListWidgetItem("No command fits")
            nothing.setFlags(Qt.ItemFlag.NoItemFlags)
            self.list.addItem(nothing)
        self.list.setCurrentRow(0)

    def run_current(self) -> None:
        """Close and run the selected action."""
        item = self.list.currentItem()
        action_id = item.data(Qt.ItemDataRole.UserRole) if item is not None else None
        if action_id and self._context.actions.enabled(action_id):
            self.accept()
            self._context.actions.run(action_id)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Arrow keys in the line move in the list."""
        if watched is self.edit and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            step = {
                Qt.Key.Key_Down: 1,
                Qt.Key.Key_Up: -1,
                Qt.Key.Key_PageDown: 10,
                Qt.Key.Key_PageUp: -10,
            }.get(Qt.Key(event.key()))
            if step is not None:
                self.list.setCurrentRow(max(0, min(self.list.count() - 1, self.list.currentRow() + step)))
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self.run_current()
                return True
        return super().eventFilter(watched, event)
