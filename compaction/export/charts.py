"""Charts as SVG text, drawn without a library: numbers in, shapes out, every text escaped."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.float64]

COLOURS = {
    "system_and_tools": "#bbbbbb",
    "summary": "#aa3377",
    "user_text": "#4477aa",
    "assistant_text": "#66ccee",
    "thinking": "#228833",
    "tool_use": "#ccbb44",
    "tool_result": "#ee6677",
    "attachments": "#885500",
    "images": "#ee99aa",
}
"""A colour-blind-safe palette (Tol's bright scheme with two more) by category key."""

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 960, 320, 70, 16, 14, 46


def stacked_context(
    layers: dict[str, Sequence[int]], compactions: Sequence[tuple[int, str]] = (), threshold: int | None = None
) -> str:
    """Context tokens over API rounds, stacked by category; dashed lines at compactions and at the threshold.

    Args:
        layers: tokens per round by category key, bottom first, all of one length.
        compactions: (last round before it, kind).
    """
    rounds = len(next(iter(layers.values()), ()))
    if not rounds:
        return ""
    totals = np.zeros(rounds)
    stacks = []
    for key, values in layers.items():
        lower = totals.copy()
        totals = totals + np.asarray(values, dtype=float)
        stacks.append((key, lower, totals.copy()))
    top = max(float(totals.max()), float(threshold or 0), 1.0) * 1.05
    shapes = [_area(key, lower, upper, rounds, top) for key, lower, upper in stacks if upper.max() > lower.min()]
    shapes += [_grid(top)]
    for number, kind in compactions:
        x = _x(number, rounds)
        shapes.append(
            f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_HEIGHT - _BOTTOM}" class="mark">'
            f"<title>{escape(kind)} after round {number}</title></line>"
        )
    if threshold:
        y = _y(threshold, top)
        shapes.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" class="limit"/>')
        shapes.append(
            f'<text x="{_WIDTH - _RIGHT}" y="{y - 4:.1f}" text-anchor="end">auto-compact {threshold:,}</text>'
        )
    shapes.append(f'<text x="{_LEFT}" y="{_HEIGHT - 26}">round 1</text>')
    shapes.append(f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 26}" text-anchor="end">round {rounds:,}</text>')
    return _svg("Context tokens by API round", shapes, _legend([key for key, values in layers.items() if any(values)]))


def compared_contexts(
    columns: Sequence[tuple[str, Mapping[str, int]]], thresholds: Sequence[tuple[str, int]] = ()
) -> str:
    """One stacked bar of context tokens a column, on one scale; dashed lines at the thresholds in reach.

    Args:
        columns: (title, tokens by category key).
        thresholds: (name, tokens).
    """
    if not columns:
        return ""
    largest = max([sum(amounts.values()) for _, amounts in columns] + [1])
    lines = [(name, tokens) for name, tokens in thresholds if 0 < tokens <= largest * 4]
    top = max([largest, *(tokens for _, tokens in lines)]) * 1.08
    slot = (_WIDTH - _LEFT - _RIGHT) / len(columns)
    shapes = [_grid(top)]
    for number, (title, amounts) in enumerate(columns):
        left, below = _LEFT + slot * (number + 0.15), 0
        for key, amount in amounts.items():
            upper, lower = _y(below + amount, top), _y(below, top)
            below += amount
            if lower - upper > 0.05:
                shapes.append(
                    f'<rect x="{left:.1f}" y="{upper:.1f}" width="{slot * 0.7:.1f}" height="{lower - upper:.1f}" '
                    f'fill="{COLOURS.get(key, "#888888")}"><title>{escape(title)}: {escape(key.replace("_", " "))} '
                    f"{amount:,}</title></rect>"
                )
        middle = left + slot * 0.35
        shapes.append(f'<text x="{middle:.1f}" y="{_y(below, top) - 4:.1f}" text-anchor="middle">{below:,}</text>')
        for line, words in enumerate(textwrap.wrap(title, max(6, int(slot / 6.8)))[:2]):
            shapes.append(
                f'<text x="{middle:.1f}" y="{_HEIGHT - 34 + 11 * line}" text-anchor="middle">{escape(words)}</text>'
            )
    for name, tokens in lines:
        y = _y(tokens, top)
        shapes.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" class="limit"/>')
        shapes.append(f'<text x="{_WIDTH - _RIGHT}" y="{y - 4:.1f}" text-anchor="end">{escape(name)} {tokens:,}</text>')
    used = [key for key in COLOURS if any(amounts.get(key) for _, amounts in columns)]
    return _svg("Context tokens by strategy", shapes, _legend(used))


def _area(key: str, lower: Tokens, upper: Tokens, rounds: int, top: float) -> str:
    chosen = _thinned(rounds)
    up = [f"{_x(n + 1, rounds):.1f},{_y(float(upper[n]), top):.1f}" for n in chosen]
    down = [f"{_x(n + 1, rounds):.1f},{_y(float(lower[n]), top):.1f}" for n in reversed(chosen)]
    title = f"<title>{escape(key)}</title>"
    return f'<polygon points="{" ".join(up + down)}" fill="{COLOURS.get(key, "#888888")}">{title}</polygon>'


def _thinned(rounds: int) -> list[int]:
    """At most about two points a pixel column: more would only make the file larger."""
    most = 2 * (_WIDTH - _LEFT - _RIGHT)
    if rounds <= most:
        return list(range(rounds))
    return sorted({round(x) for x in np.linspace(0, rounds - 1, most)})


def _x(number: int, rounds: int) -> float:
    span = _WIDTH - _LEFT - _RIGHT
    return _LEFT + span * (number - 1) / max(1, rounds - 1)


def _y(value: float, top: float) -> float:
    return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - value / top)


def _grid(top: float) -> str:
    step = _nice_step(top)
    lines = []
    for value in range(0, int(top) + 1, step):
        y = _y(value, top)
        lines.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" class="grid"/>')
        lines.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,}</text>')
    return "".join(lines)


def _nice_step(top: float) -> int:
    steps: list[int] = [factor * int(10**power) for power in range(8) for factor in (1, 2, 5)]
    return next((step for step in steps if top / step <= 6), steps[-1])


def _legend(keys: Sequence[str]) -> str:
    items = []
    x = float(_LEFT)
    for key in keys:
        label = key.replace("_", " ")
        items.append(
            f'<rect x="{x:.0f}" y="{_HEIGHT - 16}" width="10" height="10" fill="{COLOURS.get(key, "#888888")}"/>'
        )
        items.append(f'<text x="{x + 14:.0f}" y="{_HEIGHT - 7}">{escape(label)}</text>')
        x += 26 + 6.6 * len(label)
    return "".join(items)


def _svg(title: str, shapes: Sequence[str], legend: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(shapes)}{legend}</svg>"
    )
