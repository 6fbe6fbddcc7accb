"""Inputs of tool calls to parts, by the tool's name; other tools are shown as fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from inspector.rendering import diff
from inspector.rendering.parts import Checklist, Code, Diff, Fields, Markdown, Note, Part
from inspector.rendering.pieces import Json, Surroundings, rest, value_text


def _shell_input(given: Json, _around: Surroundings) -> Iterator[Part]:
    if given.get("description"):
        yield Note(str(given["description"]))
    yield Code(str(given.get("command", "")), language="bash")
    yield from rest(given, {"command", "description"})


def _edit_input(given: Json, around: Surroundings) -> Iterator[Part]:
    path = str(given.get("file_path") or given.get("notebook_path") or "")
    yield Fields((("file", path),))
    recorded = around.tool_use_result
    patch = diff.rows_of_patch(recorded.get("structuredPatch")) if isinstance(recorded, Mapping) else []
    edits = given.get("edits")
    rows: list[diff.DiffRow] = []
    for edit in edits if isinstance(edits, list) else [given]:
        rows += diff.rows_of_texts(str(edit.get("old_string", "")), str(edit.get("new_string", "")))
    if patch and not isinstance(edits, list):
        rows = diff.renumbered(rows, patch)
        yield Note("With the line numbers the client recorded in the result.")
    yield Diff(tuple(rows), path)
    yield from rest(given, {"file_path", "old_string", "new_string", "edits"})


def _write_input(given: Json, _around: Surroundings) -> Iterator[Part]:
    path = str(given.get("file_path") or given.get("notebook_path") or "")
    yield Fields((("file", path),))
    text = given.get("content", given.get("new_source", ""))
    yield Code(str(text), file_name=path, first_line=1)
    yield from rest(given, {"file_path", "notebook_path", "content", "new_source"})


def _todo_input(given: Json, _around: Surroundings) -> Iterator[Part]:
    yield Checklist(tuple(_todo(item) for item in given["todos"]))
    yield from rest(given, {"todos"})


def _todo(item: Json) -> tuple[str, str, str]:
    facts = [f"{name}: {value_text(value)}" for name, value in item.items() if name not in ("status", "content")]
    return str(item.get("status", "pending")), str(item.get("content", "")), ", ".join(facts)


def _agent_input(given: Json, _around: Surroundings) -> Iterator[Part]:
    yield from rest(given, {"prompt"})
    yield Markdown(str(given.get("prompt", "")))


def _plan_input(given: Json, _around: Surroundings) -> Iterator[Part]:
    yield Markdown(str(given.get("plan", "")))
    yield from rest(given, {"plan"})


def _plain_input(given: Json, _around: Surroundings) -> Iterator[Part]:
    yield from rest(given, set())


ToolPresenter = Callable[[Json, Surroundings], Iterator[Part]]

TOOL_PRESENTERS: dict[str, ToolPresenter] = {
    "Bash": _shell_input,
    "PowerShell": _shell_input,
    "Edit": _edit_input,
    "MultiEdit": _edit_input,
    "Write": _write_input,
    "NotebookEdit": _write_input,
    "TodoWrite": _todo_input,
    "Task": _agent_input,
    "Agent": _agent_input,
    "ExitPlanMode": _plan_input,
    "Read": _plain_input,
    "Glob": _plain_input,
    "Grep": _plain_input,
    "LS": _plain_input,
    "WebFetch": _plain_input,
    "WebSearch": _plain_input,
}
