from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from compaction.accounting.prices import PriceSet
from compaction.accounting.pricing import price_charges
from compaction.accounting.usage import Ledger, Responses
from compaction.accounting.usage_rows import prompt_tokens
from compaction.catalogue.fingerprint import key_of
from compaction.catalogue.passages import storable
from compaction.conversation.usage import context_of_iterations
from compaction.transcript.transcript import Transcript


class ScannedResponse(NamedTuple):
    """An API response as far as a slice shows it: tokens by bucket, `context` tokens, `cost_usd` None = no price.

    `message_key` is the same for every copy of the response in any file (message.id, requestId, model and prompt size,
    as `accounting.usage` tells responses apart).

    A tuple, since it goes to the database as it is: a library has hundreds of thousands of them.
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


class FilePart(NamedTuple):
    """One of the files (or slices of files) that a transcript holds one after the other.

    Attributes:
        path: the file.
        first, end: numbers of its records.
        lines: lines of the slice; `lines_before`: line feeds in the file before it.
    """

    path: str
    first: int
    end: int
    lines: int
    lines_before: int


def responses_of(transcript: Transcript, parts: Sequence[FilePart], prices: PriceSet) -> list[list[ScannedResponse]]:
    """For each part its API responses, each once within it and priced, in file order.

    Usage of subagents inside progress records counts where the subagent has no file of its own.
    """
    ledger = Ledger()
    ledger.add_parts(transcript, [part.end for part in parts], [_agents_with_files(transcript, p) for p in parts])
    settled = ledger.settle(apart=True)
    found: list[list[ScannedResponse]] = [[] for _ in parts]
    if not settled.count:
        return found
    rows = settled.rows[settled.best]
    context = prompt_tokens(rows).tolist()
    for number in np.flatnonzero(rows["iterated"]).tolist():
        usage = transcript.usage_at(int(rows["usage"][number]))
        context[number] = context_of_iterations(usage.iterations) or context[number]
    lines = transcript.line[_first_records(settled)].tolist()
    models = settled.names.models.names
    costs = _costs(settled, prices)
    columns: Iterator[tuple[Any, ...]] = zip(
        *(rows[name].tolist() for name in ("file", "message", "request", "instance", "model", "sidechain")),
        lines, settled.time.tolist(), settled.tokens.tolist(), context, settled.uncertain.tolist(), costs,
        strict=True,
    )  # fmt: skip
    for file, message, request, instance, model, sidechain, line, time, tokens, size, uncertain, cost in columns:
        part = parts[file]
        line += part.lines_before
        fresh, output, read, write_5m, write_1h = tokens
        name = models[model]
        identity = f"{message} {request} {instance} {name}" if message else f"{part.path}:{line}"
        key = key_of(identity.encode("utf-8", "surrogatepass"))
        found[file].append(
            ScannedResponse(
                key,
                line,
                time,
                storable(name),
                sidechain,
                fresh,
                output,
                read,
                write_5m,
                write_1h,
                size,
                uncertain,
                cost,
            )
        )
    return found


def _agents_with_files(transcript: Transcript, part: FilePart) -> frozenset[str]:
    """The subagents of a part whose own files lie where the client puts them (transcript-format.md §1)."""
    numbers = transcript.agent_number[part.first : part.end]
    if not numbers.any():
        return frozenset()
    folder, name = os.path.split(part.path)
    places = (os.path.join(folder, name.removesuffix(".jsonl"), "subagents"), folder)
    agents = [transcript.agent_names[number] for number in np.unique(numbers).tolist() if number]
    return frozenset(a for a in agents if any(os.path.exists(os.path.join(p, f"agent-{a}.jsonl")) for p in places))


def _first_records(settled: Responses) -> npt.NDArray[np.int64]:
    """The first record of every response, in file order."""
    first = np.full(settled.count, np.iinfo(np.int64).max)
    np.minimum.at(first, settled.response_of, settled.rows["record"].astype(np.int64))
    return first


def _costs(settled: Responses, prices: PriceSet) -> list[float | None]:
    """USD of each response: the sum of its charges, None when one of them has no price."""
    priced = price_charges(settled, prices)
    response = settled.charges["response"]
    usd = np.bincount(response, priced.usd.sum(axis=1) + priced.web_usd, settled.count).tolist()
    unpriced = set(response[~priced.priced].tolist())
    return [None if number in unpriced else cost for number, cost in enumerate(usd)]
