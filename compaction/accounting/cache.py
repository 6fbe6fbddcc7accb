from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from compaction.accounting.context import ContextSeries
from compaction.accounting.figure import Method
from compaction.accounting.models import is_synthetic, model_key, strips_earlier_thinking
from compaction.accounting.prices import PriceSet
from compaction.conversation import Conversation
from compaction.transcript import Flag, RecordKind

FIVE_MINUTES, ONE_HOUR = 300_000, 3_600_000
"""Milliseconds that a cached prefix lives after its last use (api.md 2.5)."""
SMALLEST_MISS = 2_048
"""Tokens: a read that falls short by less is the moving end of the prefix, not a loss (cacheable minimum of models)."""

_TOOL_CHANGES = ("attachment/deferred_tools_delta", "attachment/mcp_instructions_delta",
                 "attachment/agent_listing_delta", "attachment/skill_listing")  # fmt: skip


@dataclass(frozen=True, slots=True)
class CacheMiss:
    """A round that read less from the prompt cache than was cached before it.

    Attributes:
        round: 1-based; record: its first record.
        cached_before: tokens that the round before had read and written; read: what this one read of them.
        reason, method: why, and whether the API recorded it or it follows from what lies between; "unknown" else.
        usd: what the lost tokens cost more than reading them would have, None when the model has no price.
    """

    round: int
    record: int
    cached_before: int
    read: int
    reason: str
    method: Method
    usd: float | None

    @property
    def lost(self) -> int:
        """Tokens of the cached prefix that were not read."""
        return self.cached_before - self.read


def cache_misses(series: ContextSeries, prices: PriceSet) -> list[CacheMiss]:
    """Every round whose cache read fell below what was cached before, with the reason and the price of it.

    What a compaction dropped was not lost from the cache by accident, but the prefix it changed was: such a round is
    listed with the reason "compaction", and only the part of the prefix that is still sent counts as lost.
    """
    u = series.usage
    cached = u.cache_read + u.written
    found = []
    for place in range(1, series.rounds):
        before = place - 1
        while before >= 0 and not u.context[before]:
            before -= 1
        if before < 0 or not u.context[place] or not cached[before]:
            continue
        still_sent = min(int(cached[before]), int(u.context[place]))
        if still_sent - int(u.cache_read[place]) < SMALLEST_MISS:
            continue
        reason, method = _reason(series, before, place)
        lost = still_sent - int(u.cache_read[place])
        found.append(
            CacheMiss(
                round=place + 1,
                record=int(series.conversation.round_first_records[place]),
                cached_before=still_sent,
                read=int(u.cache_read[place]),
                reason=reason,
                method=method,
                usd=_extra_usd(series, place, lost, prices),
            )
        )
    return found


def _reason(series: ContextSeries, before: int, place: int) -> tuple[str, Method]:
    c, u = series.conversation, series.usage
    t = c.transcript
    first, last = int(c.round_first_records[before]), int(c.round_first_records[place])
    told = _told(c, int(u.row_record[place]))
    if told:
        return told, Method.RECORDED
    for compaction in series.compactions:
        if first < compaction.record <= last:
            names = {"micro": "microcompaction", "silent": "content cleared by the client"}
            return names.get(compaction.kind, "compaction"), Method.COMPUTED
    one, other = t.model(first), t.model(last)
    if one and other and not (is_synthetic(one) or is_synthetic(other)) and model_key(one) != model_key(other):
        return f"model switch: {model_key(one)} to {model_key(other)}", Method.COMPUTED
    gap = int(u.time[place] - u.finish[before]) if u.time[place] and u.finish[before] else 0
    lifetime = ONE_HOUR if u.one_hour[before] else FIVE_MINUTES
    if gap > lifetime:
        return f"time gap of {_minutes(gap)}", Method.COMPUTED
    if series.predecessor[place] != before:
        return "rewind or new beginning", Method.COMPUTED
    between = slice(first, last)
    if np.isin(t.type_number[between], [n for n, name in enumerate(t.type_names) if name in _TOOL_CHANGES]).any():
        return "tools, agents or skills changed", Method.COMPUTED
    if t.version(first) != t.version(last):
        return f"client changed: {t.version(first)} to {t.version(last)}", Method.COMPUTED
    if strips_earlier_thinking(other) and _prompt_between(t.kind[between], t.flags[between]):
        return "earlier thinking dropped at a new prompt", Method.COMPUTED
    return "unknown", Method.UNKNOWN


def _told(c: Conversation, record: int) -> str:
    """`diagnostics.cache_miss_reason` of the response, "" when the API gave none (api.md 1.6)."""
    if record < 0:
        return ""
    diagnostics = c.transcript.message(record).get("diagnostics")
    reason = diagnostics.get("cache_miss_reason") if isinstance(diagnostics, dict) else None
    if isinstance(reason, dict):
        reason = reason.get("type")
    return reason.replace("_", " ") if isinstance(reason, str) and reason != "unavailable" else ""


def _prompt_between(kind: npt.NDArray[np.uint8], flags: npt.NDArray[np.uint32]) -> bool:
    return bool(((kind == RecordKind.USER) & ((flags & (Flag.TOOL_RESULT | Flag.META)) == 0)).any())


def _minutes(milliseconds: int) -> str:
    minutes = round(milliseconds / 60_000)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def _extra_usd(series: ContextSeries, place: int, lost: int, prices: PriceSet) -> float | None:
    """Lost tokens at the mean price that the round paid for tokens it did not read, less the price of reading them."""
    c, u = series.conversation, series.usage
    row = prices.row(c.transcript.model(int(c.round_first_records[place])), int(u.time[place]))
    if row is None:
        return None
    rates = row.rates_for(int(u.context[place]))
    hour = int(u.one_hour[place])
    five, fresh = int(u.written[place]) - hour, int(u.context[place] - u.cache_read[place] - u.written[place])
    paid = five + hour + max(0, fresh)
    if paid <= 0:
        return 0.0
    mean = (five * rates[3] + hour * rates[4] + max(0, fresh) * rates[0]) / paid
    return max(0.0, lost * (mean - rates[2]) / 1e6)
