"""The invented project of the sample session: its files before the session starts, and what is drawn of it."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from tests.generator.picture import png

README = """\
# Tide tables

High and low water for a handful of harbours, from harmonic constants.

    python -m tides Brest 2026-05-01

The constants are in `data/constants.toml`, hourly reference heights of the harbour offices in `data/reference/`.
Heights are metres above chart datum. Times are UTC unless said otherwise.
"""

CONSTANTS = """\
# Amplitude in metres, phase lag in degrees (Greenwich).

[Brest]
mean_level = 4.13
M2 = { amplitude = 2.05, phase = 137.9 }
S2 = { amplitude = 0.75, phase = 178.1 }
N2 = { amplitude = 0.42, phase = 117.8 }
K1 = { amplitude = 0.06, phase = 90.6 }
O1 = { amplitude = 0.07, phase = 337.7 }

[Saint-Malo]
mean_level = 6.75
M2 = { amplitude = 3.75, phase = 207.4 }
S2 = { amplitude = 1.46, phase = 258.9 }
N2 = { amplitude = 0.70, phase = 188.1 }
K1 = { amplitude = 0.09, phase = 113.0 }
O1 = { amplitude = 0.08, phase = 5.5 }

[Le Conquet]
mean_level = 3.94
M2 = { amplitude = 1.96, phase = 133.7 }
S2 = { amplitude = 0.71, phase = 173.9 }
N2 = { amplitude = 0.40, phase = 113.4 }
K1 = { amplitude = 0.06, phase = 88.2 }
O1 = { amplitude = 0.07, phase = 335.8 }
"""

PYPROJECT = """\
[project]
name = "tide-tables"
version = "0.1.0"
requires-python = ">=3.11"

[tool.pytest.ini_options]
testpaths = ["tests"]
"""

HARBOURS: dict[str, tuple[float, dict[str, tuple[float, float]]]] = {
    "brest": (4.13, {"M2": (2.05, 108.9), "S2": (0.75, 148.1), "N2": (0.42, 89.4), "K1": (0.06, 75.6)}),
    "saint-malo": (6.75, {"M2": (3.75, 178.4), "S2": (1.46, 228.9), "N2": (0.70, 159.7), "K1": (0.09, 98.0)}),
}

SPEEDS = {"M2": 28.9841042, "S2": 30.0, "N2": 28.4397295, "K1": 15.0410686}
"""Degrees an hour."""


def height(harbour: str, hours: float) -> float:
    """Metres above chart datum, `hours` after 2026-01-01 00:00 UTC."""
    mean, parts = HARBOURS[harbour]
    return mean + sum(
        amplitude * math.cos(math.radians(SPEEDS[name] * hours - phase)) for name, (amplitude, phase) in parts.items()
    )


def reference(harbour: str, month: int, *, step: int = 1) -> str:
    """A month of reference heights as the harbour office publishes them, one row per `step` hours."""
    start = datetime(2026, month, 1)
    base = (start - datetime(2026, 1, 1)).total_seconds() / 3600
    days = 28 if month == 2 else 30 if month in (4, 6, 9, 11) else 31
    rows = ["time_utc,height_m"]
    for hour in range(0, days * 24, step):
        moment = start + timedelta(hours=hour)
        rows.append(f"{moment:%Y-%m-%dT%H:%M},{height(harbour, base + hour):.2f}")
    return "\n".join(rows) + "\n"


def turning_points(harbour: str, day: datetime) -> list[tuple[datetime, float]]:
    """High and low waters of a day on a grid of six minutes: (UTC, metres above chart datum)."""
    base = (day - datetime(2026, 1, 1)).total_seconds() / 3600
    levels = [height(harbour, base + tenth / 10) for tenth in range(-1, 241)]
    return [
        (day + timedelta(minutes=6 * (n - 1)), levels[n])
        for n in range(1, 241)
        if (levels[n] - levels[n - 1]) * (levels[n + 1] - levels[n]) <= 0
    ]


def day_output(harbour: str, day: datetime, *, zone_hours: int = 0) -> str:
    """What the finished program prints for a day."""
    return "".join(
        f"{moment + timedelta(hours=zone_hours):%H:%M}  {level:5.2f} m\n"
        for moment, level in turning_points(harbour, day)
    )


def page_output(harbour: str, name: str, month: int, days: int) -> str:
    """The first days of the finished program's monthly page."""
    lines = [f"{name}, {month:02}/2026  (UTC, metres above chart datum)", ""]
    for day in range(1, days + 1):
        points = turning_points(harbour, datetime(2026, month, day))
        lines.append(f"{day:2}   " + "   ".join(f"{moment:%H:%M} {level:5.2f}" for moment, level in points))
    return "\n".join(lines) + "\n"


def project() -> dict[str, str]:
    """Every file before the session starts, by path relative to the project."""
    files = {"README.md": README, "data/constants.toml": CONSTANTS, "pyproject.toml": PYPROJECT}
    for harbour in HARBOURS:
        for month in range(1, 13):
            files[f"data/reference/{harbour}-2026-{month:02}.csv"] = reference(harbour, month, step=2)
    return files


def almanac_chart(width: int = 240, height_pixels: int = 90) -> bytes:
    """A PNG of one spring day at Brest: the curve of the almanac that the person holds against the program's."""
    water, sky, line = b"\xbf\xdd\xee", b"\xfb\xf8\xf0", b"\x1f\x4e\x79"
    levels = [height("brest", 24 * 78 + 24 * x / width) for x in range(width)]
    tops = [round((height_pixels - 1) * (1 - level / 8.4)) for level in levels]
    rows = [
        b"".join(line if abs(y - top) <= 1 else water if y > top else sky for top in tops) for y in range(height_pixels)
    ]
    return png(width, height_pixels, rows=rows)
