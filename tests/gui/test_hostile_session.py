"""A session whose every text tries to be markup: no view reads the file it names or lays it out (qt.md 2d)."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QAbstractListModel, QPoint
from PySide6.QtGui import QColor, QImage, Qt
from PySide6.QtWidgets import QAbstractItemView, QLabel, QWidget
from pytestqt.qtbot import QtBot

from inspector.context import AppContext
from inspector.views.main_window import MainWindow
from inspector.views.registry import VIEWS

SECRET = QColor(201, 13, 177)


def hostile_records(secret: Path) -> list[dict[str, Any]]:
    """A small session with a markup image of a local file in every text that a view may show."""
    evil = f'<img src="file://{secret}"><img src="{secret}"> ![x]({secret}) <b>bold</b> \u202eevil \x00 \x1b[31m'

    def record(kind: str, number: int, content: Any, **more: Any) -> dict[str, Any]:
        message: dict[str, Any] = {"role": kind, "content": content}
        if kind == "assistant":
            usage = {"input_tokens": 5, "output_tokens": 3, "cache_read_input_tokens": 900}
            message |= {"id": f"{evil}{number}", "model": evil, "usage": usage, "stop_reason": evil}
        base = {"type": kind, "uuid": f"{evil}{number}", "sessionId": evil, "version": "2.1.120", "cwd": evil}
        parent = f"{evil}{number - 1}" if number else None
        return {**base, "parentUuid": parent, "timestamp": "2026-01-01T00:00:00Z", "message": message, **more}

    call = {"type": "tool_use", "id": evil, "name": evil, "input": {evil: evil, "file_path": evil}}
    edit = {"file_path": evil, "old_string": evil, "new_string": evil + "2"}
    return [
        record("user", 0, evil),
        record("assistant", 1, [{"type": "text", "text": evil}]),
        record("assistant", 2, [call]),
        record("user", 3, [{"type": "tool_result", "tool_use_id": evil, "content": evil, "is_error": True}]),
        record("assistant", 4, [{"type": "tool_use", "id": evil + "2", "name": "Edit", "input": edit}]),
        record("user", 5, [{"type": "tool_result", "tool_use_id": evil + "9", "content": [{"type": evil}]}]),
        {"type": "system", "subtype": evil, "content": evil, "uuid": evil + "s", "parentUuid": f"{evil}5"},
        {"type": evil, "x": evil},
        {"type": "summary", "summary": evil, "leafUuid": evil},
        record("user", 9, "end", parentUuid=evil + "gone"),
    ]


@pytest.fixture
def hostile_file(tmp_path: Path) -> Path:
    secret = tmp_path / "secret.png"
    image = QImage(60, 40, QImage.Format.Format_RGB32)
    image.fill(SECRET)
    image.save(str(secret))
    path = tmp_path / "hostile.jsonl"
    lines = [json.dumps(record).encode() for record in hostile_records(secret)]
    path.write_bytes(b"\n".join([*lines, b'{"broken <img src="file:///x">']) + b"\n")
    return path


def secret_points(widget: QWidget) -> int:
    image = widget.grab().toImage()
    places = itertools.product(range(0, image.width(), 4), range(0, image.height(), 4))
    return sum(image.pixelColor(x, y).rgb() == SECRET.rgb() for x, y in places)


def texts_taken_for_markup(window: QWidget) -> list[str]:
    """Texts of labels, buttons and tool tips that Qt would lay out as HTML and that quote the session."""
    labels = [label for label in window.findChildren(QLabel) if label.textFormat() != Qt.TextFormat.PlainText]
    found = [label.text() for label in labels if Qt.mightBeRichText(label.text())]
    for widget in window.findChildren(QWidget):
        found += [tip for tip in (widget.toolTip(), widget.statusTip()) if Qt.mightBeRichText(tip)]
    for view in window.findChildren(QAbstractItemView):
        model = view.model()
        columns = 0 if model is None else 1 if isinstance(model, QAbstractListModel) else model.columnCount()
        cells = itertools.product(range(min(model.rowCount(), 60)), range(columns)) if model is not None else ()
        for row, column in cells:
            tip = model.index(row, column).data(Qt.ItemDataRole.ToolTipRole)
            if isinstance(tip, str) and Qt.mightBeRichText(tip):
                found.append(tip)
    return [text for text in found if "img" in text]


def test_no_view_shows_or_lays_out_what_a_session_names(
    window: MainWindow, app_context: AppContext, qtbot: QtBot, hostile_file: Path
) -> None:
    document = window.open_path(hostile_file)
    qtbot.waitUntil(lambda: document.conversation is not None and not document.diagnosis.running)
    assert document.conversation is not None
    for spec in VIEWS:
        window.show_view(spec.id)
        for record in range(len(document.conversation.transcript)):
            document.select_record(record)
            qtbot.wait(1)
        assert app_context.runner.wait_until_idle()
        assert texts_taken_for_markup(window) == [], spec.id
        assert secret_points(window) == 0, spec.id
    assert app_context.errors.reports == []


def test_the_secret_would_be_seen(qtbot: QtBot, hostile_file: Path) -> None:
    """The control: an ordinary label shows the image, so that the test above can fail."""
    label = QLabel(f'<img src="{hostile_file.with_name("secret.png")}">')
    qtbot.addWidget(label)
    label.resize(100, 80)
    assert secret_points(label) > 50
    assert texts_taken_for_markup(_holder(qtbot, label)) != []


def _holder(qtbot: QtBot, label: QLabel) -> QWidget:
    holder = QWidget()
    qtbot.addWidget(holder)
    label.setParent(holder)
    label.move(QPoint(0, 0))
    return holder
