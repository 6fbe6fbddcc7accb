from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from compaction.accounting.cache import CacheMiss, cache_misses
from compaction.accounting.context import ContextSeries, context_series
from compaction.accounting.cost import CostState, cost_state
from compaction.accounting.prices import PriceSet
from compaction.accounting.recovered import recovered_outputs, recovered_usd
from compaction.accounting.round_cost import CompactionCost, compaction_costs, round_costs
from compaction.accounting.usage import Responses, usage_of_session
from compaction.conversation import Session
from compaction.progress import Progress


@dataclass(frozen=True, slots=True)
class SessionAccounts:
    """Everything the accounting views show of one session.

    Attributes:
        session: what it is about.
        series: context of every round of the main thread, by category.
        responses: every response once, subagents included; file 0 is the main transcript.
        cost: priced; round_usd: USD of each round, NaN where unpriced or unknown.
        compactions: what each compaction cost; misses: rounds that lost cached tokens.
        recovered: estimated output of rounds that recorded a placeholder, −1 elsewhere; recovered_usd: what it adds.
    """

    session: Session
    series: ContextSeries
    responses: Responses
    cost: CostState
    round_usd: npt.NDArray[np.float64]
    compactions: list[CompactionCost]
    misses: list[CacheMiss]
    recovered: npt.NDArray[np.int64]
    recovered_usd: float

    @property
    def cumulative_usd(self) -> npt.NDArray[np.float64]:
        """USD of the main thread up to and including each round; rounds without a price add nothing."""
        return np.cumsum(np.nan_to_num(self.round_usd))

    def priced(self, prices: PriceSet) -> SessionAccounts:
        """The same session under another price set."""
        return _priced(self.session, self.series, self.responses, prices)


def account_session(session: Session, prices: PriceSet, progress: Progress | None = None) -> SessionAccounts:
    """Account for a session and its subagents.

    Raises:
        InputUnreadable: a subagent's file cannot be read.
        Cancelled: `progress.cancel()` was called.
    """
    series = context_series(session.conversation, progress)
    return _priced(session, series, usage_of_session(session), prices)


def _priced(session: Session, series: ContextSeries, responses: Responses, prices: PriceSet) -> SessionAccounts:
    cost = cost_state(responses, prices)
    recovered = recovered_outputs(series)
    return SessionAccounts(
        session=session,
        series=series,
        responses=responses,
        cost=cost,
        round_usd=round_costs(session.conversation, responses, cost),
        compactions=compaction_costs(series, responses, cost),
        misses=cache_misses(series, prices),
        recovered=recovered,
        recovered_usd=recovered_usd(series, recovered, prices),
    )
