"""Makes characters that hide or reorder text visible, one for one, so that offsets stay the same (qt.md 2d)."""

from __future__ import annotations

import re

BIDIRECTIONAL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that reorder the text around them; a session can hide a command with them."""

HIDDEN_MARK = "\u21c4"
"""The sign (⇄) shown instead of a character that changes the direction of text."""

_REPLACEMENT = "\ufffd"

# Control pictures (U+2400 …) would say more, but many systems have no font with them and draw empty boxes.
_TABLE: dict[int, str] = {
    **{ord(character): HIDDEN_MARK for character in BIDIRECTIONAL},
    # Qt ends a paragraph at these two; a row of ours ends at "\n" only.
    0x2028: "\u21b5",
    0x2029: "\u21b5",
}
_HIDDEN = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{BIDIRECTIONAL}\u2028\u2029\ufffc\ud800-\udfff]+")


def visible(text: str) -> str:
    """The text with each control, bidirectional or lone surrogate character as one visible sign.

    Tab and newline stay. The result has the length of the input.
    """
    return _HIDDEN.sub(_signs, text)


def _signs(match: re.Match[str]) -> str:
    return "".join(_TABLE.get(ord(character), _REPLACEMENT) for character in match.group())


def for_qt(text: str) -> str:
    """The text with lone surrogates as replacement characters: what a clipboard or a file can take, else unchanged."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def hidden_controls(text: str) -> int:
    """How many bidirectional control characters the text holds."""
    if text.isascii():
        return 0
    return sum(text.count(character) for character in BIDIRECTIONAL)


def bytes_text(count: int) -> str:
    """A number of bytes or characters for a person: 812 B, 256 KB, 10.0 MB."""
    if count < 1024:
        return f"{count} B"
    if count < 1024 * 1024:
        return f"{count / 1024:.0f} KB"
    return f"{count / (1024 * 1024):.1f} MB"
