"""The request of a round beside the records it was made of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QMargins, QModelIndex, Qt
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QLabel,
    QSpinBox,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from compaction.progress import Progress
from inspector.context import AppContext
from inspector.documents.document import Document, Scope, Selection
from inspector.models.as_sent import AsSentModel
from inspector.models.as_sent_rows import (
    MEANINGS,
    SIGNS,
    Change,
    Comparison,
    SentRow,
    absence,
    compare,
    stored_block,
)
from inspector.models.findings import TONES
from inspector.models.flat_tree import FlatRow
from inspector.rendering import diff
from inspector.rendering.blocks import parts_of_block
from inspector.rendering.content import record_parts
from inspector.rendering.parts import Code, Diff, Heading, Note, Part, Tone
from inspector.rendering.pieces import Surroundings, json_code
from inspector.rendering.tones import colours_for
from inspector.views.client_chooser import ClientChooser
from inspector.views.column_sizes import ColumnSizes
from inspector.views.detail.pages import plain_label
from inspector.views.detail.rich_view import RichView
from inspector.views.flat_tree_view import FlatTreeView
from inspector.views.flow_layout import FlowLayout, together
from inspector.work.jobs import Job, Op

if TYPE_CHECKING:
    from compaction.diagnosis.model import Finding

_UNMENDED = 2

DIFFERENCE_LIMIT = 64 * 1024
"""Most characters of two blocks whose difference is shown."""

_LEGEND = (Change.CHANGED, Change.CLEARED, Change.RENDERED, Change.INJECTED, Change.DROPPED, Change.MERGED)


class AsSentView(QWidget):
    """Messages and blocks as a client sends them, each beside its record; follows the tree and leads it."""

    def __init__(self, context: AppContext, document: Document) -> None:
        super().__init__()
        self._context = context
        self._document = document
        self._job: Job[Comparison] | None = None
        self._stale = True
        self._following = False
        self._wanted: tuple[int, int] | None = None
        self._wanted_place: tuple[int, int] | None = None
        self.model = AsSentModel(self)
        self.tree = FlatTreeView(self.model)
        self.tree.setAccessibleName("Request beside the records")
        self.stored, self.sent = RichView(), RichView()
        self.stored.setAccessibleName("As stored")
        self.sent.setAccessibleName("As sent")
        versions = document.conversation.transcript.version_names if document.conversation is not None else []
        self.client = ClientChooser(document.diagnosis, versions)
        self.which = QComboBox()
        self.which.addItems(["Next request", "Request of API round", "Next request, nothing mended"])
        self.which.setToolTip(
            "The last one is what the file itself asks for, before the client repairs, drops or clears: "
            "the doctor judges that one."
        )
        self.which.setAccessibleName("Which request")
        self.round = QSpinBox()
        self.round.setAccessibleName("API round")
        self.round.setMinimum(1)
        self.round.setKeyboardTracking(False)
        self.follow = QCheckBox("Follow the tree")
        self.follow.setToolTip("Show the request of the API round that is selected in the tree.")
        self.follow.setChecked(True)
        self.state = plain_label()
        self.state.setWordWrap(True)
        self.legend = plain_label()
        self._build()
        self._connect()
        self._recolour()
        self._on_reloaded()

    def _build(self) -> None:
        bar = FlowLayout(QMargins(8, 6, 8, 4))
        for widget in (together(QLabel("Client"), self.client), self.which, self.round, self.follow):
            bar.addWidget(widget)
        words = QVBoxLayout()
        words.setContentsMargins(9, 0, 9, 5)
        words.setSpacing(2)
        words.addWidget(self.state)
        words.addWidget(self.legend)
        self.legend.setWordWrap(True)
        sides = QSplitter(Qt.Orientation.Horizontal)
        for title, view in (("As sent", self.sent), ("As stored", self.stored)):
            column = QWidget()
            layout = QVBoxLayout(column)
            layout.setContentsMargins(0, 0, 0, 0)
            layout.setSpacing(0)
            label = plain_label(title)
            label.setContentsMargins(9, 4, 9, 4)
            layout.addWidget(label)
            layout.addWidget(view, 1)
            sides.addWidget(column)
        split = QSplitter(Qt.Orientation.Vertical)
        split.addWidget(self.tree)
        split.addWidget(sides)
        split.setStretchFactor(0, 3)
        split.setStretchFactor(1, 2)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(bar)
        layout.addLayout(words)
        layout.addWidget(split, 1)
        ColumnSizes(self.tree)

    def _connect(self) -> None:
        self.which.currentIndexChanged.connect(self._on_which)
        self.round.valueChanged.connect(self._on_round)
        self.follow.toggled.connect(self._on_follow)
        self.tree.row_selected.connect(self._on_row)
        self.tree.row_activated.connect(self._on_activated)
        self._document.reloaded.connect(self._on_reloaded)
        self._document.selection_changed.connect(self._on_selection)
        self._document.diagnosis.client_changed.connect(self._request)

    # What to show ---------------------------------------------------------------------------------------------

    @property
    def at(self) -> int | None:
        """The API round whose request is shown; None for the next request."""
        return self.round.value() if self.which.currentIndex() == 1 else None

    def show_round(self, number: int | None) -> None:
        """Show the request that led to a round's response; None shows the next request."""
        blocked = self.round.blockSignals(True), self.which.blockSignals(True)
        self.which.setCurrentIndex(0 if number is None else 1)
        if number is not None:
            self.round.setValue(number)
        self.round.blockSignals(blocked[0])
        self.which.blockSignals(blocked[1])
        self.round.setEnabled(number is not None)
        self._request()

    def show_record(self, record: int, position: int = -1) -> None:
        """Select a record's block in the request, or where it was dropped."""
        self._wanted = (record, position)
        self._select_wanted()

    def show_finding(self, finding: Finding) -> None:
        """Show the request as the file stands and select the place a finding names, else its record."""
        self._wanted_place = place_of_path(finding.wire)
        if finding.records:
            self._wanted = (finding.records[0], -1)
        if self.which.currentIndex() == _UNMENDED and not self._stale:
            self._select_wanted()
        else:
            self.which.setCurrentIndex(_UNMENDED)

    def show_place(self, message: int, block: int = -1) -> None:
        """Select a place of the request, `messages.<message>.content.<block>`."""
        number = self.model.number_of_place(message, block)
        if number >= 0:
            self.tree.select_row(number)

    def _on_reloaded(self) -> None:
        conversation = self._document.conversation
        if conversation is None:
            return
        rounds = conversation.round_count
        self.round.blockSignals(True)
        self.round.setMaximum(max(rounds, 1))
        self.round.blockSignals(False)
        self.round.setEnabled(self.which.currentIndex() == 1)
        self.which.setEnabled(rounds > 0)
        self.client.set_recorded(conversation.transcript.version_names)
        self._on_selection(self._document.selection)
        self._request()

    def _on_which(self, index: int) -> None:
        self.model.set_comparison(None)
        self.round.setEnabled(index == 1)
        self._request()

    def _on_round(self, _number: int) -> None:
        self._request()

    def _on_follow(self, on: bool) -> None:
        if on:
            self._on_selection(self._document.selection)

    def _on_selection(self, selection: Selection) -> None:
        """Follow the tree: its round's request, its record's row."""
        if self._following or selection.conversation is not self._document.conversation or selection.record < 0:
            return
        position = -1
        if selection.scope is Scope.BLOCK and selection.conversation is not None:
            position = int(selection.conversation.transcript.block_position[selection.block])
        self._wanted = (selection.record, position)
        if self.follow.isChecked():
            number = selection.round if selection.scope is Scope.ROUND and selection.round > 0 else None
            shown = self.at
            if number is not None and number != shown:
                self.show_round(number)
                return
        self._select_wanted()

    def _request(self) -> None:
        """Rebuild in the background when the view can be seen."""
        conversation = self._document.conversation
        if conversation is None:
            return
        if not self.isVisible() or not conversation.transcript.complete:
            self._stale = True
            return
        self._stale = False
        client, at = self._document.diagnosis.client, self.at
        if at is not None and at > conversation.round_count:
            at = None
        unmended = self.which.currentIndex() == _UNMENDED

        def work(progress: Progress) -> Comparison:
            from compaction.diagnosis.requests import check_request
            from compaction.diagnosis.stored import stored_request
            from compaction.request import assemble, default_client

            profile = client or default_client(conversation)
            request = stored_request(conversation, profile).request if unmended else assemble(conversation, profile, at)
            progress.check()
            violations = check_request(request)
            progress.check()
            return compare(conversation, request, violations)

        self.state.setText("Rebuilding the request…")
        job = self._context.runner.start(Op("Rebuilding the request", work, token=f"as sent {id(self)}"))
        job.success(self._on_comparison).failure(self._on_failure)
        self._job = job

    def showEvent(self, event: QEvent) -> None:
        """Rebuild what was asked for while the view was hidden."""
        super().showEvent(event)  # type: ignore[arg-type]
        if self._stale:
            self._request()

    def _on_comparison(self, comparison: Comparison) -> None:
        shown, bar = self.model.comparison, self.tree.verticalScrollBar()
        again = shown is not None and (shown.request.client, shown.request.at) == (
            comparison.request.client,
            comparison.request.at,
        )
        top = bar.value() if again else 0
        self.model.set_comparison(comparison)
        self.state.setText(state_text(comparison, self.which.currentIndex() == _UNMENDED))
        self.legend.setText(legend_text(comparison))
        if not self._select_wanted() and self._wanted is None:
            first = next((n for n, row in enumerate(self.model.rows) if row.data.is_message), -1)
            self._select_quietly(first)
        if again:
            bar.setValue(top)

    def _on_failure(self, error: Exception) -> None:
        self.model.set_comparison(None)
        self.state.setText(f"✖ The request cannot be rebuilt: {error}")
        self.legend.clear()

    # Selection ------------------------------------------------------------------------------------------------

    def _select_wanted(self) -> bool:
        """Select the row of the wanted place or record without leading the tree back."""
        if self.model.comparison is None:
            return False
        number = -1
        if self._wanted_place is not None:
            number = self.model.number_of_place(*self._wanted_place)
            self._wanted_place = None
        elif self._wanted is not None:
            number = self.model.number_of(*self._wanted)
        if number < 0 and self._wanted is None:
            return False
        self._select_quietly(number)
        if number < 0 and self._wanted is not None:
            self._show_absent(*self._wanted)
        return number >= 0

    def _select_quietly(self, number: int) -> None:
        """Select a row (-1: none) without leading the tree there."""
        self._following = True
        if number >= 0:
            self.tree.select_row(number)
        else:
            self.tree.setCurrentIndex(QModelIndex())
        self._following = False

    def _show_absent(self, record: int, position: int) -> None:
        """A record that this request does not hold: the record itself, and the reason."""
        conversation = self._document.conversation
        if conversation is None or self.model.comparison is None or record >= len(conversation.transcript):
            return
        line = int(conversation.transcript.line[record])
        reason = absence(conversation, record, self.model.comparison.request.at)
        self.sent.set_parts([Note(f"Line {line:,} is not in this request. {reason}", Tone.WARNING)])
        block = stored_block(conversation, record, position) if position >= 0 else None
        self.stored.set_parts(parts_of_block(block) if block is not None else record_parts(conversation, record))

    def _on_row(self, row: FlatRow | None) -> None:
        sent: SentRow | None = row.data if row is not None else None
        self._show_sides(sent)
        if sent is None or self._following or sent.record < 0:
            return
        self._lead(sent)

    def _on_activated(self, row: FlatRow) -> None:
        if row.expandable:
            self.tree.toggle(self.model.rows.index(row))
        elif row.data.record >= 0:
            self._lead(row.data)

    def _lead(self, sent: SentRow) -> None:
        """Select the row's record in the tree."""
        conversation = self._document.conversation
        if conversation is None:
            return
        block = -1
        if sent.position >= 0 and not sent.is_message:
            rows = conversation.transcript.blocks_of(sent.record)
            block = next((b for b in rows if int(conversation.transcript.block_position[b]) == sent.position), -1)
        self._following = True
        self._document.select_record(sent.record, conversation, block)
        self._following = False

    def _show_sides(self, sent: SentRow | None) -> None:
        self.sent.set_parts(sent_parts(sent))
        self.stored.set_parts(stored_parts(sent))

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Pass the focus on; a focus proxy would take the other controls out of the Tab order (Qt 6.11)."""
        self.tree.setFocus(event.reason())

    def changeEvent(self, event: QEvent) -> None:
        """Follow the palette."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._recolour()

    def _recolour(self) -> None:
        self.model.set_colours(colours_for(self.palette()))


