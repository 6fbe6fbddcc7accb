"""Parts to a document: every text goes in as plain text with formats, or as Markdown without HTML."""

from __future__ import annotations

import itertools
import re
import secrets
from collections.abc import Iterable

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QFontMetricsF,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextImageFormat,
)

from inspector.rendering import ansi, diff
from inspector.rendering.highlight import CodeRange, Highlighter
from inspector.rendering.images import PICTURE_SHOWN, decode_image
from inspector.rendering.parts import (
    SIGNS,
    Checklist,
    Code,
    Diff,
    Fields,
    Heading,
    Markdown,
    Note,
    Part,
    Picture,
    Place,
    Places,
    Prose,
    Terminal,
    Tone,
    source_text,
)
from inspector.rendering.safe_document import SafeDocument
from inspector.rendering.tones import Colours
from inspector.rendering.visible_text import HIDDEN_MARK, bytes_text, hidden_controls, visible

PART_LIMIT = 256 * 1024
"""Most characters of one part in the rich view; the rest is folded behind "show all" (qt.md 2d)."""

DOCUMENT_LIMIT = 512 * 1024
"""Most characters of all parts together."""

MARKDOWN_LIMIT = 64 * 1024
"""Most characters laid out as Markdown (0.26 MB takes Qt 97 ms); longer text is shown plain."""

LINE_LIMIT = 1000
"""Lines are split after so many characters: one unbroken line of 1 MB takes Qt 21 s (qt.md 2d)."""

TABLE_LIMIT = 400
"""Most rows of a Markdown table that are laid out."""

_IN_TABLE = QTextFormat.Property.UserProperty.value + 1
"""Marks the paragraphs of table cells."""

_UNBROKEN = re.compile(rf"\S{{{LINE_LIMIT * 2},}}")
_TABLE_ROW = re.compile(r"^[ \t>]*\|", re.MULTILINE)
_CHECK_SIGNS = {"completed": "☑", "in_progress": "▣", "pending": "☐"}


