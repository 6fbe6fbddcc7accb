"""The file tools of the client: which call touched which file, and how."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from compaction.strategies.parts import ToolPair

FileAction = Literal["read", "edit", "write"]

_ACTIONS: dict[str, FileAction] = {
    "Read": "read",
    "NotebookRead": "read",
    "Edit": "edit",
    "MultiEdit": "edit",
    "NotebookEdit": "edit",
    "Write": "write",
}
_PATH_KEYS = ("file_path", "notebook_path", "path")


@dataclass(frozen=True, slots=True)
class FileTouch:
    """One successful call on a file: the path as given, what was done, whether a part only was read."""

    path: str
    action: FileAction
    partial: bool


def file_touch(pair: ToolPair) -> FileTouch | None:
    """What a tool call did to a file, None when it is no file tool, failed, or names no path."""
    action = _ACTIONS.get(pair.tool)
    if action is None or pair.failed:
        return None
    for key in _PATH_KEYS:
        path = pair.input.get(key)
        if isinstance(path, str) and path:
            partial = any(pair.input.get(name) is not None for name in ("offset", "limit", "pages", "cell_id"))
            return FileTouch(path, action, action == "read" and partial)
    return None


def files_in(pairs: Iterable[ToolPair]) -> dict[str, None]:
    """The paths whose content some of these results put in front of the model, by first appearance."""
    found: dict[str, None] = {}
    for pair in pairs:
        touch = file_touch(pair)
        if touch is not None and not pair.cleared:
            found.setdefault(touch.path)
    return found
