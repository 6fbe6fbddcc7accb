from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from compaction.accounting.models import (
    has_long_context_suffix,
    model_key,
    model_version,
    strips_earlier_thinking,
    tokenizer_family,
)
from compaction.accounting.prices import Usage, bundled_prices, load_price_book
from compaction.errors import UsageError

PUBLIC = bundled_prices().set()


def at(day: str) -> int:
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000)


def usd(model: str, usage: Usage) -> float:
    price = PUBLIC.price(model, usage)
    assert price is not None
    return price.total


@pytest.mark.parametrize(
    "name",
    [
        "claude-opus-4-5", "claude-opus-4-5-20251101", "claude-opus-4-5[1m]", "anthropic/claude-opus-4.5",
        "us.anthropic.claude-opus-4-5-20251101-v1:0", "eu.anthropic.claude-opus-4-5-20251101-v1:0",
        "anthropic.claude-opus-4-5-20251101-v1:0:200k", "claude-opus-4-5@20251101", "Claude-Opus-4-5-latest",
        "openrouter/anthropic/claude-opus-4.5:beta",
        "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-5-20251101-v1:0",
    ],
)  # fmt: skip
def test_model_ids_lose_dates_vendors_and_suffixes_prices_md(name: str) -> None:
    assert model_key(name) == "opus-4-5"


def test_model_facts() -> None:
    assert has_long_context_suffix("claude-opus-4-6[1m]")
    assert model_version("claude-3-5-haiku-20241022") == (3, 5)
    assert model_key("claude-3-5-sonnet-v2@20241022") == "3-5-sonnet"
    families = {m: tokenizer_family(m) for m in ["claude-opus-4-6", "claude-opus-4-7", "claude-haiku-5-5"]}
    assert families == {"claude-opus-4-6": "old", "claude-opus-4-7": "new", "claude-haiku-5-5": "new"}
    stripping = [m for m in ["opus-4-1", "opus-4-5", "sonnet-4-5", "sonnet-4-6", "haiku-4-5", "haiku-5-5"]
                 if strips_earlier_thinking(f"claude-{m}")]  # fmt: skip
    assert stripping == ["opus-4-1", "sonnet-4-5", "haiku-4-5"]


def test_exercise_14_5_the_0_0255_dollar_example() -> None:
    price = PUBLIC.price("claude-sonnet-4-6", Usage(input=1_000, output=500, cache_read=50_000))
    assert price is not None
    assert price.buckets[:3] == pytest.approx((0.003, 0.0075, 0.015), abs=1e-12)
    assert price.total == pytest.approx(0.0255, abs=1e-12)
    assert usd("claude-sonnet-4-6", Usage(input=50_000)) == pytest.approx(0.15)


# Rows of prices.md, copied by hand: model, input, output, read, 5 m, 1 h.
TABLE = [
    ("fable-5-2", 8, 40, 0.20, 10, 16), ("mythos-5-1", 10, 50, 0.25, 12.5, 20), ("fable-5", 10, 50, 1, 12.5, 20),
    ("opus-5-5", 4, 20, 0.2, 5, 8), ("opus-5", 5, 25, 0.5, 6.25, 10), ("opus-4-8", 5, 25, 0.5, 6.25, 10),
    ("opus-4-6", 5, 25, 0.5, 6.25, 10), ("opus-4-5", 5, 25, 0.5, 6.25, 10), ("sonnet-5-5", 2, 10, 0.1, 2.5, 4),
    ("sonnet-5", 2, 10, 0.2, 2.5, 4), ("sonnet-4-6", 3, 15, 0.3, 3.75, 6), ("sonnet-4", 3, 15, 0.3, 3.75, 6),
    ("3-7-sonnet", 3, 15, 0.3, 3.75, 6), ("haiku-5-5", 0.1, 0.5, 0.01, 0.125, 0.2), ("haiku-4-5", 1, 5, 0.1, 1.25, 2),
    ("3-5-haiku", 0.8, 4, 0.08, 1, 1.6), ("opus-4-1", 15, 75, 1.5, 18.75, 30), ("3-haiku", 0.25, 1.25, 0.03, 0.3, 0.5),
]  # fmt: skip


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row[0])
def test_each_bucket_has_its_own_price_prices_md(row: tuple[str, float, float, float, float, float]) -> None:
    name, *rates = row
    buckets = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")
    # 100,000 tokens: not above the tier of Haiku 5.5.
    got = [usd(f"claude-{name}", Usage(**{bucket: 100_000})) * 10 for bucket in buckets]
    assert got == pytest.approx(rates)