class DocumentWriter:
    """Writes parts at the end of a `SafeDocument`.

    Attributes:
        folded: the texts of which only the beginning is shown, in the order of their "show all" links.
        places: the places written, in the order of their links.
    """

    def __init__(self, document: SafeDocument, colours: Colours, font: QFont) -> None:
        self._document = document
        self._colours = colours
        self._cursor = QTextCursor(document)
        self._font = font
        self._code_font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        self._code_font.setPointSizeF(font.pointSizeF() if font.pointSizeF() > 0 else 10.0)
        self._space = QFontMetricsF(font).height() / 2
        self._nonce = secrets.token_hex(8)
        self._empty = True
        self._used = 0
        self.folded: list[tuple[str, str]] = []
        self.places: list[Place] = []
        self.highlighter = Highlighter(document, colours.syntax, colours.muted)
        document.setDefaultFont(font)

    def fold_number(self, link: str) -> int | None:
        """Which folded text a link of this document opens; None for a link of the session."""
        return self._number("fold", link)

    def place_number(self, link: str) -> int | None:
        """Which of `places` a link of this document goes to; None for a link of the session."""
        return self._number("place", link)

    def _number(self, kind: str, link: str) -> int | None:
        # The nonce is new for each document, so that no text of a session can name a link of ours.
        prefix = f"{kind}-{self._nonce}:"
        return int(link.removeprefix(prefix)) if link.startswith(prefix) else None

    def write(self, parts: Iterable[Part]) -> None:
        """Append the parts; what is too large is cut, and the document says so at that place."""
        self._cursor.beginEditBlock()
        try:
            for part in parts:
                self._write_part(part)
        finally:
            self._cursor.endEditBlock()

    def _write_part(self, part: Part) -> None:
        text = source_text(part)
        room = min(part_limit(text), max(DOCUMENT_LIMIT - self._used, 0))
        if len(text) > room and not isinstance(part, Heading | Note):
            self._folded_part(part, text, room)
            return
        self._used += len(text)
        hidden = hidden_controls(text)
        match part:
            case Heading():
                self._heading(part)
            case Note():
                self._line(f"{SIGNS[part.tone]} {part.text}".strip(), self._tone_format(part.tone, small=True))
            case Prose():
                self._plain(part.text, self._tone_format(part.tone))
            case Markdown():
                self._markdown(part)
            case Code():
                self._code(part)
            case Terminal():
                self._terminal(part)
            case Diff():
                self._diff(part)
            case Checklist():
                self._checklist(part)
            case Fields():
                self._fields(part)
            case Picture():
                self._picture(part)
            case Places():
                self._places(part)
        if hidden:
            count = "1 character" if hidden == 1 else f"{hidden:,} characters"
            verb = "changes" if hidden == 1 else "change"
            text = f"Shown as {HIDDEN_MARK}: {count} that {verb} the direction of text."
            self._line(f"{SIGNS[Tone.WARNING]} {text}", self._tone_format(Tone.WARNING, small=True))

    # Single parts ---------------------------------------------------------------------------------------------

    def _folded_part(self, part: Part, text: str, room: int) -> None:
        """The beginning of a large part as plain text between two sentences that say what is not shown."""
        self.folded.append((_part_name(part), text))
        link = f"fold-{self._nonce}:{len(self.folded) - 1}"
        whole, shown = bytes_text(len(text)), bytes_text(room)
        sentence = f"Showing the first {shown} of {whole} as plain text." if room else f"{whole} are folded here."
        self._fold_line(sentence, link)
        if room:
            self._used += room
            self._code_lines(ansi.strip(text[:room]).split("\n"), "", "", 0)
            self._fold_line(f"{bytes_text(len(text) - room)} more.", link)

    def _fold_line(self, sentence: str, link: str) -> None:
        self._start_block(self._plain_block())
        self._cursor.insertText(f"{SIGNS[Tone.WARNING]} {sentence} ", self._tone_format(Tone.WARNING))
        self._cursor.insertText("Show all", self._link_format(link))

    def _places(self, part: Places) -> None:
        for place in part.places:
            block = self._plain_block()
            block.setTextIndent(-self._space * 2)
            block.setLeftMargin(self._space * 2)
            self._start_block(block)
            self._cursor.insertText(visible(f"{place.name}: "), self._tone_format(Tone.MUTED))
            form = self._tone_format(Tone.NEUTRAL)
            if place.record >= 0:
                self.places.append(place)
                form = self._link_format(f"place-{self._nonce}:{len(self.places) - 1}")
            self._cursor.insertText(visible(place.text), form)

    def _link_format(self, link: str) -> QTextCharFormat:
        form = self._tone_format(Tone.USER)
        form.setAnchor(True)
        form.setAnchorHref(link)
        form.setFontUnderline(True)
        return form

    def _heading(self, part: Heading) -> None:
        block = QTextBlockFormat()
        block.setBackground(self._colours.heading_background)
        block.setTopMargin(0 if self._empty else self._space * 1.4)
        block.setBottomMargin(self._space * 0.5)
        self._start_block(block)
        form = self._tone_format(part.tone)
        form.setFontWeight(QFont.Weight.Bold)
        sign = f"{SIGNS[part.tone]} " if SIGNS[part.tone] else ""
        self._cursor.insertText(visible(f" {sign}{part.title}"), form)
        if part.detail:
            self._cursor.insertText(visible(f"   {part.detail}"), self._tone_format(Tone.MUTED, small=True))

    def _plain(self, text: str, form: QTextCharFormat) -> None:
        self._start_block(self._plain_block())
        self._cursor.insertText(visible(_split_long(text)), form)

    def _line(self, text: str, form: QTextCharFormat) -> None:
        self._start_block(self._plain_block())
        self._cursor.insertText(visible(text), form)

    def _markdown(self, part: Markdown) -> None:
        text = part.text
        reason = _too_heavy_for_markdown(text)
        if reason:
            self._line(f"Shown as plain text: {reason}.", self._tone_format(Tone.MUTED, small=True))
            self._plain(text, self._tone_format(part.tone))
            return
        source = SafeDocument()
        source.setDefaultFont(self._font)
        features = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML
        source.setMarkdown(visible(text), features)
        _images_to_text(source)
        _tidy_tables(source)
        self._start_block(QTextBlockFormat())
        first = self._cursor.position()
        selection = QTextCursor(source)
        selection.select(QTextCursor.SelectionType.Document)
        self._cursor.insertFragment(selection.selection())
        self._restyle_markdown(first, part.tone)
        self._cursor.movePosition(QTextCursor.MoveOperation.End)

    def _restyle_markdown(self, first: int, tone: Tone) -> None:
        """Give code blocks our font and background and queue their colours; tint thinking; mark links."""
        block = self._document.findBlock(first)
        code: list[QTextBlock] = []
        while block.isValid():
            form = block.blockFormat()
            if form.hasProperty(QTextFormat.Property.BlockCodeFence) or form.hasProperty(
                QTextFormat.Property.BlockCodeLanguage
            ):
                code.append(block)
            else:
                self._flush_code(code)
                code = []
                self._restyle_block(block, tone)
            block = block.next()
        self._flush_code(code)

    def _restyle_block(self, block: QTextBlock, tone: Tone) -> None:
        cursor = QTextCursor(block)
        form = block.blockFormat()
        if not form.hasProperty(_IN_TABLE):
            form.setTopMargin(self._space * (1.0 if form.headingLevel() else 0.3))
            form.setBottomMargin(self._space * 0.3)
            cursor.setBlockFormat(form)
        wanted = QTextCharFormat()
        wanted.setForeground(self._colours.tones[tone])
        cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor)
        cursor.mergeCharFormat(wanted)
        ranges = [(span.start, span.length, QTextCharFormat(span.format)) for span in block.textFormats()]
        for start, length, char in ranges:
            if char.fontFixedPitch() or char.isAnchor():
                part = QTextCursor(self._document)
                part.setPosition(block.position() + start)
                part.setPosition(block.position() + start + length, QTextCursor.MoveMode.KeepAnchor)
                mark = QTextCharFormat()
                if char.isAnchor():
                    mark.setForeground(self._colours.tones[Tone.USER])
                    mark.setFontUnderline(True)
                else:
                    mark.setFontFamilies([self._code_font.family()])
                    mark.setBackground(self._colours.code_background)
                part.mergeCharFormat(mark)

    def _flush_code(self, blocks: list[QTextBlock]) -> None:
        if not blocks:
            return
        language = str(blocks[0].blockFormat().property(QTextFormat.Property.BlockCodeLanguage) or "")
        for number, block in enumerate(blocks):
            cursor = QTextCursor(block)
            form = self._code_block()
            form.setTopMargin(self._space * 0.5 if number == 0 else 0)
            form.setBottomMargin(self._space * 0.5 if number == len(blocks) - 1 else 0)
            form.setIndent(block.blockFormat().indent())
            cursor.setBlockFormat(form)
            cursor.setBlockCharFormat(self._code_format())
            cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor)
            cursor.setCharFormat(self._code_format())
        lines = tuple(block.text() for block in blocks)
        self.highlighter.add(CodeRange(blocks[0].blockNumber(), 0, lines, language, ""))

    def _code(self, part: Code) -> None:
        self._code_lines(part.text.split("\n"), part.language, part.file_name, part.first_line)

    def _code_lines(self, lines: list[str], language: str, file_name: str, first_line: int) -> None:
        width = len(str(first_line + len(lines))) if first_line else 0
        shown = [visible(line) for line in lines]
        long = any(len(line) > LINE_LIMIT for line in shown)
        self._start_block(self._code_block(margin=width + 2 if width else 0))
        first_block = self._cursor.block().blockNumber()
        if not width:
            self._cursor.insertText(_split_long("\n".join(shown)), self._code_format())
        else:
            rows: list[str] = []
            for number, line in enumerate(shown):
                pieces = _pieces(line)
                rows.append(f"{first_line + number:>{width}}  {pieces[0]}")
                rows += [f"{'':>{width}}↪ {piece}" for piece in pieces[1:]]
            self._cursor.insertText("\n".join(rows), self._code_format())
            self.highlighter.mute_margin(first_block, len(rows), width + 2)
        if not long:
            column = width + 2 if width else 0
            self.highlighter.add(CodeRange(first_block, column, tuple(shown), language, file_name))

    def _terminal(self, part: Terminal) -> None:
        self._start_block(self._code_block())
        column = 0
        for span in part.spans:
            text, column = _split_at(visible(span.text), column)
            self._cursor.insertText(text, self._span_format(span.style))

    def _diff(self, part: Diff) -> None:
        added, removed = diff.counts(part.rows)
        self._line(f"+{added:,} −{removed:,} lines", self._tone_format(Tone.MUTED, small=True))
        width = max((len(str(max(row.old_line, row.new_line))) for row in part.rows), default=1)
        backgrounds = {
            "+": self._colours.added_background,
            "-": self._colours.removed_background,
            "@": self._colours.gap_background,
        }
        for sign, group in itertools.groupby(part.rows, key=lambda row: row.sign):
            members = list(group)
            rows = [text for row in members for text in _diff_texts(row, width)]
            self._start_block(self._code_block(backgrounds.get(sign), 2 * width + 4))
            first_block = self._cursor.block().blockNumber()
            self._cursor.insertText("\n".join(rows), self._code_format())
            self.highlighter.mute_margin(first_block, len(rows), 2 * width + 2)
            if sign != "@" and len(rows) == len(members):
                lines = tuple(visible(row.text) for row in members)
                self.highlighter.add(CodeRange(first_block, 2 * width + 4, lines, "", part.file_name))

    def _checklist(self, part: Checklist) -> None:
        for state, text, facts in part.items:
            done = state == "completed"
            form = self._tone_format(Tone.MUTED if done else Tone.NEUTRAL)
            form.setFontStrikeOut(done)
            if state == "in_progress":
                form.setFontWeight(QFont.Weight.Bold)
            self._start_block(self._plain_block())
            self._cursor.insertText(f"{_CHECK_SIGNS.get(state, '?')} ", self._tone_format(Tone.NEUTRAL))
            self._cursor.insertText(visible(text), form)
            if facts:
                self._cursor.insertText(visible(f"   {facts}"), self._tone_format(Tone.MUTED, small=True))

    def _fields(self, part: Fields) -> None:
        name_format, value_format = self._tone_format(Tone.MUTED), self._code_format()
        for name, value in part.rows:
            block = self._plain_block()
            block.setTextIndent(-self._space * 2)
            block.setLeftMargin(self._space * 2)
            self._start_block(block)
            self._cursor.insertText(visible(f"{name}: "), name_format)
            self._cursor.insertText(visible(_split_long(value)), value_format)

    def _picture(self, part: Picture) -> None:
        image, problem = (None, part.problem) if part.problem else decode_image(part.data)
        size = bytes_text(len(part.data))
        if image is None:
            self._line(f"{SIGNS[Tone.WARNING]} {problem}", self._tone_format(Tone.WARNING))
            return
        form = QTextImageFormat()
        form.setName(self._document.add_image(image))
        form.setWidth(min(image.width(), PICTURE_SHOWN))
        form.setHeight(image.height() * form.width() / max(image.width(), 1))
        self._start_block(self._plain_block())
        self._cursor.insertImage(form)
        facts = f"{image.text('size')} points, {size}, {part.media_type or 'type not given'}"
        self._line(facts, self._tone_format(Tone.MUTED, small=True))

    # Formats --------------------------------------------------------------------------------------------------

    def _start_block(self, form: QTextBlockFormat) -> None:
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        if self._empty:
            self._cursor.setBlockFormat(form)
            self._empty = False
        else:
            self._cursor.insertBlock(form, QTextCharFormat())

    def _plain_block(self) -> QTextBlockFormat:
        form = QTextBlockFormat()
        form.setBottomMargin(self._space * 0.15)
        return form

    def _code_block(self, background: QColor | None = None, margin: int = 0) -> QTextBlockFormat:
        """A line of code; what wraps is indented by `margin` characters, the width of its line numbers."""
        form = QTextBlockFormat()
        indent = margin * QFontMetricsF(self._code_font).horizontalAdvance("0")
        form.setLeftMargin(indent)
        form.setTextIndent(-indent)
        form.setBackground(background if background is not None else self._colours.code_background)
        # Qt draws no background beyond a block's own text direction; code is always left to right.
        form.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        return form

    def _tone_format(self, tone: Tone, small: bool = False) -> QTextCharFormat:
        form = QTextCharFormat()
        form.setFont(self._font)
        form.setForeground(self._colours.tones[tone])
        if small:
            form.setFontPointSize(max(self._font.pointSizeF() * 0.9, 7.0))
        return form

    def _code_format(self) -> QTextCharFormat:
        form = QTextCharFormat()
        form.setFont(self._code_font)
        form.setForeground(self._colours.text)
        return form

    def _span_format(self, style: ansi.Style) -> QTextCharFormat:
        form = self._code_format()
        front = self._colour(style.foreground, self._colours.text)
        back = None if style.background is None else self._colour(style.background, self._colours.text)
        if style.inverse:
            front, back = back or self._colours.code_background, front
        if style.faint:
            front = self._colours.muted
        form.setForeground(front)
        if back is not None:
            form.setBackground(back)
            if style.foreground is None and not style.inverse:
                form.setForeground(QColor("black") if back.lightness() > 127 else QColor("white"))
        if style.bold:
            form.setFontWeight(QFont.Weight.Bold)
        form.setFontItalic(style.italic)
        form.setFontUnderline(style.underline)
        form.setFontStrikeOut(style.strike)
        return form

    def _colour(self, colour: ansi.Colour | None, default: QColor) -> QColor:
        if colour is None:
            return default
        if isinstance(colour, tuple):
            return QColor(*colour)
        return self._colours.terminal[colour] if colour < 16 else QColor(*ansi.palette_rgb(colour))


