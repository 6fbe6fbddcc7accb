from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from compaction.accounting.models import model_key
from compaction.data_folder import config_folder
from compaction.errors import UsageError
from compaction.resources import resource

BUCKETS = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")
"""The token buckets, never merged (compaction.md 13)."""

Rates = tuple[float, float, float, float, float]
"""USD per million tokens, in the order of `BUCKETS`."""


@dataclass(frozen=True, slots=True)
class Tier:
    """Other rates for the whole request when its prompt (input + cache read + cache writes) exceeds `above` tokens."""

    above: int
    rates: Rates


@dataclass(frozen=True, slots=True)
class PriceRow:
    """Prices of some models over a period.

    Attributes:
        models: keys as `model_key` makes them.
        first, until: UTC milliseconds the row applies from (included) and until (excluded); None is open.
        rates, tiers: USD per million tokens; tiers from the smallest `above` up.
        speed, geo: multipliers of all token buckets by `usage.speed` and `usage.inference_geo`.
        source: where the figures come from, for people.
    """

    models: frozenset[str]
    first: int | None
    until: int | None
    rates: Rates
    tiers: tuple[Tier, ...]
    speed: dict[str, float]
    geo: dict[str, float]
    source: str

    def applies(self, timestamp_ms: int) -> bool:
        """Whether the row covers a response of that time; 0 (unknown time) counts as now-and-later."""
        if not timestamp_ms:
            return self.until is None
        return (self.first is None or timestamp_ms >= self.first) and (self.until is None or timestamp_ms < self.until)

    def rates_for(self, prompt_tokens: int) -> Rates:
        """The rates of a request with that many prompt tokens (the whole request pays them)."""
        rates = self.rates
        for tier in self.tiers:
            if prompt_tokens > tier.above:
                rates = tier.rates
        return rates

    def multiplier(self, speed: str, geo: str) -> float:
        """Fast mode and inference geography, multiplied (api.md 2.5: multipliers stack)."""
        return self.speed.get(speed, 1.0) * self.geo.get(geo, 1.0)


@dataclass(frozen=True, slots=True)
class Usage:
    """The billed tokens of one request, by bucket; `web_searches` in requests, `timestamp_ms` 0 when unknown."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    web_searches: int = 0
    timestamp_ms: int = 0
    speed: str = ""
    geo: str = ""
    batch: bool = False

    @property
    def prompt(self) -> int:
        """Tokens of the whole prompt: the context of the request."""
        return self.input + self.cache_read + self.cache_write_5m + self.cache_write_1h

    @property
    def buckets(self) -> tuple[int, int, int, int, int]:
        """Tokens in the order of `BUCKETS`."""
        return self.input, self.output, self.cache_read, self.cache_write_5m, self.cache_write_1h


@dataclass(frozen=True, slots=True)
class Price:
    """What one request costs, in USD by bucket, and the row's source. `web_search` is the server-tool fee."""

    buckets: tuple[float, float, float, float, float]
    web_search: float
    source: str

    @property
    def total(self) -> float:
        """USD for everything."""
        return sum(self.buckets) + self.web_search


@dataclass(frozen=True, slots=True)
class PriceSet:
    """A list of prices under one name; the first row that applies wins, the person's own rows come first."""

    name: str
    source: str
    rows: tuple[PriceRow, ...]
    web_search: float
    """USD for one request."""
    batch: float
    """Multiplier of all token buckets for batch requests."""
    aliases: dict[str, str] = field(default_factory=dict)

    def rows_for(self, model: str) -> tuple[PriceRow, ...]:
        """Every row of a model, best first; empty: the model is unpriced."""
        key = model_key(model)
        key = self.aliases.get(key, key)
        return tuple(row for row in self.rows if key in row.models)

    def row(self, model: str, timestamp_ms: int = 0) -> PriceRow | None:
        """The row that prices a response of `model` at that time, or None: unpriced, which is not zero."""
        return next((row for row in self.rows_for(model) if row.applies(timestamp_ms)), None)

    def price(self, model: str, usage: Usage) -> Price | None:
        """The cost of one request (compaction.md 13), or None when the model has no price."""
        row = self.row(model, usage.timestamp_ms)
        if row is None:
            return None
        factor = row.multiplier(usage.speed, usage.geo) * (self.batch if usage.batch else 1.0) / 1e6
        dollars = [n * rate * factor for n, rate in zip(usage.buckets, row.rates_for(usage.prompt), strict=True)]
        a, b, c, d, e = dollars
        return Price((a, b, c, d, e), usage.web_searches * self.web_search, row.source)