def state_text(comparison: Comparison, unmended: bool = False) -> str:
    """How the request was found and what is not known of it, in one line."""
    request = comparison.request
    if unmended:
        words = ["What the file asks for, before any client mends it"]
    elif request.verified == "hash":
        words = ["✔ Verified by hash: every message is proven by its recorded SHA-256"]
    else:
        words = [f"Rebuilt by the rules of client {request.client} (profile)"]
    count = len(request.messages)
    words.append(f"{count:,} {'message' if count == 1 else 'messages'}")
    if request.model:
        words.append(request.model)
    unknown = len(request.unaccounted)
    if unknown:
        words.append(f"▲ {unknown:,} {'thing is' if unknown == 1 else 'things are'} not accounted for")
    broken = sum(violation.severity == "error" for violation in comparison.violations)
    words.append(f"✖ breaks {broken:,} API {'rule' if broken == 1 else 'rules'}" if broken else "✔ breaks no API rule")
    return " · ".join(words)


def legend_text(comparison: Comparison) -> str:
    """The signs that occur, with what they mean and how often."""
    counts = comparison.counts
    shown = [
        f"{SIGNS[change]} {counts[change]:,} {change.value} ({MEANINGS[change]})"
        for change in _LEGEND
        if counts.get(change)
    ]
    return "    ".join(shown) or "Everything is sent as it is stored."


