"""Small sessions for the rules of compaction.md, and what strategies are given for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compaction.conversation import Conversation, build_conversation
from compaction.strategies.inputs import strategy_input
from compaction.strategies.plan import Plan, StrategyInput
from compaction.strategies.registry import STRATEGIES, preview
from compaction.strategies.settings import make_settings, specs_of
from compaction.transcript import transcript_from_bytes
from tests.generator.builder import Result, SessionBuilder, Tool

MINUTE = 60_000
HOUR = 60 * MINUTE


def conversation_of(builder: SessionBuilder) -> Conversation:
    """The conversation of a built session."""
    return build_conversation(transcript_from_bytes(builder.to_bytes()))


def given_for(builder: SessionBuilder, *, later_ms: int = 2 * HOUR, **more: Any) -> StrategyInput:
    """What strategies are given `later_ms` after the session's newest record."""
    return strategy_input(conversation_of(builder), now_ms=builder.now + later_ms, **more)


def plan_of(name: str, given: StrategyInput, **settings: Any) -> Plan:
    """The plan of a strategy that is switched on, with some settings."""
    chosen = STRATEGIES[name]
    if any(spec.key == "enabled" for spec in specs_of(chosen.settings_type)):
        settings.setdefault("enabled", True)
    return preview(chosen, given, make_settings(chosen.settings_type, settings, name))


def bash(command: str = "ls") -> Tool:
    """A shell call."""
    return Tool("Bash", {"command": command})


def read(path: str, **more: Any) -> Tool:
    """A file read."""
    return Tool("Read", {"file_path": path, **more})


def edit(path: str, old: str = "a", new: str = "b") -> Tool:
    """A file edit."""
    return Tool("Edit", {"file_path": path, "old_string": old, "new_string": new})


def write(path: str, content: str) -> Tool:
    """A file written whole."""
    return Tool("Write", {"file_path": path, "content": content})


def session(
    steps: Sequence[tuple[Tool, str | Result]], *, version: str = "2.1.39", model: str = "", prompt: str = "Mend it."
) -> SessionBuilder:
    """A prompt, one round for each step, and a last answer."""
    builder = SessionBuilder(version, model=model)
    builder.prompt(prompt)
    for tool, result in steps:
        builder.assistant(tools=[tool], results=[result])
    builder.assistant("All of it is done.")
    return builder


def results_in(plan: Plan) -> list[str]:
    """The contents of the tool results that the model would see, in order."""
    return [
        block["content"]
        for message in plan.after.messages
        for block in message.content
        if block.get("type") == "tool_result"
    ]
