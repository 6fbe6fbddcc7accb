"""Settings of strategies as typed data: default, unit, range and source in one place, for forms, command line, docs."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_type_hints

from compaction.errors import UsageError

SettingType = Literal["integer", "number", "switch", "choice", "names", "text"]
"""What a value is: whole number, number, yes/no, one of a list, a list of names, or a text."""

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class SettingSpec:
    """One setting of a strategy.

    Attributes:
        key, title: its name on the command line and for people.
        type, unit: what it is, and in what ("tokens", "minutes", "results", "rounds", "" …).
        default: its value when nobody says otherwise.
        minimum, maximum: the range of a number, None where it is open.
        choices: the values of a choice.
        help, source: what it does, and where that is written.
    """

    key: str
    title: str
    type: SettingType
    unit: str
    default: Any
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...]
    help: str
    source: str

    def as_json(self) -> dict[str, Any]:
        """The keys of cli.md (key, type, default, unit, source) and the others after them."""
        return {
            "key": self.key,
            "type": self.type,
            "default": list(self.default) if isinstance(self.default, tuple) else self.default,
            "unit": self.unit,
            "source": self.source,
            "title": self.title,
            "help": self.help,
            "minimum": self.minimum,
            "maximum": self.maximum,
            "choices": list(self.choices),
        }


def setting(
    default: Any,
    help: str,
    source: str,
    *,
    unit: str = "",
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """A field of a settings dataclass with everything that forms, command line and docs say about it."""
    facts = {"help": help, "source": source, "unit": unit, "minimum": minimum, "maximum": maximum, "choices": choices}
    return field(default=default, metadata=facts)


def specs_of(settings: type[Any]) -> tuple[SettingSpec, ...]:
    """The settings of a settings dataclass, in order."""
    hints = get_type_hints(settings)
    return tuple(
        SettingSpec(
            key=f.name,
            title=f.name.replace("_", " "),
            type=_type_name(hints[f.name], f.metadata["choices"]),
            unit=f.metadata["unit"],
            default=f.default,
            minimum=f.metadata["minimum"],
            maximum=f.metadata["maximum"],
            choices=f.metadata["choices"],
            help=f.metadata["help"],
            source=f.metadata["source"],
        )
        for f in dataclasses.fields(settings)
    )


def make_settings(kind: type[S], values: Mapping[str, Any], strategy: str = "") -> S:
    """Settings of `kind` with `values` (texts from the command line, or typed values) over the defaults.

    Raises:
        UsageError: an unknown key, or a value of the wrong type or out of range; key and range are named.
    """
    known = {spec.key: spec for spec in specs_of(kind)}
    checked: dict[str, Any] = {}
    for key, value in values.items():
        spec = known.get(key)
        if spec is None:
            names = ", ".join(known) or "none"
            raise UsageError(f"{strategy or 'the strategy'} has no setting {key!r}", f"its settings: {names}")
        checked[key] = _checked(spec, value, strategy)
    return kind(**checked)


def settings_json(settings: Any) -> dict[str, Any]:
    """The settings as JSON values, in order."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(settings).items()}


def _type_name(hint: Any, choices: tuple[str, ...]) -> SettingType:
    if choices:
        return "choice"
    if hint is bool:
        return "switch"
    if hint is int:
        return "integer"
    if hint is float:
        return "number"
    return "names" if hint is not str else "text"


def _checked(spec: SettingSpec, value: Any, strategy: str) -> Any:
    name = f"{strategy}.{spec.key}" if strategy else spec.key
    try:
        converted = _converted(spec, value)
    except ValueError as error:
        raise UsageError(f"{name} is {value!r}, which is not {error}", _range_text(spec)) from None
    if isinstance(converted, (int, float)) and not isinstance(converted, bool):
        low = spec.minimum is not None and converted < spec.minimum
        high = spec.maximum is not None and converted > spec.maximum
        if low or high:
            raise UsageError(f"{name} is {converted:g}, out of range", _range_text(spec))
    return converted


def _converted(spec: SettingSpec, value: Any) -> Any:
    if spec.type == "switch":
        text = str(value).strip().lower()
        if text in ("true", "yes", "on", "1"):
            return True
        if text in ("false", "no", "off", "0"):
            return False
        raise ValueError("yes or no")
    if spec.type == "integer":
        number = _number(value)
        if not number.is_integer():
            raise ValueError("a whole number")
        return int(number)
    if spec.type == "number":
        return _number(value)
    if spec.type == "choice":
        if str(value) not in spec.choices:
            raise ValueError("one of " + ", ".join(spec.choices))
        return str(value)
    if spec.type == "names":
        return _names(value)
    return str(value)


def _number(value: Any) -> float:
    try:
        number = float(str(value).replace("_", "").strip())
    except ValueError:
        raise ValueError("a number") from None
    if math.isnan(number):
        raise ValueError("a number")
    return number


def _names(value: Any) -> tuple[str, ...]:
    """A list of names: a JSON list, a list, or names separated by commas."""
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("["):
            try:
                value = json.loads(text)
            except ValueError:
                raise ValueError("a list of names") from None
        else:
            value = [part.strip() for part in text.split(",") if part.strip()]
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise ValueError("a list of names")
    return tuple(value)


def _range_text(spec: SettingSpec) -> str:
    parts = [f"{spec.key}: {spec.type}", f"default {spec.default}"]
    if spec.unit:
        parts.append(f"in {spec.unit}")
    if spec.minimum is not None:
        parts.append(f"at least {spec.minimum:g}")
    if spec.maximum is not None:
        parts.append(f"at most {spec.maximum:g}")
    if spec.choices:
        parts.append("one of " + ", ".join(spec.choices))
    return ", ".join(parts)
