"""R23–R27: server tools, MCP connector, deferred tools, containers (api-rules.md A4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compaction.diagnosis.model import Severity, Violation
from compaction.diagnosis.view import (
    Placed,
    RequestView,
    Turn,
    block_path,
    is_server_result,
    is_server_use,
)

_CODE_EXECUTION = ("code_execution", "bash_code_execution", "text_editor_code_execution")


def _identity(block: Placed) -> str:
    found = block.value.get("id" if is_server_use(block.type) else "tool_use_id")
    return found if isinstance(found, str) else ""


def _unpaired(turn: Turn) -> tuple[list[Placed], list[Placed]]:
    """Server calls without a later result, and server results without an earlier call, inside one assistant turn."""
    waiting: dict[str, Placed] = {}
    seen: set[str] = set()
    orphans: list[Placed] = []
    for block in turn.blocks:
        if is_server_use(block.type):
            waiting[_identity(block)] = block
            seen.add(_identity(block))
        elif is_server_result(block.type):
            if _identity(block) not in seen:
                orphans.append(block)
            waiting.pop(_identity(block), None)
    return list(waiting.values()), orphans


def _is_mcp(block: Placed) -> bool:
    return block.type in ("mcp_tool_use", "mcp_tool_result")


def may_resume(view: RequestView, turn: Turn) -> bool:
    """Whether the server may still run this turn's open calls: nothing but tool results follows it (R24)."""
    following = view.following(turn)
    if following is None:
        return True
    return turn.number == len(view.turns) - 2 and following.only_results()


def _results(view: RequestView, *, mcp: bool) -> Iterator[Placed]:
    for turn in view.turns:
        found = _unpaired(turn)[1] if turn.role == "assistant" else [b for b in turn.blocks if is_server_result(b.type)]
        yield from (b for b in found if _is_mcp(b) is mcp)


def _uses(view: RequestView, *, mcp: bool) -> Iterator[tuple[Turn, Placed]]:
    for turn in view.turns:
        if turn.role == "assistant" and not may_resume(view, turn):
            yield from ((turn, b) for b in _unpaired(turn)[0] if _is_mcp(b) is mcp)


def server_result_without_use(view: RequestView) -> Iterator[Violation]:
    """R23: a server result needs its server_tool_use before it in the same assistant message."""
    for block in _results(view, mcp=False):
        yield _orphan(block, "R23", "server_result_without_use", "server_tool_use")


def _orphan(block: Placed, rule: str, code: str, use: str) -> Violation:
    identity = _identity(block)
    return Violation(
        rule=rule,
        path=block.path,
        message=f"The {block.type} of {identity} has no {use} before it in its message.",
        api_error=f"{block.path}: unexpected `tool_use_id` found in `{block.type}` blocks: {identity}. Each "
        f"`{block.type}` block must have a corresponding `{use}` block before it.",
        code=code,
        ids=(identity,),
        places=(block.place,),
        details={"unverified": True} if rule == "R25" else {},
    )


def server_use_without_result(view: RequestView) -> Iterator[Violation]:
    """R24: a server call without its result; legal only while nothing but tool results follows its message."""
    for turn, block in _uses(view, mcp=False):
        yield _open_use(view, turn, block, "R24", "server_use_without_result")


def _open_use(view: RequestView, turn: Turn, block: Placed, rule: str, code: str) -> Violation:
    name = block.value.get("name")
    kind = "mcp_tool_result" if _is_mcp(block) else f"{name}_tool_result"
    following = view.following(turn)
    details: dict[str, Any] = {"unverified": True} if rule == "R25" else {}
    text = ""
    if following is not None and turn.number == len(view.turns) - 2:
        closing = next((b for b in following.blocks if b.type != "tool_result"), None)
        if closing is not None:
            details["closed_by"] = closing.path
            text = f" The {closing.type} block at {closing.path} closed the turn before the server ran the call."
    return Violation(
        rule=rule,
        path=block_path(block.message, -1),
        message=f"The server call {_identity(block)} ({name}) has no result.{text}",
        api_error=f"messages.{block.message}: `{name}` tool use with id `{_identity(block)}` was found without a "
        f"corresponding `{kind}` block",
        code=code,
        ids=(_identity(block),),
        places=(block.place,),
        details=details,
    )


def mcp_pairs(view: RequestView) -> Iterator[Violation]:
    """R25: MCP connector calls and results; no public error text is known, the rule of R23 and R24 is assumed."""
    for turn, block in _uses(view, mcp=True):
        yield _open_use(view, turn, block, "R25", "mcp_use_without_result")
    for block in _results(view, mcp=True):
        yield _orphan(block, "R25", "mcp_result_without_use", "mcp_tool_use")


def references_of(block: Placed) -> Iterator[tuple[str, str]]:
    """The tool references inside a result: the path of each and the tool name it gives."""
    content = block.value.get("content")
    items, inner = (content, "content") if isinstance(content, list) else ([], "")
    if isinstance(content, dict) and isinstance(content.get("tool_references"), list):
        items, inner = content["tool_references"], "content.tool_references"
    for number, item in enumerate(items):
        if isinstance(item, dict) and item.get("type") == "tool_reference" and isinstance(item.get("tool_name"), str):
            yield f"{block.path}.{inner}.{number}", item["tool_name"]


def tool_references(view: RequestView) -> Iterator[Violation]:
    """R26: a tool_reference must name a tool of the request; deferred tools count as present."""
    names = view.tool_names()
    if names is None and not view.is_document:
        return  # the client checks against its own list, which the transcript does not hold
    severity: Severity = "error" if names is not None else "warning"
    for block in view.blocks():
        if block.type != "tool_result" and not is_server_result(block.type):
            continue
        for path, name in references_of(block):
            if name not in (names or ()):
                known = "" if names is not None else " (the document defines no tools, so it cannot be checked)"
                yield Violation(
                    rule="R26",
                    path=path,
                    message=f"The history refers to the tool {name}, which the request does not define{known}.",
                    api_error=f"Tool reference '{name}' not found in available tools",
                    code="tool_reference_unknown",
                    severity=severity,
                    ids=(_identity(block),),
                    places=(block.place,),
                    details={"tool": name, "needs": "tools of the request"},
                )


def container(view: RequestView) -> Iterator[Violation]:
    """R27: an unfinished code execution needs the container of the last response; the messages do not hold it."""
    if not view.is_document or view.request.params.get("container"):
        return
    for turn in view.turns:
        if turn.role != "assistant" or not may_resume(view, turn) or view.following(turn) is None:
            continue
        for block in _unpaired(turn)[0]:
            if block.value.get("name") in _CODE_EXECUTION:
                yield Violation(
                    rule="R27",
                    path=block.path,
                    message=f"The code execution {_identity(block)} is unfinished and the request names no container.",
                    api_error="container_id is required when there are pending tool uses generated by code execution "
                    "with tools.",
                    code="container_missing",
                    ids=(_identity(block),),
                    places=(block.place,),
                )
