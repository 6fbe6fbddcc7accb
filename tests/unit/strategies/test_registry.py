"""The registry: every strategy has a title, documented settings with sources, a section of docs, and tests."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from compaction.errors import UsageError
from compaction.strategies.microcompact_time import MicrocompactTimeSettings
from compaction.strategies.registry import STRATEGIES, Strategy, strategy
from compaction.strategies.settings import make_settings, settings_json, specs_of
from tests.support import ROOT

DOC = ROOT / "resources" / "docs" / "strategies.md"

EXPECTED = (
    "microcompact-time",
    "microcompact-cached",
    "api-clear-tool-uses",
    "api-clear-thinking",
    "api-compact",
    "snip",
    "context-collapse",
    "session-memory",
    "auto-compact",
    "partial-from",
    "partial-up-to",
)


def test_issue_5_every_strategy_is_registered_under_its_name() -> None:
    assert tuple(STRATEGIES) == EXPECTED
    assert all(name == chosen.name for name, chosen in STRATEGIES.items())


@pytest.mark.parametrize("chosen", STRATEGIES.values(), ids=list(STRATEGIES))
def test_every_strategy_has_title_settings_with_sources_docs_and_tests(chosen: Strategy) -> None:
    assert chosen.title
    assert chosen.preview.__doc__
    assert type(chosen).__doc__
    document = DOC.read_text(encoding="utf-8")
    assert f"## {chosen.title}\n\n`{chosen.name}`" in document
    tests = "".join(p.read_text(encoding="utf-8") for p in Path(__file__).parent.glob("test_*.py"))
    assert f'"{chosen.name}"' in tests
    for spec in specs_of(chosen.settings_type):
        assert spec.help, spec.key
        assert spec.source, spec.key
        assert f"| `{spec.key}` |" in document
        if spec.type in ("integer", "number"):
            assert spec.minimum is not None, spec.key
            assert spec.unit, spec.key


@pytest.mark.parametrize("chosen", STRATEGIES.values(), ids=list(STRATEGIES))
def test_settings_are_frozen_typed_data_that_round_trips_through_json(chosen: Strategy) -> None:
    settings = chosen.settings_type()
    assert dataclasses.fields(settings)
    with pytest.raises((dataclasses.FrozenInstanceError, AttributeError, TypeError)):
        settings.enabled = True
    assert make_settings(chosen.settings_type, settings_json(settings), chosen.name) == settings


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"keep": "3"}, "no setting 'keep'"),
        ({"keep_recent": "many"}, "not a number"),
        ({"keep_recent": "2.5"}, "whole number"),
        ({"keep_recent": "-1"}, "out of range"),
        ({"enabled": "maybe"}, "yes or no"),
        ({"compactable_tools": "[1]"}, "list of names"),
        ({"compactable_tools": "[Read"}, "list of names"),
        ({"gap_threshold_minutes": "nan"}, "not a number"),
    ],
)
def test_bad_settings_are_named_with_their_range(values: dict[str, str], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        make_settings(MicrocompactTimeSettings, values, "microcompact-time")


def test_texts_from_the_command_line_become_typed_values() -> None:
    given = {"enabled": "yes", "keep_recent": "1_0", "gap_threshold_minutes": "0.5", "compactable_tools": "Read, Bash"}
    assert make_settings(MicrocompactTimeSettings, given) == MicrocompactTimeSettings(True, 0.5, 10, ("Read", "Bash"))
    listed = make_settings(MicrocompactTimeSettings, {"compactable_tools": '["Read"]'})
    assert listed.compactable_tools == ("Read",)


def test_an_unknown_strategy_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="no strategy 'magic'") as caught:
        strategy("magic")
    assert "auto-compact" in caught.value.hint
