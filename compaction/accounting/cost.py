from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from compaction.accounting.figure import UNKNOWN, Figure, Method
from compaction.accounting.models import model_key
from compaction.accounting.prices import BUCKETS, PriceSet
from compaction.accounting.pricing import PricedCharges, price_charges
from compaction.accounting.unrecorded import Stretch, UnrecordedUsage, distinct_stretches, unrecorded_usage
from compaction.accounting.usage import FileUsage, Responses

_LONGEST_REQUEST = 600_000
"""Milliseconds: what lies between two records beyond the API's own time limit was no waiting for the API."""


@dataclass(slots=True)
class ModelCost:
    """One model's share of a cost state (compaction.md 13).

    Attributes:
        model: key without vendor, date and `[1m]`; `names`: the ids as recorded, most responses first.
        responses: responses on record; `tokens`: by bucket, unrecorded requests included.
        usd: by bucket; `web_usd`: search fees. Only what has a price.
        unpriced: tokens by bucket of requests without a price; `unpriced_responses`: how many.
        api_ms: API time of the responses on record, milliseconds, from their timestamps.
        sources: where its prices come from.
    """

    model: str
    names: list[str] = field(default_factory=list)
    responses: int = 0
    tokens: list[int] = field(default_factory=lambda: [0] * 5)
    usd: list[float] = field(default_factory=lambda: [0.0] * 5)
    web_searches: int = 0
    web_usd: float = 0.0
    unpriced: list[int] = field(default_factory=lambda: [0] * 5)
    unpriced_responses: int = 0
    api_ms: float = 0.0
    sources: list[str] = field(default_factory=list)

    @property
    def total_usd(self) -> float:
        """USD of everything that has a price."""
        return sum(self.usd) + self.web_usd


@dataclass(frozen=True, slots=True)
class CostState:
    """What some files cost (compaction.md 13): one response once over all of them.

    Attributes:
        prices: the set used.
        responses: distinct responses; `duplicates`: usages on records that repeat one of them.
        uncertain: responses whose recorded output may be a placeholder.
        models: by model key, dearest first.
        usd_by_response: USD of each response on record (iterations and searches included).
        unrecorded: requests that only the client's own totals show; they are part of `models` and of the total.
        api_time, duration: milliseconds.
        start_ms: of the first response, UTC milliseconds, 0 unknown.
        client_usd: what the client itself counted (cost-state), copies once; None when it wrote no totals.
        files: what each file contributes.
    """

    prices: PriceSet
    responses: int
    duplicates: int
    uncertain: int
    models: dict[str, ModelCost]
    usd_by_response: npt.NDArray[np.float64]
    unrecorded: list[UnrecordedUsage]
    api_time: Figure
    duration: Figure
    start_ms: int
    client_usd: float | None
    files: list[FileUsage]

    @property
    def total_usd(self) -> float:
        """USD of everything that has a price."""
        return sum(model.total_usd for model in self.models.values())

    @property
    def tokens(self) -> list[int]:
        """Tokens by bucket, priced or not."""
        return [sum(model.tokens[bucket] for model in self.models.values()) for bucket in range(5)]

    @property
    def usd(self) -> list[float]:
        """USD by bucket."""
        return [sum(model.usd[bucket] for model in self.models.values()) for bucket in range(5)]

    @property
    def web_usd(self) -> float:
        """USD of web searches."""
        return sum(model.web_usd for model in self.models.values())

    @property
    def web_searches(self) -> int:
        """Web searches, requests."""
        return sum(model.web_searches for model in self.models.values())

    @property
    def unpriced(self) -> list[ModelCost]:
        """Models with requests that have no price."""
        return [model for model in self.models.values() if any(model.unpriced) or model.unpriced_responses]


def cost_state(responses: Responses, prices: PriceSet) -> CostState:
    """Price responses: totals, buckets, models, API time, and what only the client's own totals show."""
    priced = price_charges(responses, prices)
    missing = unrecorded_usage(responses, priced, prices)
    api = _api_milliseconds(responses)
    models = _by_model(responses, priced, api)
    for entry in missing:
        _add_unrecorded(models.setdefault(model_key(entry.model), ModelCost(model_key(entry.model))), entry)
    ordered = sorted(models.values(), key=lambda m: (-m.total_usd, -sum(m.tokens), m.model))
    told = distinct_stretches(responses.client_totals)
    usd = np.zeros(responses.count)
    np.add.at(usd, responses.charges["response"], priced.usd.sum(axis=1) + priced.web_usd)
    times = responses.time[responses.time > 0]
    return CostState(
        prices=prices,
        responses=responses.count,
        duplicates=responses.duplicates,
        uncertain=int(responses.uncertain.sum()),
        models={model.model: model for model in ordered},
        usd_by_response=usd,
        unrecorded=missing,
        api_time=_api_time(responses, api, told),
        duration=_duration(responses, times),
        start_ms=int(times.min()) if len(times) else 0,
        client_usd=sum(s.usd for s in told) if told else None,
        files=responses.files,
    )


def _duration(responses: Responses, times: npt.NDArray[np.int64]) -> Figure:
    if not len(times):
        return Figure(None, Method.UNKNOWN)
    span = float(max(responses.finish.max(), times.max()) - times.min())
    return Figure(span, Method.COMPUTED, source="first to last response")


