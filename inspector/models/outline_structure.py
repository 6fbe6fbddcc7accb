"""What the tree shows of one conversation, as arrays: no Qt here, built in a worker thread.

Display order is file order: API rounds and epochs are runs of records by file position (compaction.md §3). A *head* is
the first record of a message row: of a response's records within one round, or any single other record. Records of
inline sidechains (thread > 0) are shown under the call that started them, not in their place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from compaction.accounting.estimate import CHARACTERS_PER_TOKEN_ROUGH, ROUGH_TOKENS_OF_MEDIA
from compaction.conversation import DANGLING, Conversation
from compaction.transcript import BlockFlag, BlockType, Flag, RecordKind

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
"""Columns with one entry a record, head or block: half of what int64 takes in a session of a million records."""
Mask = npt.NDArray[np.bool_]

BOOKKEEPING_KINDS = (
    RecordKind.PROGRESS,
    RecordKind.SUMMARY,
    RecordKind.FILE_HISTORY,
    RecordKind.QUEUE,
    RecordKind.SESSION_STATE,
    RecordKind.API_REQUEST,
    RecordKind.COST_STATE,
)
"""Kinds that are never part of a request and only describe the session's course."""

BOOKKEEPING_SYSTEM = ("system/turn_duration", "system/stop_hook_summary", "system/away_summary")


@dataclass(frozen=True, slots=True)
class Shown:
    """Which records the tree shows.

    Attributes:
        sidechain, meta, bookkeeping: the three switches of the View menu.
        matches: when given, one entry a record: only these records (a message shows when one of its records does).
    """

    sidechain: bool = True
    meta: bool = True
    bookkeeping: bool = False
    matches: Mask | None = None


