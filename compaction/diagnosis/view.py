"""A wire request as the rules read it: neighbouring messages of one role as one turn, every block with its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from compaction.diagnosis.model import Place
from compaction.request.wire import WireRequest

PLAIN_API = "messages-api"
"""The `client` of a request that is a Messages-API document itself, sent by nobody's rules."""


@dataclass(frozen=True, slots=True)
class Placed:
    """One block, where it lies in the request, and its type ("" when it has none)."""

    message: int
    block: int
    value: dict[str, Any]
    type: str

    @property
    def place(self) -> Place:
        return (self.message, self.block)

    @property
    def path(self) -> str:
        return block_path(self.message, self.block)


def placed_at(message: int, block: int, value: dict[str, Any]) -> Placed:
    """The block `value` at its place."""
    kind = value.get("type")
    return Placed(message, block, value, kind if isinstance(kind, str) else "")


@dataclass(frozen=True, slots=True)
class Turn:
    """Neighbouring messages of one role: the API combines them (api-rules.md R17)."""

    number: int
    role: str
    blocks: tuple[Placed, ...]

    @property
    def first_message(self) -> int:
        return self.blocks[0].message if self.blocks else -1

    def only_results(self) -> bool:
        """Whether it holds tool results and nothing else."""
        return bool(self.blocks) and all(block.type == "tool_result" for block in self.blocks)


@dataclass(frozen=True)
class RequestView:
    """What every request rule is handed.

    `request` is never changed. Turns start after the last `compaction` block: the API ignores what is before it (R28).
    """

    request: WireRequest
    memo: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What one rule family works out once for several rules, by its own name."""

    @cached_property
    def awaits_prompt(self) -> bool:
        """The next request of a client: the person's prompt is still to come, so the tail is pending, not wrong."""
        return self.request.at is None and not self.is_document

    @property
    def is_document(self) -> bool:
        """The input is itself a Messages-API request."""
        return self.request.is_document or self.request.client == PLAIN_API

    @cached_property
    def first(self) -> Place:
        """The first block that the API reads."""
        for number in range(len(self.request.messages) - 1, -1, -1):
            for position in range(len(self.request.messages[number].content) - 1, -1, -1):
                if self.request.messages[number].content[position].get("type") == "compaction":
                    return (number, position)
        return (0, 0)

    def blocks(self) -> tuple[Placed, ...]:
        """Every block of every message that the API reads."""
        return self._blocks

    @cached_property
    def _blocks(self) -> tuple[Placed, ...]:
        return tuple(
            placed for number in range(self.first[0], len(self.request.messages)) for placed in self._of(number)
        )

    def _of(self, number: int) -> list[Placed]:
        """The blocks of one message that the API reads."""
        begin = self.first[1] if number == self.first[0] else 0
        content = self.request.messages[number].content
        return [placed_at(number, position, content[position]) for position in range(begin, len(content))]

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """The messages as the API combines them; `system` messages in mid-conversation belong to no turn."""
        turns: list[Turn] = []
        waiting: list[Placed] = []
        role = ""
        for number, message in enumerate(self.request.messages):
            if message.role == "system" or number < self.first[0]:
                continue
            if message.role != role and role:
                turns.append(Turn(len(turns), role, tuple(waiting)))
                waiting = []
            role = message.role
            waiting += self._of(number)
        if role:
            turns.append(Turn(len(turns), role, tuple(waiting)))
        return tuple(turns)

    @cached_property
    def _turn_numbers(self) -> dict[int, int]:
        return {block.message: turn.number for turn in self.turns for block in turn.blocks}

    def turn_of(self, message: int) -> Turn | None:
        """The turn that holds a message, None for one without blocks or one that the API ignores."""
        number = self._turn_numbers.get(message)
        return None if number is None else self.turns[number]

    def following(self, turn: Turn) -> Turn | None:
        """The turn after `turn`, or None."""
        return self.turns[turn.number + 1] if turn.number + 1 < len(self.turns) else None

    def thinking_type(self) -> str:
        """`enabled`, `adaptive`, `disabled`, or "" when the request does not say."""
        found = (self.request.thinking or {}).get("type")
        return found if isinstance(found, str) else ""

    def tool_names(self) -> list[str] | None:
        """The names of the request's tools in order, deferred ones included, or None when they are not known."""
        if self.request.tools is None:
            return None
        return [name for tool in self.request.tools if isinstance(name := tool.get("name"), str)]


def block_path(message: int, block: int) -> str:
    """The API's way to write a place: `messages.1.content.0`, or `messages.1` for a message as a whole."""
    return f"messages.{message}" if block < 0 else f"messages.{message}.content.{block}"


def text_of(value: Any) -> str:
    """The plain text of a tool result's content (string, or the text items of a list)."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(item["text"] for item in value if isinstance(item, dict) and isinstance(item.get("text"), str))
    return ""


def is_server_use(kind: str) -> bool:
    """Whether a block type is a call that the server answers (`server_tool_use`, `mcp_tool_use`)."""
    return kind in ("server_tool_use", "mcp_tool_use")


def is_server_result(kind: str) -> bool:
    """Whether a block type is the server's answer to such a call (`web_search_tool_result`, `mcp_tool_result` …)."""
    return kind.endswith("_tool_result")
