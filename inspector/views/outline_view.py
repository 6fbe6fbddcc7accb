"""The tree window: table, find bar, and everything that actions ask of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu, QVBoxLayout, QWidget

from compaction.conversation import Conversation
from compaction.errors import UsageError
from compaction.progress import Progress
from compaction.transcript import Flag, RecordKind
from inspector.context import AppContext
from inspector.documents.document import Document, Selection
from inspector.models.copying import json_of, text_of
from inspector.models.filter_language import matches, parse
from inspector.models.outline import OutlineModel
from inspector.models.outline_rows import (
    Depths,
    Kind,
    Rows,
    arrange,
    index_of,
    kind_of,
    node_of,
    record_keys,
    source_of,
)
from inspector.models.outline_structure import Ints, Mask, OutlineStructure, Shown
from inspector.settings import SHOW_BOOKKEEPING, SHOW_META, SHOW_SIDECHAIN
from inspector.views.find_bar import FindBar
from inspector.views.outline_table import OutlineTable
from inspector.work.jobs import Op

AT_ONCE = 20_000
"""Records up to which rows are arranged on the GUI thread: a few milliseconds."""
HISTORY = 200
COLUMNS = "tree_columns_1"
"""Settings name of the columns' state; another number when the columns change."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the person was, in terms that survive a reload."""

    kind: Kind
    key: int
    block: int


