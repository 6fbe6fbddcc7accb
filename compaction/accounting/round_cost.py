from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from compaction.accounting.context import ContextSeries
from compaction.accounting.cost import CostState
from compaction.accounting.estimate import estimate_text_tokens
from compaction.accounting.figure import UNKNOWN, Figure, Method
from compaction.accounting.models import is_synthetic, model_key, tokenizer_family
from compaction.accounting.prices import PriceSet, Usage
from compaction.accounting.usage import Responses
from compaction.conversation import Compaction, Conversation
from compaction.transcript import Flag


def round_costs(conversation: Conversation, responses: Responses, state: CostState) -> npt.NDArray[np.float64]:
    """USD of each API round's response (the main file is file 0); NaN where it is unpriced or has no usage.

    A response that stands in two rounds (interrupted by another) is charged to the first.
    """
    rows = responses.rows
    mine = np.flatnonzero((rows["file"] == 0) & (rows["usage"] >= 0))
    mine = mine[conversation.main[rows["record"][mine]]]
    charged, first = np.unique(responses.response_of[mine], return_index=True)
    places = np.searchsorted(conversation.round_first_records, rows["record"][mine[first]], "right") - 1
    priced = ~np.isin(charged, list(_unpriced(responses, state))) & (places >= 0)
    result = np.full(conversation.round_count, np.nan)
    result[places[priced]] = 0.0
    np.add.at(result, places[priced], state.usd_by_response[charged[priced]])
    return result


def _unpriced(responses: Responses, state: CostState) -> set[int]:
    names = responses.names.models.names
    lacking = [number for number, name in enumerate(names) if not state.prices.rows_for(name)]
    return set(responses.charges["response"][np.isin(responses.charges["model"], lacking)].tolist())


@dataclass(frozen=True, slots=True)
class CompactionCost:
    """What one compaction cost.

    Attributes:
        compaction: which.
        call: USD of its own request: recorded in a file of its own or told by the client's totals, else estimated.
        rebuild: USD that the next request paid to write what it would have read from the cache before.
    """

    compaction: Compaction
    call: Figure
    rebuild: Figure


def compaction_costs(series: ContextSeries, responses: Responses, state: CostState) -> list[CompactionCost]:
    """The cost of every recorded compaction (microcompactions and silent drops make no request of their own)."""
    own_files = _own_requests(responses)
    asking = [c for c in series.compactions if c.kind not in ("micro", "silent")]
    found = []
    for compaction in series.compactions:
        if compaction in asking:
            own = _in_own_file(series, compaction, responses, own_files)
            call = Figure(float(state.usd_by_response[own]), Method.COMPUTED, source=_OWN) if own >= 0 else None
            call = call or _told(series, compaction, asking, state) or _estimated(series, compaction, state)
        else:
            call = Figure(0.0, Method.COMPUTED, source="no request")
        found.append(CompactionCost(compaction, call, _rebuild(series, compaction, state.prices)))
    return found


_OWN = "the usage in the compaction's own transcript"
_CLOCK = 600_000
"""Milliseconds between a compaction's own response and its boundary record, at most."""


def _own_requests(responses: Responses) -> npt.NDArray[np.int64]:
    """The responses in transcripts of compactions' own calls (`agent-acompact-…`, transcript-format.md 1)."""
    files = [
        n for n, f in enumerate(responses.files) if "agent-acompact" in f.name.replace("\\", "/").rsplit("/", 1)[-1]
    ]
    return np.unique(responses.response_of[np.isin(responses.rows["file"], files)])


def _in_own_file(
    series: ContextSeries, compaction: Compaction, responses: Responses, own: npt.NDArray[np.int64]
) -> int:
    """The response that wrote a compaction's summary: the last before its boundary; −1 none on record."""
    at = int(series.conversation.transcript.timestamp_ms[compaction.record])
    times = responses.finish[own]
    near = own[(times <= at + 5_000) & (times > at - _CLOCK)] if at else own[:0]
    return int(near[np.argmax(responses.finish[near])]) if len(near) else -1


def _told(series: ContextSeries, compaction: Compaction, asking: list[Compaction], state: CostState) -> Figure | None:
    """What the client's totals say about requests without a response around a compaction, shared if there are more.

    The summary is written by the model of the conversation; what other models did meanwhile are titles and the like.
    """
    model = model_key(_model_before(series.conversation, compaction.record))
    entries = [
        u
        for u in state.unrecorded
        if u.file == 0 and u.after_record < compaction.record <= u.record and model_key(u.model) == model
    ]
    if not entries:
        return None
    source = "between two cost-state records: the requests without a response"
    if any(u.usd is None for u in entries):
        return Figure(None, Method.UNKNOWN, source=source)
    total = sum(u.total_usd for u in entries)
    sharing = sum(entries[0].after_record < c.record <= entries[0].record for c in asking)
    if sharing > 1:
        return Figure(total / sharing, Method.ESTIMATED, source=f"{source}, shared by {sharing} compactions")
    method = Method.RECORDED if any(u.method is Method.RECORDED for u in entries) else Method.COMPUTED
    return Figure(total, method, source=source)


def _estimated(series: ContextSeries, compaction: Compaction, state: CostState) -> Figure:
    """A cache read of the whole context and the summary as output (api.md 4.3)."""
    model = _model_before(series.conversation, compaction.record)
    if not model:
        return UNKNOWN
    context = compaction.pre_tokens or compaction.context_before
    summary = _summary_tokens(series.conversation, compaction, model)
    if not context:
        return UNKNOWN
    price = state.prices.price(model, Usage(cache_read=context, output=round(summary)))
    cold = state.prices.price(model, Usage(input=context, output=round(summary)))
    if price is None or cold is None:
        return UNKNOWN
    return Figure(
        price.total, Method.ESTIMATED, cold.total - price.total,
        "cache read of the whole context and the summary as output; dearer when the cache was cold (api.md 4.3)",
    )  # fmt: skip


def _rebuild(series: ContextSeries, compaction: Compaction, prices: PriceSet) -> Figure:
    """The first request afterwards: written tokens at write price instead of the price of reading them."""
    place = compaction.round
    u, c = series.usage, series.conversation
    while place < series.rounds and not u.context[place]:
        place += 1
    if place >= series.rounds:
        return UNKNOWN
    row = prices.row(c.transcript.model(int(c.round_first_records[place])), int(u.time[place]))
    if row is None:
        return UNKNOWN
    rates = row.rates_for(int(u.context[place]))
    hour = int(u.one_hour[place])
    usd = ((int(u.written[place]) - hour) * (rates[3] - rates[2]) + hour * (rates[4] - rates[2])) / 1e6
    return Figure(usd, Method.COMPUTED, source="cache writes of the next request over the price of reading them")


def _model_before(c: Conversation, record: int) -> str:
    t = c.transcript
    place = int(np.searchsorted(c.round_first_records, record)) - 1
    while place >= 0:
        model = t.model(int(c.round_first_records[place]))
        if model and not is_synthetic(model):
            return model
        place -= 1
    return ""


def _summary_tokens(c: Conversation, compaction: Compaction, model: str) -> float:
    t = c.transcript
    end = min(len(t), compaction.record + 64)
    for record in range(compaction.record, end):
        if t.flags[record] & Flag.COMPACT_SUMMARY:
            family = tokenizer_family(model)
            return sum(estimate_text_tokens(str(t.block(b).get("text", "")), family) for b in t.blocks_of(record))
    return 0.0
