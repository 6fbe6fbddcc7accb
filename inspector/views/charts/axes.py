from __future__ import annotations

import pyqtgraph as pg


class TokenAxis(pg.AxisItem):  # type: ignore[misc]
    """Tokens as 50K, 1.2M."""

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """The labels of some ticks."""
        return [short_tokens(value * scale) for value in values]


class DollarAxis(pg.AxisItem):  # type: ignore[misc]
    """US dollars with as many digits as the distance of the ticks needs."""

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """The labels of some ticks."""
        step = spacing * scale
        digits = 0 if step >= 1 else 2 if step >= 0.01 else 4
        return [f"${value * scale:,.{digits}f}" for value in values]


class RoundAxis(pg.AxisItem):  # type: ignore[misc]
    """API rounds: whole numbers only."""

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """The labels of some ticks."""
        return [f"{value:,.0f}" if float(value).is_integer() and value >= 1 else "" for value in values]


def short_tokens(tokens: float) -> str:
    """Tokens with at most three digits: 950, 12.5K, 167K, 1M."""
    for limit, unit in ((1_000_000, "M"), (1_000, "K")):
        if abs(tokens) >= limit:
            return f"{tokens / limit:.3g}{unit}"
    return f"{tokens:.0f}"
