from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compaction.accounting.figure import Figure, Method
from compaction.accounting.prices import PriceSet, Usage
from compaction.errors import CompactoscopeError
from compaction.request.wire import WireMessage
from compaction.strategies.prompts import summary_prompt
from compaction.strategies.summariser import Summary, SummaryTask
from compaction.summaries.api_client import ApiSettings, credential_source, host_of
from compaction.summaries.summary_request import RequestOptions, SummaryRequest, build_request, can_share_cache
from compaction.transcript.patching import encode_value

_TYPICAL_OUTPUT_TOKENS = 4_000
"""Median output of a summary request: 12,200 characters and its analysis (transcript-format.md §7)."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What would leave the machine if the person agrees.

    Attributes:
        purpose: one line: what the call is for.
        host: where to.
        model: that would answer.
        body_bytes: size of the request's JSON.
        messages: how many it holds.
        shares_cache: it can read the session's warm prompt cache.
        input_tokens: estimated tokens of the prompt.
        cost_usd: estimated cost of one call, cold cache; unknown when the model has no price.
        cost_warm_usd: the same if the cache is still warm; unknown when the cache cannot be shared.
        key_from: where the key would come from.
        request: the exact request, to be looked at before sending.
    """

    purpose: str
    host: str
    model: str
    body_bytes: int
    messages: int
    shares_cache: bool
    input_tokens: Figure
    cost_usd: Figure
    cost_warm_usd: Figure
    key_from: str
    request: SummaryRequest

    def facts(self) -> list[tuple[str, str]]:
        """What would be sent, where to, and what it should cost, as names and values for the person."""
        return [
            ("what for", self.purpose),
            ("host", self.host),
            ("model", self.model),
            ("request", f"{self.messages:,} messages, {self.body_bytes:,} bytes"),
            ("tokens in", _figure(self.input_tokens, "{:,.0f}")),
            ("cost, cache cold", _figure(self.cost_usd, "${:,.4f}")),
            ("cost, cache warm", _figure(self.cost_warm_usd, "${:,.4f}")),
            ("key from", self.key_from),
        ]


class ConsentNeeded(CompactoscopeError):
    """Something would be sent and nobody has agreed yet; `outgoing` says what."""

    def __init__(self, outgoing: Outgoing) -> None:
        super().__init__(
            f"nothing was sent: {outgoing.body_bytes:,} bytes would go to {outgoing.host}",
            "agree to it first: --yes on the command line",
        )
        self.outgoing = outgoing

    def facts(self) -> list[tuple[str, str]]:
        """What would be sent, where to, and what it should cost."""
        return self.outgoing.facts()


def request_for(task: SummaryTask, options: RequestOptions, prompt: str = "", *, share: bool = True) -> SummaryRequest:
    """The first request of a summary run for `task`; `prompt` "" is the standard one of its kind."""
    wire = task.view.wire
    text = prompt or summary_prompt(task.kind, task.custom_instructions)
    return build_request(wire, messages_of(task), text, options, share=share and can_share_cache(wire, options))


def request_size(body: Mapping[str, Any]) -> int:
    """Bytes of the request's JSON."""
    return len(encode_value(body))


def request_text(body: Mapping[str, Any]) -> str:
    """The request as indented JSON for reading; a text that UTF-8 cannot hold (a cut emoji) shows its escapes."""
    text = json.dumps(body, ensure_ascii=False, indent=2)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(body, ensure_ascii=True, indent=2)
    return text


def messages_of(task: SummaryTask) -> list[WireMessage]:
    """The messages a summary of the task needs: everything up to its last part (`from` keeps the early messages, so
    that the prefix cache survives; compaction.md §7)."""
    last = max((part.place[0] for part in task.parts), default=-1)
    return list(task.view.wire.messages[: last + 1])


def outgoing_for(
    task: SummaryTask, options: RequestOptions, api: ApiSettings, prices: PriceSet, prompt: str = ""
) -> Outgoing:
    """What a summary run of `task` would send and cost, without building a client or touching the network."""
    request = request_for(task, options, prompt)
    model = str(request.body["model"])
    tokens = _prompt_tokens(task, request)
    known = prices.row(model) is not None
    return Outgoing(
        purpose="ask a model for a summary of this session",
        host=host_of(api),
        model=model,
        body_bytes=request_size(request.body),
        messages=len(request.body["messages"]),
        shares_cache=request.shares_cache,
        input_tokens=Figure(tokens, Method.ESTIMATED, source="context of the last response + the instruction"),
        cost_usd=_cost(prices, model, Usage(input=tokens, output=_TYPICAL_OUTPUT_TOKENS)),
        cost_warm_usd=_cost(prices, model, Usage(cache_read=tokens, output=_TYPICAL_OUTPUT_TOKENS))
        if request.shares_cache and known
        else Figure(None, Method.UNKNOWN, source="the session's cache cannot be shared"),
        key_from=credential_source().label,
        request=request,
    )


def _figure(figure: Figure, form: str) -> str:
    return "unknown" if figure.value is None else f"{form.format(figure.value)} ({figure.method})"


def _prompt_tokens(task: SummaryTask, request: SummaryRequest) -> int:
    places = {part.place for part in task.parts}
    inside = sum(part.tokens for part in task.view.parts if part.place in places)
    system = task.view.system_tokens if request.shares_cache else 0
    return inside + system + 2_500


def _cost(prices: PriceSet, model: str, usage: Usage) -> Figure:
    price = prices.price(model, usage)
    if price is None:
        return Figure(None, Method.UNKNOWN, source=f"{model} has no price")
    return Figure(price.total, Method.ESTIMATED, source=price.source)


@dataclass(frozen=True, slots=True)
class ConsentFirst:
    """A summariser that sends nothing: it says what would be sent (raises `ConsentNeeded`)."""

    options: RequestOptions
    api: ApiSettings
    prices: PriceSet
    prompt: str = ""
    name: str = "anthropic"
    title: str = "Model (asks first)"
    offline: bool = False

    def summarise(self, task: SummaryTask) -> Summary:
        """Never returns.

        Raises:
            ConsentNeeded: always.
        """
        raise ConsentNeeded(outgoing_for(task, self.options, self.api, self.prices, self.prompt))
