"""A library of two small sessions with known content, for searching; used on SQLite and on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from tests.generator import Result, SessionBuilder, Tool

KEY = "sk-ant-api03-" + "Zx9" * 12
URL = "postgresql://tide:Sturmflut1953@db.example/harbour"


def build(folder: Path) -> None:
    """Two sessions of different projects, models and tools, one of them with a compaction and an error."""
    first = SessionBuilder("2.1.217", seed=1, cwd="/home/someone/harbour", name="harbour", model="claude-sonnet-4-5")
    first.prompt("Please calibrate the tide gauge of the harbour")
    first.assistant(
        "I read the gauge file",
        tools=[Tool("Read", {"file_path": "/home/someone/harbour/gauge.toml"})],
        results=[f"station = 'Brouwershaven'\napi_key = '{KEY}'\ndatabase {URL}\nhöhe = 3 \ud83d \0 end"],
    )
    first.assistant("The offset of read_file is nine centimetres", thinking="Is the datum right?")
    first.write(folder / "-home-someone-harbour")
    second = SessionBuilder(
        "2.1.217", seed=2, cwd="/home/someone/bakery", name="bakery", model="claude-opus-4-6", start=1_790_000_000_000
    )
    second.prompt("Count the loaves, not the tide")
    second.assistant(
        tools=[Tool("Bash", {"command": "wc -l loaves.txt"})], results=[Result("no such file", is_error=True)]
    )
    second.compact("Summary: the loaves were counted")
    second.prompt("And the rolls?")
    second.assistant("Forty-two rolls")
    second.write(folder / "-home-someone-bakery")
