"""Two states of a conversation as one tree with two sides: API rounds and blocks, aligned, totals at each level."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QColor, QFont

from compaction.conversation import Conversation
from compaction.request.alignment import AlignedBlock, Change, Place, align_requests, block_at
from compaction.request.wire import WireRequest
from compaction.strategies.context import ContextView
from compaction.transcript.preview import preview_of
from inspector.models.flat_tree import FlatRow, FlatTreeModel

_LEFT, _LEFT_TOKENS, _SIGN, _RIGHT, _RIGHT_TOKENS = range(5)
_PREVIEW = 160


@dataclass(frozen=True, slots=True)
class Side:
    """One state: its request, what each of its blocks takes, and the conversation it comes from."""

    request: WireRequest
    tokens: Mapping[Place, int]
    conversation: Conversation
    title: str


@dataclass(frozen=True, slots=True)
class BlockRow:
    """One aligned block with its previews and tokens; `record` is where it lies in the left side's transcript (−1
    when it is not there)."""

    aligned: AlignedBlock
    before: str
    after: str
    tokens_before: int
    tokens_after: int
    record: int

    @property
    def change(self) -> Change:
        """What became of it."""
        return self.aligned.change


@dataclass(slots=True)
class RoundGroup:
    """The blocks of one API round (0: before the first response, or put in by a compaction)."""

    number: int
    rows: list[BlockRow] = field(default_factory=list)

    @property
    def tokens_before(self) -> int:
        """Tokens on the left."""
        return sum(row.tokens_before for row in self.rows)

    @property
    def tokens_after(self) -> int:
        """Tokens on the right."""
        return sum(row.tokens_after for row in self.rows)

    def counts(self) -> str:
        """What changes in it, in words: "3 cleared, 1 removed"."""
        found: Counter[Change] = Counter(row.change for row in self.rows)
        del found[Change.KEPT]
        return ", ".join(f"{found[change]} {change.title}" for change in Change if found[change]) or "unchanged"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both sides aligned: what a worker prepares and the model shows."""

    left: Side
    right: Side
    groups: tuple[RoundGroup, ...]

    @property
    def rows(self) -> list[BlockRow]:
        """Every block, in order."""
        return [row for group in self.groups for row in group.rows]


def tokens_of(view: ContextView) -> dict[Place, int]:
    """Tokens of each block of a measured request."""
    return {part.place: part.tokens for part in view.parts}


def compare(left: Side, right: Side) -> Comparison:
    """Align two states block by block and group them by the left side's API rounds."""
    groups: list[RoundGroup] = []
    transcripts = left.conversation.transcript, right.conversation.transcript
    current = 0
    for aligned in align_requests(left.request, right.request, *transcripts):
        record = -1
        if aligned.before is not None:
            origin = left.request.messages[aligned.before[0]].origins[aligned.before[1]]
            if origin is not None:
                record = origin.record
                current = int(left.conversation.round_of[record])
        if not groups or groups[-1].number != current:
            groups.append(RoundGroup(current))
        groups[-1].rows.append(
            BlockRow(
                aligned,
                _preview(left.request, aligned.before),
                _preview(right.request, aligned.after),
                left.tokens.get(aligned.before, 0) if aligned.before is not None else 0,
                right.tokens.get(aligned.after, 0) if aligned.after is not None else 0,
                record,
            )
        )
    return Comparison(left, right, tuple(groups))


def _preview(request: WireRequest, place: Place | None) -> str:
    if place is None:
        return ""
    block = block_at(request, place)
    role = request.messages[place[0]].role
    kind = str(block.get("type") or "block").replace("_", " ")
    name = f"{role} · {kind}" if kind == "text" else kind
    return f"{name}: {preview_of(block, _PREVIEW)}"