def test_sonnet_5_5_read_price_is_dated_prices_md() -> None:
    read = Usage(cache_read=1_000_000, timestamp_ms=at("2026-10-06"))
    assert usd("claude-sonnet-5-5", read) == pytest.approx(0.20)
    later = Usage(cache_read=1_000_000, timestamp_ms=at("2026-10-07"))
    assert usd("claude-sonnet-5-5", later) == pytest.approx(0.10)


def test_prompt_length_tier_prices_the_whole_request_prices_md() -> None:
    at_limit = Usage(input=50_000, cache_read=30_000, cache_write_1h=20_000, output=1_000)
    above = Usage(input=50_000, cache_read=30_001, cache_write_1h=20_000, output=1_000)
    assert usd("claude-haiku-5-5", at_limit) == pytest.approx((5_000 + 300 + 4_000 + 500) / 1e6)
    assert usd("claude-haiku-5-5", above) == pytest.approx((25_000 + 1_500.05 + 20_000 + 2_500) / 1e6)


def test_sonnet_4_5_long_requests_had_their_own_price_until_2026_04_30() -> None:
    long = Usage(input=200_001, timestamp_ms=at("2026-04-30"))
    assert usd("claude-sonnet-4-5", long) == pytest.approx(200_001 * 6 / 1e6)
    ended = Usage(input=200_001, timestamp_ms=at("2026-05-01"))
    assert usd("claude-sonnet-4-5", ended) == pytest.approx(200_001 * 3 / 1e6)


def test_multipliers_of_speed_geo_and_batch_stack_prices_md_api_2_5() -> None:
    base = Usage(input=1_000_000)
    assert usd("claude-opus-5", Usage(input=1_000_000, speed="fast")) == pytest.approx(10)
    assert usd("claude-opus-5", Usage(input=1_000_000, geo="us")) == pytest.approx(5.5)
    assert usd("claude-opus-5", Usage(input=1_000_000, batch=True)) == pytest.approx(2.5)
    assert usd("claude-opus-5", Usage(input=1_000_000, speed="fast", geo="us", batch=True)) == pytest.approx(5.5)
    assert usd("claude-opus-4-5", Usage(input=1_000_000, geo="us")) == usd("claude-opus-4-5", base)


def test_web_searches_cost_10_dollars_per_1000_prices_md() -> None:
    assert usd("claude-sonnet-4-6", Usage(web_searches=3)) == pytest.approx(0.03)


def test_unknown_models_are_unpriced_never_zero() -> None:
    assert PUBLIC.price("gpt-6", Usage(input=10)) is None
    assert bundled_prices().set("design document").price("claude-opus-5", Usage(input=10)) is None


def test_design_document_set_keeps_its_own_figures_prices_md() -> None:
    design = bundled_prices().set("design")
    price = design.price("claude-opus-4-7", Usage(input=1_000_000, output=1_000_000, cache_read=1_000_000))
    assert price is not None
    assert price.buckets[:3] == pytest.approx((15, 75, 1.5))
    assert "design document" in price.source
    with pytest.raises(UsageError, match="no price set"):
        bundled_prices().set("nobody")


def test_the_persons_rows_come_first_and_may_add_models(tmp_path: Path) -> None:
    own = tmp_path / "prices.json"
    rates = {"input": 1, "output": 2, "cache_read": 3, "cache_write_5m": 4, "cache_write_1h": 5}
    mine = {"source": "contract", "rows": [{"models": "opus-5", **rates}]}
    own.write_text(json.dumps({"rows": [{"models": ["claude-opus-5", "gpt-6"], **rates}], "sets": {"mine": mine}}))
    book = load_price_book(own)
    for model in ("claude-opus-5", "gpt-6"):
        price = book.set().price(model, Usage(input=1_000_000))
        assert price is not None
        assert price.total == pytest.approx(1)
        assert str(own) in price.source
    assert book.set().price("claude-opus-5-5", Usage(input=1_000_000)) is not None
    assert book.set("mine").price("claude-opus-5-5", Usage(input=1)) is None


NEGATIVE = {"models": "a", "input": -1, "output": 1, "cache_read": 1, "cache_write_5m": 1, "cache_write_1h": 1}
BAD = ["{", "[]", json.dumps({"rows": [{"models": ["a"], "input": 1}]}), json.dumps({"rows": [NEGATIVE]})]


@pytest.mark.parametrize("text", BAD)
def test_a_bad_price_file_is_named(tmp_path: Path, text: str) -> None:
    own = tmp_path / "prices.json"
    own.write_text(text)
    with pytest.raises(UsageError, match="prices"):
        load_price_book(own)
