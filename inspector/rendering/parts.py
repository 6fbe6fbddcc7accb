"""The plain pieces a record is shown as; no Qt, so a worker can prepare them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from inspector.rendering.ansi import Span
from inspector.rendering.diff import DiffRow


class Tone(Enum):
    """What a heading or note stands for; the writer gives each a colour and a sign."""

    NEUTRAL = "neutral"
    USER = "user"
    ASSISTANT = "assistant"
    THINKING = "thinking"
    TOOL = "tool"
    RESULT = "result"
    SYSTEM = "system"
    ERROR = "error"
    WARNING = "warning"
    GOOD = "good"
    INFO = "info"
    MUTED = "muted"


SIGNS: dict[Tone, str] = {
    Tone.NEUTRAL: "",
    Tone.USER: "▶",
    Tone.ASSISTANT: "◆",
    Tone.THINKING: "…",
    Tone.TOOL: "→",
    Tone.RESULT: "←",
    Tone.SYSTEM: "§",
    Tone.ERROR: "✖",
    Tone.WARNING: "▲",
    Tone.GOOD: "✔",
    Tone.INFO: "ℹ",
    Tone.MUTED: "",
}


@dataclass(frozen=True, slots=True)
class Heading:
    """Starts a block: what it is, and in smaller text its id or place."""

    title: str
    detail: str = ""
    tone: Tone = Tone.NEUTRAL


@dataclass(frozen=True, slots=True)
class Note:
    """One sentence of ours about the content."""

    text: str
    tone: Tone = Tone.MUTED


@dataclass(frozen=True, slots=True)
class Prose:
    """Plain running text of the session."""

    text: str
    tone: Tone = Tone.NEUTRAL


@dataclass(frozen=True, slots=True)
class Markdown:
    """Markdown of the session, shown without HTML and without its images."""

    text: str
    tone: Tone = Tone.NEUTRAL


@dataclass(frozen=True, slots=True)
class Code:
    """Preformatted text.

    Attributes:
        language: a name for the highlighter ("python", "json"), or "".
        file_name: chooses the highlighter when `language` is "".
        first_line: number of the first line to show in the margin; 0 shows none.
    """

    text: str
    language: str = ""
    file_name: str = ""
    first_line: int = 0


@dataclass(frozen=True, slots=True)
class Terminal:
    """Output of a program with its colours; `text` is the source the spans came from."""

    text: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Diff:
    """An edit, row by row."""

    rows: tuple[DiffRow, ...]
    file_name: str = ""


@dataclass(frozen=True, slots=True)
class Checklist:
    """Items of a task list: (state, text, further facts), state "pending", "in_progress" or "completed"."""

    items: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Fields:
    """Names with their values, as plain text."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """An image of the session, still encoded.

    Attributes:
        data: the decoded bytes, or b"" when `problem` says why there are none.
        media_type: as the session says; the content decides what it really is.
    """

    data: bytes = field(repr=False)
    media_type: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the session one can go to.

    Attributes:
        name: what it is ("the call").
        text: where it is, for the person.
        record: record number, -1 when there is nowhere to go.
        block: row of the block table, -1 for the record.
    """

    name: str
    text: str
    record: int = -1
    block: int = -1


@dataclass(frozen=True, slots=True)
class Places:
    """Places as links of ours; they select a record and open nothing."""

    places: tuple[Place, ...]


Part = Places | Heading | Note | Prose | Markdown | Code | Terminal | Diff | Checklist | Fields | Picture


def source_text(part: Part) -> str:
    """The text that stands behind a part, whole; what "show all" shows."""
    match part:
        case Prose() | Markdown() | Code() | Terminal() | Note():
            return part.text
        case Diff():
            return "\n".join(row.sign + row.text for row in part.rows)
        case Checklist():
            return "\n".join(f"[{state}] {text}  {facts}".rstrip() for state, text, facts in part.items)
        case Fields():
            return "\n".join(f"{name}: {value}" for name, value in part.rows)
        case Heading():
            return part.title
        case Places():
            return "\n".join(f"{place.name}: {place.text}" for place in part.places)
        case Picture():
            return part.problem
