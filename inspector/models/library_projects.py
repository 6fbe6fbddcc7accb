"""The projects of the library as a tree in flat rows: folders that lead to one folder only are joined."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, Qt

from compaction.catalogue.entries import SessionEntry

Index = QModelIndex | QPersistentModelIndex
_NO_INDEX = QModelIndex()


@dataclass(frozen=True, slots=True)
class ProjectRow:
    """One row: the folder's full path ("" = all projects), its name at this depth, what is in it and below."""

    path: str
    name: str
    depth: int
    sessions: int
    cost_usd: float


@dataclass(slots=True)
class _Folder:
    path: str
    below: dict[str, _Folder] = field(default_factory=dict)
    own: int = 0
    sessions: int = 0
    cost: float = 0.0


def project_rows(entries: Iterable[SessionEntry]) -> list[ProjectRow]:
    """The rows for some sessions, by path; sessions without a project stand under "(unknown)"."""
    root = _Folder("")
    for entry in entries:
        separator = "\\" if "\\" in entry.project and "/" not in entry.project else "/"
        parts = [part for part in entry.project.split(separator) if part] or ["(unknown)"]
        lead = separator if entry.project.startswith(separator) else ""
        folder = root
        _add(folder, entry)
        for number, part in enumerate(parts, 1):
            path = lead + separator.join(parts[:number]) if entry.project else "(unknown)"
            folder = folder.below.setdefault(part, _Folder(path))
            _add(folder, entry)
        folder.own += 1
    rows = [ProjectRow("", "All projects", 0, root.sessions, root.cost)]
    waiting = [(name, child, 1) for name, child in sorted(root.below.items(), reverse=True)]
    while waiting:
        name, folder, depth = waiting.pop()
        while len(folder.below) == 1 and not folder.own:
            [(part, folder)] = folder.below.items()
            name = f"{name}/{part}"
        rows.append(ProjectRow(folder.path, name, depth, folder.sessions, folder.cost))
        waiting += [(part, child, depth + 1) for part, child in sorted(folder.below.items(), reverse=True)]
    return rows


def _add(folder: _Folder, entry: SessionEntry) -> None:
    folder.sessions += 1
    folder.cost += entry.total.cost_usd


def in_project(entry: SessionEntry, path: str) -> bool:
    """Whether a session belongs to a project row: its folder or one below it."""
    if not path:
        return True
    if path == "(unknown)":
        return not entry.project
    return entry.project == path or entry.project.startswith((path + "/", path + "\\"))


class ProjectModel(QAbstractListModel):
    """The rows of `project_rows` for a list view."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[ProjectRow] = []

    def set_entries(self, entries: Iterable[SessionEntry]) -> None:
        """Show the projects of other sessions."""
        self.beginResetModel()
        self.rows = project_rows(entries)
        self.endResetModel()

    def row_of(self, path: str) -> int:
        """The row of a project path, 0 (all projects) when it is gone."""
        return next((number for number, row in enumerate(self.rows) if row.path == path), 0)

    def rowCount(self, parent: Index = _NO_INDEX) -> int:
        """All rows; nothing is folded away."""
        return 0 if parent.isValid() else len(self.rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Indented name with the number of sessions; path and cost as the tip."""
        if not index.isValid() or index.row() >= len(self.rows):
            return None
        row = self.rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return f"{'    ' * row.depth}{row.name}  ({row.sessions:,})"
        if role == Qt.ItemDataRole.ToolTipRole:
            # Plain text: a path that looks like markup must not become any.
            return f"{row.path or row.name}\n{row.sessions:,} sessions, ${row.cost_usd:,.2f}".replace("<", "‹")
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"level {row.depth + 1}, {row.name}, {row.sessions} sessions, ${row.cost_usd:,.2f}"
        return None