def part_limit(text: str) -> int:
    """Most characters of a text in the rich view: `PART_LIMIT`, a third of it for scripts beyond ASCII.

    Their characters take about three bytes each, and several times as long to lay out.
    """
    return PART_LIMIT if text[:PART_LIMIT].isascii() else PART_LIMIT // 3


def _images_to_text(document: QTextDocument) -> None:
    """Replace every image a session's Markdown names by a sentence with its target."""
    found: list[tuple[int, str]] = []
    block = document.begin()
    while block.isValid():
        for span in block.textFormats():
            if span.format.isImageFormat():
                target = span.format.toImageFormat().name()
                found += [(block.position() + span.start + offset, target) for offset in range(span.length)]
        block = block.next()
    for position, target in reversed(found):
        cursor = QTextCursor(document)
        cursor.setPosition(position)
        cursor.setPosition(position + 1, QTextCursor.MoveMode.KeepAnchor)
        cursor.insertText(f"[image, not loaded: {target}]", QTextCharFormat())


def _tidy_tables(document: QTextDocument) -> None:
    """Make the first cell of a table like the others.

    Qt's importer puts an empty paragraph before its text and gives it the format of a paragraph. This is done before
    the document is inserted: within an edit block a cursor does not know its table.
    """
    block = document.begin()
    while block.isValid():
        following = block.next()
        cursor = QTextCursor(block)
        table = cursor.currentTable()
        if table is not None:
            other = QTextCursor(following) if following.isValid() else cursor
            if not block.text() and other.currentTable() == table and table.cellAt(other) == table.cellAt(cursor):
                cursor.deleteChar()
                following = cursor.block().next()
            _tidy_cell(cursor, table.cellAt(cursor).row() == 0)
        block = following


