"""One finding as parts: what is wrong, the API's sentence, why, the places, the missing half, what to do. No Qt."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from compaction.conversation import Conversation
from compaction.diagnosis.explain import refusal_with
from compaction.diagnosis.model import Finding
from compaction.transcript import BlockType, key_of
from inspector.models.findings import TONES
from inspector.rendering.parts import Code, Fields, Heading, Note, Part, Place, Places, Prose, Tone
from inspector.rendering.relations import place_of

_CALLS = (BlockType.TOOL_USE, BlockType.SERVER_TOOL_USE)
_RESULTS = (BlockType.TOOL_RESULT, BlockType.SERVER_TOOL_RESULT)

PLACES_SHOWN = 40


def finding_parts(finding: Finding, conversation: Conversation | None, client: str = "") -> list[Part]:
    """Everything known of a finding, in the order a person asks for it; `client` is the version it was found for."""
    tone = TONES[finding.severity]
    parts: list[Part] = [Heading(finding.code.replace("_", " "), finding.rule, tone), Prose(finding.message)]
    if finding.api_error:
        parts += _answer(finding, client)
    if finding.why:
        parts += [Heading("Why"), Prose(finding.why)]
    if conversation is not None:
        parts += [Heading("Where"), Places(tuple(places_of(finding, conversation)))]
        halves = halves_of(finding, conversation)
        if halves:
            parts += [Heading("Calls and results of these ids"), Places(tuple(halves))]
    if finding.repairs:
        parts.append(Heading("What can be done"))
        for repair in finding.repairs:
            mark = "●" if repair.default else "○"
            advice = "" if repair.changes_file else " (advice: nothing is written)"
            parts.append(Prose(f"{mark} {repair.title}{advice}"))
            if repair.reason:
                parts.append(Note(repair.reason))
    if finding.clients:
        parts += [Heading("What each client does with it"), Fields(tuple(sorted(finding.clients.items())))]
    facts = [(name.replace("_", " "), _fact(value)) for name, value in finding.details.items()]
    if facts:
        parts += [Heading("Further facts"), Fields(tuple(facts))]
    return parts


def _answer(finding: Finding, client: str) -> list[Part]:
    """Whose request the API refuses, before what it says: the chosen client may send the request without the fault."""
    refusal = refusal_with(finding, client)
    if refusal is None:
        return [Note("The API answers:"), Code(finding.api_error)]
    parts: list[Part] = []
    if refusal.own_refused:
        parts.append(Note(f"Client {client} sends it as it is: the API refuses the request.", Tone.ERROR))
    else:
        parts.append(Note(f"Not refused with client {client}: it {refusal.own}.", Tone.GOOD))
    if refusal.refused:
        others = [version for version in refusal.refused if version != client]
        parts += [Note(f"Refused with {_clients(others)}, sent as it is.", Tone.WARNING)] if others else []
        parts.append(Note(f"The API answers {_clients(refusal.refused)}:"))
    else:
        parts.append(Note("The API would answer to the file as it stands:"))
    return [*parts, Code(finding.api_error)]


def _clients(versions: Sequence[str]) -> str:
    return f"{'client' if len(versions) == 1 else 'clients'} {' and '.join(versions)}"


def places_of(finding: Finding, conversation: Conversation) -> list[Place]:
    """The records a finding is about, and its place in the request."""
    places = [
        Place("record", place_of(conversation, record), record, block_of(finding, conversation, record))
        for record in finding.records[:PLACES_SHOWN]
        if record < len(conversation.transcript)
    ]
    if len(finding.records) > PLACES_SHOWN:
        places.append(Place("record", f"{len(finding.records) - PLACES_SHOWN:,} more"))
    if finding.path:
        places.append(Place("field", finding.path))
    if finding.wire:
        places.append(Place("in the request", finding.wire))
    return places or [Place("record", "the session as a whole")]


def block_of(finding: Finding, conversation: Conversation, record: int) -> int:
    """The row of the block of a record that a finding is about, else one that carries its id; -1 for the record."""
    transcript = conversation.transcript
    positions = [position for owner, position in finding.blocks if owner == record]
    keys = {key_of(name) for name in finding.ids}
    for block in transcript.blocks_of(record):
        if int(transcript.block_position[block]) in positions:
            return block
    for block in transcript.blocks_of(record):
        if int(transcript.block_key[block]) in keys:
            return block
    return -1


def halves_of(finding: Finding, conversation: Conversation) -> list[Place]:
    """For every tool id of a finding, the last known place of its call and its result, or that there is none."""
    transcript = conversation.transcript
    places: list[Place] = []
    for name in finding.ids[:PLACES_SHOWN]:
        rows = np.flatnonzero(transcript.block_key == np.uint64(key_of(name)))
        kinds = transcript.block_type[rows]
        for title, wanted in (("call", _CALLS), ("result", _RESULTS)):
            found = [int(block) for block, kind in zip(rows, kinds, strict=True) if kind in wanted]
            if not found:
                places.append(Place(f"{title} of {name}", f"✖ no record of this file holds its {title}"))
            elif len(finding.ids) <= PLACES_SHOWN:
                block = found[-1]
                record = int(transcript.block_record[block])
                text = f"line {int(transcript.line[record]):,}{_standing(conversation, record)}"
                places.append(Place(f"{title} of {name}", text, record, block))
    return places


def _standing(conversation: Conversation, record: int) -> str:
    """Why a record that is in the file may not be in the request."""
    words = []
    last = len(conversation.epochs) - 1
    epoch = int(conversation.epoch_of[record])
    if epoch < last:
        boundary = conversation.epochs[last].boundary_record
        line = int(conversation.transcript.line[boundary]) if boundary >= 0 else 0
        words.append(f"before the compact boundary on line {line:,}" if line else "in an earlier epoch")
    if int(conversation.thread[record]) > 0:
        words.append("in a sidechain")
    elif not bool(conversation.on_chain[record]) and epoch == last:
        words.append("beside the parent chain")
    return f", {' and '.join(words)}" if words else ""


def _fact(value: object) -> str:
    if isinstance(value, list) and value and all(isinstance(entry, str) for entry in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
