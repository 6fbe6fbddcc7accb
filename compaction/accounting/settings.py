from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal

SettingType = Literal["tokens", "percent", "switch"]


@dataclass(frozen=True, slots=True)
class SettingSpec:
    """One override of the client as a setting of the session view.

    Attributes:
        key: name in `WindowSettings`.
        environment: the client's environment variable, or "" for a key of its settings file.
        type, unit: how to edit and label it.
        default: value when not set, for people.
        help, source: what it does and where that is written.
    """

    key: str
    environment: str
    type: SettingType
    unit: str
    default: str
    help: str
    source: str


@dataclass(frozen=True, slots=True)
class WindowSettings:
    """The overrides that move the window and its thresholds (compaction.md 1, api.md 4.2); None is "not set".

    Attributes:
        auto_compact_window: context tokens; caps the window that compaction looks at.
        auto_compact_percent: percent of the effective window, in (0, 100]; can only lower the threshold.
        blocking_limit: context tokens at which the client blocks.
        max_context_tokens: the window to assume instead of the model's.
        max_output_tokens: the output limit to assume instead of the model's; raising it shrinks the effective window.
        auto_compact_enabled: the settings-file switch; False leaves /compact.
        disable_auto_compact: automatic compaction off, /compact stays.
        disable_compact: no compaction at all.
        disable_long_context: hold every model to 200,000.
        enable_session_memory_compact, disable_session_memory_compact: switches of SessionMemoryCompact (section 8).
    """

    auto_compact_window: int | None = None
    auto_compact_percent: float | None = None
    blocking_limit: int | None = None
    max_context_tokens: int | None = None
    max_output_tokens: int | None = None
    auto_compact_enabled: bool = True
    disable_auto_compact: bool = False
    disable_compact: bool = False
    disable_long_context: bool = False
    enable_session_memory_compact: bool = False
    disable_session_memory_compact: bool = False

    @property
    def auto_compact_on(self) -> bool:
        """Whether automatic compaction can happen at all."""
        return self.auto_compact_enabled and not self.disable_auto_compact and not self.disable_compact

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> WindowSettings:
        """The settings that an environment such as {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "20"} makes.

        As the client does: numbers are read up to the first character that is none ("500k" is 500), and a value that
        is out of range is ignored (compaction.md 1).
        """
        values: dict[str, int | float | bool | None] = {}
        for spec in SETTINGS:
            text = environment.get(spec.environment) if spec.environment else None
            if text is None:
                continue
            if spec.type == "tokens":
                values[spec.key] = positive_integer(text)
            elif spec.type == "percent":
                values[spec.key] = percent(text)
            else:
                values[spec.key] = truthy(text)
        names = {f.name for f in fields(cls)}
        return cls(**{k: v for k, v in values.items() if k in names})  # type: ignore[arg-type]


def positive_integer(text: str) -> int | None:
    """The leading integer of `text` when it is positive, else None."""
    found = re.match(r"\s*\+?(\d+)", text)
    value = int(found[1]) if found else 0
    return value if value > 0 else None


def percent(text: str) -> float | None:
    """The leading number of `text` when it lies in (0, 100], else None."""
    found = re.match(r"\s*\+?(\d+(?:\.\d*)?|\.\d+)", text)
    value = float(found[1]) if found else math.nan
    return value if 0 < value <= 100 else None


def truthy(text: str) -> bool:
    """Whether an environment switch counts as on."""
    return text.strip().lower() in {"1", "true", "yes", "on"}


_SECTION_1, _SECTION_6, _SECTION_8, _API = "compaction.md 1", "compaction.md 6", "compaction.md 8", "api.md 4.2"

SETTINGS: tuple[SettingSpec, ...] = (
    SettingSpec("auto_compact_window", "CLAUDE_CODE_AUTO_COMPACT_WINDOW", "tokens", "tokens", "the model's window",
                "Caps the window that compaction looks at; newer clients raise it to at least 100,000.", _SECTION_1),
    SettingSpec("auto_compact_percent", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "percent", "% of the effective window",
                "not set", "Lowers the auto-compact threshold; values outside 0 to 100 are ignored.", _SECTION_1),
    SettingSpec("blocking_limit", "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE", "tokens", "tokens",
                "effective window - 3,000", "Context at which the client refuses to go on.", _SECTION_1),
    SettingSpec("max_context_tokens", "CLAUDE_CODE_MAX_CONTEXT_TOKENS", "tokens", "tokens", "the model's window",
                "Window to assume instead of the model's.", _API),
    SettingSpec("max_output_tokens", "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "tokens", "tokens", "the model's limit",
                "Raising it enlarges the output reserve and shrinks the effective window.", _API),
    SettingSpec("auto_compact_enabled", "", "switch", "", "on",
                "autoCompactEnabled of the settings file: off leaves /compact only.", _API),
    SettingSpec("disable_auto_compact", "DISABLE_AUTO_COMPACT", "switch", "", "off",
                "Automatic compaction off; /compact stays.", _API),
    SettingSpec("disable_compact", "DISABLE_COMPACT", "switch", "", "off", "No compaction at all.", _SECTION_6),
    SettingSpec("disable_long_context", "CLAUDE_CODE_DISABLE_1M_CONTEXT", "switch", "", "off",
                "Holds every model to a 200,000 window.", _API),
    SettingSpec("enable_session_memory_compact", "ENABLE_CLAUDE_CODE_SM_COMPACT", "switch", "", "off",
                "Uses the session memory as the summary.", _SECTION_8),
    SettingSpec("disable_session_memory_compact", "DISABLE_CLAUDE_CODE_SM_COMPACT", "switch", "", "off",
                "Never uses the session memory as the summary.", _SECTION_8),
)  # fmt: skip
"""Every override of the specification, in the order of the settings form."""
