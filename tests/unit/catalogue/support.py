"""What the catalogue's tests share: a small library of generated sessions, and a picture of a catalogue's content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from compaction.catalogue.database import Catalogue
from compaction.catalogue.tables import PASSAGE, RESPONSE, TRANSCRIPT
from tests.generator import FAULTS, Session

_CHANGING = {"id", "folder_id", "parent_id", "mtime_ns", "transcript_id"}


def every_fault(*quick: str) -> list[Any]:
    """Parameters for every fault of the generator; those not named are for the slow run."""
    names = sorted(set(FAULTS) - {"huge_line"})
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in names]


def make_library(folder: Path, sessions: int = 4, **options: Any) -> list[Path]:
    """Sessions of several generations under `folder/projects/-p/`; the paths of the main files."""
    versions = ("1.0.128", "2.0.76", "2.1.12", "2.1.217")
    project = folder / "projects" / "-home-someone-work"
    settings = {"rounds": 12, **options}
    return [
        Session(seed=number, version=versions[number % len(versions)], **settings).write(project / f"s{number}.jsonl")
        for number in range(sessions)
    ]


def content(catalogue: Catalogue) -> dict[str, list[dict[str, Any]]]:
    """Everything that the catalogue says, without row numbers and file times, in an order of its own."""
    with catalogue.reading() as connection:
        paths = dict(connection.execute(sa.select(TRANSCRIPT.c.id, TRANSCRIPT.c.path)).all())
        return {
            "transcript": _plain(connection, TRANSCRIPT, paths, {"path"}),
            "response": _plain(connection, RESPONSE, paths, {"line", "message_key"}),
            "passage": _plain(connection, PASSAGE, paths, {"line", "text"}),
        }


def _plain(connection: sa.Connection, table: sa.Table, paths: dict[int, str], order: set[str]) -> list[dict[str, Any]]:
    rows = []
    for row in connection.execute(sa.select(table)).mappings():
        values = {name: value for name, value in row.items() if name not in _CHANGING}
        for link in ("transcript_id", "parent_id"):
            if link in row:
                values[link] = paths.get(row[link])
        rows.append(values)
    return sorted(rows, key=lambda values: [str(values.get("transcript_id")), *(str(values[n]) for n in sorted(order))])
