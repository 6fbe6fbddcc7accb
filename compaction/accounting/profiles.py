from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from compaction.accounting.models import has_long_context_suffix, model_key
from compaction.errors import UsageError
from compaction.resources import resource

Version = tuple[int, ...]


def parse_version(text: str) -> Version:
    """`2.1.332` as (2, 1, 332); what is no number ends it; "" is ()."""
    # Eighteen digits: a number of any length can stand in a file, and Python refuses to read some thousands of digits.
    return tuple(int(part[:18]) for part in re.findall(r"\d+", text.split("-")[0].split("+")[0])[:4])


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """What a client assumes about a model. `window` and `max_output` in tokens; `known` False for a name it lacks."""

    model: str
    window: int
    max_output: int
    known: bool = True


@dataclass(frozen=True, slots=True)
class ClientProfile:
    """Thresholds and clamps of a range of client versions (compaction.md 1, clients.md); all amounts in tokens.

    Attributes:
        id, title, source: name, name for people, and where the figures come from.
        first, until: versions the profile covers, `until` excluded; () means no bound (and never chosen by version).
        output_reserve_cap: the output reserve is min(max output, cap); None: the whole max output is reserved.
        auto_compact_window_minimum, auto_compact_window_maximum: clamps of CLAUDE_CODE_AUTO_COMPACT_WINDOW.
        budget_bands: percent of the window at which the token-budget view changes (60, 80, 92).
    """

    id: str
    title: str
    source: str
    first: Version
    until: Version
    output_reserve_cap: int | None
    auto_compact_buffer: int
    warning_buffer: int
    error_buffer: int
    manual_compact_buffer: int
    auto_compact_window_minimum: int | None
    auto_compact_window_maximum: int | None
    max_consecutive_failures: int
    budget_bands: tuple[int, int, int]
    version: str = ""

    def covers(self, version: Version) -> bool:
        """Whether the profile is the one of that client version."""
        return bool(self.first or self.until) and self.first <= version and (not self.until or version < self.until)


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(resource("clients.json").read_text("utf-8"))
    return loaded


@lru_cache(maxsize=1)
def profiles() -> tuple[ClientProfile, ...]:
    """Every profile of resources/clients.json, oldest first; the first is the design document's."""
    data = _data()
    names = {f.name for f in fields(ClientProfile)}
    found = []
    for entry in data["profiles"]:
        values = {**data["defaults"], **{k: v for k, v in entry.items() if k in names and k != "until"}}
        values["budget_bands"] = tuple(values["budget_bands"])
        bounds = parse_version(entry["from"] or ""), parse_version(entry["until"] or "")
        found.append(ClientProfile(first=bounds[0], until=bounds[1], **values))
    return tuple(found)


@lru_cache(maxsize=256)
def profile_for(version: str) -> ClientProfile:
    """The profile of a client version such as "2.1.332"; of a profile's own id; the design document's for "".

    Raises:
        UsageError: `version` is neither a version nor the id of a profile.
    """
    for profile in profiles():
        if profile.id == version:
            return profile
    if not version:
        return profiles()[0]
    wanted = parse_version(version)
    if not wanted or not version[0].isdigit():
        known = ", ".join(p.id for p in profiles())
        raise UsageError(f"no client profile {version!r}", f"give a version such as 2.1.332, or one of {known}")
    for profile in profiles():
        if profile.covers(wanted):
            values = {f.name: getattr(profile, f.name) for f in fields(profile)}
            return ClientProfile(**{**values, "version": version})
    raise UsageError(f"no client profile covers version {version}")


def recorded_profile(version: str) -> ClientProfile:
    """The profile of a version that stands in a file; the design document's where that is no version at all."""
    return profile_for(version if parse_version(version) and version[0].isdigit() else "")


def model_limits(model: str, version: str = "") -> ModelLimits:
    """Window and maximum output that a client of `version` ("" = the newest) assumes for `model` (prices.md).

    A `[1m]` suffix means a 1,000,000 window. A model that is not in the table gets the default window
    (`MODEL_CONTEXT_WINDOW_DEFAULT`) and `known` False.
    """
    data = _data()
    key, at = model_key(model), parse_version(version)
    limits = ModelLimits(key, data["unknown_model"]["window"], data["unknown_model"]["max_output"], known=False)
    for entry in data["models"]:
        until = parse_version(entry.get("until") or "")
        if key in entry["models"] and not (until and (not at or at >= until)):
            limits = ModelLimits(key, entry["window"], entry["max_output"])
            break
    if has_long_context_suffix(model):
        limits = ModelLimits(key, data["long_window"], limits.max_output, limits.known)
    return limits


def long_window() -> int:
    """The larger of the two windows that clients know, in tokens."""
    return int(_data()["long_window"])
