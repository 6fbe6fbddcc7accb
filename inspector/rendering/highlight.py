"""Syntax colours: Pygments tokens laid over a document's blocks in small slices, only for short code."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QColor, QTextCharFormat, QTextDocument, QTextLayout

CODE_LIMIT = 100_000
"""Most characters of one piece of code that is coloured (1 MB of Python takes Pygments 0.86 s; qt.md 2d)."""

SLICE_SECONDS = 0.006


@dataclass(frozen=True, slots=True)
class CodeRange:
    """Lines of code in a document: its first block number, the column it starts at, and the code itself."""

    first_block: int
    column: int
    lines: tuple[str, ...]
    language: str
    file_name: str


_USUAL = {
    "h": "c",
    "ts": "typescript",
    "js": "javascript",
    "html": "html",
    "cs": "csharp",
    "sql": "sql",
    "m": "objective-c",
    "pl": "perl",
    "php": "php",
    "md": "markdown",
    "v": "verilog",
    "r": "r",
    "s": "gas",
    "txt": "text",
}
"""What a file name ending means where several languages claim it."""


@dataclass(frozen=True, slots=True)
class Languages:
    """Pygments' own languages: their names in lower case, and which of them a file name means.

    Attributes:
        aliases: every name.
        by_ending: ending of a file name without its dot → name.
        by_name: whole file name → name.
    """

    aliases: frozenset[str]
    by_ending: dict[str, str]
    by_name: dict[str, str]


@cache
def languages() -> Languages:
    """The languages without plug-ins: looking those up imports whatever other packages registered (0.25 s)."""
    from pygments.lexers import get_all_lexers

    aliases: set[str] = set()
    by_ending: dict[str, str] = {}
    by_name: dict[str, str] = {}
    for _name, names, patterns, _types in get_all_lexers(plugins=False):
        aliases.update(alias.lower() for alias in names)
        for pattern in patterns if names else ():
            if pattern.startswith("*.") and not set(pattern[2:]) & set("*?["):
                by_ending.setdefault(pattern[2:].lower(), names[0])
            elif not set(pattern) & set("*?["):
                by_name.setdefault(pattern.lower(), names[0])
    return Languages(frozenset(aliases), {**by_ending, **_USUAL}, by_name)


def lexer_for(language: str, file_name: str) -> Any | None:
    """The Pygments lexer for a language name or a file name, or None; never guessed from the text."""
    from pygments.lexers import get_lexer_by_name

    known = languages()
    alias = language.strip().lower()
    if not alias:
        name = file_name.replace("\\", "/").rsplit("/", 1)[-1].lower()
        alias = known.by_name.get(name) or known.by_ending.get(name.rpartition(".")[2] if "." in name else "", "")
    if alias not in known.aliases:
        return None
    return get_lexer_by_name(alias, stripnl=False, ensurenl=False)


class Highlighter(QObject):
    """Colours code ranges of a document one after the other while the event loop is idle."""

    def __init__(self, document: QTextDocument, syntax: dict[str, QColor], margin: QColor) -> None:
        super().__init__(document)
        self._margin = QTextCharFormat()
        self._margin.setForeground(margin)
        self._document = document
        self._syntax = syntax
        self._formats: dict[object, QTextCharFormat | None] = {}
        self._waiting: list[CodeRange] = []
        self._running: Iterator[None] | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._slice)

    @property
    def busy(self) -> bool:
        """Whether code is still waiting for its colours."""
        return self._timer.isActive()

    def add(self, code: CodeRange) -> None:
        """Queue a range; too long ones and ones of an unknown language stay plain."""
        if (code.language or code.file_name) and sum(map(len, code.lines)) <= CODE_LIMIT:
            self._waiting.append(code)
            self._timer.start()

    def stop(self) -> None:
        """Leave what waits without colours: the document is no longer shown."""
        self._waiting.clear()
        self._running = None
        self._timer.stop()

    def mute_margin(self, first_block: int, count: int, width: int) -> None:
        """Draw the first `width` characters (line numbers) of `count` blocks in the margin's colour."""
        block = self._document.findBlockByNumber(first_block)
        span = self._margin_range(width)
        for _ in range(count):
            block.layout().setFormats([span])
            block = block.next()

    def _margin_range(self, width: int) -> QTextLayout.FormatRange:
        span = QTextLayout.FormatRange()
        span.start = 0
        span.length = width
        span.format = self._margin
        return span

    def finish(self) -> None:
        """Colour all that waits now (for pictures and tests)."""
        while self._timer.isActive():
            self._slice()

    def _slice(self) -> None:
        end = time.perf_counter() + SLICE_SECONDS
        while time.perf_counter() < end:
            if self._running is None:
                if not self._waiting:
                    self._timer.stop()
                    return
                self._running = self._colour(self._waiting.pop(0))
            if next(self._running, self) is self:
                self._running = None

    def _colour(self, code: CodeRange) -> Iterator[None]:
        """Lay formats over the blocks of one range; yields after each line."""
        lexer = lexer_for(code.language, code.file_name)
        if lexer is None:
            return
        row, column = 0, 0
        formats: list[QTextLayout.FormatRange] = []
        for token, text in lexer.get_tokens("\n".join(code.lines)):
            form = self._format(token)
            for number, piece in enumerate(text.split("\n")):
                if number:
                    self._lay(code, row, formats)
                    yield
                    row, column, formats = row + 1, 0, []
                if piece and form is not None:
                    span = QTextLayout.FormatRange()
                    span.start = code.column + _utf16(code.lines[row][:column] if row < len(code.lines) else "")
                    span.length = _utf16(piece)
                    span.format = form
                    formats.append(span)
                column += len(piece)
        self._lay(code, row, formats)

    def _lay(self, code: CodeRange, row: int, formats: list[QTextLayout.FormatRange]) -> None:
        block = self._document.findBlockByNumber(code.first_block + row)
        if formats and row < len(code.lines) and block.isValid():
            margin = [self._margin_range(code.column)] if code.column else []
            block.layout().setFormats(margin + formats)
            self._document.markContentsDirty(block.position(), block.length())

    def _format(self, token: Any) -> QTextCharFormat | None:
        if token not in self._formats:
            self._formats[token] = self._new_format(str(token).removeprefix("Token."))
        return self._formats[token]

    def _new_format(self, name: str) -> QTextCharFormat | None:
        while name:
            colour = self._syntax.get(name)
            if colour is not None:
                form = QTextCharFormat()
                form.setForeground(colour)
                form.setFontItalic(name.startswith("Comment"))
                return form
            name = name.rpartition(".")[0]
        return None


def _utf16(text: str) -> int:
    """Length as Qt counts it: a character outside the basic plane is two."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "replace")) // 2
