"""The prompts of a compaction and what becomes of the answer (compaction.md 7); the wording is our own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from compaction.resources import resource

SummaryKind = Literal["full", "from", "up_to"]
"""`full`: the whole conversation; `from`: the later part (the early one is kept); `up_to`: the early part."""

SECTIONS = (
    "Primary Request and Intent",
    "Key Technical Concepts",
    "Files and Code Sections",
    "Errors and fixes",
    "Problem Solving",
    "All user messages",
    "Pending Tasks",
    "Current Work",
    "Optional Next Step",
)
CONTINUING_SECTION = "Context for Continuing Work"
"""The ninth section of an `up_to` summary."""

_SCOPES: dict[SummaryKind, str] = {
    "full": "the conversation",
    "from": "the recent part of the conversation, after the early messages, which stay as they are,",
    "up_to": "the early part of the conversation, which your summary will replace at the head of it,",
}


def summary_prompt(kind: SummaryKind = "full", custom_instructions: str = "") -> str:
    """The instruction that asks a model for a summary: preamble, analysis, nine sections, the person's own, trailer."""
    titles = section_titles(kind)
    guides = _guides()
    numbered = "\n".join(f"{n}. {title}: {guides[title]}" for n, title in enumerate(titles, 1))
    parts = [
        _text("summary-preamble.md"),
        f"Write a detailed summary of {_SCOPES[kind].rstrip(',')} so that the work can go on from it without loss.",
        _text("summary-analysis.md").format(scope=_SCOPES[kind]),
        f"Then write the summary inside <summary> tags, in these nine sections:\n{numbered}",
    ]
    if custom_instructions.strip():
        parts.append(f"Additional Instructions:\n{custom_instructions.strip()}")
    return "\n\n".join([*parts, _text("summary-trailer.md")])


@cache
def _text(name: str) -> str:
    """One of the texts in resources/prompts, where people can read and change them."""
    return resource("prompts", name).read_text("utf-8").strip()


def _guides() -> dict[str, str]:
    """What belongs into each section, by its title."""
    lines = (line.partition(": ") for line in _text("summary-sections.md").splitlines())
    return {title: guide for title, _colon, guide in lines}


def section_titles(kind: SummaryKind) -> tuple[str, ...]:
    """The nine titles of a summary of that kind."""
    return (*SECTIONS[:-1], CONTINUING_SECTION) if kind == "up_to" else SECTIONS


def format_compact_summary(answer: str) -> str:
    """The summary out of a model's answer (compaction.md 7): analysis removed, `<summary>` turned into a heading."""
    text = re.sub(r"<analysis>.*?</analysis>", "", answer, flags=re.DOTALL)
    found = re.search(r"<summary>(.*?)</summary>", text, flags=re.DOTALL)
    if found is not None:
        text = text[: found.start()] + "Summary:\n" + found.group(1).strip() + text[found.end() :]
    return re.sub(r"\n\s*\n(?:\s*\n)*", "\n\n", text).strip()


@dataclass(frozen=True, slots=True)
class SummaryMessage:
    """How the summary is put to the model (compaction.md 7).

    Attributes:
        transcript_path: where the full transcript is, "" to leave it out.
        recent_kept: recent messages follow verbatim.
        continue_unasked: go on without asking and without recapping.
        autonomous: nobody is there: do not greet either.
    """

    transcript_path: str = ""
    recent_kept: bool = False
    continue_unasked: bool = False
    autonomous: bool = False

    def text(self, summary: str) -> str:
        """The user message that carries the formatted `summary`."""
        parts = [
            "This session is being continued from a previous conversation that ran out of context. "
            "The summary below covers the earlier portion of the conversation.",
            summary,
        ]
        if self.transcript_path:
            parts.append(
                "If you need details from before this point (exact code, error messages, content you wrote), "
                f"read the full transcript at: {self.transcript_path}"
            )
        if self.recent_kept:
            parts.append("Recent messages are preserved verbatim.")
        if self.continue_unasked:
            parts.append(
                "Continue from where it was left off without asking the user anything further. Do not acknowledge "
                "the summary, do not recap what was happening, do not preface with anything: just go on with the work."
            )
        if self.autonomous:
            parts.append("You are working on your own: this is no first wake-up, so do not greet; go on at once.")
        return "\n\n".join(parts)
