from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from compaction.accounting.client_totals import ClientTotals
from compaction.accounting.figure import Method
from compaction.accounting.models import model_key
from compaction.accounting.prices import PriceRow, PriceSet
from compaction.accounting.pricing import PricedCharges
from compaction.accounting.usage import Responses

_AGREES = 1e-9
"""USD: how near our price of some tokens must come to the client's own for it to be taken as the same."""
_CLOCK = 60_000
"""Milliseconds by which a response may be older than the client's start and still be its own (clocks, start-up)."""

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class UnrecordedUsage:
    """Requests that the client counted in a `cost-state` and wrote no response for: a compaction's own call, titles.

    Attributes:
        session, model: whose; `model` is the client's id.
        file, record: the cost-state that tells; `after_record`: the one before it, −1 none: it lies between them.
        tokens: by bucket; `web_searches`: requests.
        usd: by our prices, by bucket with the search fee last; None: unpriced.
        method: computed (our price of the tokens) or recorded (the client's own figure, when its requests fell on both
            sides of a price tier and cannot be told apart).
        client_usd: what the client says they cost.
        source: the price row.
    """

    session: str
    model: str
    file: int
    record: int
    after_record: int
    tokens: tuple[int, int, int, int, int]
    web_searches: int
    usd: tuple[float, ...] | None
    method: Method
    client_usd: float
    source: str

    @property
    def total_usd(self) -> float:
        """USD for everything, 0 when unpriced."""
        return sum(self.usd) if self.usd is not None else 0.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """What the client counted between two of its totals (`before` None: since it began), and where."""

    before: ClientTotals | None
    now: ClientTotals
    after_record: int

    @property
    def usd(self) -> float:
        """USD by the client."""
        return self.now.usd - (self.before.usd if self.before is not None else 0.0)

    @property
    def api_ms(self) -> float:
        """API time by the client, milliseconds."""
        return self.now.api_ms - (self.before.api_ms if self.before is not None else 0.0)

    @property
    def identity(self) -> tuple[object, ...]:
        """Equal for copies of one stretch in forks and in copies of a file."""
        first = None if self.before is None else (self.before.usd, self.before.api_ms, self.before.wall_ms)
        return self.now.start_ms, first, (self.now.usd, self.now.api_ms, self.now.wall_ms)


def client_stretches(totals: list[ClientTotals]) -> list[list[Stretch]]:
    """The client's totals as stretches, a list for each session in each file, in file order.

    Totals are cumulative over resumes of one session; they start anew with another `startTime`.
    """
    ordered = sorted(totals, key=lambda c: (c.file, c.session, c.record))
    chains = []
    for _, group in groupby(ordered, key=lambda c: (c.file, c.session)):
        chain: list[Stretch] = []
        before: ClientTotals | None = None
        after_record = -1
        for now in group:
            if before is not None and (now.start_ms != before.start_ms or now.usd < before.usd - _AGREES):
                before = None
            chain.append(Stretch(before, now, after_record))
            before, after_record = now, now.record
        chains.append(chain)
    return chains


def distinct_stretches(totals: list[ClientTotals]) -> list[Stretch]:
    """Every stretch once, whatever copies of it there are."""
    return list({s.identity: s for chain in reversed(client_stretches(totals)) for s in chain}.values())


def unrecorded_usage(responses: Responses, priced: PricedCharges, prices: PriceSet) -> list[UnrecordedUsage]:
    """The difference between the client's own totals and the responses on record, for each stretch between two totals.

    Copies of a stretch (forks, copies of a file) count once.
    """
    found: list[UnrecordedUsage] = []
    seen: set[tuple[object, ...]] = set()
    for chain in client_stretches(responses.client_totals):
        found += _Chain(responses, priced, prices, chain).found(seen)
    return found