class OutlineView(QWidget):
    """The tree of one document: epoch → API round → message → block."""

    def __init__(self, context: AppContext, document: Document) -> None:
        super().__init__()
        self._context = context
        self.document = document
        self.table = OutlineTable(context.theme)
        self.find_bar = FindBar(context)
        self.find_bar.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.find_bar)
        layout.addWidget(self.table)
        self.setFocusProxy(self.table)
        self._columns_changed = QTimer(self)
        self._columns_changed.setSingleShot(True)
        self._columns_changed.setInterval(500)
        self._columns_changed.timeout.connect(self._save_columns)
        self.model: OutlineModel | None = None
        self._selecting = False
        self._history: list[int] = []
        self._history_at = -1
        self._found: np.ndarray = np.zeros(0, np.int64)
        self._query = ""
        self._mask: Mask | None = None
        self._only = False
        self._end_wanted = False
        self.table.row_chosen.connect(self._on_row)
        self.table.typed.connect(self.find_bar.open_bar)
        self.table.menu_wanted.connect(self._show_menu)
        self.table.copy_wanted.connect(self.copy_text)
        self.table.columns_ready.connect(self._restore_columns)
        self.find_bar.query_changed.connect(self.search)
        self.find_bar.stepped.connect(self.find_step)
        self.find_bar.only_changed.connect(self._on_only)
        self.find_bar.closed.connect(self._on_find_closed)
        document.reloaded.connect(self._on_reloaded)
        document.selection_changed.connect(self._on_selection)
        document.show_settings_changed.connect(self._apply_shown)
        document.diagnosis.changed.connect(self._show_findings)
        context.theme.changed.connect(self.table.viewport().update)
        self._on_reloaded()

    # ---- content ---------------------------------------------------------------------------------------------------

    @property
    def structure(self) -> OutlineStructure | None:
        """Of the main conversation."""
        return self.model.rows.structures[0] if self.model is not None else None

    def _shown(self) -> Shown:
        settings = self._context.settings
        return Shown(
            settings.get(SHOW_SIDECHAIN),
            settings.get(SHOW_META),
            settings.get(SHOW_BOOKKEEPING),
            self._mask if self._only else None,
        )

    def _on_reloaded(self) -> None:
        session = self.document.session
        if session is None:
            return
        self._mask, self._found = None, np.zeros(0, np.int64)
        state = self.model.rows.state() if self.model is not None else None
        shown = self._shown()
        if len(session.transcript) <= AT_ONCE:
            self._show_rows(arrange(session, shown, state))
            return
        op = Op("Arranging the rows", lambda _progress: arrange(session, shown, state), f"outline {id(self)}", True)
        self._context.runner.start(op).success(
            lambda rows: self._show_rows(rows) if self.document.session is session else None
        )

    def _show_rows(self, rows: Rows) -> None:
        session = self.document.session
        if session is None:
            return
        place, top = self._place(self.table.currentIndex().row()), self._place(self.table.rowAt(0))
        old = self.model
        opened = self._open_agents()
        self.model = OutlineModel(session, rows, self)
        self.model.subagent_wanted.connect(self._on_subagent_wanted)
        self.model.rebuild_wanted.connect(self._on_rebuild_wanted)
        self._history, self._history_at = [], -1
        self.table.set_outline(self.model)
        self._show_findings()
        if old is not None:
            old.deleteLater()
        for number, file in enumerate(session.subagents, 1):
            if file.agent_id in opened:
                self.model.rows.open.add(node_of(Kind.SUBAGENT, number))
                self._on_subagent_wanted(number)
        row = self._row_of_place(place) if place is not None else self._first_row()
        if row >= 0:
            self.table.select_row(row, center=place is None)
        # Last, since selecting scrolls: a person who looks elsewhere stays there while the session grows.
        if top is not None:
            row = self._row_of_place(top)
            if row >= 0:
                self.table.scrollTo(self.model.index(row, 0), self.table.ScrollHint.PositionAtTop)
        if self._query:
            self.search(self._query)
        if self._end_wanted:
            self.show_end()

    def show_end(self) -> None:
        """Bring the newest row into view, as soon as the rows of the present state are arranged."""
        structure = self.structure
        self._end_wanted = structure is None or structure.conversation is not self.document.conversation
        if not self._end_wanted:
            self.table.scrollToBottom()

    def _show_findings(self) -> None:
        """Mark the records that the doctor has findings about."""
        structure, diagnosis = self.structure, self.document.diagnosis
        if self.model is None or structure is None or structure.conversation is not self.document.conversation:
            return
        found = {r: (len(diagnosis.of_record(r)), diagnosis.worst_of_record(r)) for r in diagnosis.records}
        if found != structure.findings:
            structure.set_findings(found)
            self.model.forget_texts()

    def _first_row(self) -> int:
        """Where a session opens: its first prompt, a small thing to show beside; else its first message."""
        model = self.model
        if model is None:
            return 0
        near = range(min(60, model.rowCount()))
        messages = [row for row in near if kind_of(model.node(row)) is Kind.MESSAGE]
        prompts = [row for row in messages if self._is_prompt(model.node(row))]
        return next(iter([*prompts, *messages]), 0)

    def _is_prompt(self, node: int) -> bool:
        conversation = self.document.conversation
        if conversation is None:
            return False
        t, record = conversation.transcript, index_of(node)
        return bool(t.kind[record] == RecordKind.USER and not t.flags[record] & (Flag.META | Flag.TOOL_RESULT))

    def _open_agents(self) -> set[str]:
        if self.model is None:
            return set()
        opened = [index_of(node) for node in self.model.rows.open if kind_of(node) is Kind.SUBAGENT]
        return {self.model.session.subagents[number - 1].agent_id for number in opened}

    def _place(self, row: int) -> Place | None:
        model = self.model
        if model is None or not 0 <= row < model.rowCount():
            return None
        node = model.node(row)
        if source_of(node) or kind_of(node) in (Kind.SUBAGENT, Kind.NOTE):
            return None
        structure = model.structure(node)
        selection = model.selection_of(row)
        block = -1
        if kind_of(node) is Kind.BLOCK:
            block = int(structure.conversation.transcript.block_position[index_of(node)])
        return Place(kind_of(node), int(record_keys(structure)[selection.record]), block)

    def _row_of_place(self, place: Place) -> int:
        model = self.model
        if model is None:
            return -1
        structure = model.rows.structures[0]
        found = np.flatnonzero(record_keys(structure) == np.uint64(place.key))
        if not len(found):
            return -1
        record = int(found[0])
        if place.kind is Kind.EPOCH:
            return model.row_of(node_of(Kind.EPOCH, int(structure.conversation.epoch_of[record])))
        if place.kind is Kind.GROUP:
            return model.row_of(node_of(Kind.GROUP, int(structure.record_group[record])))
        if place.kind is Kind.BLOCK:
            for block in structure.conversation.transcript.blocks_of(record):
                if structure.conversation.transcript.block_position[block] == place.block:
                    row = model.row_of(node_of(Kind.BLOCK, block))
                    if row >= 0:
                        return row
        return model.row_of(node_of(Kind.MESSAGE, int(structure.heads[structure.head_of[record]])))

    def _on_subagent_wanted(self, number: int) -> None:
        model = self.model
        if model is None:
            return
        file = model.session.subagents[number - 1]

        def work(progress: Progress) -> OutlineStructure:
            structure = OutlineStructure(file.open(progress))
            structure.prepare()
            return structure

        def done(structure: OutlineStructure) -> None:
            if model is self.model:
                model.add_subagent(number, structure)

        def failed(error: Exception) -> None:
            if model is self.model:
                model.fail_subagent(number, str(error))
            self._context.errors.report(error, f"Reading subagent {file.agent_id}")

        self._context.runner.start(Op(f"Reading subagent {file.agent_id}", work)).success(done).failure(failed)

    def _on_rebuild_wanted(self, generation: int) -> None:
        model = self.model
        if model is None:
            return
        op = Op("Arranging the rows", lambda _progress: model.rows.rebuild(), f"rebuild {id(self)}")

        def done(rows: tuple[Ints, Depths]) -> None:
            if model is self.model:
                model.finish_rebuild(generation, *rows)
                self._keep_in_view()

        self._context.runner.start(op).success(done)

    def _apply_shown(self) -> None:
        if self.model is not None:
            self.model.rows.forced.clear()
            self.model.set_shown(self._shown())
            self._keep_in_view()

    def _keep_in_view(self) -> None:
        current = self.table.currentIndex()
        if current.isValid():
            self.table.scrollTo(current)

    def _restore_columns(self) -> None:
        """Widths, order and visibility of the columns as they were left; kept when the person changes them."""
        state = self._context.settings.blob(COLUMNS)
        if not state.isEmpty():
            self.table.restore_columns(state)
        self.table.columns_chosen.connect(self._columns_changed.start)

    def _save_columns(self) -> None:
        self._context.settings.set_blob(COLUMNS, self.table.horizontalHeader().saveState())

    # ---- selection -------------------------------------------------------------------------------------------------

    @property
    def current_node(self) -> int | None:
        """The node of the current row."""
        row = self.table.currentIndex().row()
        return self.model.node(row) if self.model is not None and 0 <= row < self.model.rowCount() else None

    def show_node(self, node: int | None) -> bool:
        """Reveal a node and select its row; False when it has none."""
        if self.model is None or node is None:
            return False
        row = self.model.reveal(node)
        if row < 0:
            self._tell("This record is hidden: switch on sidechain records in the View menu")
            return False
        self.table.select_row(row)
        return True

    def _on_row(self, row: int) -> None:
        model = self.model
        if model is None or row < 0 or row >= model.rowCount():
            return
        node = model.node(row)
        self._remember(node)
        model.set_partner(self._partners(node))
        if not self._selecting:
            self._selecting = True
            try:
                self.document.select(model.selection_of(row))
            finally:
                self._selecting = False

    def _on_selection(self, selection: Selection) -> None:
        if self._selecting or self.model is None:
            return
        node = self.model.node_of_selection(selection)
        if node is not None and node != self.current_node:
            self._selecting = True
            try:
                self.show_node(node)
            finally:
                self._selecting = False

    def _partners(self, node: int) -> frozenset[int]:
        """The block rows of the pair partners, and the message rows that hold them."""
        if self.model is None or kind_of(node) not in (Kind.BLOCK, Kind.MESSAGE):
            return frozenset()
        structure, source = self.model.structure(node), source_of(node)
        conversation = structure.conversation
        if kind_of(node) is Kind.BLOCK:
            blocks = [index_of(node)]
        else:
            blocks = structure.blocks(int(structure.head_of[index_of(node)]))[:256]
        found: set[int] = set()
        for block in blocks:
            other = int(conversation.pair[block])
            if other >= 0:
                record = int(conversation.transcript.block_record[other])
                head = int(structure.heads[structure.head_of[record]])
                found |= {node_of(Kind.BLOCK, other, source), node_of(Kind.MESSAGE, head, source)}
        return frozenset(found - {node})

    # ---- going places (actions) ------------------------------------------------------------------------------------

    def go_to_pair(self) -> None:
        """From a tool_use to its tool_result or back; a message row goes to the other message row."""
        node = self.current_node
        if node is None or self.model is None:
            return
        partners = self._partners(node)
        kind = kind_of(node)
        self.show_node(min((n for n in partners if kind_of(n) is kind), default=None))

    def go_to_parent(self) -> None:
        """To the record that parentUuid names."""
        conversation, record = self._here()
        if conversation is None:
            return
        parent = int(conversation.parent[record])
        if parent >= 0:
            self.document.select_record(parent, conversation)
        else:
            self._tell("It has no parent" if parent == -1 else "Its parent is not in the file")

    def go_to_child(self) -> None:
        """To the first record whose parentUuid names this one (for a response: its last record's)."""
        conversation, record = self._here(last=True)
        if conversation is None:
            return
        children = conversation.children(record)
        if children:
            self.document.select_record(children[0], conversation)
        else:
            self._tell("No record names it as its parent")

    def go_to_leaf(self) -> None:
        """To the record that the next request continues from."""
        conversation = self.document.conversation
        if conversation is not None and conversation.leaf >= 0:
            self.document.select_record(conversation.leaf)

    def go_step(self, what: str, step: int) -> None:
        """To the next (+1) or previous (−1) round, compaction or problem."""
        structure = self.structure
        if structure is None:
            return
        conversation = structure.conversation
        if what == "round":
            starts = structure.heads[structure.group_first] if structure.count else np.zeros(0, np.int64)
            record = self._stepped(starts, step)
            if record is not None:
                self.show_node(node_of(Kind.GROUP, int(structure.record_group[record])))
            return
        if what == "compaction":
            records = np.array(sorted(c.record for c in conversation.compactions), np.int64)
        else:
            records = np.flatnonzero(structure.problems)
        record = self._stepped(records, step)
        if record is not None:
            self.document.select_record(record)
        else:
            self._tell(f"There is no {'further' if len(records) else ''} {what}".replace("  ", " "))

    def go_to_line(self, number: int) -> None:
        """To the record on a line of the file, or the nearest before it."""
        conversation = self.document.conversation
        if conversation is not None and len(conversation.transcript):
            position = int(np.searchsorted(conversation.transcript.line, number, side="right")) - 1
            self.document.select_record(max(0, position))

    def go_to_round(self, number: int) -> None:
        """To an API round by its number."""
        structure = self.structure
        if structure is not None and 1 <= number <= structure.conversation.round_count:
            first = structure.conversation.round(number).first_record
            self.show_node(node_of(Kind.GROUP, int(structure.record_group[first])))

    def last_line(self) -> int:
        """Lines of the file."""
        conversation = self.document.conversation
        return conversation.transcript.line_count if conversation is not None else 0

    def last_round(self) -> int:
        """API rounds of the session."""
        conversation = self.document.conversation
        return conversation.round_count if conversation is not None else 0

    def go_history(self, step: int) -> None:
        """Back and forward over what was selected."""
        position = self._history_at + step
        if self.model is not None and 0 <= position < len(self._history):
            self._history_at = position
            self.show_node(self._history[position])

    def expand_all(self) -> None:
        """Open every epoch, round and message."""
        if self.model is not None:
            self.model.set_all()
            self._keep_in_view()

    def collapse_to_rounds(self) -> None:
        """One row for each round; the current row becomes its round's."""
        if self.model is None:
            return
        selection = self.document.selection
        self.model.set_all(groups=False, messages=False)
        structure = self.structure
        if structure is not None and selection.conversation is structure.conversation and selection.record >= 0:
            self.show_node(node_of(Kind.GROUP, int(structure.record_group[selection.record])))

    def _remember(self, node: int) -> None:
        if 0 <= self._history_at < len(self._history) and self._history[self._history_at] == node:
            return
        self._history = [*self._history[: self._history_at + 1], node][-HISTORY:]
        self._history_at = len(self._history) - 1

    def _here(self, *, last: bool = False) -> tuple[Conversation | None, int]:
        selection = self.document.selection
        if selection.conversation is None or selection.record < 0:
            return None, -1
        record = selection.records[-1] if last and len(selection.records) else selection.record
        return selection.conversation, int(record)

    def _stepped(self, records: np.ndarray, step: int) -> int | None:
        """The entry of ascending `records` after or before the current record; None past the ends."""
        selection = self.document.selection
        here = selection.record if selection.conversation is self.document.conversation else -1
        position = np.searchsorted(records, here, side="right") if step > 0 else np.searchsorted(records, here) - 1
        return int(records[position]) if 0 <= position < len(records) else None

    # ---- finding ---------------------------------------------------------------------------------------------------

    def open_find(self) -> None:
        """Show the find bar with the focus in it."""
        self.find_bar.open_bar()

    def search(self, query: str) -> None:
        """Search off the GUI thread; the newest query wins."""
        self._query = query
        structure = self.structure
        if structure is None:
            return
        self._context.runner.supersede(f"find {id(self)}")
        try:
            terms = parse(query)
        except UsageError as error:
            self.find_bar.tell(str(error), error=True)
            return
        if not terms:
            self._set_found(None)
            return
        self.find_bar.tell("…")

        def done(mask: Mask) -> None:
            if structure is self.structure:
                self._set_found(mask)

        op = Op("Searching", lambda progress: matches(structure, terms, progress), f"find {id(self)}")
        job = self._context.runner.start(op).success(done)
        job.failure(lambda error: self.find_bar.tell(str(error), error=True))

    def find_step(self, step: int) -> None:
        """Select the next or previous match; past the end it begins again."""
        if not len(self._found):
            if not self._query:
                self.open_find()
            return
        selection = self.document.selection
        here = selection.record if selection.conversation is self.document.conversation else -1
        if step > 0:
            last = int(selection.records[-1]) if 0 < len(selection.records) < 1000 else here
            position = int(np.searchsorted(self._found, max(here, last if selection.block < 0 else here), side="right"))
        else:
            position = int(np.searchsorted(self._found, here)) - 1
        position %= len(self._found)
        self._show_match(position)

    def _show_match(self, position: int) -> None:
        record = int(self._found[position])
        structure = self.structure
        if structure is not None:
            self.show_node(node_of(Kind.MESSAGE, int(structure.heads[structure.head_of[record]])))
            self.find_bar.tell(f"{position + 1:,} of {len(self._found):,}")

    def _set_found(self, mask: Mask | None) -> None:
        structure = self.structure
        self._mask = mask
        if mask is None or structure is None:
            self._found = np.zeros(0, np.int64)
            self.find_bar.tell("")
        else:
            heads = np.unique(structure.head_of[np.flatnonzero(mask)])
            self._found = structure.heads[heads]
            count = len(self._found)
            self.find_bar.tell(f"{count:,} match{'' if count == 1 else 'es'}" if count else "no match")
        if self._only:
            self._apply_shown()

    def _on_only(self, only: bool) -> None:
        self._only = only
        if self._mask is not None:
            self._apply_shown()

    def _on_find_closed(self) -> None:
        self._query = ""
        self._context.runner.supersede(f"find {id(self)}")
        self._set_found(None)
        self.table.setFocus(Qt.FocusReason.OtherFocusReason)

    # ---- copying ---------------------------------------------------------------------------------------------------

    def copy_text(self) -> None:
        """Copy the text of the selected rows."""
        self._copy("text")

    def copy_json(self) -> None:
        """Copy the selected records as they stand in the file, blocks as JSON."""
        self._copy("JSON")

    def _copy(self, what: str) -> None:
        model = self.model
        if model is None:
            return
        nodes = model.rows.nodes[self.table.selected_rows()].tolist()
        make = text_of if what == "text" else json_of

        def work(progress: Progress) -> str:
            return make([model.selection_of_node(node) for node in nodes], progress)

        def done(text: str) -> None:
            QGuiApplication.clipboard().setText(text)
            self._tell(f"Copied {len(text):,} characters as {what}")

        op = Op(f"Copying as {what}", work, f"copy {id(self)}")
        self._context.runner.start(op).success(done)

    # ---- menu ------------------------------------------------------------------------------------------------------

    def _show_menu(self, position: QPoint) -> None:
        menu = self.context_menu()
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(position)

    def context_menu(self) -> QMenu:
        """The context menu of the current row, from the actions that say they stand in it."""
        menu = QMenu(self)
        model, row = self.model, self.table.currentIndex().row()
        if model is not None and 0 <= row < model.rowCount() and model.can_expand(row):
            menu.addAction("Collapse" if model.is_expanded(row) else "Expand", lambda: model.toggle(row))
            menu.addAction("Expand all below", lambda: model.expand_below(row))
            menu.addSeparator()
        group = ""
        for action in self._context.actions:
            if action.context:
                if group and group != action.group:
                    menu.addSeparator()
                group = action.group
                menu.addAction(self._context.actions.qaction(action.id, self.window()))
        return menu

    def _tell(self, text: str) -> None:
        if self._context.workspace is not None:
            self._context.workspace.tell(text)
