from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from compaction.conversation.epochs import SILENT_DROP_TOKENS, Compaction, Epoch, Fork
from compaction.conversation.links import (
    DANGLING,
    ROOT,
    ancestors_within,
    first_rows_by_key,
    first_seen_numbers,
    resolve_parents,
)
from compaction.conversation.rounds import ApiRound
from compaction.conversation.usage import context_by_response
from compaction.transcript import BlockType, Flag, RecordKind, Transcript

Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class KnownContext:
    """The size that a plan gave to the session it made: the context and the system's share of it, in tokens."""

    tokens: int
    system_tokens: int


class Conversation:
    """The structure of one transcript: chain, responses, API rounds, pairs, epochs, sidechains.

    Built from the columns alone (no payload is decoded), in vector steps, so it can be rebuilt while a file grows.

    Attributes (arrays have one entry a record, blocks one a content block):
        parent: record number of the parent, −1 root or unchained, −2 the parent is not in the file.
        chained: the record has a uuid and so is a link of the chain.
        thread: 0 main thread, k > 0 the k-th inline sidechain, −1 bookkeeping (no uuid).
        response_of: response number (records that share a `message.id`), −1 for anything but assistant records.
        round_of: API round (1-based) by file position; 0 before the first response of the epoch.
        epoch_of: number of the epoch.
        pair: per block, the first tool_result of a tool_use, the first tool_use of a tool_result, −1 otherwise.
    """

    running: frozenset[int] = frozenset()
    """Tool_use blocks that wait for their result right now; set by who follows a session while it is written
    (`running.running_calls`), so that views show them as running and not as orphans."""

    known_context: KnownContext | None = None
    """Set by who made this session in memory from another one by a plan: the usage on record is from before it."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        t = transcript
        count = len(t)
        kind, flags = t.kind, t.flags
        self.chained = t.uuid_key != 0
        self.parent: Ints = resolve_parents(t.uuid_key, t.parent_key)
        sidechain = (flags & Flag.SIDECHAIN) != 0
        speaks = (kind == RecordKind.USER) | (kind == RecordKind.ASSISTANT)
        self.is_subagent_file = bool(count) and bool(speaks.any()) and bool(sidechain[speaks].all())
        self.thread: Ints = self._threads(np.zeros_like(sidechain) if self.is_subagent_file else sidechain)
        self.main = self.thread == 0
        self._build_responses()
        self._build_epochs()
        self._build_rounds()
        self._build_pairs()

    def _threads(self, sidechain: npt.NDArray[np.bool_]) -> Ints:
        thread = np.where(self.chained, 0, -1).astype(np.int32)
        inside = sidechain & self.chained
        members = np.flatnonzero(inside)
        self.thread_roots: list[int] = [-1]
        if len(members):
            top = ancestors_within(self.parent, inside)[members]
            numbers, threads = first_seen_numbers(top.astype(np.uint64))
            thread[members] = numbers + 1
            roots = np.zeros(threads, np.int32)
            roots[numbers[::-1]] = top[::-1]
            self.thread_roots += [int(r) for r in roots]
        return thread

    def _build_responses(self) -> None:
        t = self.transcript
        assistant = np.flatnonzero(t.kind == RecordKind.ASSISTANT)
        keys = t.message_key[assistant].copy()
        missing = keys == 0
        # An assistant record without message.id is a response of its own; record numbers never collide with hashes
        # that matter, and a collision would only join two such records.
        keys[missing] = assistant[missing].astype(np.uint64) + 1
        numbers, self.response_count = first_seen_numbers(keys)
        self.response_of: Ints = np.full(len(t), -1, np.int32)
        self.response_of[assistant] = numbers
        self._assistant = assistant
        order = np.argsort(numbers, kind="stable")
        self._response_members = assistant[order].astype(np.int32)
        self._response_start = np.searchsorted(numbers[order], np.arange(self.response_count + 1)).astype(np.int32)

    def _build_epochs(self) -> None:
        t = self.transcript
        boundary = (t.flags & Flag.COMPACT_BOUNDARY) != 0
        summary = (t.flags & Flag.COMPACT_SUMMARY) != 0
        legacy = summary & (self.parent == ROOT) & self.chained
        cuts = np.flatnonzero((boundary | legacy) & (self.thread == 0))
        figures = {b.record: b for b in t.boundaries}
        self.epochs: list[Epoch] = []
        starts = [0, *(int(c) for c in cuts)]
        if len(starts) > 1 and starts[1] == 0:
            starts = starts[1:]
        for number, start in enumerate(starts):
            end = starts[number + 1] if number + 1 < len(starts) else len(t)
            found = figures.get(start)
            cut = bool(len(cuts)) and (number > 0 or int(cuts[0]) == 0)
            kind = "start" if not cut else "legacy" if found is None else found.trigger or "auto"
            self.epochs.append(
                Epoch(
                    number,
                    start,
                    end,
                    start if cut else -1,
                    kind,
                    found.pre_tokens if found else None,
                    found.post_tokens if found else None,
                )
            )
        self.epoch_of: Ints = np.zeros(len(t), np.int32)
        self.epoch_of[np.array(starts[1:], np.int64)] = 1
        self.epoch_of = np.cumsum(self.epoch_of, dtype=np.int32)
        self._epoch_start = np.array(starts, np.int64)

    def _build_rounds(self) -> None:
        t = self.transcript
        main = self._assistant[self.main[self._assistant]]
        responses = self.response_of[main]
        begins = np.ones(len(main), bool)
        epoch = self.epoch_of[main]
        if len(main) > 1:
            begins[1:] = (responses[1:] != responses[:-1]) | (epoch[1:] != epoch[:-1])
        self._round_first: Ints = main[begins].astype(np.int32)
        self._round_response: Ints = responses[begins].astype(np.int32)
        self.round_count = len(self._round_first)
        marks = np.zeros(len(t), np.int32)
        marks[self._round_first] = 1
        round_of = np.cumsum(marks, dtype=np.int32)
        before = np.zeros(len(t), bool)
        for start in self._epoch_start[: len(self.epochs)]:
            # The records of an epoch before its first response belong to no round of it.
            position = int(np.searchsorted(self._round_first, start))
            end = int(self._round_first[position]) if position < self.round_count else len(t)
            before[start:end] = True
        self.round_of: Ints = np.where(before, 0, round_of).astype(np.int32)

    def _build_pairs(self) -> None:
        t = self.transcript
        kinds = t.block_type
        self.pair: Ints = np.full(len(kinds), -1, np.int32)
        self.duplicate_results: list[int] = []
        self.duplicate_uses: list[int] = []
        self.uses_without_result: list[int] = []
        self.results_without_use: list[int] = []
        pairings = (
            (BlockType.TOOL_USE, BlockType.TOOL_RESULT),
            (BlockType.SERVER_TOOL_USE, BlockType.SERVER_TOOL_RESULT),
        )
        for use_type, result_type in pairings:
            uses = np.flatnonzero((kinds == use_type) & (t.block_key != 0))
            results = np.flatnonzero((kinds == result_type) & (t.block_key != 0))
            use_keys, result_keys = t.block_key[uses], t.block_key[results]
            self.pair[uses] = first_rows_by_key(results, result_keys, use_keys)
            self.pair[results] = first_rows_by_key(uses, use_keys, result_keys)
            self.uses_without_result += [int(b) for b in uses[self.pair[uses] < 0]]
            self.results_without_use += [int(b) for b in results[self.pair[results] < 0]]
            self.duplicate_results += self._repeats(results, result_keys)
            self.duplicate_uses += self._repeats(uses, use_keys)

    def _repeats(self, rows: npt.NDArray[np.int64], keys: npt.NDArray[np.uint64]) -> list[int]:
        """Rows whose key stood before in another record (a record replayed with the same uuid is no repeat)."""
        firsts = first_rows_by_key(rows, keys, keys)
        t = self.transcript
        repeats = []
        for row, first in zip(rows[firsts != rows], firsts[firsts != rows], strict=True):
            one, other = int(t.block_record[row]), int(t.block_record[first])
            if t.uuid_key[one] != t.uuid_key[other] or t.uuid_key[one] == 0:
                repeats.append(int(row))
        return repeats

    @cached_property
    def _children(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        order = np.argsort(self.parent, kind="stable")
        starts = np.searchsorted(self.parent[order], np.arange(len(self.parent) + 1))
        return order, starts

    def children(self, record: int) -> list[int]:
        """The records whose parent is `record`, by file position."""
        order, starts = self._children
        return [int(r) for r in order[starts[record] : starts[record + 1]]]

    @cached_property
    def roots(self) -> list[int]:
        """Chained records without a parent: the beginning, every compaction, sidechains, `/clear`."""
        return [int(r) for r in np.flatnonzero(self.chained & (self.parent == ROOT))]

    @cached_property
    def dangling(self) -> list[int]:
        """Chained records whose parent is not in the file."""
        return [int(r) for r in np.flatnonzero(self.chained & (self.parent == DANGLING))]

    @cached_property
    def leaf(self) -> int:
        """The record the next request continues from; −1 when there is none (transcript-format.md §6).

        `last-prompt.leafUuid` where it is in the file, unless records that continue it were written after it; else
        the last user or assistant record of the main thread.
        """
        t = self.transcript
        speaks = self.main & ((t.kind == RecordKind.USER) | (t.kind == RecordKind.ASSISTANT))
        spoken = np.flatnonzero(speaks)
        last = int(spoken[-1]) if len(spoken) else -1
        if t.leaf_key:
            named = np.flatnonzero(t.uuid_key == np.uint64(t.leaf_key))
            if len(named):
                leaf = int(named[-1])
                return last if last > t.leaf_record and leaf in self.chain(last) else leaf
        return last

    def chain(self, leaf: int | None = None) -> list[int]:
        """The records from the root to `leaf` (default: the conversation's leaf) by parents; a cycle ends the walk."""
        record = self.leaf if leaf is None else leaf
        path: list[int] = []
        seen: set[int] = set()
        while record >= 0 and record not in seen:
            seen.add(record)
            path.append(record)
            record = int(self.parent[record])
        path.reverse()
        return path

    @cached_property
    def on_chain(self) -> npt.NDArray[np.bool_]:
        """Whether a record lies on the chain to the leaf."""
        found = np.zeros(len(self.parent), bool)
        found[self.chain()] = True
        return found

    def inline_starter(self, thread: int) -> int:
        """The tool_use block that started inline sidechain `thread`; −1 when no call's prompt equals the sidechain's
        first text (the only link there is in the old layout, transcript-format.md §1)."""
        t = self.transcript
        root = self.thread_roots[thread]
        content = t.message(root).get("content")
        prompt = content if isinstance(content, str) else _first_text(content)
        if not prompt:
            return -1
        calls = np.flatnonzero((t.block_type == BlockType.TOOL_USE) & (t.block_record <= root))
        for block in calls[::-1]:
            if t.block_tool(int(block)) in ("Task", "Agent"):
                given = t.block(int(block)).get("input")
                if isinstance(given, dict) and given.get("prompt") == prompt:
                    return int(block)
        return -1

    def response_records(self, response: int) -> list[int]:
        """The records of a response, by file position."""
        start, end = self._response_start[response], self._response_start[response + 1]
        return [int(r) for r in self._response_members[start:end]]

    def response_model(self, response: int) -> str:
        """The model that gave the response."""
        return self.transcript.model(self.response_records(response)[-1])

    @cached_property
    def response_context(self) -> npt.NDArray[np.int64]:
        """Recorded context of each response, tokens: input + cache read + cache creation; 0 = not recorded."""
        return context_by_response(self)

    def round(self, number: int) -> ApiRound:
        """API round `number` (1-based).

        Raises:
            IndexError: there is no such round.
        """
        if not 1 <= number <= self.round_count:
            raise IndexError(f"there is no API round {number}: the session has {self.round_count}")
        first = int(self._round_first[number - 1])
        epoch = int(self.epoch_of[first])
        end = self.epochs[epoch].end_record
        if number < self.round_count:
            end = min(end, int(self._round_first[number]))
        return ApiRound(number, first, end, int(self._round_response[number - 1]), epoch)

    @property
    def round_first_records(self) -> Ints:
        """The first record of every round, in order."""
        return self._round_first

    @property
    def round_responses(self) -> Ints:
        """The response of every round, in order."""
        return self._round_response

    def round_context(self, number: int) -> int:
        """Recorded context of round `number`'s response, tokens; 0 = not recorded."""
        return int(self.response_context[self._round_response[number - 1]])

    @cached_property
    def branches(self) -> list[Fork]:
        """Real forks of the main thread (transcript-format.md §6), by file position of the forking record."""
        t = self.transcript
        prompt = (t.kind == RecordKind.USER) & ((t.flags & Flag.TOOL_RESULT) == 0)
        branching = (prompt | (t.kind == RecordKind.ASSISTANT)) & self.main & (self.parent >= 0)
        members = np.flatnonzero(branching)
        parents, counts = np.unique(self.parent[members], return_counts=True)
        forks = []
        for parent in parents[counts > 1]:
            heads = self._heads(int(parent), branching)
            if len(heads) > 1:
                forks.append(Fork(int(parent), tuple(heads)))
        return forks

    def _heads(self, parent: int, branching: npt.NDArray[np.bool_]) -> list[int]:
        """The children of `parent` that begin something new: one for each prompt and each other response."""
        t = self.transcript
        seen: set[int] = set()
        heads = []
        for child in self.children(parent):
            if not branching[child]:
                continue
            if t.kind[child] == RecordKind.ASSISTANT:
                if self.response_of[child] == self.response_of[parent]:
                    continue
                identity = -1 - int(self.response_of[child])
            else:
                identity = int(t.uuid_key[child])
            if identity not in seen:
                seen.add(identity)
                heads.append(child)
        return heads

    @cached_property
    def compactions(self) -> list[Compaction]:
        """Every compaction in the file, recorded or told by a fall of the context, by file position."""
        t = self.transcript
        found: list[Compaction] = []
        found += [
            self._compaction(epoch.boundary_record, epoch.kind, epoch.pre_tokens, epoch.post_tokens)
            for epoch in self.epochs
            if epoch.boundary_record >= 0
        ]
        found += [
            self._compaction(boundary.record, "micro", boundary.pre_tokens, boundary.post_tokens)
            for boundary in t.boundaries
            if boundary.micro
        ]
        found += [self._compaction(record, "silent", None, None) for record in self._silent_drops()]
        return sorted(found, key=lambda c: c.record)

    def _compaction(self, record: int, kind: str, pre: int | None, post: int | None) -> Compaction:
        position = int(np.searchsorted(self._round_first, record))
        before = self._near_context(range(position - 1, -1, -1))
        after = self._near_context(range(position, self.round_count))
        preserved = 0
        if kind in ("auto", "manual"):
            details = self.transcript.payload(record).get("compactMetadata")
            kept = details.get("preservedMessages") if isinstance(details, dict) else None
            uuids = kept.get("uuids") if isinstance(kept, dict) else None
            preserved = len(uuids) if isinstance(uuids, list) else 0
        line = int(self.transcript.line[record])
        return Compaction(record, line, position, kind, pre, post, before, after, preserved)

    def _near_context(self, rounds: range) -> int | None:
        for position in rounds:
            tokens = int(self.response_context[self._round_response[position]])
            if tokens:
                return tokens
        return None

    def _silent_drops(self) -> list[int]:
        """First records of rounds whose context fell by more than 15,000 tokens with nothing recorded between, on
        the same line of the conversation (a rewind or `/clear` is no compaction)."""
        context = self.response_context[self._round_response] if self.round_count else np.zeros(0, np.int64)
        known = np.flatnonzero(context > 0)
        micro = np.array([b.record for b in self.transcript.boundaries if b.micro], np.int64)
        drops = []
        for before, after in pairwise(known):
            if context[before] - context[after] <= SILENT_DROP_TOKENS:
                continue
            first, second = int(self._round_first[before]), int(self._round_first[after])
            if self.epoch_of[first] != self.epoch_of[second] or ((micro > first) & (micro < second)).any():
                continue
            if self._continues(first, second):
                drops.append(second)
        return drops

    def _continues(self, earlier: int, later: int) -> bool:
        """Whether the walk from `later` to the root passes the response of `earlier` (or loses its way: unknown)."""
        response = self.response_of[earlier]
        record = later
        for _ in range(len(self.parent)):
            parent = int(self.parent[record])
            if parent == DANGLING or parent > record:
                return True
            if parent == ROOT:
                return False
            record = parent
            if self.response_of[record] == response:
                return True
            if record < earlier:
                return False
        return False


def _first_text(content: object) -> str:
    """The first text block's text of a message's content list, "" when there is none."""
    if isinstance(content, list):
        for block in content:
            if isinstance(block, dict) and isinstance(block.get("text"), str):
                return str(block["text"])
    return ""


def build_conversation(transcript: Transcript) -> Conversation:
    """The structure of an opened transcript."""
    return Conversation(transcript)
