from __future__ import annotations

from collections.abc import Sequence

from compaction.diagnosis.view import PLAIN_API
from compaction.request.profiles import generation_for
from compaction.request.wire import Json, Origin, WireMessage


class Joiner:
    """Puts messages behind each other as a client generation merges its records (resources/resume-profiles.json).

    Two user records beside each other become one message, tool results first where the generation does so. The
    messages of an API document stay as they are.
    """

    def __init__(self, client: str) -> None:
        plain = client == PLAIN_API
        self._merges = not plain
        self._joint = "" if plain else generation_for(client).text_joint
        self._results_first = False if plain else generation_for(client).results_first
        self.messages: list[WireMessage] = []

    def add(self, role: str, content: Sequence[Json], origins: Sequence[Origin | None], *, joins: bool) -> None:
        """Append blocks: to the last message when `joins` and it is of the same role, else as a new message.

        Args:
            joins: the blocks come from another record than those before them and nothing stands between.
        """
        if not content:
            return
        last = self.messages[-1] if self.messages else None
        if last is None or not joins or not self._merges or last.role != role or role != "user":
            self.messages.append(WireMessage(role, list(content), list(origins)))
            return
        before = list(last.content)
        if self._joint and before[-1].get("type") == "text" and content[0].get("type") == "text":
            before[-1] = {**before[-1], "text": str(before[-1].get("text", "")) + self._joint}
        blocks, sources = [*before, *content], [*last.origins, *origins]
        if self._results_first:
            blocks, sources = _results_first(blocks, sources)
        self.messages[-1] = WireMessage(role, blocks, sources)

    def extend(self, content: Sequence[Json], origins: Sequence[Origin | None]) -> None:
        """Append blocks of the same record or message to the last message."""
        last = self.messages[-1]
        self.messages[-1] = WireMessage(last.role, [*last.content, *content], [*last.origins, *origins])


def _results_first(blocks: list[Json], origins: list[Origin | None]) -> tuple[list[Json], list[Origin | None]]:
    order = sorted(range(len(blocks)), key=lambda n: blocks[n].get("type") != "tool_result")
    return [blocks[n] for n in order], [origins[n] for n in order]
