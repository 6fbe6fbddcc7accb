"""The file tools of the client: which call touched which file, and how."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from compaction.strategies.context import ContextView
from compaction.strategies.parts import Place, ToolPair

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


def touch_at(view: ContextView, pair: ToolPair) -> FileTouch | None:
    """`file_touch` of a pair of the view, looked up: every strategy asks for it."""
    return view.derived("file touches", _touches).get(pair.result.place)


def _touches(view: ContextView) -> dict[Place, FileTouch]:
    found = ((pair.result.place, file_touch(pair)) for pair in view.pairs)
    return {place: touch for place, touch in found if touch is not None}


def files_in(view: ContextView, pairs: Iterable[ToolPair]) -> dict[str, None]:
    """The paths whose content some of these results put in front of the model, by first appearance."""
    found: dict[str, None] = {}
    for pair in pairs:
        touch = touch_at(view, pair)
        if touch is not None and not pair.cleared:
            found.setdefault(touch.path)
    return found
