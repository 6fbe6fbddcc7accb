from __future__ import annotations

import pytest

from compaction.accounting.profiles import model_limits, profile_for, profiles
from compaction.accounting.settings import SETTINGS, WindowSettings
from compaction.accounting.suppression import WarningSuppression
from compaction.accounting.thresholds import thresholds_for, warning_state
from compaction.errors import UsageError

DESIGN = profile_for("")
MODEL_200K = "claude-sonnet-4-5-20250929"


def test_exercise_14_1_thresholds_of_a_200k_window() -> None:
    t = thresholds_for(DESIGN, MODEL_200K)
    assert (t.window, t.effective_window, t.auto_compact_threshold, t.blocking_limit) == (
        200_000, 180_000, 167_000, 177_000,
    )  # fmt: skip


def test_exercise_14_1_percent_override_of_20_gives_36k() -> None:
    settings = WindowSettings.from_environment({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "20"})
    assert thresholds_for(DESIGN, MODEL_200K, settings).auto_compact_threshold == 36_000


def test_exercise_14_1_window_override_of_50000_gives_30k_and_17k() -> None:
    settings = WindowSettings.from_environment({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "50000"})
    t = thresholds_for(DESIGN, MODEL_200K, settings)
    assert (t.effective_window, t.auto_compact_threshold) == (30_000, 17_000)


