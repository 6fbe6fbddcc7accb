from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from compaction.accounting.prices import PriceRow, PriceSet
from compaction.accounting.usage import Responses

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PricedCharges:
    """What each charge costs.

    Attributes:
        usd: USD by bucket, shape (charges, 5); 0 where `priced` is False.
        web_usd: USD of web searches.
        priced: False where the model has no price: unpriced, not free.
        source: the index in `sources` of the price row used, −1 unpriced.
    """

    usd: Floats
    web_usd: Floats
    priced: npt.NDArray[np.bool_]
    source: npt.NDArray[np.int32]
    sources: list[str]


def price_charges(responses: Responses, prices: PriceSet) -> PricedCharges:
    """Price every charge by model, date, prompt length, speed, geography and batch, a price row at a time."""
    charges = responses.charges
    count = len(charges)
    result = PricedCharges(
        np.zeros((count, 5)), np.zeros(count), np.zeros(count, bool), np.full(count, -1, np.int32), []
    )
    for number in np.unique(charges["model"]).tolist():
        members = np.flatnonzero(charges["model"] == number)
        for row in prices.rows_for(responses.names.models.names[number]):
            if not len(members):
                break
            applies = _applies(row, charges["time"][members])
            _price(responses, members[applies], row, prices, result)
            members = members[~applies]
    return result


def _applies(row: PriceRow, times: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """`PriceRow.applies` for many times."""
    after = times >= row.first if row.first is not None else np.ones(len(times), bool)
    before = times < row.until if row.until is not None else np.ones(len(times), bool)
    return np.where(times > 0, after & before, row.until is None).astype(bool)


def _price(
    responses: Responses, members: npt.NDArray[np.int64], row: PriceRow, prices: PriceSet, result: PricedCharges
) -> None:
    if not len(members):
        return
    charges = responses.charges[members]
    tokens = charges["tokens"]
    rates = np.tile(np.array(row.rates), (len(members), 1))
    prompt = tokens.sum(axis=1) - tokens[:, 1]
    for tier in row.tiers:
        rates[prompt > tier.above] = tier.rates
    words = responses.names.words.names
    factor = np.where(charges["batch"], prices.batch, 1.0)
    for name, factors in (("speed", row.speed), ("geo", row.geo)):
        table = np.array([factors.get(word, 1.0) for word in words])
        factor = factor * table[charges[name]]
    result.usd[members] = tokens * rates * (factor / 1e6)[:, None]
    result.web_usd[members] = charges["web"] * prices.web_search
    result.priced[members] = True
    if row.source not in result.sources:
        result.sources.append(row.source)
    result.source[members] = result.sources.index(row.source)