class PriceBook:
    """The selectable price sets: those of resources/prices.json and those of the person's own file."""

    def __init__(self, sets: dict[str, PriceSet], default: str) -> None:
        self._sets = sets
        self.default = default

    @property
    def names(self) -> list[str]:
        """Names of the sets, the default first."""
        return [self.default, *(name for name in self._sets if name != self.default)]

    def set(self, name: str = "") -> PriceSet:
        """The set of that name ("" = the default); upper case and a unique beginning do not matter.

        Raises:
            UsageError: there is no such set.
        """
        wanted = (name or self.default).strip().lower()
        exact = [n for n in self._sets if n.lower() == wanted]
        found = exact or [n for n in self._sets if n.lower().startswith(wanted)]
        if len(found) != 1:
            raise UsageError(f"no price set {name!r}", "known sets: " + ", ".join(self.names))
        return self._sets[found[0]]


USER_FILE = "prices.json"
"""Name of the person's own price file in the configuration folder."""


def load_price_book(user_file: Path | None = None) -> PriceBook:
    """The price sets, with the rows of the person's file in front of those of the set they name.

    The file (default: `prices.json` of the configuration folder, if there is one) has the form of
    resources/prices.json. A set it names that exists gets its rows first; any other set is added. A plain
    `{"rows": [...]}` adds its rows to every set.

    Raises:
        UsageError: the file is not readable as prices; file, row and cause are named.
    """
    user_file = user_file if user_file is not None else config_folder() / USER_FILE
    sets, aliases, default = _bundled_sets()
    if user_file.exists():
        for name, own in _own_sets(user_file, list(sets), aliases).items():
            base = sets.get(name)
            sets[name] = own if base is None else _merged(own, base)
    return PriceBook(sets, default)


@lru_cache(maxsize=1)
def bundled_prices() -> PriceBook:
    """The price sets of resources/prices.json alone."""
    sets, _, default = _bundled_sets()
    return PriceBook(sets, default)


def _bundled_sets() -> tuple[dict[str, PriceSet], dict[str, str], str]:
    book = json.loads(resource("prices.json").read_text("utf-8"))
    aliases = dict(book["aliases"])
    sets = {name: _set(name, entry, aliases, USER_FILE) for name, entry in book["sets"].items()}
    return sets, aliases, str(book["default"])


def _merged(own: PriceSet, base: PriceSet) -> PriceSet:
    return PriceSet(
        base.name, base.source, own.rows + base.rows, base.web_search, base.batch, {**base.aliases, **own.aliases}
    )


def _own_sets(path: Path, known: list[str], aliases: dict[str, str]) -> dict[str, PriceSet]:
    try:
        own = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"the price file cannot be read: {error}", "mend or remove it", str(path)) from error
    if not isinstance(own, dict):
        raise UsageError("the price file is no JSON object", "see resources/prices.json for the form", str(path))
    merged = {**aliases, **own.get("aliases", {})}
    entries = own.get("sets", {})
    result = {name: _set(name, entry, merged, str(path)) for name, entry in entries.items()}
    if "rows" in own:
        common = _set("", own, merged, str(path)).rows
        for name in known:
            base = result.get(name) or _set(name, {"rows": []}, merged, str(path))
            result[name] = PriceSet(name, base.source, common + base.rows, base.web_search, base.batch, merged)
    return result


def _set(name: str, entry: dict[str, Any], aliases: dict[str, str], where: str) -> PriceSet:
    rows = []
    for number, row in enumerate(entry.get("rows", []), 1):
        try:
            rows.append(_row(row, str(entry.get("source", "") or where)))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(
                f"row {number} of price set {name!r} is not a price row: {error!r}",
                "a row has models, input, output, cache_read, cache_write_5m and cache_write_1h", where,
            ) from error  # fmt: skip
    return PriceSet(
        name, str(entry.get("source", where)), tuple(rows), float(entry.get("web_search_per_1000", 10)) / 1000,
        float(entry.get("batch", 0.5)), aliases,
    )  # fmt: skip


def _row(row: dict[str, Any], source: str) -> PriceRow:
    tiers = sorted((Tier(int(t["above_prompt_tokens"]), _rates(t)) for t in row.get("tiers", [])), key=_above)
    models = row["models"] if isinstance(row["models"], list) else [row["models"]]
    return PriceRow(
        models=frozenset(model_key(str(m)) for m in models),
        first=_instant(row.get("from")),
        until=_instant(row.get("until")),
        rates=_rates(row),
        tiers=tuple(tiers),
        speed=_factors(row.get("speed")),
        geo=_factors(row.get("geo")),
        source=str(row.get("source") or source),
    )


def _above(tier: Tier) -> int:
    return tier.above


def _rates(row: dict[str, Any]) -> Rates:
    a, b, c, d, e = (float(row[bucket]) for bucket in BUCKETS)
    if min(a, b, c, d, e) < 0:
        raise ValueError("a price is negative")
    return a, b, c, d, e


def _factors(value: Any) -> dict[str, float]:
    return {str(k): float(v) for k, v in (value or {}).items()}


def _instant(value: Any) -> int | None:
    if value is None:
        return None
    day = date.fromisoformat(str(value))
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)
