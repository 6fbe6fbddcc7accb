"""The same session under other settings: tokens, dollars and compactions, simulated over its recorded rounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from compaction.accounting.estimate import rough_tokens, rough_tokens_of_block
from compaction.accounting.models import is_synthetic
from compaction.accounting.prices import PriceSet, Usage
from compaction.accounting.profiles import profile_for, recorded_profile
from compaction.accounting.settings import WindowSettings
from compaction.accounting.thresholds import Thresholds, thresholds_for
from compaction.conversation import Conversation
from compaction.progress import Progress
from compaction.strategies.api_clear_tool_uses import ApiClearToolUsesSettings
from compaction.strategies.collapse import CollapseSettings
from compaction.strategies.cost import (
    FIVE_MINUTES_MS,
    ONE_HOUR_MS,
    SUMMARY_INSTRUCTION_TOKENS,
    TYPICAL_SUMMARY_TOKENS,
)
from compaction.strategies.microcompact_time import MicrocompactTimeSettings
from compaction.strategies.replay import RoundFacts, round_facts
from compaction.strategies.snip import SnipSettings
from compaction.transcript.kinds import CLEARED_MARKER, BlockType, Flag, RecordKind

_POST_COMPACT_TOKENS = 12_000
"""Summary and restored context after a compaction where the session shows none (transcript-format.md 7: 13 to 18 K
of `postTokens`, 45 to 51 K of first context with a base of 33 K)."""
_BASE_TOKENS = 33_500
"""System prompt, tools and reminders of a session without messages (transcript-format.md 9)."""
_LARGE_START_TOKENS = 60_000
"""No fresh session starts with more (transcript-format.md 7: up to 54 K)."""
_MARKER_TOKENS = rough_tokens(CLEARED_MARKER)
_STAND_IN_TOKENS = 400
_READS, _CHANGES = ("Read", "NotebookRead"), ("Edit", "MultiEdit", "Write", "NotebookEdit")


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What to change. Each stage's own `enabled` says whether it takes part.

    Attributes:
        client: client version whose thresholds count, "" = the version that wrote each round.
        window: overrides of the window and its thresholds.
        auto_compact: whether the client compacts by itself at all.
        clear_tool_uses: the API's edit, None when it is not sent.
    """

    client: str = ""
    window: WindowSettings = field(default_factory=WindowSettings)
    auto_compact: bool = True
    microcompact_time: MicrocompactTimeSettings = field(default_factory=MicrocompactTimeSettings)
    clear_tool_uses: ApiClearToolUsesSettings | None = None
    snip: SnipSettings = field(default_factory=SnipSettings)
    collapse: CollapseSettings = field(default_factory=CollapseSettings)


@dataclass(frozen=True, slots=True)
class SimulatedEvent:
    """A strategy that fired before the request after round `round`: context tokens before and after."""

    round: int
    strategy: str
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True)
class Simulation:
    """A session's totals under some settings; all estimated.

    Attributes:
        requests: model requests, those for summaries included.
        compactions: summaries written.
        context_tokens: prompt tokens over all requests.
        cache_read, cache_written, uncached, output: tokens by bucket over all requests.
        cost_usd: at the price set's rates, None where a model has no price.
        largest_context: the largest prompt.
        events: what fired, in order.
    """

    requests: int
    compactions: int
    context_tokens: int
    cache_read: int
    cache_written: int
    uncached: int
    output: int
    cost_usd: float | None
    largest_context: int
    events: tuple[SimulatedEvent, ...]


@dataclass(slots=True)
class _Piece:
    """A stretch of context: tokens, the round it came in, and what the light strategies look at."""

    tokens: float
    round: int
    result: str = ""
    path: str = ""
    read: bool = False
    whole: bool = False
    prompt: bool = False
    cleared: bool = False


def simulate(
    conversation: Conversation, settings: WhatIf, prices: PriceSet, progress: Progress | None = None
) -> Simulation:
    """Walk the session's rounds with the growth that they recorded, under other settings.

    The growth between two responses is the recorded one, divided among its blocks by their rough size; a fall of
    the recorded context (a compaction, a clearing) is not copied.
    """
    run = _Run(conversation, settings, prices)
    facts = list(round_facts(conversation, progress))
    pieces = list(_pieces(conversation, facts))
    for number, (fact, grown) in enumerate(zip(facts, pieces, strict=True)):
        if progress is not None:
            progress.check()
        run.request(fact, facts[number - 1] if number else None)
        run.grow(grown)
        run.strategies(fact, facts[number + 1] if number + 1 < len(facts) else None)
    return run.result()


