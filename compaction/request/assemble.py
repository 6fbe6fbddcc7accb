"""The request that a client generation sends: the next one, or the one that led to a given API round."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any

from compaction.conversation import Compaction, Conversation
from compaction.errors import UsageError
from compaction.request.chain import chain_rows
from compaction.request.entries import SYNTHETIC_MODEL, Entry, entry_of, text
from compaction.request.leaf import choose_leaf
from compaction.request.merging import Draft, Merger, finished_assistant, mended_response, without_blank_text
from compaction.request.microcompact import (
    cleared_block,
    clearings_on_resume,
    recorded_clearings,
    recorded_context,
)
from compaction.request.pairing import repaired
from compaction.request.profiles import ResumeProfile, generation_for, version_key
from compaction.request.recorded import RecordedRequests, without_cache_control
from compaction.request.resume import loaded
from compaction.request.rows import LoadedRows, RowTable
from compaction.request.siblings import SiblingIndex
from compaction.request.wire import Dropped, Json, Origin, WireMessage, WireRequest
from compaction.transcript import Flag, RecordKind

_SURROGATE = re.compile("[\ud800-\udfff]")


def assemble(conversation: Conversation, client: str, at: int | None = None, *, model: str = "") -> WireRequest:
    """The request of `client` for API round `at` (None: the next request, sent by a session that is resumed).

    `model`: the model it is sent to (default: the recorded one of that round; for the next request the last one of the
    session). It matters where a client leaves out the thinking of other models.

    Raises:
        UsageError: there is no such round, or `client` is not a version.
    """
    return Assembler(conversation, client, model=model).request(at)


def default_client(conversation: Conversation) -> str:
    """The newest client version recorded in the session (cli.md); the newest generation when none is."""
    versions = [name for name in conversation.transcript.version_names if name[:1].isdigit()]
    return max(versions, key=version_key, default="2.1.332")


class Assembler:
    """Builds the requests of one conversation for one client generation.

    `request(at)` is exact and costs one pass over the records before that round. `rounds()` gives every round in
    order and shares the work and the message objects between them: use it for replay.
    """

    def __init__(self, conversation: Conversation, client: str = "", *, model: str = "") -> None:
        self.conversation = conversation
        self.client = client or default_client(conversation)
        self.profile: ResumeProfile = generation_for(self.client)
        self.model = model

    def request(self, at: int | None = None) -> WireRequest:
        """The request that led to round `at`'s response; None: the next one.

        Raises:
            UsageError: there is no such round.
        """
        if self.conversation.transcript.format_name == "messages-api":
            return self._own_request(at)
        if at is None:
            return self._next()
        self._check(at)
        rebuilt = self._rebuilt(at)
        reference = self.recorded.of_round(at) if self.recorded.requests else ""
        found = self.recorded.proven(reference, rebuilt) if reference else rebuilt
        found.unaccounted.extend(self._server_edits(at))
        return found

    def rounds(self, first: int = 1, last: int | None = None) -> Iterator[tuple[int, WireRequest]]:
        """Every round's request in order, by the generation's rules (no hashes).

        One projection serves all rounds on the same line of the conversation; each request holds its messages up to
        the round. Messages are shared: never change them. Wherever the projection of the whole line and the exact
        `request(at)` could differ (results that came late), the difference is in which of two neighbouring rounds a
        block appears, never in the blocks.
        """
        last = self.conversation.round_count if last is None else last
        lines: dict[str, _Line] = {}
        for number in range(first, last + 1):
            begins = self.conversation.round(number).first_record
            model = self._model_of(begins)
            if model not in lines or not lines[model].covers(number):
                lines[model] = self._line(number, model)
            yield number, lines[model].request(number, begins)

    @cached_property
    def table(self) -> RowTable:
        """The rows as this generation reads them."""
        return RowTable(self.conversation, self.profile)

    @cached_property
    def siblings(self) -> SiblingIndex:
        """What hangs on which row."""
        return SiblingIndex(self.table)

    @cached_property
    def recorded(self) -> RecordedRequests:
        """The requests that the transcript records itself."""
        return RecordedRequests(self.conversation)

    def _check(self, at: int) -> None:
        count = self.conversation.round_count
        if not 1 <= at <= count:
            raise UsageError(f"there is no API round {at}", f"the session has {count}")

    def _own_request(self, at: int | None) -> WireRequest:
        """A Messages-API request file: its own messages, system and tools, unchanged."""
        t = self.conversation.transcript
        end = len(t)
        if at is not None:
            self._check(at)
            end = self.conversation.round(at).first_record
        messages = []
        for record in range(end):
            if t.kind[record] == RecordKind.DAMAGED:
                continue
            entry = entry_of(t, record)
            content = t.message(record).get("content")
            parts = entry.parts
            if entry.role == "system":
                given = content if isinstance(content, list) else [{"type": "text", "text": text(content)}]
                blocks = [block for block in given if isinstance(block, dict)]
                origins: list[Origin | None] = [Origin(record, entry.line, i) for i in range(len(blocks))]
            else:
                blocks = [part.block for part in parts]
                origins = [part.origin for part in parts]
            messages.append(WireMessage(entry.role, [without_cache_control(b) for b in blocks], origins))
        document = t.document
        system = document.get("system")
        if isinstance(system, str):
            system = [{"type": "text", "text": system}]
        tools, thinking = document.get("tools"), document.get("thinking")
        known = ("system", "tools", "thinking", "model")
        return WireRequest(
            client=self.client,
            at=at,
            messages=messages,
            model=self.model or text(document.get("model")),
            system=_objects(system),
            tools=_objects(tools) if "tools" in document else None,
            thinking=thinking if isinstance(thinking, dict) else None,
            params={key: value for key, value in document.items() if key not in known},
            is_document=True,
        )

    def _next(self) -> WireRequest:
        rows = LoadedRows(self.table)
        if self.profile.relinks_preserved:
            rows.relink()
        leaf = choose_leaf(rows)
        records = [rows.content(row) for row in chain_rows(rows, leaf, self.siblings)] if leaf >= 0 else []
        entries = self._entries(records)
        model = self.model or _last_model(entries)
        return self._projected(entries, None, model)

    def _rebuilt(self, at: int) -> WireRequest:
        first = self.conversation.round(at).first_record
        entries = self._entries(self._records_before(first))
        return self._projected(entries, at, self._model_of(first) or _last_model(entries))

    def _model_of(self, record: int) -> str:
        """The model a response was asked of: the caller's choice, else the recorded one; "" for a client's message."""
        recorded = self.conversation.transcript.model(record)
        return self.model or ("" if recorded == SYNTHETIC_MODEL else recorded)

    def _records_before(self, first: int) -> list[int]:
        """The records of the conversation that the response beginning at `first` answered."""
        rows = LoadedRows(self.table, limit=first)
        if self.profile.relinks_preserved:
            rows.relink()
        leaf = self._leaf_before(rows, first)
        return [rows.content(row) for row in chain_rows(rows, leaf, self.siblings)] if leaf >= 0 else []

    def _leaf_before(self, rows: LoadedRows, first: int) -> int:
        """The row the response hangs on; the last spoken row before it when its parent is not there."""
        t, parents = self.conversation.transcript, self.conversation.parent
        parent = int(parents[first])
        for _ in range(len(parents)):
            if parent < 0 or t.kind[parent] != RecordKind.PROGRESS:
                break
            parent = int(parents[parent])
        if 0 <= parent < first:
            slot = int(self.table.slot_of[parent])
            if rows.alive(slot):
                return slot
        for row in range(first - 1, -1, -1):
            if rows.alive(row) and rows.speaks(row) and self.conversation.main[row]:
                return row
        return -1

    def _entries(self, records: list[int]) -> list[Entry]:
        t = self.conversation.transcript
        return [entry_of(t, record) for record in records]

    def _projected(self, entries: list[Entry], at: int | None, model: str) -> WireRequest:
        """Entries to messages by the profile; `at` None means that a resumed client sends them."""
        projection = Projection(self, model, resumes=at is None)
        messages = projection.messages(entries)
        return WireRequest(
            client=self.client,
            at=at,
            messages=messages,
            model=model,
            unaccounted=projection.unaccounted + (self._silent_drops(at) if at is not None else []),
            dropped=projection.dropped,
            verified="profile",
        )

    def _silent_drops(self, at: int) -> list[Json]:
        """Falls of the context inside the round's epoch that no record explains (transcript-format.md §7)."""
        epoch = self.conversation.round(at).epoch
        return [
            {"kind": "silent_drop", "message": _fall(drop), "line": drop.line, "round": drop.round + 1}
            for drop in self.conversation.compactions
            if drop.kind == "silent" and drop.round < at and int(self.conversation.epoch_of[drop.record]) == epoch
        ]

    def _server_edits(self, at: int) -> list[Json]:
        """What the server cut from the request before the model saw it (`applied_edits`, api.md 1.6)."""
        t = self.conversation.transcript
        edits: list[Json] = []
        for record in self.conversation.response_records(self.conversation.round(at).response):
            management = t.message(record).get("context_management")
            applied = management.get("applied_edits") if isinstance(management, dict) else None
            edits = [e for e in applied if isinstance(e, dict)] if isinstance(applied, list) else edits
        return [
            {
                "kind": "server_edit",
                "message": f"the server applied {text(edit.get('type'))} and cleared "
                f"{edit.get('cleared_input_tokens', 'an unknown number of')} tokens; which items is not recorded",
                "edit": edit,
            }
            for edit in edits
        ]

    def _line(self, number: int, model: str) -> _Line:
        """The longest line of the conversation that the round lies on: up to its epoch's last round if that continues
        it, else up to the last round before the conversation was taken up elsewhere, else up to the round itself."""
        conversation = self.conversation
        end = conversation.epochs[conversation.round(number).epoch].end_record
        firsts = conversation.round_first_records
        epoch_last, run_last, running = number, number, True
        while epoch_last < conversation.round_count and int(firsts[epoch_last]) < end:
            epoch_last += 1
            running = running and self._continues(epoch_last)
            run_last = epoch_last if running else run_last
        for candidate in dict.fromkeys((epoch_last, run_last)):
            line = _Line(self, number, candidate, model)
            if line.covers(number):
                return line
        return _Line(self, number, number, model)

    def _continues(self, number: int) -> bool:
        """Whether the round's response hangs on the response of the round before it."""
        conversation = self.conversation
        record = int(conversation.round_first_records[number - 1])
        own = int(conversation.response_of[record])
        for _ in range(len(conversation.parent)):
            record = int(conversation.parent[record])
            if record < 0:
                return False
            response = int(conversation.response_of[record])
            if response >= 0 and response != own:
                return response == int(conversation.round_responses[number - 2])
        return False


