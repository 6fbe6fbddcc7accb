from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from compaction.accounting.prices import PriceSet
from compaction.accounting.pricing import price_charges
from compaction.accounting.usage import Ledger, Responses
from compaction.accounting.usage_rows import prompt_tokens
from compaction.catalogue.discovery import place_of
from compaction.catalogue.entries import BUCKETS
from compaction.catalogue.fingerprint import key_of
from compaction.catalogue.passages import storable
from compaction.catalogue.totals import FileTotals, shows_main_context, totals_of
from compaction.conversation.usage import context_of_iterations
from compaction.transcript.transcript import Transcript

SCANNED = np.dtype(
    [
        ("message_key", "<i8"), ("line", "<u4"), ("timestamp_ms", "<i8"), ("model", "<i4"), ("sidechain", "?"),
        *((bucket, "<u4") for bucket in BUCKETS), ("context_tokens", "<u4"), ("uncertain", "?"), ("cost_usd", "<f8"),
    ]
)  # fmt: skip
"""An API response as far as a slice shows it: tokens by bucket, `context` tokens, `model` a number of
`ScannedResponses.models`, `cost_usd` NaN = no price. Counts that a hostile file exaggerates end at 2**32 - 1.

`message_key` is the same for every copy of the response in any file (message.id, requestId, model and prompt size, as
`accounting.usage` tells responses apart).
"""

_MOST = 2**32 - 1
MESSAGE_KEYS = "mixed keys"
"""Names how `SCANNED.message_key` is made: rows with keys of another making cannot stand beside these."""

RESPONSE_COLUMNS = SCANNED.names or ()
"""The columns of a response in the catalogue, in the order of `SCANNED`."""


@dataclass(frozen=True, slots=True)
class ScannedResponses:
    """The responses of a slice. Bytes, since a library has hundreds of thousands and they go from process to process.

    Attributes:
        rows: `SCANNED` rows, ascending by `message_key`, the order in which the catalogue keeps them.
        models: what their `model` stands for.
    """

    rows: bytes = b""
    models: tuple[str, ...] = ()

    def array(self) -> npt.NDArray[Any]:
        """The rows as an array of `SCANNED`."""
        return np.frombuffer(self.rows, SCANNED)

    def __len__(self) -> int:
        return len(self.rows) // SCANNED.itemsize


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


def responses_of(
    transcript: Transcript, parts: Sequence[FilePart], prices: PriceSet
) -> list[tuple[ScannedResponses, FileTotals]]:
    """For each part its API responses, each once within it and priced, and what they come to together.

    Usage of subagents inside progress records counts where the subagent has no file of its own.
    """
    ledger = Ledger()
    ledger.add_parts(transcript, [part.end for part in parts], [_agents_with_files(transcript, p) for p in parts])
    settled = ledger.settle(apart=True)
    if not settled.count:
        return [(ScannedResponses(), FileTotals())] * len(parts)
    rows = settled.rows[settled.best]
    found = np.zeros(settled.count, SCANNED)
    lines = transcript.line[_first_records(settled)] + np.array([part.lines_before for part in parts])[rows["file"]]
    found["line"] = lines
    found["message_key"] = _message_keys(rows, settled.names.models.names, lines, parts)
    found["timestamp_ms"] = settled.time
    for bucket, name in enumerate(BUCKETS):
        found[name] = np.minimum(settled.tokens[:, bucket], _MOST)
    context = prompt_tokens(rows)
    for number in np.flatnonzero(rows["iterated"]).tolist():
        usage = transcript.usage_at(int(rows["usage"][number]))
        context[number] = min(context_of_iterations(usage.iterations) or context[number], _MOST)
    found["context_tokens"] = np.minimum(context, _MOST)
    for name in ("model", "sidechain"):
        found[name] = rows[name]
    found["uncertain"] = settled.uncertain
    found["cost_usd"] = _costs(settled, prices)
    order = np.lexsort((found["line"], rows["file"]))
    starts = np.searchsorted(rows["file"][order], np.arange(len(parts) + 1)).tolist()
    found = found[order]
    totals = totals_of(found, starts, [shows_main_context(place_of(part.path).kind) for part in parts])
    names = settled.names.models.names
    return [
        (_packed(found[start:end], names), total)
        for start, end, total in zip(starts[:-1], starts[1:], totals, strict=True)
    ]


def _message_keys(
    rows: npt.NDArray[Any], models: Sequence[str], lines: npt.NDArray[np.int64], parts: Sequence[FilePart]
) -> npt.NDArray[np.int64]:
    """`SCANNED.message_key` of usage rows: of their place where they have no message.id, so that each stands for
    itself."""
    names = np.array([key_of(name.encode("utf-8", "surrogatepass")) for name in models], np.int64).view(np.uint64)
    keys = rows["message"]
    for further in (rows["request"], rows["instance"].astype(np.int64).view(np.uint64), names[rows["model"]]):
        keys = _mixed(keys) ^ further
    found: npt.NDArray[np.int64] = _mixed(keys).view(np.int64)
    for number in np.flatnonzero(rows["message"] == 0).tolist():
        place = f"{parts[rows['file'][number]].path}:{lines[number]}"
        found[number] = key_of(place.encode("utf-8", "surrogatepass"))
    return found


def _mixed(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Every bit of 64-bit keys spread over all bits, no two keys to one.

    The finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
    """
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def _packed(found: npt.NDArray[Any], names: Sequence[str]) -> ScannedResponses:
    """One file's responses with model numbers of its own."""
    numbers, found["model"] = np.unique(found["model"], return_inverse=True)
    if len(numbers) > 1:
        # By name, so that the rows do not depend on what was read before this file.
        order = sorted(range(len(numbers)), key=[names[number] for number in numbers.tolist()].__getitem__)
        numbers, found["model"] = numbers[order], np.argsort(order)[found["model"]]
    models = tuple(storable(names[number]) for number in numbers.tolist())
    return ScannedResponses(found[np.argsort(found["message_key"])].tobytes(), models)


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


def _costs(settled: Responses, prices: PriceSet) -> npt.NDArray[np.float64]:
    """USD of each response: the sum of its charges, NaN when one of them has no price."""
    priced = price_charges(settled, prices)
    response = settled.charges["response"]
    usd = np.bincount(response, priced.usd.sum(axis=1) + priced.web_usd, settled.count).astype(np.float64)
    usd[response[~priced.priced]] = np.nan
    return usd
