"""Tool names come from the file: tree and overview show each on one line without control characters."""

from __future__ import annotations

from PySide6.QtCore import Qt

from compaction.conversation import Session
from inspector.models.outline import OutlineModel
from inspector.models.outline_rows import arrange
from inspector.models.outline_structure import Shown
from inspector.models.overview import overview_of
from tests.unit.hostile_samples import hostile_inputs
from tests.unit.session_samples import conversation_of


def test_a_tool_name_with_breaks_and_escapes_is_one_printable_line() -> None:
    session = Session(conversation_of(hostile_inputs()["names with escapes"]))
    tables = {table.title: table for table in overview_of(session).tables}
    assert tables["Tools"].lines
    assert all(line.cells[0].isprintable() for line in tables["Tools"].lines)
    model = OutlineModel(session, arrange(session, Shown()))
    places = [model.index(row, column) for row in range(model.rowCount()) for column in range(model.columnCount())]
    texts = [str(model.data(place, Qt.ItemDataRole.DisplayRole) or "") for place in places]
    assert any("red" in text for text in texts)
    assert all(text.isprintable() for text in texts)
