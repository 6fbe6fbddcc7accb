"""What the responses of a file come to together."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from compaction.catalogue.entries import BUCKETS

SPARK_POINTS = 48
"""Points of a row's context line: more than its pixels would be waste."""


class FileTotals(NamedTuple):
    """The columns of a transcript's row that its responses decide, named as there."""

    responses: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_5m_tokens: int = 0
    cache_write_1h_tokens: int = 0
    cost_usd: float = 0.0
    unpriced_responses: int = 0
    uncertain_responses: int = 0
    context_tokens: int | None = None
    context_series: bytes = b""


def shows_main_context(kind: str) -> bool:
    """Whether a file of this kind is a session, whose context is that of its main chain (not of sidechains in it)."""
    return kind in ("main", "other")


def totals_of(rows: npt.NDArray[Any], starts: Sequence[int], mains: Sequence[bool]) -> list[FileTotals]:
    """The totals of some files whose responses stand one after the other, in file order.

    The cost is rounded once, after adding, so that it does not depend on the steps in which a file was read.

    Args:
        rows: structured array with the fields of `responses.SCANNED` that totals are made of.
        starts: where each file's responses begin, and the end of the last.
        mains: for each file `shows_main_context` of its kind.
    """
    sums = {bucket: np.diff(_before(rows[bucket], starts)).tolist() for bucket in BUCKETS}
    uncertain = np.diff(_before(rows["uncertain"], starts)).tolist()
    unpriced = np.isnan(rows["cost_usd"])
    missing = np.diff(_before(unpriced, starts)).tolist()
    costs = np.where(unpriced, 0.0, rows["cost_usd"]).tolist()
    of_main = np.repeat(np.array(mains, bool), np.diff(starts))
    shown = (rows["context_tokens"] != 0) & ~(of_main & rows["sidechain"])
    contexts = rows["context_tokens"][shown]
    bounds = _before(shown, starts).tolist()
    return [
        FileTotals(
            responses=starts[n + 1] - starts[n],
            cost_usd=fsum(costs[starts[n] : starts[n + 1]]),
            unpriced_responses=missing[n],
            uncertain_responses=uncertain[n],
            context_tokens=int(contexts[bounds[n + 1] - 1]) if bounds[n + 1] > bounds[n] else None,
            context_series=context_series(contexts[bounds[n] : bounds[n + 1]]),
            **{bucket: sums[bucket][n] for bucket in BUCKETS},
        )
        for n in range(len(mains))
    ]


def _before(values: npt.NDArray[Any], starts: Sequence[int]) -> npt.NDArray[np.int64]:
    """The sum of all values before each start."""
    return np.concatenate(([0], np.cumsum(values, dtype=np.int64)))[list(starts)]


def context_series(contexts: npt.ArrayLike) -> bytes:
    """At most `SPARK_POINTS` maxima of equal shares of a session's context sizes, as little-endian uint32.

    >>> read_series(context_series([1, 5, 2]))
    [1, 5, 2]
    """
    values = np.asarray(contexts, np.int64)
    points = min(len(values), SPARK_POINTS)
    if not points:
        return b""
    maxima = np.maximum.reduceat(values, np.arange(points) * len(values) // points)
    return np.minimum(maxima, 2**32 - 1).astype("<u4").tobytes()


def read_series(data: bytes) -> list[int]:
    """The context sizes (tokens) of a stored series."""
    found: list[int] = np.frombuffer(data[: len(data) // 4 * 4], "<u4").tolist()
    return found