class _Chain:
    """The client's totals of one session, in file order, against the responses of that session."""

    def __init__(self, responses: Responses, priced: PricedCharges, prices: PriceSet, chain: list[Stretch]) -> None:
        self.responses, self.priced, self.prices, self.chain = responses, priced, prices, chain
        rows, first = responses.rows, chain[0].now
        session = responses.names.sessions.number(first.session)
        self.here = np.flatnonzero(rows["file"] == first.file)
        self.elsewhere = np.flatnonzero((rows["file"] != first.file) & (rows["session"] == session))
        self.counted = np.zeros(responses.count, bool)

    def found(self, known: set[tuple[object, ...]]) -> Iterator[UnrecordedUsage]:
        """What no response on record explains; stretches in `known` are passed over, the others are put there."""
        for stretch in self.chain:
            now, before = stretch.now, stretch.before
            seen = self._recorded(now)
            if stretch.identity in known:
                continue
            known.add(stretch.identity)
            for name, total in now.models.items():
                base = before.models.get(name) if before is not None else None
                counted = np.array([*total.tokens, total.web_searches], np.int64)
                dollars = total.usd
                if base is not None:
                    counted -= np.array([*base.tokens, base.web_searches], np.int64)
                    dollars -= base.usd
                tokens, usd = seen.get(model_key(name), (np.zeros(6, np.int64), 0.0))
                left = np.maximum(counted - tokens, 0)
                if left.any():
                    yield self._unrecorded(now, stretch.after_record, name, left, dollars - usd)

    def _recorded(self, now: ClientTotals) -> dict[str, tuple[Counts, float]]:
        """Tokens by bucket, searches, and USD of the responses on record up to `now` that no total before had, by
        model key.

        In the main file a response belongs to a total by position, in a subagent's file by time. What is older than
        the client's count (copied by a fork, written by an earlier client) does not belong to it.
        """
        rows, responses = self.responses.rows, self.responses
        near = self.here[rows["record"][self.here] < now.record]
        far = self.elsewhere[rows["time"][self.elsewhere] <= now.time_ms]
        candidates = np.concatenate([near, far])
        members = np.zeros(responses.count, bool)
        times = rows["time"][candidates]
        members[responses.response_of[candidates[(times == 0) | (times >= now.start_ms - _CLOCK)]]] = True
        members &= ~self.counted
        self.counted[responses.response_of[candidates]] = True
        mine = members[responses.charges["response"]]
        charges, usd = responses.charges[mine], self.priced.usd[mine].sum(axis=1) + self.priced.web_usd[mine]
        names = responses.names.models.names
        seen: dict[str, tuple[Counts, float]] = {}
        for number in np.unique(charges["model"]).tolist():
            own = charges["model"] == number
            key = model_key(names[number])
            tokens, dollars = seen.get(key, (np.zeros(6, np.int64), 0.0))
            counts = np.append(charges["tokens"][own].sum(axis=0), charges["web"][own].sum())
            seen[key] = (tokens + counts, dollars + float(usd[own].sum()))
        return seen

    def _unrecorded(
        self, now: ClientTotals, after_record: int, model: str, left: Counts, client_usd: float
    ) -> UnrecordedUsage:
        row = self.prices.row(model, now.time_ms)
        usd: tuple[float, ...] | None = None
        method = Method.UNKNOWN
        if row is not None:
            usd, method = _best_price(row, left, client_usd, self.prices)
        a, b, c, d, e, web = (int(n) for n in left)
        return UnrecordedUsage(
            session=now.session,
            model=model,
            file=now.file,
            record=now.record,
            after_record=after_record,
            tokens=(a, b, c, d, e),
            web_searches=web,
            usd=usd,
            method=method,
            client_usd=client_usd,
            source=row.source if row is not None else "",
        )


def _best_price(
    row: PriceRow, left: npt.NDArray[Any], client_usd: float, prices: PriceSet
) -> tuple[tuple[float, ...], Method]:
    """Price tokens whose requests are not known one by one.

    Without a length tier they have one price. With one, it is the tier that gives the client's own figure; when none
    does, some requests were below it and some above, and the client's figure is all there is.
    """
    search = float(left[5]) * prices.web_search
    rates = [row.rates, *(tier.rates for tier in row.tiers)]
    choices = [tuple(float(n) * rate / 1e6 for n, rate in zip(left[:5], r, strict=True)) for r in rates]
    if len(choices) == 1:
        return (*choices[0], search), Method.COMPUTED
    for usd in choices:
        if abs(sum(usd) + search - client_usd) <= max(_AGREES, client_usd * 1e-9):
            return (*usd, search), Method.COMPUTED
    lowest = sum(choices[0])
    scale = (client_usd - search) / lowest if lowest > 0 and client_usd > search else 1.0
    return (*(value * scale for value in choices[0]), search), Method.RECORDED