def _tidy_cell(cursor: QTextCursor, header: bool) -> None:
    form = QTextBlockFormat()
    form.setAlignment(cursor.blockFormat().alignment())
    form.setProperty(_IN_TABLE, True)
    cursor.setBlockFormat(form)
    if header:
        bold = QTextCharFormat()
        bold.setFontWeight(QFont.Weight.Bold)
        cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor)
        cursor.mergeCharFormat(bold)


def _too_heavy_for_markdown(text: str) -> str:
    """Why the text is not laid out as Markdown, or ""."""
    if len(text) > MARKDOWN_LIMIT:
        return f"longer than {bytes_text(MARKDOWN_LIMIT)}"
    if _UNBROKEN.search(text):
        return f"it has a run of more than {LINE_LIMIT * 2:,} characters without a space"
    if len(_TABLE_ROW.findall(text)) > TABLE_LIMIT:
        return f"it has tables of more than {TABLE_LIMIT} rows"
    return ""


def _pieces(line: str) -> list[str]:
    """A line split after every `LINE_LIMIT` characters; an empty line is one empty piece."""
    if len(line) <= LINE_LIMIT:
        return [line]
    return [line[start : start + LINE_LIMIT] for start in range(0, len(line), LINE_LIMIT)]


def _split_at(text: str, column: int) -> tuple[str, int]:
    """The text with a newline after every `LINE_LIMIT` characters of a line that starts at `column`; the end column."""
    lines = text.split("\n")
    pieces: list[str] = []
    for number, line in enumerate(lines):
        start = 0 if number else column
        if start + len(line) <= LINE_LIMIT:
            pieces.append(line)
            column = start + len(line)
            continue
        head = LINE_LIMIT - start
        chunks = [line[:head], *_pieces(line[head:])]
        pieces.append("\n".join(chunks))
        column = len(chunks[-1])
    return "\n".join(pieces), column


def _split_long(text: str) -> str:
    """The text with every line split after `LINE_LIMIT` characters."""
    return _split_at(text, 0)[0]


def _diff_texts(row: diff.DiffRow, width: int) -> list[str]:
    """A diff row as text: both line numbers, the sign, the line; a long line continues on further rows."""
    pieces = _pieces(visible(row.text))
    if row.sign == "@":
        return [f"{'':>{width}} {'':>{width}} ⋯ {piece}" for piece in pieces]
    old, new = (str(number) if number else "" for number in (row.old_line, row.new_line))
    sign = "−" if row.sign == "-" else row.sign
    head = f"{old:>{width}} {new:>{width}} {sign} {pieces[0]}"
    return [head, *(f"{'':>{width}} {'':>{width}} ↪ {piece}" for piece in pieces[1:])]


def _part_name(part: Part) -> str:
    return {"Prose": "text", "Markdown": "text", "Terminal": "output"}.get(type(part).__name__, type(part).__name__)
