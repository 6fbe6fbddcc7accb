"""Terminal output to styled spans: SGR colours are kept, every other escape sequence is dropped (ECMA-48)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

Colour = int | tuple[int, int, int]
"""A colour of the 256-colour palette (0–15 are the theme's own), or red, green, blue."""


@dataclass(frozen=True, slots=True)
class Style:
    """How a span is drawn; None is the default colour."""

    foreground: Colour | None = None
    background: Colour | None = None
    bold: bool = False
    faint: bool = False
    italic: bool = False
    underline: bool = False
    inverse: bool = False
    strike: bool = False


PLAIN = Style()


@dataclass(frozen=True, slots=True)
class Span:
    """A run of text with one style."""

    text: str
    style: Style


# Each alternative starts with ESC and stops before the next ESC, so an unterminated one cannot be scanned twice.
_ESCAPE = re.compile(
    r"\x1b\[(?P<sgr>[0-9;:]*)m"
    r"|\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"
    r"|\x1b[ -/]*[0-~]"
    r"|\x1b"
)
_SIMPLE: dict[int, dict[str, bool]] = {
    1: {"bold": True},
    2: {"faint": True},
    3: {"italic": True},
    4: {"underline": True},
    7: {"inverse": True},
    9: {"strike": True},
    22: {"bold": False, "faint": False},
    23: {"italic": False},
    24: {"underline": False},
    27: {"inverse": False},
    29: {"strike": False},
}


def has_escapes(text: str) -> bool:
    """Whether the text holds escape sequences or lines that a terminal would overwrite."""
    return "\x1b" in text or "\r" in text


def parse(text: str) -> list[Span]:
    """The text as spans; lines overwritten with a carriage return show their last state, as on a terminal."""
    spans: list[Span] = []
    style = PLAIN
    position = 0
    for match in _ESCAPE.finditer(text):
        if match.start() > position:
            spans.append(Span(text[position : match.start()], style))
        position = match.end()
        codes = match.group("sgr")
        if codes is not None:
            style = _apply(style, codes)
    if position < len(text):
        spans.append(Span(text[position:], style))
    return _overwrite(spans)


def strip(text: str) -> str:
    """The text without escape sequences."""
    return _ESCAPE.sub("", text) if "\x1b" in text else text


def _overwrite(spans: list[Span]) -> list[Span]:
    """Drop what a carriage return lets the next text overwrite."""
    if not any("\r" in span.text for span in spans):
        return spans
    kept: list[Span] = []
    line: list[Span] = []
    pending = False
    for span in spans:
        for piece in re.split(r"(\r+\n|\n|\r+)", span.text):
            if not piece:
                continue
            if piece.endswith("\n"):
                kept += [*line, Span("\n", span.style)]
                line, pending = [], False
            elif piece.startswith("\r"):
                pending = True
            else:
                if pending:
                    line, pending = [], False
                line.append(Span(piece, span.style))
    return kept + line


def _apply(style: Style, codes: str) -> Style:
    """The style after one SGR sequence; unknown codes change nothing."""
    numbers = [int(code[:6]) if code else 0 for code in re.split("[;:]", codes)]
    position = 0
    while position < len(numbers):
        code = numbers[position]
        position += 1
        if code == 0:
            style = PLAIN
        elif code in _SIMPLE:
            style = replace(style, **_SIMPLE[code])
        elif code in (38, 48):
            colour, used = _extended(numbers[position:])
            position += used
            if colour is not None:
                style = replace(style, foreground=colour) if code == 38 else replace(style, background=colour)
        else:
            style = _basic(style, code)
    return style


def _basic(style: Style, code: int) -> Style:
    """One of the sixteen colours or the default colour."""
    if 30 <= code <= 37:
        return replace(style, foreground=code - 30)
    if 40 <= code <= 47:
        return replace(style, background=code - 40)
    if 90 <= code <= 97:
        return replace(style, foreground=code - 82)
    if 100 <= code <= 107:
        return replace(style, background=code - 92)
    if code == 39:
        return replace(style, foreground=None)
    if code == 49:
        return replace(style, background=None)
    return style


def _extended(numbers: list[int]) -> tuple[Colour | None, int]:
    """The colour after 38 or 48 and how many numbers it takes."""
    if len(numbers) >= 2 and numbers[0] == 5:
        return min(numbers[1], 255), 2
    if len(numbers) >= 4 and numbers[0] == 2:
        red, green, blue = (min(number, 255) for number in numbers[1:4])
        return (red, green, blue), 4
    return None, len(numbers)


def palette_rgb(index: int) -> tuple[int, int, int]:
    """Red, green, blue of colours 16–255 of the 256-colour palette."""
    if index >= 232:
        level = 8 + 10 * (index - 232)
        return level, level, level
    cube = index - 16
    steps = (0, 95, 135, 175, 215, 255)
    return steps[cube // 36], steps[cube // 6 % 6], steps[cube % 6]