def _fall(drop: Compaction) -> str:
    return (
        f"between rounds {drop.round} and {drop.round + 1} the context fell from {drop.context_before} to "
        f"{drop.context_after} tokens: cleared by the client, items unknown"
    )


class _Line:
    """One projected line of the conversation, cut at any round that lies on it."""

    def __init__(self, assembler: Assembler, first: int, last: int, model: str) -> None:
        self.assembler = assembler
        self.conversation = conversation = assembler.conversation
        records = assembler._records_before(conversation.round(last).first_record)
        self.position = {record: place for place, record in enumerate(records)}
        self.first, self.last, self.model = first, last, model
        projection = Projection(assembler, model, resumes=False)
        self.messages = projection.messages(assembler._entries(records))
        self.begins = [_first_record(message) for message in self.messages]

    def covers(self, number: int) -> bool:
        """Whether the round's request is a beginning of this line (the last one is what the line leads to)."""
        if not self.first <= number < self.last:
            return number == self.last
        return self.conversation.round(number).first_record in self.position

    def request(self, number: int, first: int) -> WireRequest:
        """The line's messages up to the round that begins with record `first`."""
        assembler = self.assembler
        messages = self.messages if number == self.last else self.messages[: self._cut(first)]
        return WireRequest(
            client=assembler.client,
            at=number,
            messages=messages,
            model=self.model,
            unaccounted=assembler._silent_drops(number),
        )

    @cached_property
    def _message_of(self) -> dict[int, int]:
        """The message that each record's first block is in."""
        found: dict[int, int] = {}
        for index, message in enumerate(self.messages):
            for origin in message.origins:
                if origin is not None:
                    found.setdefault(origin.record, index)
        return found

    def _cut(self, first: int) -> int:
        """How many messages stand before the response that begins with record `first`."""
        if first in self._message_of:
            return self._message_of[first]
        response = int(self.conversation.response_of[first])
        members = [self._message_of[r] for r in self.conversation.response_records(response) if r in self._message_of]
        if members:
            return min(members)
        place = self.position[first]
        for index, record in enumerate(self.begins):
            if record is not None and self.position.get(record, -1) >= place:
                return index
        return len(self.messages)


