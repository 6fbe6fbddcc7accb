"""The error of the token estimator on recorded growth, for resources/docs/accounting.md.

    python -m tests.bench.estimator_error [FOLDER]        default: ../shared/corpus

For each session the even rounds calibrate and the odd ones are predicted, and the other way round. The growth of a
round is recorded; what is predicted is the estimate of everything that was added in it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from compaction.accounting.calibration import held_out_errors
from compaction.accounting.context import ContextSeries, context_series
from compaction.accounting.estimate import rough_tokens_of_block
from compaction.accounting.models import tokenizer_family
from compaction.conversation import build_conversation
from compaction.transcript import open_transcript
from tests.support import SHARED

Errors = list[float]


def rounds_of(series: ContextSeries) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Recorded growth, estimate and characters / 4 of each round whose growth is plain and at least 200 tokens."""
    u, count = series.usage, series.rounds
    if count < 2:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    growth = (u.context[1:] - u.context[:-1]).astype(float)
    plain = (series.predecessor[1:] == np.arange(count - 1)) & (u.context[:-1] > 0) & (growth >= 200)
    plain &= ~series._hides[:-1]
    estimated = (series._assistant + series._user)[1:count].sum(axis=1)
    return growth[plain], estimated[plain], rough(series)[plain]


def rough(series: ContextSeries) -> np.ndarray:
    c = series.conversation
    t = c.transcript
    total = np.zeros(c.round_count + 1)
    for record in np.flatnonzero(c.main).tolist():
        total[c.round_of[record]] += sum(rough_tokens_of_block(t.block(b)) for b in t.blocks_of(record))
    return total[1:-1] if c.round_count else total


def main(folder: Path) -> None:
    table: dict[tuple[str, str], Errors] = {}
    for path in sorted(folder.rglob("*.jsonl")):
        series = context_series(build_conversation(open_transcript(path)))
        growth, estimated, quarter = rounds_of(series)
        usable = estimated > 0
        growth, estimated, quarter = growth[usable], estimated[usable], quarter[usable]
        if len(growth) < 4:
            continue
        c = series.conversation
        family = tokenizer_family(c.transcript.model(int(c.round_first_records[-1])))
        for name, errors in (
            ("characters / 4", np.abs(quarter - growth) / growth),
            ("character classes", np.abs(estimated - growth) / growth),
            ("character classes, calibrated, held out", held_out_errors(estimated, growth)),
        ):
            table.setdefault((family, name), []).extend(errors.tolist())
    for (family, name), errors in sorted(table.items()):
        within = np.mean(np.array(errors) <= 0.2)
        print(f"{family:4} {name:42} n {len(errors):5}  median {np.median(errors):6.1%}  "
              f"p90 {np.percentile(errors, 90):6.1%}  within 20 % {within:5.0%}")  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else SHARED / "corpus")
