"""The program that the agent of the sample session writes, file by file."""

from __future__ import annotations

CONSTANTS_PY = '''\
"""Harmonic constants of the harbours, as they stand in data/constants.toml."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

SPEEDS = {"M2": 28.9841042, "S2": 30.0, "N2": 28.4397295, "K1": 15.0410686, "O1": 13.9430356}  # degrees an hour


@dataclass(frozen=True)
class Constituent:
    name: str
    amplitude: float  # metres
    phase: float  # degrees behind Greenwich

    @property
    def speed(self) -> float:
        return SPEEDS[self.name]


@dataclass(frozen=True)
class Harbour:
    name: str
    mean_level: float  # metres above chart datum
    constituents: tuple[Constituent, ...]


def load(path: Path) -> dict[str, Harbour]:
    harbours = {}
    for name, entry in tomllib.loads(path.read_text()).items():
        parts = tuple(
            Constituent(key, value["amplitude"], value["phase"])
            for key, value in entry.items()
            if key != "mean_level"
        )
        harbours[name] = Harbour(name, entry["mean_level"], parts)
    return harbours
'''

TEST_CONSTANTS_PY = """\
from pathlib import Path

import pytest

from tides.constants import load

DATA = Path(__file__).parents[1] / "data" / "constants.toml"


def test_brest_has_five_constituents():
    assert len(load(DATA)["Brest"].constituents) == 5


def test_unknown_constituent_is_named(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text("[X]\\nmean_level = 1.0\\nQ9 = { amplitude = 1.0, phase = 0.0 }\\n")
    with pytest.raises(ValueError, match="Q9"):
        load(file)
"""

PREDICT_PY = '''\
"""Heights of the tide at any time, and the turning points between them."""

import math
from datetime import datetime, timedelta

from tides.constants import Harbour

EPOCH = datetime(2026, 1, 1)


def height(harbour: Harbour, when: datetime) -> float:
    """Metres above chart datum at `when` (UTC)."""
    hours = (when - EPOCH).total_seconds() / 3600
    return harbour.mean_level + sum(
        part.amplitude * math.cos(math.radians(part.speed * hours - part.phase)) for part in harbour.constituents
    )


def turning_points(harbour: Harbour, day: datetime) -> list[tuple[datetime, float]]:
    """High and low waters of a day: sampled every six minutes."""
    moments = [day + timedelta(minutes=6 * n) for n in range(-1, 242)]
    levels = [height(harbour, moment) for moment in moments]
    found = []
    for before, here, after, moment in zip(levels, levels[1:], levels[2:], moments[1:]):
        if (here - before) * (after - here) <= 0:
            found.append((moment, here))
    return found
'''

TEST_PREDICT_PY = """\
import csv
from datetime import datetime
from pathlib import Path

import pytest

from tides.constants import load
from tides.predict import height

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("month", range(1, 13))
def test_heights_agree_with_the_reference_of_brest(month):
    brest = load(DATA / "constants.toml")["Brest"]
    with (DATA / "reference" / f"brest-2026-{month:02}.csv").open() as file:
        for row in csv.DictReader(file):
            when = datetime.fromisoformat(row["time_utc"])
            assert height(brest, when) == pytest.approx(float(row["height_m"]), abs=0.10)
"""

CLI_PY = '''\
"""python -m tides HARBOUR DAY"""

import argparse
import sys
from datetime import datetime
from pathlib import Path

from tides.constants import load
from tides.predict import turning_points

DATA = Path(__file__).parents[1] / "data" / "constants.toml"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tides", description="High and low water of a day.")
    parser.add_argument("harbour")
    parser.add_argument("day", type=datetime.fromisoformat)
    args = parser.parse_args(arguments)
    harbours = load(DATA)
    if args.harbour not in harbours:
        print(f"tides: no harbour {args.harbour!r}; known: {', '.join(sorted(harbours))}", file=sys.stderr)
        return 2
    for moment, level in turning_points(harbours[args.harbour], args.day):
        print(f"{moment:%H:%M}  {level:5.2f} m")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
'''

PAGE_PY = '''\
"""One page a month, to print and hang in the wheelhouse."""

from calendar import monthrange
from datetime import datetime

from tides.constants import Harbour
from tides.predict import turning_points


def month_page(harbour: Harbour, year: int, month: int) -> str:
    days = monthrange(year, month)[1]
    lines = [f"{harbour.name}, {month:02}/{year}  (UTC, metres above chart datum)", ""]
    for day in range(1, days + 1):
        points = turning_points(harbour, datetime(year, month, day))
        cells = "   ".join(f"{moment:%H:%M} {level:5.2f}" for moment, level in points)
        lines.append(f"{day:2}   {cells}")
    return "\\n".join(lines) + "\\n"
'''

TEST_PAGE_PY = """\
from pathlib import Path

from tides.constants import load
from tides.page import month_page

DATA = Path(__file__).parents[1] / "data" / "constants.toml"


def test_a_page_has_one_line_a_day():
    page = month_page(load(DATA)["Brest"], 2026, 2)
    assert len(page.splitlines()) == 2 + 28
"""
