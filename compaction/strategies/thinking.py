"""Thinking after a change of the prefix: which models refuse it, and which blocks have to go with the change."""

from __future__ import annotations

from collections.abc import Iterable

from compaction.diagnosis.models import binds_thinking
from compaction.strategies.context import ContextView
from compaction.strategies.parts import Part, Place

THINKING_TYPES = ("thinking", "redacted_thinking")


def open_loop_start(view: ContextView) -> int:
    """The first message of the open tool loop: the assistant turn whose results are the newest thing in the request.

    From there on thinking must be returned complete and unmodified (api.md 2.4, api-rules.md R18). When no loop is
    open (the request ends with a prompt or an answer) it is the number of messages.
    """
    messages = view.wire.messages
    number = len(messages) - 1
    if number < 0 or messages[number].role != "user":
        return len(messages)
    if not any(block.get("type") == "tool_result" for block in messages[number].content):
        return len(messages)
    start = len(messages)
    while number >= 0:
        message = messages[number]
        if message.role == "user" and not any(block.get("type") == "tool_result" for block in message.content):
            break
        start = number
        number -= 1
    return start


def invalidated_thinking(view: ContextView, changed: Iterable[Place], gone: set[Place]) -> list[Part]:
    """The thinking blocks that a change of the prefix makes unusable, oldest first.

    On models with preserved thinking (api.md 2.4) a signature holds for one exact prefix: everything after the first
    changed block is refused. Other models keep their thinking. Blocks that go anyway (`gone`) are left out.
    """
    first = min(changed, default=None)
    if first is None or not binds_thinking(view.wire.model):
        return []
    return [p for p in view.parts if p.place > first and p.type in THINKING_TYPES and p.place not in gone]


def thinking_note(stripped: int, model: str) -> str:
    """What the person should know about stripped thinking."""
    return (
        f"{model} binds its thinking to the exact prefix (api.md 2.4): {stripped} thinking block"
        f"{'s' if stripped != 1 else ''} after the first change would be refused and are taken out"
    )
