"""The detail pane: follows the selection and shows it in five sections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QAction, QFocusEvent, QKeySequence
from PySide6.QtWidgets import QTabWidget, QVBoxLayout, QWidget

from compaction.progress import Progress
from inspector.context import AppContext
from inspector.documents.document import Document, Scope, Selection
from inspector.models.finding_parts import block_of, halves_of
from inspector.models.findings import TONES
from inspector.rendering.content import MANY_RECORDS, WORKER_BYTES, Prepared, Subject, prepare, raw_text
from inspector.rendering.highlight import languages
from inspector.rendering.images import decode_pictures
from inspector.rendering.parts import Note, Part, Place, Places
from inspector.rendering.relations import Relation, relations_of
from inspector.rendering.usage_rows import usage_rows
from inspector.views.detail.find_bar import FindBar
from inspector.views.detail.pages import JsonPage, LinksPage, RawPage, RenderedPage, UsagePage, plain_label
from inspector.work.jobs import Op

COALESCE_MILLISECONDS = 25
"""Waiting time before a new selection is shown, so that a held arrow key does not decode every record it passes."""

AS_SENT_VIEW = "as_sent"

_LINKS, _USAGE = 3, 4


class DetailPane(QWidget):
    """Rendered content, JSON, raw text, links and usage of what is selected in a document."""

    def __init__(self, context: AppContext, document: Document) -> None:
        super().__init__()
        self._context = context
        self._document = document
        self._subject: Subject | None = None
        self._prepared: Prepared | None = None
        self._filled: set[int] = set()
        self._notes: list[Part] = []
        self._headline = plain_label("Nothing selected")
        self._headline.setContentsMargins(9, 5, 9, 5)
        self._headline.setWordWrap(True)
        self._headline.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.rendered, self.json, self.raw = RenderedPage(), JsonPage(), RawPage()
        self.links, self.usage = LinksPage(), UsagePage()
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.setAccessibleName("Sections of the selection")
        self._fillers: tuple[Callable[[Subject], None], ...] = (
            self._fill_rendered,
            self._fill_json,
            self._fill_raw,
            self._fill_links,
            self._fill_usage,
        )
        pages: tuple[tuple[QWidget, str], ...] = (
            (self.rendered, "Rendered"),
            (self.json, "JSON"),
            (self.raw, "Raw text"),
            (self.links, "Links"),
            (self.usage, "Usage"),
        )
        for page, title in pages:
            self.tabs.addTab(page, title)
        self.find_bar = FindBar()
        self.find_bar.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._headline)
        layout.addWidget(self.tabs, 1)
        layout.addWidget(self.find_bar)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(COALESCE_MILLISECONDS)
        self._connect()
        # Pygments takes 50 ms to import: a worker does it, so that the first coloured code does not wait.
        context.runner.start(Op("Preparing syntax colours", lambda _progress: languages(), quiet=True))
        self._on_selection(document.selection)

    def _connect(self) -> None:
        self._timer.timeout.connect(self._show_pending)
        self.tabs.currentChanged.connect(self._fill)
        self.links.chosen.connect(self._on_relation)
        self.find_bar.wanted.connect(self._on_find)
        self.find_bar.closed.connect(self._on_find_closed)
        self.rendered.whole.found.connect(self._on_found)
        self.raw.view.found.connect(self._on_found)
        self.json.whole.found.connect(self._on_found)
        self._document.selection_changed.connect(self._on_selection)
        self._document.reloaded.connect(self._on_reloaded)
        self._document.diagnosis.changed.connect(self._on_diagnosis)
        self.rendered.rich.place_chosen.connect(self._on_place)
        find = QAction("Find in section", self)
        find.setShortcut(QKeySequence.StandardKey.Find)
        find.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        find.triggered.connect(self.find_bar.open)
        self.addAction(find)

    # Selection ------------------------------------------------------------------------------------------------

    def _on_reloaded(self) -> None:
        # The tree selects the same place again in the new conversation; until then the old content stays.
        self._subject = subject_of(self._document.selection)
        self._timer.start()

    def _on_selection(self, selection: Selection) -> None:
        self._subject = subject_of(selection)
        self._timer.start()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """The sections take the focus: arrows choose one, Tab goes into it."""
        self.tabs.setFocus(event.reason())

    def show_now(self) -> None:
        """Show the selection without waiting (for pictures)."""
        if self._timer.isActive():
            self._timer.stop()
            self._show_pending()

    def _clear(self) -> None:
        self._context.runner.supersede(self._token)
        self._prepared = None
        self._filled = set()
        self._headline.setText("Nothing selected")
        self.rendered.set_parts([Note("Select a record or block in the tree to see it here.")])
        self.json.model.set_rows([])
        self.raw.set_text("", 0, 0)
        self.links.set_relations([])
        self.usage.set_rows([])

    @property
    def _token(self) -> str:
        return f"detail {id(self)}"

    def _show_pending(self) -> None:
        """Decode the subject, in a worker when it is large."""
        subject = self._subject
        if subject is None:
            self._clear()
            return
        if self._prepared is not None and _same_content(subject, self._prepared.subject):
            self._keep(subject, self._prepared)
            return
        if subject.size <= WORKER_BYTES:
            self._context.runner.supersede(self._token)
            self._on_prepared(prepare(subject))
            return

        def work(progress: Progress) -> Prepared:
            prepared = prepare(subject, progress)
            decode_pictures(prepared.parts)
            return prepared

        job = self._context.runner.start(Op("Reading the selection", work, token=self._token, quiet=True))
        job.success(self._on_prepared)

    def _keep(self, subject: Subject, prepared: Prepared) -> None:
        """The same records in a reloaded session: content and scroll position stay, links and usage are new."""
        self._context.runner.supersede(self._token)
        self._prepared = replace(prepared, subject=subject)
        self._filled -= {_LINKS, _USAGE}
        self._fill(self.tabs.currentIndex())

    def _on_prepared(self, prepared: Prepared) -> None:
        if prepared.subject is not self._subject:
            return
        self._prepared = prepared
        self._filled = set()
        self._headline.setText(prepared.headline)
        self._headline.setToolTip("")
        self._fill(self.tabs.currentIndex())

    # Sections -------------------------------------------------------------------------------------------------

    def _fill(self, section: int) -> None:
        """Fill a section when it is first looked at."""
        if self._prepared is None or section in self._filled or section < 0:
            return
        self._filled.add(section)
        self._fillers[section](self._prepared.subject)

    def _fill_rendered(self, subject: Subject) -> None:
        if self._prepared is not None:
            self._notes = self._finding_notes(subject)
            self.rendered.set_parts([*self._notes, *self._prepared.parts])

    def _finding_notes(self, subject: Subject) -> list[Part]:
        """What the doctor says about a single record, with the places of the missing half."""
        if len(subject.records) != 1 or subject.conversation is not self._document.conversation:
            return []
        notes: list[Part] = []
        for finding in self._document.diagnosis.of_record(subject.records[0]):
            if subject.block >= 0 and block_of(finding, subject.conversation, subject.records[0]) != subject.block:
                continue
            words = " ".join(word for word in (finding.message, finding.why) if word)
            notes.append(Note(f"{finding.rule} {words}".strip(), TONES[finding.severity]))
            notes.append(Places(tuple(halves_of(finding, subject.conversation))))
        return notes

    def _on_diagnosis(self) -> None:
        """Say it in the rendered section when the doctor has something new about the record."""
        if self._prepared is None or 0 not in self._filled:
            return
        if self._finding_notes(self._prepared.subject) != self._notes:
            self._filled.discard(0)
            self._fill(self.tabs.currentIndex())

    def _on_place(self, place: Place) -> None:
        self._document.select_record(place.record, self._document.conversation, place.block)

    def _fill_json(self, _subject: Subject) -> None:
        if self._prepared is not None:
            self.json.set_value(self._prepared.value, self._prepared.name)

    def _fill_raw(self, subject: Subject) -> None:
        left_out = self._prepared.left_out if self._prepared is not None else 0
        records = subject.records[: max(subject.total, len(subject.records)) - left_out]
        conversation = subject.conversation
        if subject.size <= WORKER_BYTES:
            self.raw.set_text(*raw_text(conversation, records), left_out)
            return
        self.raw.set_text("", 0, 0)
        op = Op("Reading the bytes", lambda _progress: raw_text(conversation, records), self._token + " raw", True)

        def show(found: tuple[str, int]) -> None:
            if self._subject is subject:
                self.raw.set_text(*found, left_out)

        self._context.runner.start(op).success(show)

    def _fill_links(self, subject: Subject) -> None:
        relations = relations_of(subject.conversation, subject.records[0], subject.block)
        if subject.conversation is not self._document.conversation:
            # A subagent's requests are its own; the view beside the tree shows those of the main conversation.
            relations = [relation for relation in relations if not relation.round]
        self.links.set_relations(relations)

    def _fill_usage(self, subject: Subject) -> None:
        self.usage.set_rows(usage_rows(subject.conversation, subject.records[-1]))

    def _on_relation(self, relation: Relation) -> None:
        if self._subject is None:
            return
        if relation.record >= 0:
            self._document.select_record(relation.record, self._subject.conversation, relation.block)
            return
        workspace = self._context.workspace
        widget = workspace.show_view(AS_SENT_VIEW) if workspace is not None else None
        show_round = getattr(widget, "show_round", None)
        if show_round is not None:
            show_round(relation.round)

    # Find -----------------------------------------------------------------------------------------------------

    def _on_find(self, needle: str, backward: bool) -> None:
        if not needle:
            return
        page = self.tabs.currentWidget()
        if page is self.rendered and self.rendered.currentIndex() == 0:
            self.find_bar.tell(self.rendered.rich.find_text(needle, backward))
        elif page is self.rendered:
            self.rendered.whole.find_text(needle, backward)
        elif page is self.json and self.json.currentIndex() == 1:
            self.json.whole.find_text(needle, backward)
        elif page is self.json:
            self.find_bar.tell(self.json.find_text(needle, backward))
        else:
            self.tabs.setCurrentWidget(self.raw)
            self.raw.view.find_text(needle, backward)

    def _on_found(self, place: object) -> None:
        self.find_bar.tell(place is not None)

    def _on_find_closed(self) -> None:
        self.find_bar.hide()
        page = self.tabs.currentWidget()
        if page is not None:
            page.setFocus()


def _same_content(one: Subject, other: Subject) -> bool:
    """Whether two subjects show the same bytes, though their conversations may be different objects."""
    if one.conversation is not other.conversation:
        first, second = one.conversation.transcript, other.conversation.transcript
        if first.path is None or first.path != second.path:
            return False
        if len(first) < one.records[-1] + 1 or len(second) < one.records[-1] + 1:
            return False
        if any(first.offset[r] != second.offset[r] or first.length[r] != second.length[r] for r in one.records):
            return False
    return (one.records, one.block, one.title, one.total) == (other.records, other.block, other.title, other.total)


def subject_of(selection: Selection) -> Subject | None:
    """What the pane shows of a selection; None for nothing."""
    conversation = selection.conversation
    if conversation is None or selection.scope is Scope.NONE:
        return None
    if selection.scope is Scope.BLOCK:
        return Subject(conversation, (selection.record,), selection.block)
    every = selection.records if len(selection.records) else (selection.record,)
    records = tuple(int(record) for record in every[:MANY_RECORDS])
    if records[0] < 0:
        return None
    return Subject(conversation, records, title=_title(selection), total=len(every), last=int(every[-1]))


def _title(selection: Selection) -> str:
    number = {
        Scope.ROUND: selection.round,
        Scope.EPOCH: selection.epoch,
        Scope.RESPONSE: selection.response,
    }.get(selection.scope)
    return selection.scope.value if number is None or number < 0 else f"{selection.scope.value} {number:,}"
