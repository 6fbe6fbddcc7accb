from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from inspector.context import AppContext
from inspector.plain_text import plain_tip

HINTS = (
    ("file.open", "Open a session"),
    ("view.palette", "Every command"),
    ("edit.find", "Find and filter"),
    ("go.pair", "From a tool_use to its tool_result"),
    ("help.contents", "Help"),
)


class StartPage(QWidget):
    """What the window shows without a session: open, the sample, recent files, the five keys worth knowing."""

    path_chosen = Signal(str)

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self.setObjectName("start_page")
        self.setAccessibleName("Start page")
        self._logo = QLabel()
        self._title = _label("Compactoscope", 2.0, bold=True)
        tagline = _label("See, account, diagnose, mend and compact AI coding-agent sessions.", 1.05)
        tagline.setObjectName("muted")
        head = QHBoxLayout()
        head.setSpacing(16)
        names = QVBoxLayout()
        names.setSpacing(2)
        names.addWidget(self._title)
        names.addWidget(tagline)
        head.addWidget(self._logo)
        head.addLayout(names, 1)

        self.open_button = self._button("Open a session…", "open", "file.open", default=True)
        self.sample_button = self._button("Open the sample", "sample", "file.open_sample")
        self.reopen_button = self._button("Reopen the last sessions", "recent", "file.reopen_last")
        buttons = QHBoxLayout()
        buttons.setSpacing(10)
        for button in (self.open_button, self.sample_button, self.reopen_button):
            buttons.addWidget(button)
        buttons.addStretch()

        self.recent = QListWidget()
        self.recent.setAccessibleName("Recent files")
        self.recent.setFrameShape(QFrame.Shape.NoFrame)
        self.recent.itemActivated.connect(self._on_activated)
        self._recent_title = _label("Recent files", 1.0, bold=True)
        self._no_recent = QLabel(
            "Sessions you open appear here. Or drop .jsonl files, or a folder of them, on the window."
        )
        self._no_recent.setObjectName("muted")
        self._no_recent.setWordWrap(True)

        column = QWidget()
        column.setMaximumWidth(self.fontMetrics().averageCharWidth() * 118)
        layout = QVBoxLayout(column)
        layout.setSpacing(14)
        layout.addStretch(1)
        layout.addLayout(head)
        layout.addSpacing(6)
        layout.addLayout(buttons)
        layout.addSpacing(12)
        layout.addWidget(self._recent_title)
        layout.addWidget(self._no_recent)
        layout.addWidget(self.recent)
        layout.addSpacing(8)
        layout.addLayout(self._hints())
        layout.addSpacing(8)
        promise = QLabel("Originals are never changed, and nothing leaves this machine without a button that says so.")
        promise.setObjectName("muted")
        promise.setWordWrap(True)
        layout.addWidget(promise)
        layout.addStretch(2)
        outer = QHBoxLayout(self)
        outer.setContentsMargins(40, 20, 40, 20)
        outer.addStretch(1)
        outer.addWidget(column, 20)
        outer.addStretch(1)
        context.theme.changed.connect(self._retint)
        self._retint()
        self.refresh()

    def refresh(self) -> None:
        """Read the recent files again; those that are gone are greyed."""
        self.recent.clear()
        for path in self._context.settings.recent_files:
            there = Path(path).exists()
            item = QListWidgetItem(f"{Path(path).name}\n{_short(Path(path).parent)}" + ("" if there else "  (gone)"))
            item.setData(Qt.ItemDataRole.UserRole, path)
            item.setToolTip(plain_tip(path))
            item.setIcon(self._context.theme.icon("document", "muted"))
            if not there:
                item.setFlags(Qt.ItemFlag.NoItemFlags)
            self.recent.addItem(item)
        found = self.recent.count()
        self.recent.setVisible(found > 0)
        self._no_recent.setVisible(found == 0)
        height = self.fontMetrics().height() * 2 + 12
        self.recent.setIconSize(QSize(24, 24))
        self.recent.setFixedHeight(min(found, 5) * (height + 2) + 8)
        for row in range(found):
            self.recent.item(row).setSizeHint(QSize(100, height))
        self.sample_button.setEnabled(self._context.actions.enabled("file.open_sample"))
        self.reopen_button.setVisible(self._context.actions.enabled("file.reopen_last"))

    def _on_activated(self, item: QListWidgetItem) -> None:
        self.path_chosen.emit(item.data(Qt.ItemDataRole.UserRole))

    def _button(self, text: str, icon: str, action_id: str, default: bool = False) -> QPushButton:
        button = QPushButton(f" {text}")
        button.setProperty("icon_name", icon)
        button.setDefault(default)
        # Outside a dialog only this lets Return press the button that has the focus.
        button.setAutoDefault(True)
        button.setIconSize(QSize(20, 20))
        button.setMinimumHeight(self.fontMetrics().height() * 2 + 4)
        button.setToolTip(self._context.actions[action_id].tip)
        button.clicked.connect(lambda _checked=False, actions=self._context.actions: actions.run(action_id))
        return button

    def _hints(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(6)
        for number, (action_id, text) in enumerate(HINTS):
            keys = self._context.actions[action_id].keys
            key = QLabel(QKeySequence(keys[0]).toString(QKeySequence.SequenceFormat.NativeText) if keys else "")
            key.setObjectName("key")
            key.setAlignment(Qt.AlignmentFlag.AlignCenter)
            grid.addWidget(key, number // 2, number % 2 * 2)
            grid.addWidget(QLabel(text), number // 2, number % 2 * 2 + 1)
        grid.setColumnStretch(1, 1)
        grid.setColumnStretch(3, 1)
        return grid

    def _retint(self) -> None:
        theme = self._context.theme
        colours = theme.colours
        self._logo.setPixmap(theme.pixmap("app", 64, "accent", self.devicePixelRatioF()))
        for button in (self.open_button, self.sample_button, self.reopen_button):
            role = "on_accent" if button.isDefault() else "text"
            button.setIcon(theme.icon(button.property("icon_name"), role))  # type: ignore[arg-type]
        self.setStyleSheet(
            f"#muted {{ color: {colours.muted}; }}"
            f"#key {{ background: {colours.raised}; border: 1px solid {colours.border}; border-radius: 4px;"
            f" padding: 2px 7px; color: {colours.text}; }}"
            f"QListWidget {{ background: {colours.base}; border: 1px solid {colours.border}; border-radius: 6px;"
            f" padding: 3px; }}"
            f"QListWidget::item {{ border-radius: 4px; padding: 2px 6px; color: {colours.text}; }}"
            f"QListWidget::item:hover {{ background: {colours.hover}; }}"
            f"QListWidget::item:selected {{ background: {colours.fill}; color: {colours.on_accent}; }}"
        )


def _label(text: str, scale: float, bold: bool = False) -> QLabel:
    label = QLabel(text)
    font = label.font()
    font.setPointSizeF(font.pointSizeF() * scale)
    font.setBold(bold)
    label.setFont(font)
    return label


def _short(folder: Path) -> str:
    """The folder with the home folder written as ~."""
    try:
        return str(Path("~") / folder.relative_to(Path.home()))
    except ValueError:
        return str(folder)
