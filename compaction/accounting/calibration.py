from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_FEWEST = 4
"""Rounds needed before a session's own growth corrects the estimator."""
_BOUNDS = (0.5, 2.0)
_SMALLEST_GROWTH = 200
"""Growth below this many tokens says more about framing than about the estimator (transcript-format.md 11)."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The factor that brings estimates to a session's recorded growth, and the error it leaves.

    Attributes:
        factor: recorded tokens of one estimated token.
        rounds: rounds it rests on; below 4 the factor is 1.
        error: median relative error on held-out rounds: the even rounds give the factor, the odd ones the error, and
            the other way round; None when there are too few.
        error_p90: nine in ten held-out rounds are at most this far off.
    """

    factor: float
    rounds: int
    error: float | None
    error_p90: float | None


UNCALIBRATED = Calibration(1.0, 0, None, None)


def calibrate(estimated: Floats, recorded: Floats) -> Calibration:
    """Fit one factor to rounds whose growth is known exactly, and measure what it misses on rounds held out."""
    usable = (estimated > 0) & (recorded >= _SMALLEST_GROWTH)
    estimated, recorded = estimated[usable], recorded[usable]
    if len(estimated) < _FEWEST:
        return Calibration(1.0, len(estimated), None, None)
    errors = held_out_errors(estimated, recorded)
    return Calibration(
        _factor(estimated, recorded), len(estimated), float(np.median(errors)), float(np.percentile(errors, 90))
    )


def held_out_errors(estimated: Floats, recorded: Floats) -> Floats:
    """Relative errors of each half of the rounds under the factor of the other half."""
    even = np.arange(len(estimated)) % 2 == 0
    found = []
    for fitted in (even, ~even):
        factor = _factor(estimated[fitted], recorded[fitted])
        found.append(np.abs(estimated[~fitted] * factor - recorded[~fitted]) / recorded[~fitted])
    return np.concatenate(found)


def _factor(estimated: Floats, recorded: Floats) -> float:
    """The median ratio: one round with unseen content must not move it. Bounded: beyond, something else is wrong."""
    if not len(estimated):
        return 1.0
    return float(np.clip(np.median(recorded / estimated), *_BOUNDS))
