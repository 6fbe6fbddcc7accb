"""Records and blocks that belong to the selection: parent, children, pair, response, request."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from compaction.conversation import DANGLING, Conversation
from compaction.transcript import BlockType

CHILDREN_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Relation:
    """A place one can go to.

    Attributes:
        name: what it is to the selection ("parent", "tool_result").
        text: one line about it; for a missing target the reason.
        record: the record to select, -1 when there is none in the file.
        block: its block to select, -1 for the record.
        round: the API round whose request is to be shown, 0 for a record.
    """

    name: str
    text: str
    record: int = -1
    block: int = -1
    round: int = 0


def relations_of(conversation: Conversation, record: int, block: int = -1) -> list[Relation]:
    """Everything one can go to from a record or block, nearest first."""
    found = [*_pairs(conversation, record, block), _parent(conversation, record)]
    children = conversation.children(record)
    found += [_to_record(conversation, "child", child) for child in islice(children, CHILDREN_SHOWN)]
    if len(children) > CHILDREN_SHOWN:
        found.append(Relation("child", f"{len(children) - CHILDREN_SHOWN:,} more children are not listed"))
    found += _response(conversation, record)
    number = int(conversation.round_of[record])
    if number:
        found.append(Relation("request", f"the request of API round {number:,}, as sent", round=number))
        first = conversation.round(number).first_record
        if first != record:
            found.append(_to_record(conversation, f"first record of API round {number:,}", first))
    found += _boundary(conversation, record)
    return found


def place_of(conversation: Conversation, record: int) -> str:
    """A record in one line: line number, type, preview."""
    transcript = conversation.transcript
    words = f"line {int(transcript.line[record]):,} · {transcript.type_name(record)}"
    preview = transcript.preview(record, 120)
    return f"{words} · {preview}" if preview else words


def _to_record(conversation: Conversation, name: str, record: int, block: int = -1) -> Relation:
    return Relation(name, place_of(conversation, record), record, block)


def _parent(conversation: Conversation, record: int) -> Relation:
    parent = int(conversation.parent[record])
    if parent >= 0:
        return _to_record(conversation, "parent", parent)
    if parent == DANGLING:
        uuid = conversation.transcript.parent_uuid(record)
        return Relation("parent", f"▲ not in this file: {uuid}")
    chained = bool(conversation.chained[record])
    return Relation("parent", "none: a root of the chain" if chained else "none: not part of the chain")


def _pairs(conversation: Conversation, record: int, block: int) -> list[Relation]:
    """The other halves of the tool calls and results in the selection."""
    transcript = conversation.transcript
    found: list[Relation] = []
    for own in (block,) if block >= 0 else transcript.blocks_of(record):
        kind = int(transcript.block_type[own])
        if kind not in (
            BlockType.TOOL_USE,
            BlockType.TOOL_RESULT,
            BlockType.SERVER_TOOL_USE,
            BlockType.SERVER_TOOL_RESULT,
        ):
            continue
        is_call = kind in (BlockType.TOOL_USE, BlockType.SERVER_TOOL_USE)
        name = "tool_result" if is_call else "tool_use"
        other = int(conversation.pair[own])
        if other >= 0:
            found.append(_to_record(conversation, name, int(transcript.block_record[other]), other))
        else:
            what = "no result of this call is in the file" if is_call else "the call of this result is not in the file"
            found.append(Relation(name, f"✖ {what}"))
    return found


def _response(conversation: Conversation, record: int) -> list[Relation]:
    number = int(conversation.response_of[record])
    if number < 0:
        return []
    others = [other for other in conversation.response_records(number) if other != record]
    return [_to_record(conversation, "same response", other) for other in others[:CHILDREN_SHOWN]]


def _boundary(conversation: Conversation, record: int) -> list[Relation]:
    boundary = conversation.epochs[int(conversation.epoch_of[record])].boundary_record
    if boundary < 0 or boundary == record:
        return []
    return [_to_record(conversation, "compact boundary before it", boundary)]
