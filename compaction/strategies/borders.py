"""Where a conversation can be cut: never between a call and its result, never inside a response."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from compaction.accounting.estimate import rough_tokens_of_block
from compaction.strategies.context import ContextView
from compaction.strategies.parts import RoundSpan
from compaction.transcript.kinds import Flag


@dataclass(frozen=True, slots=True)
class MessageFacts:
    """One message of the client (one record) as the keep rules of compaction.md 8 see it.

    Attributes:
        tokens: rough estimate.
        has_text: it is a user or assistant message with a text block.
        boundary: a compact boundary record.
        response: names the response of an assistant piece, "" for others.
        calls, answers: ids of the tool_use blocks it makes and of the tool_results it holds.
        first_part: number of its first part in the view.
    """

    tokens: int
    has_text: bool
    boundary: bool = False
    response: str = ""
    calls: frozenset[str] = field(default_factory=frozenset)
    answers: frozenset[str] = field(default_factory=frozenset)
    first_part: int = 0


def messages_of(view: ContextView) -> list[MessageFacts]:
    """The request's blocks grouped by the record they come from, in request order."""
    return view.derived("messages", _messages_of)


def _messages_of(view: ContextView) -> list[MessageFacts]:
    groups: list[list[int]] = []
    previous: tuple[int, int] | None = None
    for number, part in enumerate(view.parts):
        here = (part.place[0], part.record)
        if here == previous:
            groups[-1].append(number)
        else:
            groups.append([number])
        previous = here
    return [_facts(view, group) for group in groups]


def _facts(view: ContextView, group: Sequence[int]) -> MessageFacts:
    parts = [view.parts[number] for number in group]
    response = ""
    if parts[0].role == "assistant":
        record = parts[0].record
        number = int(view.conversation.response_of[record]) if parts[0].origin is not None else -1
        response = f"response {number}" if number >= 0 else f"message {parts[0].place[0]}"
    return MessageFacts(
        tokens=sum(rough_tokens_of_block(part.value) for part in parts),
        has_text=any(part.type == "text" and part.text.strip() for part in parts),
        response=response,
        calls=frozenset(str(p.value.get("id")) for p in parts if p.type == "tool_use"),
        answers=frozenset(str(p.value.get("tool_use_id")) for p in parts if p.type == "tool_result"),
        first_part=group[0],
    )


def calculate_messages_to_keep_index(
    messages: Sequence[MessageFacts],
    last_summarised_index: int,
    *,
    min_tokens: int,
    min_text_block_messages: int,
    max_tokens: int,
) -> int:
    """The first message that stays when everything before is in the session memory (compaction.md 8).

    Args:
        last_summarised_index: the last message that the memory covers; −1 keeps nothing to begin with.
    """
    start = last_summarised_index + 1 if last_summarised_index >= 0 else len(messages)
    tokens = sum(m.tokens for m in messages[start:])
    texts = sum(1 for m in messages[start:] if m.has_text)

    def enough() -> bool:
        return tokens >= max_tokens or (tokens >= min_tokens and texts >= min_text_block_messages)

    floor = max((n + 1 for n, m in enumerate(messages) if m.boundary), default=0)
    while not enough() and start > floor:
        start -= 1
        tokens += messages[start].tokens
        texts += messages[start].has_text
    return adjust_index_to_preserve_api_invariants(messages, start)


def adjust_index_to_preserve_api_invariants(messages: Sequence[MessageFacts], start: int) -> int:
    """`start` moved back so that no kept result lacks its call and no kept response lacks a piece (compaction.md 8).

    Identity when `start` ≤ 0 or ≥ the number of messages. Repeated until nothing changes: a piece that comes in may
    bring results of its own.
    """
    if start <= 0 or start >= len(messages):
        return start
    while True:
        earliest = start
        kept = messages[start:]
        missing = set().union(*(m.answers for m in kept)) - set().union(*(m.calls for m in kept))
        responses = {m.response for m in kept if m.response}
        for number in range(start - 1, -1, -1):
            message = messages[number]
            if message.calls & missing or message.response in responses:
                earliest = number
        if earliest == start:
            return start
        start = earliest


def border_at_message(messages: Sequence[MessageFacts], view: ContextView, start: int) -> int:
    """The number of the first part of message `start` (the part count when it is past the last)."""
    return messages[start].first_part if start < len(messages) else len(view.parts)


def answered_rounds(view: ContextView) -> list[RoundSpan]:
    """The API rounds that a model answered: those that begin with a client's own message are left out."""
    t = view.conversation.transcript
    found = []
    for span in view.rounds:
        origins = view.wire.messages[span.first].origins if span.number > 0 else []
        records = [origin.record for origin in origins if origin is not None]
        if records and not int(t.flags[records[0]]) & Flag.SYNTHETIC:
            found.append(span)
    return found


def border_at_message_number(view: ContextView, message: int) -> int:
    """The number of the first part of message `message` of the request (the part count when it is past the last)."""
    return next((n for n, part in enumerate(view.parts) if part.place[0] >= message), len(view.parts))


def safe_border(view: ContextView, border: int) -> int:
    """`border` (a part number) moved back to the nearest place where pairs and responses stay whole."""
    messages = messages_of(view)
    start = next((n for n, m in enumerate(messages) if m.first_part >= border), len(messages))
    if start < len(messages) and messages[start].first_part > border:
        start -= 1
    return border_at_message(messages, view, adjust_index_to_preserve_api_invariants(messages, start))