class OutlineStructure:
    """The rows a conversation has, whatever is expanded.

    Attributes (numpy):
        heads: records that begin a message row, ascending; rows of inline sidechains among them.
        head_of: per record, its position in `heads`.
        head_thread: per head, 0 or the number of the inline sidechain it belongs to.
        group_first, group_end: per group (a round of an epoch, or what lies before its first round), the positions in
            `heads` it spans; `group_round` (0 = before the first round of the epoch), `group_epoch`.
        epoch_first, epoch_end: per epoch, its groups.
        block_tokens: per block, the rough estimate in tokens (compaction.md §2: characters / 4).
        pair_number: per block, the number its tool_use and tool_result share, 0 without a partner.
    """

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        t = conversation.transcript
        self.count = len(t)
        self.findings: dict[int, tuple[int, str]] = {}
        self._finding_heads: Ints = np.zeros(0, np.int64)
        self._build_groups()
        self._build_heads()
        self._build_tokens()
        self._build_pairs()

    def prepare(self) -> None:
        """Make what is otherwise made on first use, so that a worker thread pays for it and not the painting."""
        if self.count:
            self.problems_between(0, 0)
        _ = self.head_blocks, self.epoch_context, self.thread_starters, self.threads, self.conversation.leaf

    def _build_groups(self) -> None:
        c = self.conversation
        if not self.count:
            self.record_group = np.zeros(0, np.int32)
            self.group_round, self.group_epoch = np.zeros(0, np.int64), np.zeros(0, np.int64)
            return
        starts = np.ones(self.count, bool)
        starts[1:] = (c.round_of[1:] != c.round_of[:-1]) | (c.epoch_of[1:] != c.epoch_of[:-1])
        self.record_group = np.cumsum(starts, dtype=np.int32) - 1
        first = np.flatnonzero(starts)
        self.group_round = c.round_of[first].astype(np.int64)
        self.group_epoch = c.epoch_of[first].astype(np.int64)

    def _build_heads(self) -> None:
        c = self.conversation
        # Every record begins a row, but of a response's records in one round only the first does.
        first = np.arange(self.count, dtype=np.int32)
        answers = np.flatnonzero(c.response_of >= 0)
        if len(answers):
            key = c.response_of[answers].astype(np.int64) * len(self.group_round) + self.record_group[answers]
            _, place, inverse = np.unique(key, return_index=True, return_inverse=True)
            first[answers] = answers[place][inverse.reshape(-1)]
        begins = first == np.arange(self.count, dtype=np.int32)
        self.heads: Numbers = np.flatnonzero(begins).astype(np.int32)
        self.head_of: Numbers = (np.cumsum(begins, dtype=np.int32) - 1)[first]
        self._member_order = np.argsort(self.head_of, kind="stable").astype(np.int32)
        counts = np.bincount(self.head_of, minlength=len(self.heads))
        self._member_start = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        self.head_thread: Numbers = np.maximum(c.thread[self.heads], 0)
        head_group = self.record_group[self.heads]
        numbers = np.arange(len(self.group_round))
        self.group_first = np.searchsorted(head_group, numbers)
        self.group_end = np.searchsorted(head_group, numbers, side="right")
        epochs = np.arange(len(c.epochs))
        self.epoch_first = np.searchsorted(self.group_epoch, epochs)
        self.epoch_end = np.searchsorted(self.group_epoch, epochs, side="right")

    def _build_tokens(self) -> None:
        t = self.conversation.transcript
        self.block_tokens: Numbers = -(-t.block_chars // CHARACTERS_PER_TOKEN_ROUGH)
        media = (t.block_type == BlockType.IMAGE) | (t.block_type == BlockType.DOCUMENT)
        inside = (t.block_flags & BlockFlag.HAS_IMAGE) != 0
        self.block_tokens[media | inside] += ROUGH_TOKENS_OF_MEDIA
        per_record = np.bincount(t.block_record, weights=self.block_tokens, minlength=self.count).astype(np.int32)
        self.record_tokens: Numbers = per_record
        per_head = np.bincount(self.head_of, weights=per_record, minlength=len(self.heads)).astype(np.int32)
        self.head_tokens: Numbers = per_head
        self._tokens_before = np.concatenate(([0], np.cumsum(np.where(self.head_thread == 0, per_head, 0))))

    def _build_pairs(self) -> None:
        c = self.conversation
        t = c.transcript
        self.pair_number: Numbers = np.zeros(len(t.block_type), np.int32)
        uses = np.flatnonzero(
            ((t.block_type == BlockType.TOOL_USE) | (t.block_type == BlockType.SERVER_TOOL_USE)) & (c.pair >= 0)
        )
        self.pair_number[uses] = np.arange(1, len(uses) + 1)
        results = np.flatnonzero(
            ((t.block_type == BlockType.TOOL_RESULT) | (t.block_type == BlockType.SERVER_TOOL_RESULT)) & (c.pair >= 0)
        )
        self.pair_number[results] = self.pair_number[c.pair[results]]

    def members(self, head: int) -> Numbers:
        """The records of the message row at position `head` of `heads`, by file position."""
        return self._member_order[self._member_start[head] : self._member_start[head + 1]]

    def blocks(self, head: int) -> list[int]:
        """The blocks of the message row at position `head`, in order."""
        t = self.conversation.transcript
        return [block for record in self.members(head) for block in t.blocks_of(int(record))]

    @cached_property
    def head_blocks(self) -> Numbers:
        """Per head, how many blocks its records have."""
        per_record = np.diff(self.conversation.transcript.first_block.astype(np.int64), append=len(self.block_tokens))
        return np.bincount(self.head_of, weights=per_record, minlength=len(self.heads)).astype(np.int32)

    def blocks_of_heads(self, heads: Ints) -> tuple[Ints, Ints]:
        """(block, position of its head) for every block of the given head positions, in display order."""
        wanted = np.zeros(len(self.heads), bool)
        wanted[heads] = True
        owner = self.head_of[self.conversation.transcript.block_record]
        blocks = np.flatnonzero(wanted[owner])
        owners = owner[blocks].astype(np.int64)
        order = np.argsort(owners, kind="stable")
        return blocks[order], owners[order]

    def tokens_between(self, first_head: int, end_head: int) -> int:
        """Estimated tokens of the main thread's message rows in a range of heads."""
        return int(self._tokens_before[end_head] - self._tokens_before[first_head])

    @cached_property
    def epoch_context(self) -> Ints:
        """Per epoch, the last recorded context in tokens; 0 where none is recorded."""
        c = self.conversation
        result = np.zeros(len(c.epochs), np.int64)
        if c.round_count:
            context = c.response_context[c.round_responses]
            epoch = c.epoch_of[c.round_first_records]
            known = np.flatnonzero(context > 0)
            result[epoch[known]] = context[known]
        return result

    @cached_property
    def bookkeeping(self) -> Mask:
        """Records that only describe the session's course."""
        t = self.conversation.transcript
        mask: Mask = np.isin(t.kind, np.array([int(kind) for kind in BOOKKEEPING_KINDS], np.uint8))
        numbers = [number for number, name in enumerate(t.type_names) if name in BOOKKEEPING_SYSTEM]
        mask |= np.isin(t.type_number, np.array(numbers, np.uint16))
        return mask

    @cached_property
    def damaged_lines(self) -> Mask:
        """Records on a line that is damaged, and the pieces that are none."""
        t = self.conversation.transcript
        lines = np.array([damage.line for damage in t.damage], np.int64)
        mask: Mask = np.isin(t.line, lines) | (t.kind == RecordKind.DAMAGED)
        return mask

    @cached_property
    def block_problems(self) -> Mask:
        """Blocks that are an error, an orphan or a duplicate."""
        c = self.conversation
        mask: Mask = (c.transcript.block_flags & BlockFlag.ERROR) != 0
        for numbers in (c.uses_without_result, c.results_without_use, c.duplicate_results, c.duplicate_uses):
            mask[np.array(numbers, np.int64)] = True
        mask[np.array(list(c.running), np.int64)] = False
        return mask

    @cached_property
    def fork_heads(self) -> Mask:
        """Records that begin a branch beside another one."""
        mask = np.zeros(self.count, bool)
        for fork in self.conversation.branches:
            mask[list(fork.children)] = True
        return mask

    @cached_property
    def problems(self) -> Mask:
        """Records where something is worth stopping: errors, orphans, damage, branches, dangling parents."""
        c = self.conversation
        t = c.transcript
        mask = self.damaged_lines.copy()
        mask |= (t.flags & (Flag.API_ERROR | Flag.API_SYSTEM_ERROR)) != 0
        mask |= c.chained & (c.parent == DANGLING)
        mask |= self.fork_heads
        mask[t.block_record[self.block_problems]] = True
        return mask

    @cached_property
    def _problems_before(self) -> Numbers:
        per_head = np.bincount(self.head_of, weights=self.problems, minlength=len(self.heads)) > 0
        return np.concatenate(([0], np.cumsum(per_head))).astype(np.int32)

    def problems_between(self, first_head: int, end_head: int) -> int:
        """Message rows with a problem in a range of heads."""
        return int(self._problems_before[end_head] - self._problems_before[first_head])

    def set_findings(self, findings: Mapping[int, tuple[int, str]]) -> None:
        """Take the doctor's counts: record → how many findings are about it and the worst severity."""
        self.findings = {record: found for record, found in findings.items() if record < self.count}
        heads = [int(self.head_of[record]) for record, found in self.findings.items() for _ in range(found[0])]
        self._finding_heads = np.sort(np.array(heads, np.int64))

    def findings_between(self, first_head: int, end_head: int) -> int:
        """How many findings are about records in a range of heads (one about two records counts for each)."""
        first, end = np.searchsorted(self._finding_heads, [first_head, end_head])
        return int(end - first)

    def visible_heads(self, shown: Shown, forced: set[int] | frozenset[int] = frozenset()) -> Mask:
        """Per head, whether its row passes the switches and the filter; `forced` records always do."""
        t = self.conversation.transcript
        mask = np.ones(self.count, bool)
        if not shown.meta:
            mask &= (t.flags & Flag.META) == 0
        if not shown.bookkeeping:
            # What is damaged stays to be seen, whatever kind it was.
            mask &= ~self.bookkeeping | self.damaged_lines
        if not shown.sidechain:
            mask &= self.conversation.thread <= 0
        if shown.matches is not None:
            mask &= shown.matches
        if forced:
            mask[list(forced)] = True
        visible: Mask = np.bincount(self.head_of, weights=mask, minlength=len(self.heads)) > 0
        return visible

    @cached_property
    def threads(self) -> list[list[int]]:
        """Per inline sidechain (index 0 is the main thread's, empty), its head positions."""
        result: list[list[int]] = [[] for _ in self.conversation.thread_roots]
        for position in np.flatnonzero(self.head_thread > 0):
            result[int(self.head_thread[position])].append(int(position))
        return result

    @cached_property
    def thread_starters(self) -> dict[int, list[int]]:
        """Block → the inline sidechains it started; block −1 holds those whose call is not known."""
        result: dict[int, list[int]] = {}
        for thread in range(1, len(self.conversation.thread_roots)):
            result.setdefault(self.conversation.inline_starter(thread), []).append(thread)
        return result