def _api_milliseconds(responses: Responses) -> npt.NDArray[np.float64]:
    """API time of each response: from the record before its first one to its last one, at most the API's time limit."""
    first = np.full(responses.count, len(responses.rows), np.int64)
    np.minimum.at(first, responses.response_of, np.arange(len(responses.rows)))
    asked = responses.rows["asked"][first] if responses.count else np.zeros(0, np.int64)
    spent = np.where(asked > 0, responses.finish - asked, 0)
    return np.clip(spent, 0, _LONGEST_REQUEST).astype(np.float64)


def _api_time(responses: Responses, api: npt.NDArray[np.float64], stretches: list[Stretch]) -> Figure:
    """The client's own figure for sessions that have one; timestamps for the others, where all records were read."""
    rows = responses.rows[responses.best]
    told = np.isin(rows["session"], [responses.names.sessions.number(t.session) for t in responses.client_totals])
    recorded = sum(s.api_ms for s in stretches)
    if told.all() and stretches:
        return Figure(recorded, Method.RECORDED, source="cost-state records")
    if not (responses.rows["asked"] > 0).any():
        return UNKNOWN
    source = "time between the record before a response and its last one"
    return Figure(recorded + float(api[~told].sum()), Method.ESTIMATED, source=source)


def _by_model(responses: Responses, priced: PricedCharges, api: npt.NDArray[np.float64]) -> dict[str, ModelCost]:
    charges = responses.charges
    names = responses.names.models.names
    models: dict[str, ModelCost] = {}
    own = responses.rows["model"][responses.best] if responses.count else np.zeros(0, np.int32)
    for number in np.unique(np.concatenate([charges["model"], own])).tolist():
        key = model_key(names[number])
        model = models.setdefault(key, ModelCost(key))
        responded = int((own == number).sum())
        model.names.insert(0 if responded > model.responses else len(model.names), names[number])
        model.responses += responded
        model.api_ms += float(api[own == number].sum())
        mine = charges["model"] == number
        model.tokens = _plus(model.tokens, charges["tokens"][mine])
        model.usd = [a + float(b) for a, b in zip(model.usd, priced.usd[mine].sum(axis=0), strict=True)]
        model.web_searches += int(charges["web"][mine].sum())
        model.web_usd += float(priced.web_usd[mine].sum())
        lacking = mine & ~priced.priced
        model.unpriced = _plus(model.unpriced, charges["tokens"][lacking])
        model.unpriced_responses += len(np.unique(charges["response"][lacking]))
        for source in np.unique(priced.source[mine]).tolist():
            if source >= 0 and priced.sources[source] not in model.sources:
                model.sources.append(priced.sources[source])
    return models


def _plus(tokens: list[int], more: npt.NDArray[np.int64]) -> list[int]:
    return [a + int(b) for a, b in zip(tokens, more.sum(axis=0), strict=True)]


def _add_unrecorded(model: ModelCost, entry: UnrecordedUsage) -> None:
    if entry.model not in model.names:
        model.names.append(entry.model)
    model.tokens = [a + b for a, b in zip(model.tokens, entry.tokens, strict=True)]
    model.web_searches += entry.web_searches
    if entry.usd is None:
        model.unpriced = [a + b for a, b in zip(model.unpriced, entry.tokens, strict=True)]
        return
    model.usd = [a + b for a, b in zip(model.usd, entry.usd[:5], strict=True)]
    model.web_usd += entry.usd[5]
    if entry.source not in model.sources:
        model.sources.append(entry.source)


def cost_report(state: CostState) -> list[str]:
    """The `/cost`-style report (compaction.md 13): total, durations, calls, tokens and dollars by bucket and model."""
    lines = [
        f"Total cost:      ${state.total_usd:,.4f}  ({state.prices.name})",
        f"API time:        {_time(state.api_time.value)} ({state.api_time.method})",
        f"Duration:        {_time(state.duration.value)} ({state.duration.method})",
        f"API calls:       {state.responses:,}" + (f" on record, {len(state.unrecorded):,} stretches with unrecorded "
                                                   "requests" if state.unrecorded else ""),
    ]  # fmt: skip
    for title, tokens, usd in zip(BUCKETS, state.tokens, state.usd, strict=True):
        lines.append(f"  {title.replace('_', ' '):<15}{tokens:>16,} tokens  ${usd:,.4f}")
    if state.web_searches:
        lines.append(f"  {'web search':<15}{state.web_searches:>16,} calls   ${state.web_usd:,.4f}")
    lines.append("By model:")
    for model in state.models.values():
        price = f"${model.total_usd:,.4f}"
        if any(model.unpriced) or model.unpriced_responses:
            price += f" + {sum(model.unpriced):,} tokens unpriced"
        lines.append(f"  {model.model:<18}{model.responses:>6,} calls {sum(model.tokens):>14,} tokens  {price}")
    if state.client_usd is not None:
        lines.append(f"Client's own total: ${state.client_usd:,.4f} (recorded)")
    return lines


def _time(milliseconds: float | None) -> str:
    if milliseconds is None:
        return "unknown"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
