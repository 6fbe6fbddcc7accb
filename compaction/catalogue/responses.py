from __future__ import annotations

import os
from dataclasses import dataclass

from compaction.accounting.prices import PriceSet, Usage, bundled_prices
from compaction.accounting.usage import Ledger, Responses
from compaction.accounting.usage_rows import prompt_tokens
from compaction.catalogue.fingerprint import key_of
from compaction.conversation.usage import context_of_iterations
from compaction.transcript.transcript import Transcript


@dataclass(frozen=True, slots=True)
class ScannedResponse:
    """An API response as far as a slice shows it: tokens by bucket, `context` tokens, `cost_usd` None = no price.

    `message_key` is the same for every copy of the response in any file (message.id, requestId, model and prompt size,
    as `accounting.usage` tells responses apart).
    """

    message_key: int
    line: int
    timestamp_ms: int
    model: str
    sidechain: bool
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_5m_tokens: int
    cache_write_1h_tokens: int
    context_tokens: int
    uncertain: bool
    cost_usd: float | None


def responses_of(transcript: Transcript, lines_before: int, path: str) -> list[ScannedResponse]:
    """The API responses of a transcript or slice, each once and priced, in file order.

    Usage of subagents inside progress records counts where the subagent has no file of its own.
    """
    ledger = Ledger()
    ledger.add(transcript, _agents_with_files(transcript, path))
    settled = ledger.settle()
    if not settled.count:
        return []
    costs = _costs(settled, bundled_prices().set())
    rows = settled.rows[settled.best]
    first_record = _first_records(settled)
    context = prompt_tokens(rows)
    found: list[ScannedResponse] = []
    for number in range(settled.count):
        row = rows[number]
        line = int(transcript.line[first_record[number]]) + lines_before
        tokens = int(context[number])
        if row["iterated"]:
            tokens = context_of_iterations(transcript.usage_at(int(row["usage"])).iterations) or tokens
        model = settled.model(number)
        identity = (
            f"{row['message']} {row['request']} {row['instance']} {model}" if row["message"] else f"{path}:{line}"
        )
        fresh, output, read, write_5m, write_1h = (int(n) for n in settled.tokens[number])
        found.append(
            ScannedResponse(
                message_key=key_of(identity.encode("utf-8", "replace")),
                line=line,
                timestamp_ms=int(settled.time[number]),
                model=model,
                sidechain=bool(row["sidechain"]),
                input_tokens=fresh,
                output_tokens=output,
                cache_read_tokens=read,
                cache_write_5m_tokens=write_5m,
                cache_write_1h_tokens=write_1h,
                context_tokens=tokens,
                uncertain=bool(settled.uncertain[number]),
                cost_usd=costs[number],
            )
        )
    return found


def _agents_with_files(transcript: Transcript, path: str) -> frozenset[str]:
    """The subagents of the transcript whose own files lie where the client puts them (transcript-format.md §1)."""
    folder, name = os.path.split(path)
    places = (os.path.join(folder, name.removesuffix(".jsonl"), "subagents"), folder)
    agents = [agent for agent in transcript.agent_names if agent]
    return frozenset(a for a in agents if any(os.path.exists(os.path.join(p, f"agent-{a}.jsonl")) for p in places))


def _first_records(settled: Responses) -> list[int]:
    records: dict[int, int] = {}
    for response, record in zip(settled.response_of.tolist(), settled.rows["record"].tolist(), strict=True):
        records.setdefault(response, record)
    return [records[number] for number in range(settled.count)]


def _costs(settled: Responses, prices: PriceSet) -> list[float | None]:
    """USD of each response: the sum of its charges, None when one of them has no price."""
    costs: list[float | None] = [0.0] * settled.count
    models, words = settled.names.models.names, settled.names.words.names
    for charge in settled.charges:
        number = int(charge["response"])
        fresh, output, read, write_5m, write_1h = (int(n) for n in charge["tokens"])
        billed = Usage(
            fresh, output, read, write_5m, write_1h, int(charge["web"]), int(charge["time"]),
            words[charge["speed"]], words[charge["geo"]], bool(charge["batch"]),
        )  # fmt: skip
        price = prices.price(models[charge["model"]], billed)
        so_far = costs[number]
        costs[number] = None if price is None or so_far is None else so_far + price.total
    return costs
