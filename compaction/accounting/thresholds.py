from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from compaction.accounting.profiles import ClientProfile, long_window, model_limits
from compaction.accounting.settings import WindowSettings

MODEL_CONTEXT_WINDOW_DEFAULT = 200_000
"""Tokens: the nominal window, and what CLAUDE_CODE_DISABLE_1M_CONTEXT holds a model to (compaction.md 1)."""

State = Literal["ok", "warning", "error", "auto_compact", "blocking"]
BudgetBand = Literal["none", "microcompact", "autocompact", "blocking_compact"]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The lines of one window, all in context tokens (compaction.md 1).

    Attributes:
        window: nominal window; `window_source` says where it comes from.
        output_reserve: kept free for the summary's output.
        effective_window: window (or its override) - output reserve.
        auto_compact_threshold: where the client compacts by itself, when `auto_compact_on`.
        reference: T of the warning state: the threshold when auto-compact is on, else the effective window.
        warning, error, blocking_limit: where the client warns, warns in red, and refuses.
    """

    window: int
    window_source: str
    max_output: int
    output_reserve: int
    effective_window: int
    auto_compact_on: bool
    auto_compact_threshold: int
    reference: int
    warning: int
    error: int
    blocking_limit: int
    budget_bands: tuple[int, int, int]
    profile: ClientProfile

    def formulas(self) -> dict[str, str]:
        """How each line is calculated, for tooltips, with the reading taken where the sources differ."""
        p = self.profile
        t = "auto-compact threshold" if self.auto_compact_on else "effective window (auto-compact is off)"
        prose = self.effective_window - p.warning_buffer
        return {
            "effective_window": f"window − output reserve {self.output_reserve:,}",
            "auto_compact_threshold": f"effective window − {p.auto_compact_buffer:,}",
            "warning": f"{t} − {p.warning_buffer:,}; prose of the design says effective window − "
            f"{p.warning_buffer:,} = {prose:,}, the calculation is taken",
            "error": f"{t} − {p.error_buffer:,} (a buffer of its own, equal by default)",
            "blocking_limit": f"effective window − {p.manual_compact_buffer:,}, unless overridden",
        }


def thresholds_for(
    profile: ClientProfile, model: str, settings: WindowSettings | None = None, largest_recorded: int = 0
) -> Thresholds:
    """The lines that a client of `profile` draws for `model` under `settings`.

    Args:
        largest_recorded: the largest context that the API accepted in this session, in tokens. A context beyond the
            assumed window proves the larger window (transcripts do not record the `[1m]` suffix).
    """
    settings = settings or WindowSettings()
    limits = model_limits(model, profile.version)
    window, source = limits.window, f"{profile.title}: {limits.model}" if limits.known else "unknown model: default"
    if largest_recorded > window and window < long_window():
        window, source = long_window(), f"a recorded context of {largest_recorded:,} tokens exceeds {window:,}"
    if settings.max_context_tokens:
        window, source = settings.max_context_tokens, "CLAUDE_CODE_MAX_CONTEXT_TOKENS"
    if settings.disable_long_context and window > MODEL_CONTEXT_WINDOW_DEFAULT:
        window, source = MODEL_CONTEXT_WINDOW_DEFAULT, "CLAUDE_CODE_DISABLE_1M_CONTEXT"
    max_output = settings.max_output_tokens or limits.max_output
    cap = profile.output_reserve_cap
    reserve = max_output if cap is None else min(max_output, cap)
    effective = max(0, min(window, _compaction_window(profile, settings, window)) - reserve)
    threshold = max(0, effective - profile.auto_compact_buffer)
    if settings.auto_compact_percent is not None and 0 < settings.auto_compact_percent <= 100:
        threshold = min(math.floor(effective * settings.auto_compact_percent / 100), threshold)
    reference = threshold if settings.auto_compact_on else effective
    blocking = settings.blocking_limit or max(0, effective - profile.manual_compact_buffer)
    return Thresholds(
        window, source, max_output, reserve, effective, settings.auto_compact_on, threshold, reference,
        reference - profile.warning_buffer, reference - profile.error_buffer, blocking, profile.budget_bands, profile,
    )  # fmt: skip


def _compaction_window(profile: ClientProfile, settings: WindowSettings, window: int) -> int:
    """CLAUDE_CODE_AUTO_COMPACT_WINDOW after the clamps of the client version; the window when it is not set."""
    value = settings.auto_compact_window
    if value is None or value <= 0:
        return window
    if profile.auto_compact_window_minimum is not None:
        value = max(value, profile.auto_compact_window_minimum)
    if profile.auto_compact_window_maximum is not None:
        value = min(value, profile.auto_compact_window_maximum)
    return value


@dataclass(frozen=True, slots=True)
class WarningState:
    """Where a context of `tokens` stands (compaction.md 1).

    Attributes:
        percent_left: whole percent left before `Thresholds.reference`, 0 or more.
        state: the most severe line reached.
        budget_percent, budget_band: the window-budget view of the same number; shown beside, never mixed.
    """

    tokens: int
    percent_left: int
    above_warning: bool
    above_error: bool
    above_auto_compact: bool
    at_blocking_limit: bool
    state: State
    budget_percent: float
    budget_band: BudgetBand


def warning_state(tokens: int, thresholds: Thresholds) -> WarningState:
    """Where `tokens` of context stand against the lines."""
    t = thresholds
    left = math.floor((t.reference - tokens) / t.reference * 100 + 0.5) if t.reference > 0 else 0
    above_warning, above_error = tokens >= t.warning, tokens >= t.error
    above_auto = t.auto_compact_on and tokens >= t.auto_compact_threshold
    blocked = tokens >= t.blocking_limit
    state: State = "ok"
    if blocked:
        state = "blocking"
    elif above_auto:
        state = "auto_compact"
    elif above_error:
        state = "error"
    elif above_warning:
        state = "warning"
    percent = tokens / t.window * 100 if t.window else 0.0
    return WarningState(
        tokens, max(0, left), above_warning, above_error, above_auto, blocked, state, percent,
        _budget_band(percent, t.budget_bands),
    )  # fmt: skip


def _budget_band(percent: float, bands: tuple[int, int, int]) -> BudgetBand:
    low, middle, high = bands
    if percent > high:
        return "blocking_compact"
    if percent >= middle:
        return "autocompact"
    return "microcompact" if percent >= low else "none"
