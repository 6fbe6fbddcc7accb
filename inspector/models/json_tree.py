"""A decoded JSON value as a tree: children are listed when a row is opened, long arrays in ranges."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QColor

from inspector.models.flat_tree import FlatRow, FlatTreeModel
from inspector.rendering.visible_text import bytes_text, visible

SHOWN_CHARACTERS = 200
"""Longest text of a cell; whole texts open in a view of their own (qt.md 3.1)."""

RANGE_SIZE = 1000
"""Most children listed at once; longer arrays and objects are listed in ranges."""


@dataclass(frozen=True, slots=True, eq=False)
class JsonNode:
    """A member of an object or an item of an array.

    Attributes:
        name: the member's name or "[3]"; "" for the whole value.
        value: the decoded value (not a copy).
        path: how a program would reach it, `message.content[0].text`.
        start, end: for a range of a long container: which of its children; end 0 for a value itself.
    """

    name: str
    value: Any
    path: str
    start: int = 0
    end: int = 0


class JsonTreeModel(FlatTreeModel):
    """Names and values of one decoded JSON value; texts are cut at 200 characters and control characters shown."""

    columns = ("Name", "Value")

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._colours: dict[str, QColor] = {}

    def set_value(self, value: Any, name: str = "record") -> None:
        """Show a value with its first level open."""
        root = FlatRow(JsonNode(name, value, ""), 0, _has_children(value))
        self.set_rows([root])
        self.set_expanded(0, True)

    def set_colours(self, syntax: dict[str, QColor], muted: QColor) -> None:
        """Colours of texts, numbers and containers."""
        self._colours = {
            "text": syntax["Literal.String"],
            "number": syntax["Literal.Number"],
            "word": syntax["Keyword"],
            "container": muted,
        }
        if self.rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self.rows) - 1, 1))

    def children_of(self, row: FlatRow) -> list[FlatRow]:
        """The members or items of a container, or ranges of them."""
        node: JsonNode = row.data
        total = len(node.value)
        start, end = (node.start, node.end) if node.end else (0, total)
        if end - start > RANGE_SIZE:
            step = RANGE_SIZE
            while (end - start) / step > RANGE_SIZE:
                step *= RANGE_SIZE
            bounds = [(first, min(first + step, end)) for first in range(start, end, step)]
            return [
                FlatRow(JsonNode(f"{first:,} … {last - 1:,}", node.value, node.path, first, last), expandable=True)
                for first, last in bounds
            ]
        if isinstance(node.value, dict):
            members = list(node.value.items())[start:end]
            return [_row(str(name), value, _member_path(node.path, str(name))) for name, value in members]
        return [
            _row(f"[{position}]", node.value[position], f"{node.path}[{position}]") for position in range(start, end)
        ]

    def text(self, row: FlatRow, column: int) -> str:
        """Name or value, at most 200 characters."""
        node: JsonNode = row.data
        if column == 0:
            return visible(node.name[:SHOWN_CHARACTERS])
        if node.end:
            return ""
        return value_text(node.value)

    def copied(self, row: FlatRow) -> str:
        """The whole value: a text as it is, anything else as indented JSON."""
        node: JsonNode = row.data
        if isinstance(node.value, str):
            return node.value
        return json.dumps(node.value, ensure_ascii=False, indent=2, default=str)

    def decoration(self, row: FlatRow, column: int, role: int) -> object:
        """Colour by kind of value, and how long a text is as a tool tip."""
        node: JsonNode = row.data
        if column == 1 and role == Qt.ItemDataRole.ForegroundRole:
            return self._colours.get(_kind(node.value))
        if role == Qt.ItemDataRole.ToolTipRole and isinstance(node.value, str) and len(node.value) > SHOWN_CHARACTERS:
            return f"{len(node.value):,} characters; press Enter to read them all"
        return None


def value_text(value: Any) -> str:
    """A value in one line: texts in quotes and cut, containers as their size."""
    if isinstance(value, str):
        if len(value) <= SHOWN_CHARACTERS:
            return _quoted(value)
        return f"{_quoted(value[:SHOWN_CHARACTERS])}… {bytes_text(len(value))}"
    if isinstance(value, dict):
        return f"{{ {len(value):,} {'member' if len(value) == 1 else 'members'} }}"
    if isinstance(value, list):
        return f"[ {len(value):,} {'item' if len(value) == 1 else 'items'} ]"
    return json.dumps(value)


def _quoted(text: str) -> str:
    """The text as JSON writes it, with control and bidirectional characters as escapes."""
    escaped = json.dumps(text, ensure_ascii=False)
    return "".join(
        character if visible(character) == character else f"\\u{ord(character):04x}" for character in escaped
    )


def _row(name: str, value: Any, path: str) -> FlatRow:
    return FlatRow(JsonNode(name, value, path), expandable=_has_children(value))


def _has_children(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _member_path(path: str, name: str) -> str:
    if name.isidentifier():
        return f"{path}.{name}" if path else name
    return f"{path}[{json.dumps(name)}]"


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool) or value is None:
        return "word"
    if isinstance(value, int | float):
        return "number"
    return "container"
