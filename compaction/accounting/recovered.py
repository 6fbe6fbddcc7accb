from __future__ import annotations

import numpy as np
import numpy.typing as npt

from compaction.accounting.context import ContextSeries
from compaction.accounting.prices import PriceSet

UNKNOWN_OUTPUT = -1


def recovered_outputs(series: ContextSeries) -> npt.NDArray[np.int64]:
    """For each round whose recorded output is a placeholder, what it was by the growth of the context; −1 elsewhere.

    `context(next) − context(this) − tokens(what came between)`; before a compaction `preTokens − context − what came
    after the response` (transcript-format.md 5 and 7). An estimate: its error is that of the part subtracted.
    """
    u, count = series.usage, series.rounds
    result = np.full(count, UNKNOWN_OUTPUT, np.int64)
    placeholder = (u.context > 0) & ~u.final
    for place in np.flatnonzero(placeholder).tolist():
        after = place + 1
        between = series.user_estimate(place)
        total = None
        if after < count and series.predecessor[after] == place and u.context[after]:
            total = int(u.context[after])
        elif (pre := _pre_tokens(series, place)) is not None:
            total = pre
        if total is not None and total > u.context[place]:
            result[place] = max(int(u.output[place]), total - int(u.context[place]) - round(between))
    return result


def _pre_tokens(series: ContextSeries, place: int) -> int | None:
    for compaction in series.compactions:
        if compaction.round == place + 1 and compaction.kind in ("auto", "manual"):
            return compaction.pre_tokens
    return None


def recovered_usd(series: ContextSeries, recovered: npt.NDArray[np.int64], prices: PriceSet) -> float:
    """USD that the recovered outputs would add to the recorded cost."""
    u, c = series.usage, series.conversation
    total = 0.0
    for place in np.flatnonzero(recovered > u.output).tolist():
        model = c.transcript.model(int(c.round_first_records[place]))
        row = prices.row(model, int(u.time[place]))
        if row is not None:
            total += int(recovered[place] - u.output[place]) * row.rates_for(int(u.context[place]))[1] / 1e6
    return total