@pytest.mark.parametrize("value", ["0", "-5", "101", "abc", "", "nan"])
def test_percent_override_outside_0_to_100_is_ignored_section_1(value: str) -> None:
    settings = WindowSettings.from_environment({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": value})
    assert thresholds_for(DESIGN, MODEL_200K, settings).auto_compact_threshold == 167_000


def test_percent_override_can_only_lower_the_threshold_section_1() -> None:
    settings = WindowSettings(auto_compact_percent=100)
    assert thresholds_for(DESIGN, MODEL_200K, settings).auto_compact_threshold == 167_000


def test_percent_override_is_floored_section_1() -> None:
    settings = WindowSettings(auto_compact_percent=33.3333)
    assert thresholds_for(DESIGN, MODEL_200K, settings).auto_compact_threshold == 59_999


def test_warning_lines_follow_the_calculation_not_the_prose_section_1() -> None:
    on = thresholds_for(DESIGN, MODEL_200K)
    off = thresholds_for(DESIGN, MODEL_200K, WindowSettings(disable_auto_compact=True))
    assert (on.warning, on.error) == (147_000, 147_000)
    assert (off.warning, off.error) == (160_000, 160_000)
    assert "160,000" in on.formulas()["warning"]


@pytest.mark.parametrize(
    ("tokens", "state", "left"),
    [
        (0, "ok", 100), (146_999, "ok", 12), (147_000, "error", 12), (166_999, "error", 0),
        (167_000, "auto_compact", 0), (176_999, "auto_compact", 0), (177_000, "blocking", 0), (400_000, "blocking", 0),
    ],
)  # fmt: skip
def test_warning_state_at_each_line_section_1(tokens: int, state: str, left: int) -> None:
    result = warning_state(tokens, thresholds_for(DESIGN, MODEL_200K))
    assert (result.state, result.percent_left) == (state, left)


def test_without_auto_compact_nothing_is_above_it_section_1() -> None:
    t = thresholds_for(DESIGN, MODEL_200K, WindowSettings(disable_compact=True))
    result = warning_state(176_000, t)
    assert not result.above_auto_compact
    assert (result.state, result.percent_left) == ("error", 2)


def test_blocking_limit_override_section_1() -> None:
    settings = WindowSettings.from_environment({"CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE": "90000"})
    t = thresholds_for(DESIGN, MODEL_200K, settings)
    assert t.blocking_limit == 90_000
    assert warning_state(90_000, t).at_blocking_limit
    ignored = WindowSettings.from_environment({"CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE": "-1"})
    assert thresholds_for(DESIGN, MODEL_200K, ignored).blocking_limit == 177_000


@pytest.mark.parametrize(
    ("percent", "band"),
    [(59.9, "none"), (60, "microcompact"), (79.9, "microcompact"), (80, "autocompact"), (92, "autocompact"),
     (92.1, "blocking_compact")],
)  # fmt: skip
def test_budget_bands_60_80_92_section_1(percent: float, band: str) -> None:
    assert warning_state(int(percent * 2000), thresholds_for(DESIGN, MODEL_200K)).budget_band == band


@pytest.mark.parametrize(
    ("version", "model", "threshold"),
    [
        ("1.0.128", "claude-sonnet-4-20250514", 155_000),
        ("2.0.76", "claude-opus-4-5-20251101", 155_000),
        ("2.1.22", "claude-opus-4-5-20251101", 155_000),
        ("2.1.25", "claude-opus-4-5-20251101", 167_000),
        ("2.1.50", "claude-opus-4-6", 167_000),
        ("2.1.332", "claude-sonnet-4-6", 167_000),
        ("2.1.332", "claude-opus-5-5", 967_000),
    ],
)
def test_client_profiles_fire_where_the_clients_were_measured_to_clients_md(
    version: str, model: str, threshold: int
) -> None:
    assert thresholds_for(profile_for(version), model).auto_compact_threshold == threshold


def test_newest_client_raises_the_window_override_to_100k_clients_md() -> None:
    profile = profile_for("2.1.332")
    settings = WindowSettings.from_environment({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "60000"})
    assert thresholds_for(profile, "claude-sonnet-4-6", settings).auto_compact_threshold == 67_000
    both = WindowSettings.from_environment(
        {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "60000", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "30"}
    )
    assert thresholds_for(profile, "claude-sonnet-4-6", both).auto_compact_threshold == 24_000


def test_a_recorded_context_beyond_the_window_proves_the_larger_window() -> None:
    t = thresholds_for(profile_for("2.1.40"), "claude-opus-4-6", largest_recorded=310_000)
    assert t.window == 1_000_000
    assert "310,000" in t.window_source


def test_long_context_suffix_and_its_switch_prices_md_api_4_2() -> None:
    profile = profile_for("2.1.332")
    assert thresholds_for(profile, "claude-opus-4-6[1m]").window == 1_000_000
    held = thresholds_for(profile, "claude-opus-4-6[1m]", WindowSettings(disable_long_context=True))
    assert held.window == 200_000
    assumed = thresholds_for(profile, "claude-opus-4-6", WindowSettings(max_context_tokens=120_000))
    assert assumed.effective_window == 100_000


def test_raising_the_output_limit_shrinks_the_window_of_old_clients_only_api_4_2() -> None:
    settings = WindowSettings(max_output_tokens=64_000)
    assert thresholds_for(profile_for("2.0.76"), MODEL_200K, settings).effective_window == 136_000
    assert thresholds_for(profile_for("2.1.50"), MODEL_200K, settings).effective_window == 180_000


def test_opus_4_7_had_a_200k_window_before_2_1_117() -> None:
    assert model_limits("claude-opus-4-7", "2.1.116").window == 200_000
    assert model_limits("claude-opus-4-7", "2.1.117").window == 1_000_000


def test_unknown_models_say_so() -> None:
    limits = model_limits("some-model-9")
    assert (limits.window, limits.known) == (200_000, False)


def test_profiles_cover_every_version_once() -> None:
    for version in ["0.2.47", "1.0.17", "2.1.22", "2.1.23", "2.1.220", "2.1.221", "3.0.0"]:
        number = tuple(int(x) for x in version.split("."))
        assert sum(profile.covers(number) for profile in profiles()) == 1, version
    with pytest.raises(UsageError):
        profile_for("latest")


def test_every_setting_is_a_field_and_says_its_type_unit_and_source() -> None:
    keys = {spec.key for spec in SETTINGS}
    assert keys == set(WindowSettings.__dataclass_fields__)
    assert all(spec.help and spec.source and spec.default for spec in SETTINGS)


def test_numbers_of_the_environment_are_read_as_the_client_does() -> None:
    read = WindowSettings.from_environment({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "500k"})
    assert read.auto_compact_window == 500
    assert WindowSettings.from_environment({"DISABLE_COMPACT": "0"}).auto_compact_on
    assert not WindowSettings.from_environment({"DISABLE_COMPACT": "true"}).auto_compact_on


def test_warning_suppression_tells_its_observers_once_per_change_section_1() -> None:
    store, seen = WarningSuppression(), []
    end = store.subscribe(seen.append)
    store.suppress()
    store.suppress()
    store.clear()
    end()
    end()
    store.suppress()
    assert seen == [True, False]
    assert store.suppressed