class BeforeAfterModel(FlatTreeModel):
    """Rounds with their blocks; both sides in one row, so they scroll as one."""

    columns = ("Before", "Tokens", "", "After", "Tokens")
    figures = frozenset({_LEFT_TOKENS, _RIGHT_TOKENS})

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tones: dict[Change, QColor] = {}
        self._muted = QColor()
        self._bold = QFont()
        self._bold.setBold(True)
        self.only_changes = False
        self.comparison: Comparison | None = None

    def set_colours(self, tones: dict[Change, QColor], muted: QColor) -> None:
        """Backgrounds of the changes, and the text colour of what stays."""
        self._tones, self._muted = tones, muted
        self.set_comparison(self.comparison)

    def set_comparison(self, comparison: Comparison | None) -> None:
        """Show a comparison; rounds with changes are opened when there are few of them."""
        self.comparison = comparison
        rows: list[FlatRow] = []
        groups = [g for g in (comparison.groups if comparison else ()) if not self.only_changes or _changes(g)]
        open_all = sum(len(g.rows) for g in groups) <= 2_000
        for group in groups:
            row = FlatRow(group, 0, bool(group.rows))
            rows.append(row)
            if open_all and _changes(group):
                row.expanded = True
                rows += [FlatRow(child.data, 1) for child in self.children_of(row)]
        self.set_rows(rows)

    def children_of(self, row: FlatRow) -> list[FlatRow]:
        """The blocks of a round."""
        group: RoundGroup = row.data
        return [FlatRow(r) for r in group.rows if not self.only_changes or r.change is not Change.KEPT]

    def text(self, row: FlatRow, column: int) -> str:
        """Cells of a round (totals) or of a block (both sides)."""
        data = row.data
        if isinstance(data, RoundGroup):
            title = f"API round {data.number}" if data.number else "Before the first response"
            return (title, f"{data.tokens_before:,}", "", data.counts(), f"{data.tokens_after:,}")[column]
        block: BlockRow = data
        if column == _LEFT_TOKENS:
            return f"{block.tokens_before:,}" if block.aligned.before is not None else ""
        if column == _RIGHT_TOKENS:
            return f"{block.tokens_after:,}" if block.aligned.after is not None else ""
        if column == _SIGN:
            return block.change.value
        if column == _LEFT:
            return block.before
        return block.after if block.change is not Change.REMOVED else f"({block.change.title})"

    def decoration(self, row: FlatRow, column: int, role: int) -> Any:
        """Rounds in bold; a change's background on the side it concerns; words for the signs."""
        data = row.data
        if role == Qt.ItemDataRole.TextAlignmentRole and column == _SIGN:
            return int(Qt.AlignmentFlag.AlignCenter)
        if isinstance(data, RoundGroup):
            return self._bold if role == Qt.ItemDataRole.FontRole and column == _LEFT else None
        change = data.change
        if role == Qt.ItemDataRole.ToolTipRole and column == _SIGN:
            return change.title
        if role == Qt.ItemDataRole.ForegroundRole and change is Change.KEPT:
            return self._muted
        if role == Qt.ItemDataRole.BackgroundRole and column != _SIGN:
            left = column in (_LEFT, _LEFT_TOKENS)
            concerned = change is not Change.INSERTED if left else change is not Change.REMOVED
            return self._tones.get(change) if concerned else None
        return None

    def row_of(self, block: BlockRow) -> int:
        """The visible row of a block, its round opened for it; −1 when the filter hides it."""
        for number, row in enumerate(self.rows):
            if row.data is block:
                return number
            if isinstance(row.data, RoundGroup) and not row.expanded and any(r is block for r in row.data.rows):
                self.set_expanded(number, True)
                return self.row_of(block)
        return -1


def _changes(group: RoundGroup) -> bool:
    return any(row.change is not Change.KEPT for row in group.rows)


def text_of(block: Mapping[str, Any]) -> str:
    """What a person reads of a block, for the text difference."""
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind == "thinking":
        return str(block.get("thinking", ""))
    if kind == "tool_result":
        return _result_text(block.get("content"))
    return json.dumps(block, indent=2, ensure_ascii=False, default=str)


def _result_text(content: Any) -> str:
    if isinstance(content, Sequence) and not isinstance(content, str):
        return "\n".join(
            str(item.get("text", f"[{item.get('type')}]")) if isinstance(item, Mapping) else str(item)
            for item in content
        )
    return "" if content is None else str(content)
