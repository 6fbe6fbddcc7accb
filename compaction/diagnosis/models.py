"""What the rules need to know about a model: prefill, prefix-bound thinking, and how it ends a full window."""

from __future__ import annotations

from compaction.accounting.models import model_key, model_version

_NO_PREFILL_FROM = {"opus": (4, 6), "sonnet": (4, 6), "haiku": (5, 0), "fable": (0, 0), "mythos": (0, 0)}
"""The first version of each family that refuses a final assistant message (api-rules.md R15)."""

_BOUND_FROM = {"opus": (5, 5), "sonnet": (5, 5), "haiku": (5, 5), "fable": (5, 1), "mythos": (5, 1)}
"""The first version of each family whose thinking signatures are bound to the exact prefix (api.md 2.4)."""


def _family(model: str) -> str:
    key = model_key(model)
    return next((name for name in _NO_PREFILL_FROM if name in key), "")


def is_claude(model: str) -> bool:
    """Whether the name is one of Anthropic's models, behind whatever vendor prefix."""
    return bool(_family(model)) or "claude" in model.lower()


def refuses_prefill(model: str) -> bool:
    """Whether the model refuses a final assistant message (R15); False when its name does not tell."""
    family, version = _family(model), model_version(model)
    return bool(family) and version is not None and version >= _NO_PREFILL_FROM[family]


def binds_thinking(model: str) -> bool:
    """Whether the model's thinking signatures hold for one exact prefix only (preserved thinking, api.md 2.4)."""
    family, version = _family(model), model_version(model)
    return bool(family) and version is not None and version >= _BOUND_FROM[family]


def window_error_is_a_stop_reason(model: str) -> bool:
    """Whether the model ends with `model_context_window_exceeded` instead of refusing (R37): 4.5 and newer."""
    version = model_version(model)
    return bool(_family(model)) and version is not None and version >= (4, 5)
