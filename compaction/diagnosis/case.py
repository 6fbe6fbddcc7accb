"""What the record rules and the fixers are handed: the conversation, the client, and the request it stands for."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from compaction.conversation import Conversation
from compaction.diagnosis.model import Place
from compaction.diagnosis.stored import Stored, sent_request, stored_request
from compaction.diagnosis.subagents import SubagentAnswers
from compaction.diagnosis.view import PLAIN_API, RequestView
from compaction.request import default_client
from compaction.request.profiles import ResumeProfile, generation_for, version_key
from compaction.transcript import BlockType, Flag, RecordKind, Transcript, key_of

COLLECTS_SIBLINGS_FROM = (2, 1, 80)
"""The first client version that collects parallel results by tool id on resume (changelog 2.1.80)."""
WRITES_SOURCE_UUID_FROM = (2, 1, 1)
"""The first client version that writes `sourceToolAssistantUUID` beside a result (transcript-format.md §3)."""

Block = tuple[int, int]
"""(record, block): 0-based record and position in its content."""


class Lookup:
    """Rows by key in a column of keys: sorted once, so that each look-up costs a few steps whatever the size."""

    def __init__(self, keys: npt.NDArray[np.uint64]) -> None:
        self._order = np.argsort(keys, kind="stable")
        self._sorted = keys[self._order]

    def rows(self, key: int) -> list[int]:
        """The rows that hold `key`, ascending."""
        wanted = np.uint64(key)
        start = int(np.searchsorted(self._sorted, wanted, "left"))
        end = int(np.searchsorted(self._sorted, wanted, "right"))
        return [int(row) for row in self._order[start:end]]


@dataclass(frozen=True)
class Case:
    """One session under the doctor's eyes.

    Attributes:
        conversation: the main conversation.
        client: version of the client profile.
        stored: the request as stored, without any client's mending.
        reserved: tool ids given out in this round.
        answers: what sub-agents' own files hold.
    """

    conversation: Conversation
    client: str
    stored: Stored
    reserved: set[str] = field(default_factory=set, compare=False)
    answers: SubagentAnswers = field(default_factory=lambda: SubagentAnswers(None), compare=False)

    @property
    def transcript(self) -> Transcript:
        return self.conversation.transcript

    @property
    def is_document(self) -> bool:
        """A Messages-API document instead of a session file."""
        return self.transcript.format_name == PLAIN_API

    @cached_property
    def view(self) -> RequestView:
        return RequestView(self.stored.request)

    @cached_property
    def profile(self) -> ResumeProfile:
        """The client's generation."""
        return generation_for(self.client)

    @property
    def collects_siblings(self) -> bool:
        """Whether the client finds results that lie beside the parent chain."""
        return version_key(self.client) >= COLLECTS_SIBLINGS_FROM

    @cached_property
    def writes_source_uuid(self) -> bool:
        """Whether the clients that wrote this file put `sourceToolAssistantUUID` beside results."""
        return version_key(default_client(self.conversation)) >= WRITES_SOURCE_UUID_FROM

    @cached_property
    def chain(self) -> list[int]:
        """The records from the root to the client's leaf by parents."""
        leaf = self.stored.leaf
        return self.conversation.chain(leaf) if leaf >= 0 else []

    @cached_property
    def chain_position(self) -> dict[int, int]:
        """Place on the chain by record."""
        return {record: position for position, record in enumerate(self.chain)}

    @cached_property
    def _chain_keys(self) -> npt.NDArray[np.uint64]:
        return np.unique(self.transcript.uuid_key[np.array(self.chain, np.int64)])

    def on_chain(self, record: int) -> bool:
        """Whether the record, or a repeat of it, lies on the chain to the client's leaf."""
        if record in self.chain_position:
            return True
        key = self.transcript.uuid_key[record]
        place = int(np.searchsorted(self._chain_keys, key))
        return bool(key) and place < len(self._chain_keys) and bool(self._chain_keys[place] == key)

    @cached_property
    def window_start(self) -> int:
        """The first record of the current epoch: what lies before it is behind a compaction."""
        return self.conversation.epochs[-1].first_record if self.conversation.epochs else 0

    @cached_property
    def _by_uuid(self) -> Lookup:
        return Lookup(self.transcript.uuid_key)

    @cached_property
    def _by_tool_id(self) -> Lookup:
        return Lookup(self.transcript.block_key)

    @cached_property
    def preserved(self) -> tuple[int, list[str]]:
        """The last boundary and the uuids that its compaction preserved by name; (-1, []) without such."""
        cuts = [e.boundary_record for e in self.conversation.epochs if e.boundary_record >= 0]
        details = self.transcript.payload(cuts[-1]).get("compactMetadata") if cuts else None
        kept = details.get("preservedMessages") if isinstance(details, dict) else None
        uuids = kept.get("uuids") if isinstance(kept, dict) else None
        if not isinstance(uuids, list):
            return -1, []
        return cuts[-1], [uuid for uuid in uuids if isinstance(uuid, str)]

    @cached_property
    def speaks(self) -> npt.NDArray[np.bool_]:
        """Main-thread user and assistant records."""
        kind = self.transcript.kind
        speaking = np.isin(kind, (RecordKind.USER, RecordKind.ASSISTANT))
        found: npt.NDArray[np.bool_] = np.logical_and(speaking, self.conversation.main)
        return found

    @cached_property
    def place_of(self) -> dict[Block, Place]:
        """Where each block of a record stands in the request."""
        return {
            (origin.record, origin.block): (number, position)
            for number, message in enumerate(self.stored.request.messages)
            for position, origin in enumerate(message.origins)
            if origin is not None
        }

    def origin_of(self, place: Place) -> Block | None:
        """The record and block at a place of the request, None when no record holds it."""
        message, block = place
        if block < 0:
            return None
        origin = self.stored.request.messages[message].origins[block]
        return None if origin is None or origin.block < 0 else (origin.record, origin.block)

    def record_of(self, place: Place) -> int | None:
        """The record of a place; of a message as a whole the record that it was built from last."""
        origin = self.origin_of(place)
        if origin is not None:
            return origin[0]
        record = self.stored.message_records[place[0]]
        return record if record >= 0 else None

    def is_boundary(self, record: int) -> bool:
        """Whether the record is a compact boundary."""
        return bool(self.transcript.flags[record] & Flag.COMPACT_BOUNDARY)

    def line(self, record: int) -> int:
        """1-based line of a record."""
        return int(self.transcript.line[record])

    def twins(self, record: int) -> list[int]:
        """The records with this record's uuid, itself among them (a replay after resume is no fault)."""
        key = self.transcript.uuid_key[record]
        return self._by_uuid.rows(int(key)) if key else [record]

    def once(self, records: list[int]) -> list[int]:
        """The records without repeats of a uuid, each as the repeat that lies on the chain where one does."""
        return list(dict.fromkeys(self._on_chain_twin(record) for record in records))

    def _on_chain_twin(self, record: int) -> int:
        if record in self.chain_position:
            return record
        twins = self.twins(record)
        return next((twin for twin in twins if twin in self.chain_position), twins[0])

    # --- tool ids ---------------------------------------------------------------------------------------------------

    def blocks_with_key(self, key: int) -> list[int]:
        """Rows of the block table with this tool id, by file position; sidechains left out."""
        t = self.transcript
        return [b for b in self._by_tool_id.rows(key) if self.conversation.thread[t.block_record[b]] == 0]

    @cached_property
    def answered_on_chain(self) -> frozenset[int]:
        """The keys of the tool ids that a result on the chain names; sidechains left out."""
        t = self.transcript
        results = np.flatnonzero(t.block_type == BlockType.TOOL_RESULT).tolist()
        return frozenset(
            int(t.block_key[b])
            for b in results
            if self.conversation.thread[t.block_record[b]] == 0 and self.on_chain(int(t.block_record[b]))
        )

    def places_with_id(self, identity: str) -> list[Block]:
        """(record, block) of every call and result with this tool id."""
        t = self.transcript
        return [(int(t.block_record[b]), int(t.block_position[b])) for b in self.blocks_with_key(key_of(identity))]

    def tool_of(self, identity: str) -> str:
        """The name of the tool that the call with this id used, "" when the call is nowhere in the file."""
        t = self.transcript
        rows = self.blocks_with_key(key_of(identity)) if identity else []
        return next((t.block_tool(b) for b in rows if t.block_type[b] == BlockType.TOOL_USE), "")

    def free_id(self, base: str, number: int) -> str:
        """A tool id that nothing in the file has: `base` itself (`number` 0), or `base_2`, `base_3` …"""
        name = base if number == 0 else f"{base}_{number}"
        while name in self.reserved or self.blocks_with_key(key_of(name)):
            number = max(2, number + 1)
            name = f"{base}_{number}"
        self.reserved.add(name)
        return name


def open_case(conversation: Conversation, client: str, answers: SubagentAnswers | None = None) -> Case:
    """The case of a conversation for a client version; `answers` where its sub-agent files are at hand.

    Raises:
        UsageError: `client` is no version.
    """
    stored = stored_request(conversation, client)
    return Case(conversation, client, stored, answers=answers or SubagentAnswers(None))


def open_sent_case(conversation: Conversation, client: str, model: str) -> Case:
    """The case of what a client version really sends, its mending included: the proof of a repair for other clients."""
    return Case(conversation, client, sent_request(conversation, client, model))
