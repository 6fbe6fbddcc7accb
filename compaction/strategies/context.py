"""The context as strategies see it: every block of the request with its origin, tool pair, round and token share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from compaction.accounting.categories import Category, split_exactly
from compaction.accounting.cleared import cleared_tokens
from compaction.accounting.estimate import estimate_block_tokens, rough_tokens_of_block
from compaction.accounting.figure import Figure, Method
from compaction.accounting.models import TokenizerFamily, tokenizer_family
from compaction.conversation import Conversation
from compaction.conversation.rounds import group_by_api_round
from compaction.diagnosis.model import Violation
from compaction.diagnosis.requests import REQUEST_RULES
from compaction.diagnosis.view import RequestView
from compaction.request.wire import Json, Origin, WireRequest
from compaction.strategies.parts import Part, Place, RoundSpan, ToolPair, category_of, is_client_text, sum_by_category
from compaction.transcript.kinds import CLEARED_MARKER, Flag, RecordKind

T = TypeVar("T")

_SHORT = 200
"""Characters up to which the size of a block is remembered by its text."""


class ContextView:
    """A request measured block by block.

    The total is the system's own count (compaction.md 2): newest real usage plus the rough estimate of what follows.
    The blocks' shares come from the character-class estimator, scaled so that with the system's share they add up.
    Results that were cleared in the file after that usage was recorded are taken off by the same shares, and a session
    that a plan made in memory has the size that the plan said: before and after are one method.
    """

    def __init__(self, conversation: Conversation, wire: WireRequest) -> None:
        self.conversation = conversation
        self.wire = wire
        self.family: TokenizerFamily = tokenizer_family(wire.model)
        self._short: dict[tuple[str, str], int] = {}
        self._derived: dict[str, Any] = {}

    @cached_property
    def _estimates(self) -> dict[Place, float]:
        return {
            (m, b): estimate_block_tokens(block, self.family)
            for m, message in enumerate(self.wire.messages)
            for b, block in enumerate(message.content)
        }

    def estimate(self, block: Mapping[str, Any]) -> float:
        """Tokens of a block by the estimator, not scaled to this context."""
        return estimate_block_tokens(block, self.family)

    def tokens_of_new(self, block: Mapping[str, Any]) -> int:
        """Tokens that a block put into this context would take: estimated, scaled as the others are."""
        content = block.get("content")
        if not isinstance(content, str) or len(content) > _SHORT:
            return math.ceil(self.estimate(block) * self._scale)
        # The marker of a cleared result stands for thousands of blocks.
        key = (str(block.get("type")), content)
        if key not in self._short:
            self._short[key] = math.ceil(self.estimate(block) * self._scale)
        return self._short[key]

    @cached_property
    def rounds(self) -> tuple[RoundSpan, ...]:
        """The API rounds; number 0 is what stands before the first response."""
        ids = [self._response_name(m) if w.role == "assistant" else None for m, w in enumerate(self.wire.messages)]
        groups = group_by_api_round(ids)
        starts_with_response = bool(ids) and ids[0] is not None
        first = 1 if starts_with_response else 0
        return tuple(RoundSpan(first + n, group[0], group[-1] + 1) for n, group in enumerate(groups))

    def _response_name(self, message: int) -> str:
        for origin in self.wire.messages[message].origins:
            if origin is not None and self.conversation.response_of[origin.record] >= 0:
                return f"response {self.conversation.response_of[origin.record]}"
        return f"message {message}"

    @cached_property
    def newest_usage(self) -> tuple[int, int, int]:
        """The newest real usage: (message number, recorded context, output) in tokens; message −1 when there is none.

        The output counts as it is recorded, a placeholder too, as everywhere else in the program; replay, which has
        to meet the client's own count, puts the size of the blocks in its place.
        """
        t, c = self.conversation.transcript, self.conversation
        if self.conversation.known_context is not None:
            return -1, 0, 0
        for number in range(len(self.wire.messages) - 1, -1, -1):
            message = self.wire.messages[number]
            if message.role != "assistant":
                continue
            records = [o.record for o in message.origins if o is not None]
            response = int(c.response_of[records[-1]]) if records else -1
            context = int(c.response_context[response]) if response >= 0 else 0
            if not context or self._is_stale(records[0]):
                continue
            usages = [u for r in c.response_records(response) if (u := t.usage(r)) is not None]
            return number, context, max((u.output_tokens for u in usages), default=0)
        return -1, 0, 0

    @cached_property
    def _kept_tail(self) -> tuple[int, int]:
        """Where messages that a compaction kept end: the last such record (−1: none), and the context then, tokens.

        Their usage shows the size before that compaction. The client names them in the boundary (`preservedSegment`,
        transcript-format.md 7); our own exports name them in the summary record (`relinkedSegment`).
        """
        c, t = self.conversation, self.conversation.transcript
        boundary = c.epochs[-1].boundary_record if c.epochs else -1
        if boundary < 0:
            return -1, 0
        for record in range(boundary, min(boundary + 2, len(t))):
            segment = t.payload(record).get("relinkedSegment")
            if isinstance(segment, dict):
                tail = [r for p in self._origins if t.uuid(r := p.record) == segment.get("tailUuid")]
                tokens = segment.get("contextTokens")
                return (max(tail), tokens if isinstance(tokens, int) else 0) if tail else (-1, 0)
        return -1, c.epochs[-1].post_tokens or 0

    @cached_property
    def _origins(self) -> list[Origin]:
        return [o for message in self.wire.messages for o in message.origins if o is not None]

    def _is_stale(self, record: int) -> bool:
        """Whether the usage on a record was recorded before the compaction that the request begins with."""
        c = self.conversation
        boundary = c.epochs[int(c.epoch_of[record])].boundary_record if c.epochs else -1
        last = c.epochs[-1].boundary_record if c.epochs else -1
        return boundary != last or (last >= 0 and record <= self._kept_tail[0])

    @cached_property
    def total(self) -> Figure:
        """The context in tokens: `token_count_with_estimation` (compaction.md 2)."""
        known = self.conversation.known_context
        if known is not None:
            return Figure(known.tokens, Method.ESTIMATED, source="as the applied plan left it")
        counted = self._counted
        if not self._cleared_rows:
            return counted
        freed = round(self._cleared * self._scale)
        source = "newest usage less what was cleared since + rough estimate of what follows it"
        return Figure(round(counted.value or 0) - freed, Method.ESTIMATED, source=source)

    @cached_property
    def _cleared_rows(self) -> dict[int, float]:
        """Blocks that the newest usage counts and that were cleared in the file since, with tokens, not scaled."""
        message = self.newest_usage[0]
        if message < 0:
            return {}
        until = next(o.record for o in self.wire.messages[message].origins if o is not None)
        sent = {origin.record for origin in self._origins}
        rows = cleared_tokens(self.conversation, until, self.family)
        return {row: t for row, t in rows.items() if int(self.conversation.transcript.block_record[row]) in sent}

    @property
    def _cleared(self) -> float:
        return sum(self._cleared_rows.values())

    @cached_property
    def _counted(self) -> Figure:
        """The context as usage and estimates say it, whatever was cleared since."""
        message, context, output = self.newest_usage
        tail, after_compaction = self._kept_tail
        if message < 0 and after_compaction:
            added = sum(rough_tokens_of_block(p) for p in self._blocks_after(tail)) if tail >= 0 else 0
            return Figure(after_compaction + added, Method.ESTIMATED, source="as the last compaction left it")
        added = sum(
            rough_tokens_of_block(block)
            for m in self.wire.messages[message + 1 :]
            for block, origin in zip(m.content, m.origins, strict=True)
            if origin is not None
        )
        if message < 0:
            return Figure(added, Method.ESTIMATED, source="rough estimate of everything (compaction.md 2)")
        method = Method.RECORDED if added == 0 else Method.ESTIMATED
        return Figure(context + output + added, method, source="newest usage + rough estimate of what follows it")

    def _blocks_after(self, record: int) -> Iterator[Json]:
        for message in self.wire.messages:
            for block, origin in zip(message.content, message.origins, strict=True):
                if origin is not None and origin.record > record:
                    yield block

    @property
    def tokens(self) -> int:
        """The context in whole tokens."""
        return int(self.total.value or 0)

    @cached_property
    def system_tokens(self) -> int:
        """The share of system prompt, tool schemas and memory: what the first measured response cannot explain."""
        known = self.conversation.known_context
        if known is not None:
            return min(known.system_tokens, known.tokens)
        counted = round(self._counted.value or 0)
        if self.newest_usage[0] < 0:
            # No usable usage: what the estimates of the blocks leave over.
            return max(0, counted - round(sum(self._estimates.values())))
        c = self.conversation
        estimated = 0.0
        for number, message in enumerate(self.wire.messages):
            if message.role == "assistant":
                records = [o.record for o in message.origins if o is not None]
                response = int(c.response_of[records[0]]) if records else -1
                context = int(c.response_context[response]) if response >= 0 else 0
                if context and not self._is_stale(records[0]):
                    return min(max(0, round(context - estimated)), counted)
            estimated += sum(self._estimates[number, b] for b in range(len(message.content)))
        return 0

    @cached_property
    def _scale(self) -> float:
        whole = sum(self._estimates.values())
        known = self.conversation.known_context
        if known is not None:
            return (known.tokens - self.system_tokens) / whole if whole > 0 else 1.0
        counted, whole = round(self._counted.value or 0), whole + self._cleared
        return (counted - self.system_tokens) / whole if whole > 0 and counted else 1.0

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Every block of the request, in order."""
        weights = np.array(list(self._estimates.values()))
        visible = self.tokens - self.system_tokens
        if weights.sum() > 0:
            shares = split_exactly(visible, weights)
        else:
            # Nothing that can be weighed (only hidden thinking, say): the first block carries what is there.
            shares = np.zeros(len(weights), dtype=np.int64)
            if len(shares):
                shares[0] = visible
        return tuple(self._parts(shares.tolist()))

    def _parts(self, shares: list[int]) -> Iterator[Part]:
        record = -1
        for (m, b), tokens in zip(self._estimates, shares, strict=True):
            message = self.wire.messages[m]
            origin = message.origins[b]
            if origin is not None:
                record = origin.record
            block = message.content[b]
            kind, text = block.get("type"), block.get("text")
            yield Part(
                place=(m, b),
                role=message.role,
                value=block,
                origin=origin,
                record=record,
                category=self._category(message.role, block, origin),
                tokens=tokens,
                type=kind if isinstance(kind, str) else "",
                text=text if isinstance(text, str) else "",
            )

    def _category(self, role: str, block: Json, origin: Origin | None) -> Category:
        t = self.conversation.transcript
        flags = int(t.flags[origin.record]) if origin is not None else 0
        attached = origin is None or t.kind[origin.record] == RecordKind.ATTACHMENT
        return category_of(role, block, flags, attached)

    @cached_property
    def pairs(self) -> tuple[ToolPair, ...]:
        """Every client tool result in the request, in order, with its call."""
        uses: dict[str, Part] = {}
        found = []
        for part in self.parts:
            if part.type == "tool_use":
                uses[str(part.value.get("id"))] = part
            elif part.type == "tool_result":
                name = str(part.value.get("tool_use_id"))
                use = uses.get(name)
                tool = str(use.value.get("name") or "") if use is not None else ""
                found.append(ToolPair(name, tool, use, part))
        return tuple(found)

    @cached_property
    def by_origin(self) -> dict[tuple[int, int], Part]:
        """The parts by (record, block)."""
        return {(p.origin.record, p.origin.block): p for p in self.parts if p.origin is not None}

    @cached_property
    def by_place(self) -> dict[Place, Part]:
        """The parts by place."""
        return {part.place: part for part in self.parts}

    @cached_property
    def pair_at(self) -> dict[Place, ToolPair]:
        """The tool pairs by the place of their result."""
        return {pair.result.place: pair for pair in self.pairs}

    def pairs_in(self, parts: Iterable[Part]) -> list[ToolPair]:
        """The tool pairs whose results are among these parts, in order."""
        found = (self.pair_at.get(part.place) for part in parts if part.type == "tool_result")
        return [pair for pair in found if pair is not None]

    def derived(self, name: str, make: Callable[[ContextView], T]) -> T:
        """What `make` finds in this view, found once for all strategies."""
        if name not in self._derived:
            self._derived[name] = make(self)
        found: T = self._derived[name]
        return found

    @cached_property
    def violations(self) -> list[Violation]:
        """The rules of structure that the request breaks as it stands."""
        return structural_violations(self.wire)

    @cached_property
    def safe_borders(self) -> list[bool]:
        """For every part number, whether the request can be cut before it: no pair and no response lies across."""
        count = len(self.parts)
        across = np.zeros(count + 2, dtype=np.int64)
        number = {part.place: n for n, part in enumerate(self.parts)}
        spans: dict[object, tuple[int, int]] = {}
        for n, part in enumerate(self.parts):
            key = self._response_of(part)
            if key is not None:
                spans[key] = (spans.get(key, (n, n))[0], n)
        pairs = [(number[p.use.place], number[p.result.place]) for p in self.pairs if p.use is not None]
        for first, last in [*spans.values(), *pairs]:
            across[first + 1] += 1
            across[last + 1] -= 1
        return [crossing == 0 for crossing in np.cumsum(across)[: count + 1].tolist()]

    def _response_of(self, part: Part) -> object:
        if part.role != "assistant":
            return None
        response = int(self.conversation.response_of[part.record]) if part.origin is not None else -1
        return response if response >= 0 else ("message", part.place[0])

    @cached_property
    def _by_record(self) -> dict[int, list[Part]]:
        found: dict[int, list[Part]] = {}
        for part in self.parts:
            if part.origin is not None:
                found.setdefault(part.origin.record, []).append(part)
        return found

    def parts_of_record(self, record: int) -> list[Part]:
        """The parts that come from a record, in order."""
        return self._by_record.get(record, [])

    def parts_of_messages(self, first: int, end: int) -> list[Part]:
        """The parts of messages `first` … `end` − 1."""
        return [self.by_place[m, b] for m in range(first, end) for b in range(len(self.wire.messages[m].content))]

    def recorded(self, part: Part) -> Json:
        """The block as its record holds it ({} when no record does): the client may have added a reminder to it."""
        if part.origin is None:
            return {}
        content = self.conversation.transcript.message(part.origin.record).get("content")
        if isinstance(content, str) and part.origin.block == 0:
            return {"type": "text", "text": content}
        found = (
            content[part.origin.block] if isinstance(content, list) and 0 <= part.origin.block < len(content) else None
        )
        return found if isinstance(found, dict) else {}

    @cached_property
    def client_clears(self) -> bool:
        """Whether the client clears old results by itself when it resumes this session (clients before 2.1.10).

        What it clears depends on what else is there, so a change of the transcript can change it too.
        """
        return any(p.cleared and self.recorded(p.result).get("content") != CLEARED_MARKER for p in self.pairs)

    def is_prompt(self, part: Part) -> bool:
        """Whether a part is text that the person typed: no result, reminder, summary, or text that the client made."""
        if part.role != "user" or part.type not in ("text", "image", "document") or part.origin is None:
            return False
        return part.category in (Category.USER_TEXT, Category.IMAGES) and not is_client_text(part.text)

    def is_answer(self, part: Part) -> bool:
        """Whether a part is a model's own: no text that the client puts into the assistant's mouth."""
        if part.role != "assistant" or part.origin is None:
            return False
        return not int(self.conversation.transcript.flags[part.origin.record]) & Flag.SYNTHETIC

    def categories(self) -> dict[Category, int]:
        """The context by category, in tokens; adds up to `tokens`."""
        return sum_by_category(self.system_tokens if self.parts else self.tokens, self.parts)


_STRUCTURE = frozenset(f"R{number:02}" for number in range(1, 26)) - {"R09"}
"""Pairing, text, roles, thinking and server tools (api-rules.md A1 to A4). What a request is made of (tools, media,
cache markers, size, encoding) cannot get worse by taking blocks away or putting plain text in."""


def structural_violations(request: WireRequest) -> list[Violation]:
    """The rules of structure that a request breaks: those that a strategy could break."""
    view = RequestView(request)
    return [found for rule in REQUEST_RULES if rule.rule in _STRUCTURE for found in rule.check(view)]
