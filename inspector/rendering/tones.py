"""Colours of the detail pane for the light and the dark palette; each colour goes with a sign, never alone."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QColor, QPalette

from inspector.rendering.parts import Tone
from inspector.theme import DARK, LIGHT


@dataclass(frozen=True, slots=True)
class Colours:
    """The colours a renderer needs, made for one palette."""

    dark: bool
    text: QColor
    muted: QColor
    code_background: QColor
    heading_background: QColor
    added_background: QColor
    removed_background: QColor
    changed_background: QColor
    gap_background: QColor
    tones: dict[Tone, QColor]
    syntax: dict[str, QColor]
    terminal: tuple[QColor, ...]


_LIGHT_TONES = {
    Tone.USER: "#0b5394",
    Tone.ASSISTANT: "#6a329f",
    Tone.THINKING: "#5f6368",
    Tone.TOOL: "#0b6b5d",
    Tone.RESULT: "#38611f",
    Tone.SYSTEM: "#6b5200",
    Tone.ERROR: LIGHT.error,
    Tone.WARNING: LIGHT.warning,
    Tone.GOOD: LIGHT.ok,
}
_DARK_TONES = {
    Tone.USER: "#8ec1f5",
    Tone.ASSISTANT: "#d0aaf2",
    Tone.THINKING: "#b0b4ba",
    Tone.TOOL: "#6fd6c4",
    Tone.RESULT: "#a9d58a",
    Tone.SYSTEM: "#e0c97a",
    Tone.ERROR: DARK.error,
    Tone.WARNING: DARK.warning,
    Tone.GOOD: DARK.ok,
}
# By the first part of a Pygments token's name under Token; the longest match wins.
_LIGHT_SYNTAX = {
    "Keyword": "#7a1f8a",
    "Name.Function": "#0b5394",
    "Name.Class": "#0b5394",
    "Name.Tag": "#0b5394",
    "Name.Attribute": "#6b5200",
    "Name.Builtin": "#0b6b5d",
    "Name.Decorator": "#8a4b00",
    "Name.Variable": "#8a4b00",
    "Literal.String": "#38611f",
    "Literal.Number": "#a33b00",
    "Comment": "#5f6b73",
    "Operator.Word": "#7a1f8a",
    "Generic.Deleted": "#a8071a",
    "Generic.Inserted": "#1e6b2e",
    "Generic.Heading": "#0b5394",
}
_DARK_SYNTAX = {
    "Keyword": "#d59cf0",
    "Name.Function": "#8ec1f5",
    "Name.Class": "#8ec1f5",
    "Name.Tag": "#8ec1f5",
    "Name.Attribute": "#e0c97a",
    "Name.Builtin": "#6fd6c4",
    "Name.Decorator": "#f2b566",
    "Name.Variable": "#f2b566",
    "Literal.String": "#a9d58a",
    "Literal.Number": "#f0a47a",
    "Comment": "#9aa3ab",
    "Operator.Word": "#d59cf0",
    "Generic.Deleted": "#ff8f8f",
    "Generic.Inserted": "#8ed69a",
    "Generic.Heading": "#8ec1f5",
}
# The sixteen terminal colours, chosen for at least 4.5:1 on the code background.
_LIGHT_TERMINAL = [
    "#1f1f1f",
    "#a8071a",
    "#1e6b2e",
    "#7a5200",
    "#0b4fb3",
    "#8a1f8a",
    "#0b6b6b",
    "#5a5a5a",
    "#4a4a4a",
    "#b3261e",
    "#2a6b12",
    "#806000",
    "#1a5fd0",
    "#a02fa0",
    "#0a7070",
    "#3a3a3a",
]
_DARK_TERMINAL = [
    "#9a9a9a",
    "#ff8080",
    "#7fd68a",
    "#e6c15a",
    "#86b4ff",
    "#e59ae5",
    "#6fd6d6",
    "#dcdcdc",
    "#b0b0b0",
    "#ff9f9f",
    "#a2e6a8",
    "#f2d98a",
    "#a8caff",
    "#f0b8f0",
    "#9ae8e8",
    "#ffffff",
]


def is_dark(palette: QPalette) -> bool:
    """Whether text is drawn light on dark with this palette."""
    return palette.color(QPalette.ColorRole.Base).lightness() < 128


def colours_for(palette: QPalette) -> Colours:
    """The colours that go with a palette."""
    dark = is_dark(palette)
    theme = DARK if dark else LIGHT
    base, text = palette.color(QPalette.ColorRole.Base), palette.color(QPalette.ColorRole.Text)
    muted = QColor(theme.muted)
    tones = {tone: QColor(name) for tone, name in (_DARK_TONES if dark else _LIGHT_TONES).items()}
    tones[Tone.NEUTRAL], tones[Tone.MUTED], tones[Tone.INFO] = text, muted, muted
    return Colours(
        dark=dark,
        text=text,
        muted=muted,
        code_background=QColor(theme.code),
        heading_background=mixed(text, base, 0.10),
        added_background=QColor(theme.added),
        removed_background=QColor(theme.removed),
        changed_background=QColor(theme.changed),
        gap_background=mixed(text, base, 0.12),
        tones=tones,
        syntax={name: QColor(value) for name, value in (_DARK_SYNTAX if dark else _LIGHT_SYNTAX).items()},
        terminal=tuple(QColor(name) for name in (_DARK_TERMINAL if dark else _LIGHT_TERMINAL)),
    )


def mixed(front: QColor, back: QColor, share: float) -> QColor:
    """`share` of the front colour over the back colour."""
    return QColor(
        round(front.red() * share + back.red() * (1 - share)),
        round(front.green() * share + back.green() * (1 - share)),
        round(front.blue() * share + back.blue() * (1 - share)),
    )
