"""The client's settings of a session view: profile and every override that moves the window and its limits."""

from __future__ import annotations

from dataclasses import fields

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QLabel,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)

from compaction.accounting.profiles import profiles
from compaction.accounting.settings import SETTINGS, SettingSpec, WindowSettings, percent, positive_integer
from inspector.documents.accounting import Accounting


class LimitsDialog(QDialog):
    """Edits `Accounting.client` and `Accounting.overrides`; nothing changes before OK."""

    def __init__(self, accounting: Accounting, recorded: list[str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._accounting = accounting
        self.setWindowTitle("Client and limits")
        self.setModal(True)
        self.client = QComboBox()
        self.client.setAccessibleName("Client profile")
        self.client.addItem("The newest version recorded in the session", "")
        for version in sorted({v for v in recorded if v[:1].isdigit()})[-20:]:
            self.client.addItem(f"Version {version} (recorded)", version)
        for profile in profiles():
            self.client.addItem(f"{profile.title}", profile.id)
            self.client.setItemData(self.client.count() - 1, profile.source, Qt.ItemDataRole.ToolTipRole)
        self.client.setCurrentIndex(max(0, self.client.findData(accounting.client)))
        form = QFormLayout()
        form.addRow("Client", self.client)
        self.editors: dict[str, QLineEdit | QCheckBox] = {}
        for spec in SETTINGS:
            editor = self._editor(spec, getattr(accounting.overrides, spec.key))
            self.editors[spec.key] = editor
            title = spec.key.replace("_", " ").capitalize() + (f" ({spec.unit})" if spec.unit else "")
            form.addRow(title, editor)
        note = QLabel("These are the client's environment variables and settings, as if they had been set.")
        note.setWordWrap(True)
        self.problem = QLabel()
        self.problem.setWordWrap(True)
        buttons = QDialogButtonBox(
            QDialogButtonBox.StandardButton.Ok
            | QDialogButtonBox.StandardButton.Cancel
            | QDialogButtonBox.StandardButton.RestoreDefaults
        )
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        buttons.button(QDialogButtonBox.StandardButton.RestoreDefaults).clicked.connect(self._restore)
        layout = QVBoxLayout(self)
        layout.addWidget(note)
        layout.addLayout(form)
        layout.addWidget(self.problem)
        layout.addWidget(buttons)
        self.setMinimumWidth(self.fontMetrics().averageCharWidth() * 132)

    @staticmethod
    def _editor(spec: SettingSpec, value: object) -> QLineEdit | QCheckBox:
        editor: QLineEdit | QCheckBox
        if spec.type == "switch":
            editor = QCheckBox(spec.environment or "settings file")
            editor.setChecked(bool(value))
        else:
            editor = QLineEdit("" if value is None else f"{value:g}" if isinstance(value, float) else str(value))
            editor.setPlaceholderText(f"{spec.default}  ({spec.environment})")
        editor.setToolTip(f"{spec.help} ({spec.source})")
        editor.setAccessibleName(spec.key.replace("_", " "))
        editor.setAccessibleDescription(spec.help)
        return editor

    def settings(self) -> WindowSettings | None:
        """What the form says; None when a field holds something the client would ignore (it is named)."""
        values: dict[str, object] = {}
        for spec in SETTINGS:
            editor = self.editors[spec.key]
            if isinstance(editor, QCheckBox):
                values[spec.key] = editor.isChecked()
                continue
            text = editor.text().strip().replace(",", "")
            parsed = (percent(text) if spec.type == "percent" else positive_integer(text)) if text else None
            if text and parsed is None:
                allowed = "a number above 0 and up to 100" if spec.type == "percent" else "a positive whole number"
                self.problem.setText(f"✖ {spec.key.replace('_', ' ')}: {allowed} is needed; the client ignores others.")
                editor.setFocus()
                return None
            values[spec.key] = parsed
        names = {f.name for f in fields(WindowSettings)}
        return WindowSettings(**{k: v for k, v in values.items() if k in names})  # type: ignore[arg-type]

    def accept(self) -> None:
        """Take the settings over, unless one of them is none."""
        chosen = self.settings()
        if chosen is None:
            return
        self._accounting.choose(client=str(self.client.currentData()), overrides=chosen)
        super().accept()

    def _restore(self) -> None:
        defaults = WindowSettings()
        self.client.setCurrentIndex(0)
        for spec in SETTINGS:
            editor = self.editors[spec.key]
            if isinstance(editor, QCheckBox):
                editor.setChecked(bool(getattr(defaults, spec.key)))
            else:
                editor.clear()
