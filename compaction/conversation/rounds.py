from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ApiRound:
    """One API round: a response and everything until the next response begins (compaction.md §3).

    Attributes:
        number: 1-based, over the main thread of the whole file.
        first_record: the response's first record.
        end_record: one past the round's last record by file position.
        response: the response's number.
        epoch: the number of the epoch it lies in.
    """

    number: int
    first_record: int
    end_record: int
    response: int
    epoch: int


def group_by_api_round(message_ids: Sequence[str | None]) -> list[list[int]]:
    """Group messages into API rounds: the algorithm of compaction.md §3, exactly.

    Args:
        message_ids: for each message its `message.id` when it is an assistant message, None when it is a user message.

    Returns:
        Groups of indexes. A boundary fires when an assistant message begins whose id differs from the previous
        assistant message's and the current group is not empty; what comes before the first response is a group too.
    """
    groups: list[list[int]] = []
    current: list[int] = []
    previous: str | None = None
    for position, message_id in enumerate(message_ids):
        if message_id is not None:
            if message_id != previous and current:
                groups.append(current)
                current = []
            previous = message_id
        current.append(position)
    if current:
        groups.append(current)
    return groups
