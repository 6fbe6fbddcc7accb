"""A form made from a strategy's typed settings; every change is told at once and previewed live."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFormLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QWidget,
)

from compaction.strategies.settings import SettingSpec, settings_json, specs_of
from inspector.documents.workbench import Column
from inspector.models.strategy_help import plain_source
from inspector.views.compare.names_edit import NamesEdit

_LARGEST = 2_000_000_000


def _suffix(spec: SettingSpec) -> str:
    """The unit behind the value, unless the title says it already."""
    return f" {spec.unit}" if spec.unit and not spec.title.endswith(spec.unit) else ""


def _narrow(editor: QAbstractSpinBox, suffix: str) -> None:
    """Let a field be as narrow as ordinary values need: the largest ones would push it below its title."""
    marks = 34  # the buttons and the frame
    editor.setMinimumWidth(editor.fontMetrics().horizontalAdvance(f"1,000,000{suffix}") + marks)


class SettingsForm(QWidget):
    """The settings of one column.

    Signals:
        changed(dict): the settings that the person changed just now, key → value.
    """

    changed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.form = QFormLayout(self)
        self.form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        self.form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        self.form.setVerticalSpacing(5)
        self.form.setContentsMargins(8, 4, 8, 8)
        self.editors: dict[str, QWidget] = {}
        self._column: Column | None = None

    def show_column(self, column: Column | None) -> None:
        """Build the form of a column, or empty it."""
        self._column = column
        for editor in self.editors.values():
            # One that loses the focus while it is removed would tell its value of the column before.
            editor.blockSignals(True)
        self.editors.clear()
        while self.form.rowCount():
            self.form.removeRow(0)
        if column is None:
            return
        specs = specs_of(column.strategy.settings_type)
        values = settings_json(column.settings)
        for spec in specs:
            editor = self._editor(spec, values[spec.key])
            tip = f"{spec.help} Default: {spec.default}. Source: {plain_source(spec.source)}."
            editor.setToolTip(tip)
            editor.setWhatsThis(tip)
            editor.setAccessibleName(spec.title)
            editor.setAccessibleDescription(spec.help)
            self.editors[spec.key] = editor
            label = QLabel(spec.title.capitalize())
            label.setToolTip(tip)
            label.setBuddy(editor)
            if isinstance(editor, NamesEdit):
                # Below its title: beside it, the names would be a column of single words.
                self.form.addRow(label)
                self.form.addRow(editor)
            else:
                self.form.addRow(label, editor)
        if not specs:
            self.form.addRow(QLabel("This strategy has no settings."))
            return
        reset = QPushButton("Back to the defaults")
        reset.clicked.connect(lambda: self._tell({s.key: s.default for s in specs}, rebuild=True))
        self.form.addRow("", reset)

    def _tell(self, values: dict[str, Any], rebuild: bool = False) -> None:
        self.changed.emit(values)
        if rebuild:
            self.show_column(self._column)

    def _editor(self, spec: SettingSpec, value: Any) -> QWidget:
        make: dict[str, Callable[[SettingSpec, Any], QWidget]] = {
            "integer": self._integer,
            "number": self._number,
            "switch": self._switch,
            "choice": self._choice,
            "names": self._names,
            "text": self._line,
        }
        return make[spec.type](spec, value)

    def _integer(self, spec: SettingSpec, value: Any) -> QWidget:
        editor = QSpinBox()
        editor.setRange(int(spec.minimum or 0), int(spec.maximum if spec.maximum is not None else _LARGEST))
        editor.setGroupSeparatorShown(True)
        editor.setSingleStep(1000 if int(value) >= 5000 else 1)
        editor.setSuffix(_suffix(spec))
        _narrow(editor, _suffix(spec))
        editor.setValue(int(value))
        editor.valueChanged.connect(lambda number: self._tell({spec.key: number}))
        return editor

    def _number(self, spec: SettingSpec, value: Any) -> QWidget:
        editor = QDoubleSpinBox()
        editor.setRange(spec.minimum or 0.0, spec.maximum if spec.maximum is not None else 1e9)
        editor.setDecimals(1)
        editor.setSuffix(_suffix(spec))
        _narrow(editor, _suffix(spec))
        editor.setValue(float(value))
        editor.valueChanged.connect(lambda number: self._tell({spec.key: number}))
        return editor

    def _switch(self, spec: SettingSpec, value: Any) -> QWidget:
        editor = QCheckBox()
        editor.setChecked(bool(value))
        editor.toggled.connect(lambda on: self._tell({spec.key: on}))
        return editor

    def _choice(self, spec: SettingSpec, value: Any) -> QWidget:
        editor = QComboBox()
        editor.addItems(list(spec.choices))
        editor.setCurrentText(str(value))
        editor.currentTextChanged.connect(lambda text: self._tell({spec.key: text}))
        return editor

    def _names(self, spec: SettingSpec, value: Any) -> QWidget:
        editor = NamesEdit(value)
        editor.changed.connect(lambda names: self._tell({spec.key: names}))
        return editor

    def _line(self, spec: SettingSpec, value: Any) -> QWidget:
        editor = QLineEdit(str(value))
        editor.editingFinished.connect(lambda: self._tell({spec.key: editor.text()}))
        return editor