def _first_record(message: WireMessage) -> int | None:
    return next((origin.record for origin in message.origins if origin is not None), None)


class Projection:
    """Rows to wire messages by one profile; collects what is dropped and what cannot be told."""

    def __init__(self, assembler: Assembler, model: str, *, resumes: bool) -> None:
        self.profile = assembler.profile
        self.conversation = assembler.conversation
        self.recorded = assembler.recorded
        self.model = model
        self.resumes = resumes
        healed_from = self.profile.heals_surrogates_from
        self.heals = healed_from is not None and version_key(assembler.client) >= version_key(healed_from)
        measured = version_key(assembler.client) >= version_key(self.profile.version)
        self.mends = self.profile.mends if measured else None
        self.cleared_attachments: set[str] = set()
        self.dropped: list[Dropped] = []
        self.unaccounted: list[Json] = []

    def messages(self, entries: list[Entry]) -> list[WireMessage]:
        """The wire messages of the conversation's rows."""
        cleared = self._clearings(entries)
        entries = [entry for entry in entries if not self._is_cleared(entry)]
        entries = loaded(entries, self.profile, self.resumes, self.dropped)
        if self.resumes:
            cleared.update(self._resume_clearings(entries))
        merger = Merger(
            self.profile,
            cleared,
            sends_api_errors=self.resumes and self.profile.api_errors == "sent_on_resume",
            system_turns=bool(self.recorded.blobs) and self.recorded.sends_system_turns(self.model),
            mends=self.mends,
        )
        drafts = merger.fold(entries)
        self.dropped += merger.dropped
        self._name_unknown(merger.unknown)
        for draft in drafts:
            if self.profile.drops_blank_text:
                without_blank_text(draft, self.dropped)
            if draft.role == "assistant":
                if self.mends is not None:
                    mended_response(draft, self.mends, self.dropped)
                finished_assistant(draft, self.profile, self.model, self.dropped)
        drafts = [draft for draft in drafts if draft.parts]
        if self.profile.repairs_pairing:
            drafts = repaired(drafts, self.profile.orphan_texts, self.dropped)
        if self.resumes:
            self._leave_room_for_prompt(drafts)
        return [self._message(draft) for draft in drafts]

    def _message(self, draft: Draft) -> WireMessage:
        blocks = []
        for part in draft.parts:
            block = without_cache_control(part.block)
            if self.heals and part.origin and self.conversation.transcript.flags[part.origin.record] & Flag.LENIENT:
                block = healed(block)
            blocks.append(block)
        return WireMessage(draft.role, blocks, [part.origin for part in draft.parts])

    def _clearings(self, entries: list[Entry]) -> dict[str, Callable[[Json], Json]]:
        """Recorded microcompactions: applied to a running client's requests; a resumed client sends the results."""
        ids, attachments = recorded_clearings(entries)
        if not ids and not attachments:
            return {}
        if self.resumes:
            words = f"{len(ids)} tool results are cleared in the client that ran; a resumed one sends them in full"
            self.unaccounted.append({"kind": "microcompaction", "message": words, "ids": sorted(ids)})
            return {}
        self.cleared_attachments = attachments
        return {call: partial(cleared_block, rule=None) for call in ids}

    def _is_cleared(self, entry: Entry) -> bool:
        """An attachment that a microcompaction removed."""
        if entry.role != "attachment" or entry.payload.get("uuid") not in self.cleared_attachments:
            return False
        self.dropped.append(entry.dropped("cleared by a microcompaction"))
        return True

    def _resume_clearings(self, entries: list[Entry]) -> dict[str, Callable[[Json], Json]]:
        context = recorded_context(entries)
        if context >= self.profile.auto_compact_tokens:
            words = (
                f"the recorded context ({context} tokens) is above the auto-compact threshold of this client "
                f"({self.profile.auto_compact_tokens}): it first sends this conversation with its summary instruction"
            )
            self.unaccounted.append({"kind": "auto_compact", "message": words, "tokens": context})
        ids = clearings_on_resume(entries, self.profile)
        return {call: partial(cleared_block, rule=self.profile.microcompact) for call in ids}

    def _name_unknown(self, unknown: list[Entry]) -> None:
        for entry in unknown:
            attachment = entry.payload.get("attachment")
            kind = text(attachment.get("type")) if isinstance(attachment, dict) else ""
            words = f"attachment {kind!r}: the text that was sent for it is not in the transcript"
            self.unaccounted.append({"kind": "attachment", "message": words, "line": entry.line, "attachment": kind})

    def _leave_room_for_prompt(self, drafts: list[Draft]) -> None:
        """A next request always ends with a new prompt: text before it gets the joint of merged texts."""
        if drafts and drafts[-1].role == "user" and self.profile.text_joint:
            part = drafts[-1].parts[-1]
            if part.block.get("type") == "text":
                part.block = {**part.block, "text": text(part.block.get("text")) + self.profile.text_joint}


def healed(value: Any) -> Any:
    """A JSON value with every unpaired surrogate replaced by U+FFFD."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [healed(item) for item in value]
    if isinstance(value, dict):
        return {key: healed(item) for key, item in value.items()}
    return value


def _last_model(entries: list[Entry]) -> str:
    """The model of the last real response on the chain."""
    return next(
        (e.model for e in reversed(entries) if e.role == "assistant" and e.model not in ("", SYNTHETIC_MODEL)), ""
    )


def _objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list of blocks or tools; what else a document holds there is no part of a request."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
