"""The rows of a comparison as a flat tree: messages with their blocks, dropped content between them."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QBrush, QColor, QFont

from inspector.models.as_sent_rows import SIGNS, Change, Comparison, SentRow, lines_text, side_text
from inspector.models.findings import SEVERITIES, TONES
from inspector.models.flat_tree import FlatRow, FlatTreeModel
from inspector.plain_text import plain_tip
from inspector.rendering.parts import SIGNS as PART_SIGNS
from inspector.rendering.tones import Colours
from inspector.rendering.visible_text import visible


class AsSentModel(FlatTreeModel):
    """ "As sent" beside "as stored"; the last column says in words what happened, so colour is never alone."""

    columns = ("As sent", "As stored", "What happened")

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.comparison: Comparison | None = None
        self._colours: Colours | None = None
        self._backgrounds: dict[Change, QBrush] = {}
        self._bold = QFont()
        self._bold.setBold(True)

    def set_comparison(self, comparison: Comparison | None) -> None:
        """Show a request; messages start open."""
        self.comparison = comparison
        rows: list[FlatRow] = []
        for row in comparison.rows if comparison is not None else ():
            rows.append(FlatRow(row, 0, bool(row.children), bool(row.children)))
            rows += [FlatRow(child, 1) for child in row.children]
        self.set_rows(rows)

    def set_colours(self, colours: Colours) -> None:
        """Colours of the present palette."""
        self._colours = colours
        self._backgrounds = {
            Change.DROPPED: QBrush(colours.removed_background),
            Change.CLEARED: QBrush(colours.removed_background),
            Change.INJECTED: QBrush(colours.added_background),
            Change.RENDERED: QBrush(colours.added_background),
            Change.CHANGED: QBrush(colours.changed_background),
        }
        if self.rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self.rows) - 1, 2))

    def number_of(self, record: int, position: int = -1) -> int:
        """The visible row of a record's block, else of the record; -1 when neither is in the list."""
        found = -1
        for number, row in enumerate(self.rows):
            sent: SentRow = row.data
            if sent.record != record or (row.level == 0 and row.expanded):
                continue
            if position < 0 or sent.position == position:
                return number
            if found < 0:
                found = number
        return found

    def number_of_place(self, message: int, block: int = -1) -> int:
        """The visible row of a place in the request; -1 when there is none."""
        header = -1
        for number, row in enumerate(self.rows):
            sent: SentRow = row.data
            if sent.message == message:
                if sent.block == block:
                    return number
                if sent.block < 0:
                    header = number
        return header

    def children_of(self, row: FlatRow) -> list[FlatRow]:
        """The blocks of a message."""
        return [FlatRow(child) for child in row.data.children]

    def text(self, row: FlatRow, column: int) -> str:
        """Either side, or what happened."""
        sent: SentRow = row.data
        if column == 2:
            return _happened(sent)
        if sent.change is Change.NOTE:
            return "—" if column == 1 else "about the request"
        if sent.is_message:
            return _message_text(sent, column)
        if column == 0:
            place = f"content.{sent.block}" if sent.block >= 0 else ""
            return visible(side_text(sent.sent, place)) if sent.sent is not None else "— not sent —"
        if sent.record < 0:
            return "— no record —"
        place = f"line {sent.line:,}" + (f" [{sent.position}]" if sent.position >= 0 else "")
        return visible(side_text(sent.stored, place))

    def decoration(self, row: FlatRow, column: int, role: int) -> object:
        """Backgrounds of what changed, violations in the error colour, messages in bold."""
        sent: SentRow = row.data
        if role == Qt.ItemDataRole.BackgroundRole:
            return self._backgrounds.get(sent.change)
        if role == Qt.ItemDataRole.FontRole:
            return self._bold if sent.is_message and column == 0 else None
        if role == Qt.ItemDataRole.ForegroundRole and self._colours is not None:
            return self._foreground(sent, column)
        if role == Qt.ItemDataRole.ToolTipRole and sent.violations:
            return plain_tip("\n".join(visible(violation.message) for violation in sent.violations[:5]))
        return None

    def _foreground(self, sent: SentRow, column: int) -> QColor | None:
        if self._colours is None:
            return None
        if column == 2 and sent.violations:
            worst = min(sent.violations, key=lambda violation: SEVERITIES.index(violation.severity))
            return self._colours.tones[TONES[worst.severity]]
        if (column == 1 and sent.record < 0) or (column == 0 and sent.sent is None and not sent.is_message):
            return self._colours.muted
        return None


def _message_text(sent: SentRow, column: int) -> str:
    if column == 0:
        count = sum(child.block >= 0 for child in sent.children)
        return f"messages.{sent.message} · {sent.role} · {count:,} {'block' if count == 1 else 'blocks'}"
    lines = [child.line for child in sent.children if child.line and child.change is not Change.DROPPED]
    return lines_text(lines) if lines else "— no record —"


def _happened(sent: SentRow) -> str:
    words = [f"{SIGNS[sent.change]} {sent.text}".strip()] if sent.text else []
    words += [f"{PART_SIGNS[TONES[found.severity]]} {found.rule} {found.message}" for found in sent.violations]
    return visible("   ".join(words))
