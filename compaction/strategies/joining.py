from __future__ import annotations

from collections.abc import Iterable, Sequence

from compaction.diagnosis.view import PLAIN_API
from compaction.request.profiles import generation_for
from compaction.request.wire import Json, Origin, WireMessage
from compaction.strategies.context import ContextView
from compaction.transcript.kinds import RecordKind


class Joiner:
    """Puts messages behind each other as a client generation merges its records (resources/resume-profiles.json).

    Two user records beside each other become one message, tool results first where the generation does so, texts of
    two records with the generation's joint between them. The messages of an API document stay as they are.
    """

    def __init__(self, view: ContextView) -> None:
        client = view.wire.client
        plain = client == PLAIN_API or view.conversation.transcript.format_name == "messages-api"
        self._view = view
        self._merges = not plain
        self._joint = "" if plain else generation_for(client).text_joint
        self._results_first = False if plain else generation_for(client).results_first
        self._messages: list[WireMessage] = []
        self._new: dict[int, int] = {}

    @property
    def ends_with_user(self) -> bool:
        """Whether the last message so far is the user's."""
        return bool(self._messages) and self._messages[-1].role == "user"

    def add(
        self,
        role: str,
        content: Sequence[Json],
        origins: Sequence[Origin | None],
        *,
        joins: bool,
        new: bool = False,
    ) -> None:
        """Append blocks: to the last message when `joins` and it is the user's too, else as a new message.

        Args:
            joins: nothing stands between these blocks and those before them.
            new: the blocks will come from a record that does not exist yet.
        """
        if not content:
            return
        if new:
            group = len(self._new)
            self._new.update((id(block), group) for block in content)
        last = self._messages[-1] if self._messages else None
        if last is None or not joins or not self._merges or last.role != role or role != "user":
            self._messages.append(WireMessage(role, list(content), list(origins)))
            return
        blocks, sources = [*last.content, *content], [*last.origins, *origins]
        if self._results_first:
            order = sorted(range(len(blocks)), key=lambda n: blocks[n].get("type") != "tool_result")
            blocks, sources = [blocks[n] for n in order], [sources[n] for n in order]
        self._messages[-1] = WireMessage(role, blocks, sources)

    def extend(self, content: Sequence[Json], origins: Sequence[Origin | None]) -> None:
        """Append blocks of the same message to the last message."""
        last = self._messages[-1]
        self._messages[-1] = WireMessage(last.role, [*last.content, *content], [*last.origins, *origins])

    def finished(self) -> list[WireMessage]:
        """The messages, each text with the joint exactly where another record's text follows it."""
        if not self._joint:
            return self._messages
        last = len(self._messages) - 1
        return [
            self._settled(message, ends=number == last) if message.role == "user" else message
            for number, message in enumerate(self._messages)
        ]

    def _settled(self, message: WireMessage, *, ends: bool) -> WireMessage:
        content = list(message.content)
        for position, (block, origin) in enumerate(zip(message.content, message.origins, strict=True)):
            bare = self._bare_text(block, origin)
            if bare is None:
                continue
            followed = ends if position + 1 == len(content) else self._joins_next(message, position)
            text = bare + self._joint if followed else bare
            if text != block.get("text"):
                content[position] = {**block, "text": text}
        return WireMessage(message.role, content, message.origins)

    def _bare_text(self, block: Json, origin: Origin | None) -> str | None:
        """A text without the joint that the request may have put behind it; None where there is none to move."""
        text = block.get("text")
        if block.get("type") != "text" or not isinstance(text, str):
            return None
        if id(block) in self._new:
            return text
        if origin is None or origin.block < 0:
            return text.removesuffix(self._joint)  # the client's own words never end with the joint
        part = self._view.by_origin.get((origin.record, origin.block))
        recorded = self._view.recorded(part).get("text") if part is not None else None
        return recorded if isinstance(recorded, str) and text in (recorded, recorded + self._joint) else None

    def _joins_next(self, message: WireMessage, position: int) -> bool:
        """Whether the next block is text of another record that the client joins (reminders are not joined)."""
        after, origin = message.content[position + 1], message.origins[position + 1]
        if after.get("type") != "text":
            return False
        here = message.origins[position]
        if origin is None:
            # Blocks of one new record are one group: nothing is put between them.
            return self._new.get(id(after), -1) not in (-1, self._new.get(id(message.content[position]), -1))
        attached = self._view.conversation.transcript.kind[origin.record] == RecordKind.ATTACHMENT
        return not attached and (here is None or here.record != origin.record)


def has_early_attachment(view: ContextView, origins: Iterable[tuple[str, Origin | None]]) -> bool:
    """Whether a reminder stands before the first answer: the client moves it ahead of whatever comes first.

    Args:
        origins: (role, origin) of the blocks, in order.
    """
    kinds = view.conversation.transcript.kind
    for role, origin in origins:
        if role == "assistant":
            return False
        if origin is not None and kinds[origin.record] == RecordKind.ATTACHMENT:
            return True
    return False
