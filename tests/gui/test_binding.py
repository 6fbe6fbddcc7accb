from __future__ import annotations

import sys

from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot


def test_calls_that_return_nothing_keep_their_reference_to_none(qtbot: QtBot) -> None:
    """qt.md section 3.3: with PySide6 6.12.0 on Python 3.11 each such call loses one, and the process dies of it."""
    label = QLabel()
    qtbot.addWidget(label)
    before = sys.getrefcount(None)
    for number in range(20_000):
        label.setText("even" if number % 2 else "odd")
    assert abs(sys.getrefcount(None) - before) < 1_000
