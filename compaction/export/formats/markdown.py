from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from compaction.conversation import Session
from compaction.export.document import DocumentBlock, DocumentEntry, document_entries
from compaction.export.facts import session_facts
from compaction.export.formats.base import ExportOptions, write_text
from compaction.export.writer import Written
from compaction.progress import Progress
from compaction.strategies.session_at import first_record_after


class Markdown:
    """The conversation as a Markdown document: headings by round, code in fences, nothing that a viewer would load."""

    name = "markdown"
    title = "Markdown document"
    suffix = ".md"

    def write(
        self, session: Session, target: str | Path, options: ExportOptions, progress: Progress | None = None
    ) -> Written:
        """Write the document."""
        return write_text(self.name, markdown(session, options.at), session, target, options, progress)


def markdown(session: Session, at: int | None = None) -> Iterator[str]:
    """The document in pieces."""
    conversation = session.conversation
    end = first_record_after(conversation, at) if at is not None else None
    yield "# Session\n\n"
    for name, value in session_facts(conversation, at):
        yield f"- **{name}**: {inline(value)}\n"
    number = -1
    for entry in document_entries(conversation, end):
        if entry.round != number:
            number = entry.round
            yield f"\n## Round {number}\n" if number else "\n## Before the next response\n"
        yield from _entry(entry)


def _entry(entry: DocumentEntry) -> Iterator[str]:
    if entry.role == "boundary":
        yield f"\n---\n\n**{inline(entry.title)}** (line {entry.line})\n\n---\n"
        return
    time = f", {inline(entry.time)}" if entry.time else ""
    yield f"\n### {inline(entry.title)}\n\n_line {entry.line}{time}_\n"
    for block in entry.blocks:
        yield "\n" + _block(block) + "\n"


def _block(block: DocumentBlock) -> str:
    if block.kind == "text":
        return prose(block.text)
    if block.kind == "image":
        return f"_Image ({inline(block.title)}, {len(block.text) * 3 // 4:,} bytes)_"
    title = f"**{inline(block.title)}**" + (" (failed)" if block.failed else "")
    if not block.text:
        return f"{title} (empty)"
    return f"{title}\n\n{fence(block.text, 'json' if block.kind == 'call' else '')}"


def fence(text: str, language: str = "") -> str:
    """`text` in a code fence that is longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}{language}\n{text}\n{marks}"


def prose(text: str) -> str:
    """Text of the session as Markdown that stays text: no HTML, no images that a viewer would fetch.

    Code (in fences or between backticks) stays as it was written; a fence that the text leaves open is closed.
    """
    out: list[str] = []
    mark = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if mark:
            if found is not None and found.group(1).startswith(mark) and not line.strip().strip(mark[0]):
                mark = ""
            out.append(line)
        elif found is not None:
            mark = found.group(1)
            out.append(line)
        else:
            out.append(_outside_code(line))
    if mark:
        out.append(mark)
    return "\n".join(out)


_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")


def _outside_code(line: str) -> str:
    pieces, position = [], 0
    for span in _CODE_SPAN.finditer(line):
        pieces += [_escaped(line[position : span.start()]), span.group()]
        position = span.end()
    return "".join([*pieces, _escaped(line[position:])])


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("![", "!\\[")


def inline(text: str) -> str:
    """One line with everything escaped that Markdown would read."""
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_\[\]|#!])", r"\\\1", plain)