def _pieces(conversation: Conversation, facts: list[RoundFacts]) -> Iterator[list[_Piece]]:
    """For every round what it added to the context, scaled to the recorded growth where there is one."""
    scale = 1.4
    for number, fact in enumerate(facts):
        pieces = list(_round_pieces(conversation, fact.number))
        rough = sum(p.tokens for p in pieces)
        following = facts[number + 1] if number + 1 < len(facts) else None
        growth = following.context - fact.context if following is not None and following.epoch == fact.epoch else 0
        if growth > 0 and fact.context and rough:
            scale = growth / rough
        for piece in pieces:
            piece.tokens *= scale if growth > 0 and fact.context else min(scale, 2.5)
        yield pieces


def _round_pieces(conversation: Conversation, number: int) -> Iterator[_Piece]:
    t = conversation.transcript
    span = conversation.round(number)
    for record in range(span.first_record, span.end_record):
        if not conversation.main[record] or t.kind[record] not in (RecordKind.USER, RecordKind.ASSISTANT):
            continue
        flags = int(t.flags[record])
        for block in t.blocks_of(record):
            value = t.block(block)
            piece = _Piece(float(rough_tokens_of_block(value)), number)
            use = int(conversation.pair[block])
            if t.block_type[block] == BlockType.TOOL_RESULT and use >= 0:
                _describe_result(piece, t.block_tool(use), t.block(use).get("input"), value.get("is_error") is True)
            elif t.kind[record] == RecordKind.USER and not flags & (Flag.META | Flag.COMPACT_SUMMARY):
                piece.prompt = t.block_type[block] == BlockType.TEXT
            yield piece


def _describe_result(piece: _Piece, tool: str, given: object, failed: bool) -> None:
    piece.result = tool
    if isinstance(given, dict) and not failed and tool in _READS + _CHANGES:
        path = given.get("file_path") or given.get("notebook_path")
        piece.path = path if isinstance(path, str) else ""
        piece.read = tool in _READS
        piece.whole = piece.read and given.get("offset") is None and given.get("limit") is None


