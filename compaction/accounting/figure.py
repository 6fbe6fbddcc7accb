from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Method(StrEnum):
    """How a figure came about (cli.md: token figures carry `method`)."""

    RECORDED = "recorded"
    """The client or the API wrote it down."""
    COMPUTED = "computed"
    """Follows exactly from recorded figures."""
    ESTIMATED = "estimated"
    """Comes out of an estimator; see the error."""
    UNKNOWN = "unknown"
    """Nothing in the input tells."""

    def and_(self, other: Method) -> Method:
        """The method of a sum of two figures: the weaker of both, and at best "computed"."""
        order = [Method.RECORDED, Method.COMPUTED, Method.ESTIMATED, Method.UNKNOWN]
        return order[max(order.index(self), order.index(other), 1)]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number together with how it came about.

    Attributes:
        value: the number (tokens, USD, seconds: its place says which), or None when it is unknown.
        method: how it came about.
        error: the expected absolute error in the same unit, or None when no error is known (or there is none).
        source: the rule or record it rests on, for tooltips.
    """

    value: float | None
    method: Method
    error: float | None = None
    source: str = ""

    def __add__(self, other: Figure) -> Figure:
        if self.value is None or other.value is None:
            return Figure(None, Method.UNKNOWN)
        error = None
        if self.error is not None or other.error is not None:
            error = (self.error or 0.0) + (other.error or 0.0)
        return Figure(self.value + other.value, self.method.and_(other.method), error)

    def text(self, unit: str = "") -> str:
        """The figure for a tooltip, such as "1,204 tokens (estimated, ± 80)"."""
        if self.value is None:
            return "unknown"
        value = _digits(self.value)
        margin = f", ± {_digits(self.error)}" if self.error is not None else ""
        return f"{value}{' ' + unit if unit else ''} ({self.method}{margin})"


UNKNOWN = Figure(None, Method.UNKNOWN)


def _digits(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1000 else f"{value:,.4f}"