def place_of_path(path: str) -> tuple[int, int] | None:
    """Message and block of `messages.3.content.0` or `messages.3`; None for a path of another form."""
    match = re.match(r"messages\.(\d+)(?:\.content\.(\d+))?", path)
    if match is None:
        return None
    return int(match.group(1)), int(match.group(2)) if match.group(2) else -1


def sent_parts(sent: SentRow | None) -> list[Part]:
    """What the model got at this row, with the rules it breaks."""
    if sent is None:
        return [Note("Select a row.")]
    parts: list[Part] = []
    for violation in sent.violations:
        tone = TONES[violation.severity]
        title = f"{violation.rule} broken" if violation.severity != "info" else violation.rule
        parts += [Heading(title, violation.path, tone), Note(violation.message, tone)]
        if violation.api_error:
            parts += [Note("The API says:"), Code(violation.api_error)]
    if sent.change is Change.NOTE:
        return [*parts, Note(sent.text), *_recorded(sent.sent)]
    if sent.is_message:
        parts.append(Note(f"messages.{sent.message}, role {sent.role}. {sent.text}"))
        return parts
    if sent.sent is None:
        return [*parts, Note(f"Not sent: {sent.text}", Tone.WARNING)]
    if sent.text:
        parts.append(Note(f"{SIGNS[sent.change]} {sent.text}"))
    if sent.change is Change.CHANGED and sent.stored is not None:
        parts += _difference(sent.stored, sent.sent)
    return parts + parts_of_block(sent.sent, Surroundings(role=sent.role))


def _recorded(fields: Mapping[str, Any] | None) -> list[Part]:
    """What the transcript records of a request beside its messages: texts as texts, all else as JSON."""
    parts: list[Part] = []
    for name, value in (fields or {}).items():
        texts = [entry for entry in value if isinstance(entry, Mapping)] if name == "system prompt" else []
        for block in texts:
            parts += parts_of_block(block, Surroundings(role="system"))
        if not texts:
            parts += [Heading(name), json_code(value)]
    return parts


def _difference(stored: Mapping[str, Any], sent: Mapping[str, Any]) -> list[Part]:
    """The members that differ, stored against sent; nothing for blocks too large to compare at once."""
    before, after = json_code(stored).text, json_code(sent).text
    if len(before) + len(after) > DIFFERENCE_LIMIT:
        return []
    rows = diff.rows_of_texts(before, after, context=0)
    return [Diff(tuple(row for row in rows if row.sign in "+-"))]


def stored_parts(sent: SentRow | None) -> list[Part]:
    """What the file holds for this row."""
    if sent is None or sent.is_message or sent.change is Change.NOTE:
        return []
    if sent.stored is None:
        return [Note("No record holds this: the client put it in.")]
    return parts_of_block(sent.stored, Surroundings(role=sent.role))
