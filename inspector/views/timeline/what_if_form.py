"""What a simulation changes: window, thresholds, strategies on or off; every change runs it again."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QFormLayout, QSpinBox, QWidget

from compaction.accounting.settings import WindowSettings
from compaction.strategies.api_clear_tool_uses import ApiClearToolUsesSettings
from compaction.strategies.collapse import CollapseSettings
from compaction.strategies.microcompact_time import MicrocompactTimeSettings
from compaction.strategies.snip import SnipSettings
from compaction.strategies.what_if import WhatIf


class WhatIfForm(QWidget):
    """The settings of a `WhatIf`.

    Signals:
        changed(WhatIf): another value.
    """

    changed = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.auto = QCheckBox("AutoCompact")
        self.auto.setChecked(True)
        self.window_tokens = _spin(0, 2_000_000, 10_000, " tokens", "as the model has")
        self.percent = _spin(0, 100, 5, " %", "as the client has")
        self.micro = QCheckBox("MicroCompact, time-based")
        self.gap = _spin(1, 10_000, 5, " minutes")
        self.gap.setValue(60)
        self.keep = _spin(0, 1_000, 1, " results")
        self.keep.setValue(5)
        self.clear = QCheckBox("API: clear tool uses")
        self.snip = QCheckBox("Snip")
        self.collapse = QCheckBox("Context Collapse")
        form = QFormLayout(self)
        form.setContentsMargins(8, 4, 8, 4)
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        form.addRow(self.auto)
        form.addRow("Window", self.window_tokens)
        form.addRow("Threshold", self.percent)
        form.addRow(self.micro)
        form.addRow("  after", self.gap)
        form.addRow("  keep", self.keep)
        for box in (self.clear, self.snip, self.collapse):
            form.addRow(box)
        for check in (self.auto, self.micro, self.clear, self.snip, self.collapse):
            check.toggled.connect(self._tell)
        names = ((self.window_tokens, "Window"), (self.percent, "Threshold"), (self.gap, "Pause"), (self.keep, "Keep"))
        for spin, name in names:
            spin.setAccessibleName(name)
            spin.valueChanged.connect(self._tell)

    def value(self) -> WhatIf:
        """What the form says."""
        window = WindowSettings(
            auto_compact_window=self.window_tokens.value() or None,
            auto_compact_percent=float(self.percent.value()) or None,
        )
        micro = replace(
            MicrocompactTimeSettings(),
            enabled=self.micro.isChecked(),
            gap_threshold_minutes=float(self.gap.value()),
            keep_recent=self.keep.value(),
        )
        return WhatIf(
            window=window,
            auto_compact=self.auto.isChecked(),
            microcompact_time=micro,
            clear_tool_uses=ApiClearToolUsesSettings() if self.clear.isChecked() else None,
            snip=replace(SnipSettings(), enabled=self.snip.isChecked()),
            collapse=replace(CollapseSettings(), enabled=self.collapse.isChecked()),
        )

    def _tell(self, _value: object = None) -> None:
        self.changed.emit(self.value())


def _spin(low: int, high: int, step: int, suffix: str, special: str = "") -> QSpinBox:
    spin = QSpinBox()
    spin.setRange(low, high)
    spin.setSingleStep(step)
    spin.setSuffix(suffix)
    spin.setGroupSeparatorShown(True)
    if special:
        spin.setSpecialValueText(special)
    return spin