class _Run:
    """The state of one simulation."""

    def __init__(self, conversation: Conversation, settings: WhatIf, prices: PriceSet) -> None:
        self.settings, self.prices = settings, prices
        self.largest_recorded = int(conversation.response_context.max()) if conversation.response_count else 0
        contexts = [c for n in range(1, conversation.round_count + 1) if (c := conversation.round_context(n))]
        first, smallest = (contexts[0], min(contexts)) if contexts else (0, 0)
        # A file that begins in the middle of a session starts with a context that is mostly history.
        self.base = float(smallest if smallest <= _LARGE_START_TOKENS else _BASE_TOKENS)
        self.after_compaction = self._after_compaction(conversation)
        written = conversation.transcript.usage_table["write_1h"]
        self.one_hour = bool((written > 0).any())
        self.live: list[_Piece] = [_Piece(max(0.0, first - self.base), 0)]
        self._live_tokens = self.live[0].tokens
        self.cached = 0.0
        self.kept = 0.0
        self.totals = {"requests": 0, "compactions": 0, "context": 0, "read": 0, "written": 0, "input": 0, "output": 0}
        self.cost: float | None = 0.0
        self.largest = 0
        self.events: list[SimulatedEvent] = []

    def _after_compaction(self, conversation: Conversation) -> float:
        """What a compaction leaves beyond the base, tokens: as this session's own did, else the usual figure."""
        seen = [c.context_after for c in conversation.compactions if c.kind in ("auto", "manual") and c.context_after]
        over = [tokens - self.base for tokens in seen if tokens > self.base]
        return sorted(over)[len(over) // 2] if over else float(_POST_COMPACT_TOKENS)

    @property
    def context(self) -> float:
        return self.base + self._live_tokens

    def _recount(self) -> None:
        """Sum the pieces after a change to them; growth only adds, so a walk over the rounds stays linear."""
        self._live_tokens = sum(p.tokens for p in self.live)

    def request(self, fact: RoundFacts, before: RoundFacts | None) -> None:
        """The request that led to a round's response: what is cached is read, the rest written."""
        if is_synthetic(fact.model):
            return
        lifetime = ONE_HOUR_MS if self.one_hour else FIVE_MINUTES_MS
        warm = before is not None and 0 <= fact.time_ms - before.time_ms < lifetime
        tokens = self.context
        read = min(self.cached, self.kept, tokens) if warm else 0.0
        self._charge(fact, round(read), round(tokens - read), 0, fact.output)
        self.cached = self.kept = tokens
        self.largest = max(self.largest, round(tokens))

    def _charge(self, fact: RoundFacts, read: int, written: int, uncached: int, output: int) -> None:
        self.totals["requests"] += 1
        self.totals["context"] += read + written + uncached
        self.totals["read"] += read
        self.totals["written"] += written
        self.totals["input"] += uncached
        self.totals["output"] += output
        usage = Usage(
            input=uncached,
            output=output,
            cache_read=read,
            cache_write_5m=0 if self.one_hour else written,
            cache_write_1h=written if self.one_hour else 0,
            timestamp_ms=fact.time_ms,
        )
        price = self.prices.price(fact.model, usage)
        self.cost = None if price is None or self.cost is None else self.cost + price.total

    def grow(self, pieces: list[_Piece]) -> None:
        """What a round added."""
        self.live += pieces
        self._live_tokens += sum(p.tokens for p in pieces)

    def strategies(self, fact: RoundFacts, following: RoundFacts | None) -> None:
        """The pipeline before the next request (compaction.md 10), then the API's edit."""
        if self.settings.snip.enabled:
            self._fire(fact, "snip", self._snip(fact.number))
        timed = self.settings.microcompact_time
        pause = (following.time_ms - fact.time_ms) / 60_000 if following is not None else 0.0
        if timed.enabled and pause >= timed.gap_threshold_minutes:
            self._fire(fact, "microcompact-time", self._clear(max(1, timed.keep_recent), timed.compactable_tools))
        if self.settings.collapse.enabled:
            self._fire(fact, "context-collapse", self._collapse())
        elif self.settings.auto_compact and not is_synthetic(fact.model):
            thresholds = self._thresholds(fact)
            if thresholds.auto_compact_on and self.context >= thresholds.auto_compact_threshold:
                self._compact(fact)
        edit = self.settings.clear_tool_uses
        if edit is not None and edit.trigger == "input_tokens" and self.context > edit.trigger_value:
            self._fire(fact, "api-clear-tool-uses", self._clear(edit.keep, None, edit.clear_at_least))

    def _thresholds(self, fact: RoundFacts) -> Thresholds:
        client = self.settings.client
        profile = profile_for(client) if client else recorded_profile(fact.version)
        return thresholds_for(profile, fact.model, self.settings.window, self.largest_recorded)

    def _fire(self, fact: RoundFacts, strategy: str, before: float) -> None:
        if before > self.context:
            self.events.append(SimulatedEvent(fact.number, strategy, round(before), round(self.context)))

    def _changed_from(self, position: int) -> None:
        """The cache holds up to the first changed piece only."""
        self.kept = min(self.kept, self.base + sum(p.tokens for p in self.live[:position]))

    def _clear(self, keep: int, tools: tuple[str, ...] | None, at_least: int = 0) -> float:
        """Clear the older results; returns the context before."""
        before = self.context
        results = [n for n, p in enumerate(self.live) if p.result and (tools is None or p.result in tools)]
        chosen = [n for n in results[: max(0, len(results) - keep)] if not self.live[n].cleared]
        freed = sum(max(0.0, self.live[n].tokens - _MARKER_TOKENS) for n in chosen)
        if chosen and freed >= max(1, at_least):
            self._changed_from(chosen[0])
            for number in chosen:
                self.live[number].tokens = min(self.live[number].tokens, float(_MARKER_TOKENS))
                self.live[number].cleared = True
            self._recount()
        return before

    def _snip(self, number: int) -> float:
        before = self.context
        seen: set[str] = set()
        gone: list[int] = []
        newest = number - self.settings.snip.keep_recent_rounds
        for place in range(len(self.live) - 1, -1, -1):
            piece = self.live[place]
            if piece.path and piece.read and piece.path in seen and piece.round <= newest:
                gone.append(place)
            elif piece.path and (piece.whole or not piece.read):
                seen.add(piece.path)
        if gone:
            self._changed_from(min(gone))
            for place in gone:
                del self.live[place]
            self._recount()
        return before

    def _collapse(self) -> float:
        before = self.context
        starts = [n for n, p in enumerate(self.live) if p.prompt]
        keep = max(1, self.settings.collapse.keep_recent_segments)
        for first, end in reversed(list(pairwise(starts))[: max(0, len(starts) - keep)]):
            tokens = sum(p.tokens for p in self.live[first:end])
            if tokens - _STAND_IN_TOKENS >= self.settings.collapse.min_tokens:
                self._changed_from(first)
                self.live[first:end] = [_Piece(float(_STAND_IN_TOKENS), self.live[first].round)]
        self._recount()
        return before

    def _compact(self, fact: RoundFacts) -> None:
        before = self.context
        read = min(self.cached, before)
        self._charge(fact, round(read), 0, round(before - read) + SUMMARY_INSTRUCTION_TOKENS, TYPICAL_SUMMARY_TOKENS)
        self.totals["compactions"] += 1
        self.live = [_Piece(min(self.after_compaction, max(0.0, before - self.base)), fact.number)]
        self._recount()
        self.kept = self.base
        self.events.append(SimulatedEvent(fact.number, "auto-compact", round(before), round(self.context)))

    def result(self) -> Simulation:
        """The totals."""
        t = self.totals
        return Simulation(
            t["requests"], t["compactions"], t["context"], t["read"], t["written"], t["input"], t["output"],
            self.cost, self.largest, tuple(self.events),
        )  # fmt: skip
