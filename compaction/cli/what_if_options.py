from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from compaction.accounting.settings import SETTINGS, WindowSettings, percent, positive_integer, truthy
from compaction.cli.strategy_options import settings_for
from compaction.errors import UsageError
from compaction.strategies.registry import STRATEGIES
from compaction.strategies.what_if import WhatIf

_FIELDS = {
    "microcompact-time": "microcompact_time",
    "api-clear-tool-uses": "clear_tool_uses",
    "snip": "snip",
    "context-collapse": "collapse",
}
"""The strategies that a simulation can switch on, and the field that holds their settings."""


def what_if_of(pairs: Sequence[str], client: str) -> WhatIf:
    """The what-if that `--what-if KEY=VALUE` asks for.

    Naming a strategy's setting switches the strategy on.

    Raises:
        UsageError: an unknown key or strategy, or a bad value.
    """
    window: dict[str, Any] = {}
    strategies: dict[str, list[str]] = {}
    result = WhatIf(client=client)
    specs = {spec.key: spec for spec in SETTINGS}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        name = key.partition(".")[0]
        if not equals:
            raise UsageError(f"--what-if {pair!r} has no value", "write KEY=VALUE")
        if key == "auto_compact":
            result = replace(result, auto_compact=truthy(value))
        elif key in specs:
            window[key] = _window_value(specs[key].type, key, value)
        elif name in _FIELDS:
            strategies.setdefault(name, []).append(pair)
        else:
            known = ", ".join(["auto_compact", *specs, *(f"{n}.KEY" for n in _FIELDS)])
            raise UsageError(f"no what-if setting {key!r}", f"known: {known}")
    for name, asked in strategies.items():
        result = replace(result, **{_FIELDS[name]: settings_for(STRATEGIES[name], asked, named=True)})
    return replace(result, window=WindowSettings(**window))


def _window_value(kind: str, key: str, value: str) -> int | float | bool:
    found: int | float | bool | None = truthy(value)
    if kind == "tokens":
        found = positive_integer(value)
    elif kind == "percent":
        found = percent(value)
    if found is None:
        raise UsageError(f"{key} is {value!r}, out of range", f"{key} is {kind}")
    return found
