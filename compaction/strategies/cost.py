"""What a plan costs and saves: once, at the next request, at each later one, and when it has paid for itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

from compaction.accounting.figure import Method
from compaction.accounting.prices import PriceSet, Usage
from compaction.strategies.plan import Plan, StrategyInput

SUMMARY_INSTRUCTION_TOKENS = 2_500
"""The summary request is 2,100 to 3,300 tokens above the context: its instruction (transcript-format.md 7)."""
TYPICAL_SUMMARY_TOKENS = 4_000
"""Output of a summary request: 12,200 characters at the median, and its analysis part (transcript-format.md 7)."""
_REQUESTS_AHEAD = 2_000
"""A session that has more requests left grows so slowly that what it costs until then says nothing."""
FIVE_MINUTES_MS, ONE_HOUR_MS = 5 * 60_000, 60 * 60_000


@dataclass(frozen=True, slots=True)
class CacheState:
    """The prompt cache as the newest response left it.

    Attributes:
        warm: the lifetime has not passed since the newest request.
        tokens: what it holds, tokens (the newest request's whole prompt).
        one_hour: the session writes the one-hour cache.
    """

    warm: bool
    tokens: int
    one_hour: bool


@dataclass(frozen=True, slots=True)
class PlanCost:
    """USD figures of a plan; None where the model has no price. All estimated: they price future requests.

    Attributes:
        one_off: the summary request (0 where no model is called).
        next_request, next_request_without: the next request after the plan, and without it.
        per_request, per_request_without: each later request, cache warm, growing as the session did.
        break_even_requests: requests until the plan has paid for itself, 0 = at once, None = never or unpriced.
        requests_until_auto_compact: how many the session has left without the plan, None when it does not grow.
        saved_until_auto_compact: against waiting for the automatic compaction and paying for it, over those requests;
            None where there are more than 2,000 of them.
        cache_tokens_kept, cache_tokens_lost: of the warm cache, tokens still usable at the next request, and not.
        usage: of the summary request: input, output, cache read, cache creation tokens.
        price_source: where the prices come from.
        method: `estimated`, or `unknown` when unpriced.
    """

    one_off: float | None
    next_request: float | None
    next_request_without: float | None
    per_request: float | None
    per_request_without: float | None
    break_even_requests: int | None
    requests_until_auto_compact: int | None
    saved_until_auto_compact: float | None
    cache_tokens_kept: int
    cache_tokens_lost: int
    usage: tuple[int, int, int, int]
    price_source: str
    method: Method


def cache_state(given: StrategyInput) -> CacheState:
    """Whether the newest response's cache is still warm at `given.now_ms`, and what it holds (api.md 2.5)."""
    c, t, view = given.conversation, given.conversation.transcript, given.view
    number, context, _ = view.newest_usage
    if number < 0:
        return CacheState(False, 0, False)
    records = [o.record for o in view.wire.messages[number].origins if o is not None]
    usages = [u for r in c.response_records(int(c.response_of[records[-1]])) if (u := t.usage(r)) is not None]
    one_hour = any(u.cache_write_1h for u in usages) or _ever_one_hour(given)
    age = given.now_ms - int(t.timestamp_ms[records[0]])
    lifetime = ONE_HOUR_MS if one_hour else FIVE_MINUTES_MS
    return CacheState(0 <= age < lifetime, context, one_hour)


def _ever_one_hour(given: StrategyInput) -> bool:
    return bool((given.conversation.transcript.usage_table["write_1h"] > 0).any())


def growth_per_request(given: StrategyInput) -> int:
    """By how many tokens the context grew from response to response in this stretch, on average; at least 1."""
    contexts = [
        int(c)
        for number in range(1, given.conversation.round_count + 1)
        if given.conversation.round(number).epoch == given.conversation.epochs[-1].number
        and (c := given.conversation.round_context(number))
    ]
    steps = [later - earlier for earlier, later in pairwise(contexts) if later > earlier]
    return max(1, round(sum(steps) / len(steps))) if steps else 1


def kept_prefix_tokens(given: StrategyInput, plan: Plan) -> int:
    """Tokens of the request before the first message that the plan changes: what a warm cache still covers."""
    if plan.first_changed >= len(plan.request.messages):
        return plan.tokens_before
    ahead = sum(part.tokens for part in given.view.parts if part.place[0] < plan.first_changed)
    return given.view.system_tokens + ahead


def plan_cost(given: StrategyInput, plan: Plan) -> PlanCost:
    """The cost of `plan` (compaction.md 13 and issue 5), at the rates of the session's model now."""
    cache = cache_state(given)
    kept = min(kept_prefix_tokens(given, plan), plan.tokens_after)
    covered = cache.tokens if cache.warm else 0
    kept_warm = min(kept, covered) if plan.applies else covered
    usage = _summary_usage(plan, covered) if plan.applies and plan.model_calls else (0, 0, 0, 0)
    price = _pricer(given.prices, given.wire.model, given.now_ms, cache.one_hour)
    lost = max(0, min(covered, plan.tokens_before) - kept_warm)
    row = given.prices.row(given.wire.model, given.now_ms)
    unknown = PlanCost(
        None, None, None, None, None, None, None, None, kept_warm, lost, usage, "no price known", Method.UNKNOWN
    )
    if row is None:
        return unknown
    grows = growth_per_request(given)
    one_off = price(0, 0, usage)
    nothing = price(min(covered, plan.tokens_before), max(0, plan.tokens_before - covered))
    following = price(kept_warm, max(0, plan.tokens_after - kept_warm))
    before, after = price(plan.tokens_before, grows), price(plan.tokens_after, grows)
    cost = replace(
        unknown,
        one_off=one_off,
        next_request=following,
        next_request_without=nothing,
        per_request=after,
        per_request_without=before,
        break_even_requests=_break_even(one_off + following - nothing, before - after) if plan.applies else None,
        price_source=row.source,
        method=Method.ESTIMATED,
    )
    return _against_waiting(given, plan, cost, grows, price)


Pricer = Callable[..., float]


def _pricer(prices: PriceSet, model: str, now_ms: int, one_hour: bool) -> Pricer:
    """USD of a request by tokens read from the cache and written to it, or of a summary request's usage."""

    def price(read: int, written: int, summary: tuple[int, int, int, int] = (0, 0, 0, 0)) -> float:
        usage = Usage(
            input=summary[0],
            output=summary[1],
            cache_read=read + summary[2],
            cache_write_5m=0 if one_hour else written + summary[3],
            cache_write_1h=written + summary[3] if one_hour else 0,
            timestamp_ms=now_ms,
        )
        found = prices.price(model, usage)
        return found.total if found is not None else 0.0

    return price


def _summary_usage(plan: Plan, covered: int) -> tuple[int, int, int, int]:
    """Input, output, cache read and cache creation of the summary request: a fork that writes no cache (section 6)."""
    prompt = plan.tokens_before + SUMMARY_INSTRUCTION_TOKENS
    read = min(covered, plan.tokens_before)
    return prompt - read, TYPICAL_SUMMARY_TOKENS, read, 0


def _break_even(invested: float, saved_each: float) -> int | None:
    if invested <= 0:
        return 0
    return math.ceil(invested / saved_each) if saved_each > 0 else None


def _against_waiting(given: StrategyInput, plan: Plan, cost: PlanCost, grows: int, price: Pricer) -> PlanCost:
    """The requests that the session has left until its automatic compaction, with the plan now and without it.

    Whoever has reached the threshold by then pays for that compaction: always without the plan, and with a plan that
    frees too little. A plan that changes nothing therefore saves nothing.
    """
    thresholds = given.thresholds
    if not thresholds.auto_compact_on or grows <= 1:
        return cost
    threshold = thresholds.auto_compact_threshold

    def until(tokens: int) -> int:
        return max(0, math.ceil((threshold - tokens) / grows))

    left = until(plan.tokens_before)
    if left > _REQUESTS_AHEAD:
        return replace(cost, requests_until_auto_compact=left)

    def over(first: float | None, tokens: int) -> float:
        requests = (first or 0) + sum(price(tokens + n * grows, grows) for n in range(1, left)) if left else 0.0
        summary = (SUMMARY_INSTRUCTION_TOKENS, TYPICAL_SUMMARY_TOKENS, max(tokens, threshold), 0)
        return requests + (price(0, 0, summary) if until(tokens) <= left else 0.0)

    waiting = over(cost.next_request_without, plan.tokens_before)
    acting = (cost.one_off or 0) + over(cost.next_request, plan.tokens_after)
    return replace(cost, requests_until_auto_compact=left, saved_until_auto_compact=waiting - acting)
