"""Mending of server tools, MCP, tool references and containers (R23–R27)."""

from __future__ import annotations

from typing import Any

from compaction.diagnosis.case import Case
from compaction.diagnosis.model import Finding
from compaction.diagnosis.repair.editor import Editor, Json, as_text
from compaction.diagnosis.repair.fixes.kit import Fix, is_document
from compaction.diagnosis.view import is_server_result, is_server_use

Block = tuple[int, int]


def _result_of(case: Case, identity: str) -> Block | None:
    """The server result with this id in the request."""
    for placed in case.view.blocks():
        if is_server_result(placed.type) and placed.value.get("tool_use_id") == identity:
            return case.origin_of(placed.place)
    return None


def _use_of(case: Case, identity: str) -> Block | None:
    """The server call with this id in the request."""
    for placed in case.view.blocks():
        if is_server_use(placed.type) and placed.value.get("id") == identity:
            return case.origin_of(placed.place)
    return None


def result_is_elsewhere(case: Case, finding: Finding) -> bool:
    """Whether the call's result stands somewhere else in the request."""
    return bool(finding.ids) and _result_of(case, finding.ids[0]) is not None


def use_is_elsewhere(case: Case, finding: Finding) -> bool:
    """Whether the result's call stands somewhere else in the request."""
    return bool(finding.ids) and _use_of(case, finding.ids[0]) is not None


def result_behind_use(editor: Editor, finding: Finding) -> None:
    """The result directly behind its call, in the same message (G5)."""
    use, result = _use_of(editor.case, finding.ids[0]), _result_of(editor.case, finding.ids[0])
    if use is None or result is None or editor.is_gone(*result):
        return
    block = editor.block(*result)
    editor.remove_block(*result)
    editor.insert_blocks(use[0], use[1] + 1, [block])


def remove_use(editor: Editor, finding: Finding) -> None:
    """The open call goes; text and client calls of its message stay."""
    for place in finding.blocks:
        editor.remove_block(*place)


def hold_text_back(editor: Editor, finding: Finding) -> None:
    """What closed the turn goes, so that the server can still run the call: send it after the turn."""
    closing = [b for b in editor.case.view.turns[-1].blocks if b.type != "tool_result"]
    for placed in closing:
        origin = editor.case.origin_of(placed.place)
        if origin is not None:
            editor.remove_block(*origin)


def was_closed_by_text(case: Case, finding: Finding) -> bool:
    """Whether text in the last user message closed a turn that could go on otherwise."""
    last = case.view.turns[-1] if case.view.turns else None
    return (
        bool(finding.details.get("closed_by"))
        and last is not None
        and any(b.type == "tool_result" for b in last.blocks)
    )


def server_result_to_text(editor: Editor, finding: Finding) -> None:
    """What the server found stays as text."""
    for place in finding.blocks:
        block = editor.block(*place)
        name = str(block.get("type", "")).removesuffix("_tool_result") or "server tool"
        words = "\n".join(_words(block.get("content")))
        text = f"[Result of an earlier {name} call] {words}".rstrip()
        editor.set_block(*place, {"type": "text", "text": text})


def _words(content: Any) -> list[str]:
    """The readable part of a server result: text, titles and addresses; nothing encrypted."""
    if isinstance(content, str):
        return [content]
    items = content if isinstance(content, list) else [content]
    found = []
    for item in items:
        if isinstance(item, dict):
            parts = [as_text(item[k]) for k in ("text", "title", "url", "stdout", "error_code") if item.get(k)]
            if parts:
                found.append(" ".join(parts))
    return found


def remove_result(editor: Editor, finding: Finding) -> None:
    """The result goes."""
    for place in finding.blocks:
        editor.remove_block(*place)


def drop_references(editor: Editor, finding: Finding) -> None:
    """The reference goes; a list that is left empty says in words what is missing."""
    name = finding.details.get("tool")
    for place in finding.blocks:
        content = editor.block(*place).get("content")
        if isinstance(content, list):
            editor.set_inside(*place, ("content",), _without(content, name))
        elif isinstance(content, dict) and isinstance(content.get("tool_references"), list):
            kept = [i for i in content["tool_references"] if not _refers(i, name)]
            editor.set_inside(*place, ("content", "tool_references"), kept)


def _without(content: list[Any], name: object) -> list[Json]:
    kept = [item for item in content if not _refers(item, name)]
    return kept or [{"type": "text", "text": f"The tool {name} is no longer available."}]


def _refers(item: Any, name: object) -> bool:
    return isinstance(item, dict) and item.get("type") == "tool_reference" and item.get("tool_name") == name


_BEHIND = Fix(
    "result_behind_use",
    "Move the result directly behind its call",
    "both halves are there",
    result_behind_use,
)
_USE = (
    Fix(_BEHIND.name, _BEHIND.title, _BEHIND.reason, result_behind_use, result_is_elsewhere),
    Fix("remove_use", "Remove the open server call", "all text and the other calls stay", remove_use),
    Fix(
        "hold_text_back",
        "Leave the text out for now and send it after the turn",
        "the server runs the call then, with the same tools",
        hold_text_back,
        was_closed_by_text,
        chosen=False,
    ),
)
_RESULT = (
    Fix(_BEHIND.name, _BEHIND.title, _BEHIND.reason, result_behind_use, use_is_elsewhere),
    Fix("result_to_text", "Keep the result as text", "its content stays", server_result_to_text),
    Fix("remove_result", "Remove the result", "its content is lost", remove_result, chosen=False),
)

FIXES: dict[str, tuple[Fix, ...]] = {
    "server_result_without_use": _RESULT,
    "server_use_without_result": _USE,
    "mcp_result_without_use": _RESULT,
    "mcp_use_without_result": _USE,
    "tool_reference_unknown": (
        Fix("drop_reference", "Remove the reference, keep the result", "its call needs the result", drop_references),
    ),
    "container_missing": (
        Fix(
            "remove_use",
            "Remove the unfinished server call",
            "its container is not in the file",
            remove_use,
            is_document,
        ),
    ),
}
