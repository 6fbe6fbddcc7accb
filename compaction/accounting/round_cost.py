from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from compaction.accounting.context import ContextSeries
from compaction.accounting.cost import CostState
from compaction.accounting.estimate import estimate_text_tokens
from compaction.accounting.figure import UNKNOWN, Figure, Method
from compaction.accounting.models import is_synthetic, tokenizer_family
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


def compaction_costs(series: ContextSeries, state: CostState) -> list[CompactionCost]:
    """The cost of every recorded compaction (microcompactions and silent drops make no request of their own)."""
    found = []
    for compaction in series.compactions:
        if compaction.kind in ("micro", "silent"):
            found.append(
                CompactionCost(
                    compaction,
                    Figure(0.0, Method.COMPUTED, source="no request"),
                    _rebuild(series, compaction, state.prices),
                )
            )
            continue
        found.append(
            CompactionCost(compaction, _call(series, compaction, state), _rebuild(series, compaction, state.prices))
        )
    return found


def _call(series: ContextSeries, compaction: Compaction, state: CostState) -> Figure:
    for entry in state.unrecorded:
        if entry.file == 0 and entry.after_record < compaction.record <= entry.record:
            usd = entry.total_usd if entry.usd is not None else None
            return Figure(usd, entry.method, source="between two cost-state records: the requests without a response")
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
