"""The doctor's findings of a session: grouped, filtered, with the way to the record, the request and the repair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QMargins
from PySide6.QtGui import QFocusEvent
from PySide6.QtWidgets import (
    QComboBox,
    QLabel,
    QLineEdit,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from inspector.context import AppContext
from inspector.documents.document import Document
from inspector.models.finding_parts import block_of, finding_parts
from inspector.models.findings import SEVERITIES, TONES, FindingGroup, FindingsModel, Grouping
from inspector.models.flat_tree import FlatRow
from inspector.rendering.parts import SIGNS, Note, Place, Tone
from inspector.rendering.tones import colours_for
from inspector.views.client_chooser import ClientChooser
from inspector.views.column_sizes import ColumnSizes
from inspector.views.detail.rich_view import RichView
from inspector.views.elided_label import ElidedLabel
from inspector.views.flat_tree_view import FlatTreeView
from inspector.views.flow_layout import FlowLayout, together
from inspector.views.turning_splitter import TurningSplitter

if TYPE_CHECKING:
    from compaction.diagnosis.model import Finding

_GROUPINGS: tuple[tuple[str, Grouping], ...] = (("By kind", "kind"), ("By severity", "severity"), ("By line", "line"))
_NAMES = {"error": "errors", "warning": "warnings", "info": "worth knowing"}


class FindingsView(QWidget):
    """A list of findings on the left, the chosen one in full on the right."""

    def __init__(self, context: AppContext, document: Document) -> None:
        super().__init__()
        self._context = context
        self._document = document
        self._diagnosis = document.diagnosis
        self._visited = ""
        self.model = FindingsModel(self)
        self.tree = FlatTreeView(self.model)
        self.tree.setAccessibleName("Findings")
        self.text = RichView()
        self.text.setAccessibleName("The finding in full")
        versions = document.conversation.transcript.version_names if document.conversation is not None else []
        self.client = ClientChooser(self._diagnosis, versions)
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Filter: code, rule, line 12, id, words…")
        self.filter.setAccessibleName("Filter findings")
        self.filter.setClearButtonEnabled(True)
        self.grouping = QComboBox()
        self.grouping.setAccessibleName("Group findings")
        for title, grouping in _GROUPINGS:
            self.grouping.addItem(title, grouping)
        self.severities: dict[str, QToolButton] = {}
        for severity in SEVERITIES:
            button = QToolButton()
            button.setCheckable(True)
            button.setChecked(True)
            self.severities[severity] = button
        self.state = ElidedLabel()
        self.to_record = QPushButton("Go to the record")
        self.to_request = QPushButton("Show in the request")
        self.repair = QPushButton("Repair…")
        self._build()
        self._connect()
        self._recolour()
        self._diagnosis.ensure(context.runner)
        self._refresh()

    def _build(self) -> None:
        bar = FlowLayout(QMargins(8, 6, 8, 4))
        bar.addWidget(self.filter)
        for severity in self.severities.values():
            bar.addWidget(severity)
        for widget in (self.grouping, together(QLabel("Client"), self.client)):
            bar.addWidget(widget)
        buttons = FlowLayout(QMargins(8, 4, 8, 6))
        for button in (self.to_record, self.to_request, self.repair):
            buttons.addWidget(button)
        right = QWidget()
        layout = QVBoxLayout(right)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.text, 1)
        layout.addLayout(buttons)
        split = TurningSplitter(85)
        split.addWidget(self.tree)
        split.addWidget(right)
        split.setStretchFactor(0, 3)
        split.setStretchFactor(1, 2)
        self.state.setContentsMargins(9, 0, 9, 4)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(bar)
        layout.addWidget(self.state)
        layout.addWidget(split, 1)
        ColumnSizes(self.tree, optional=(2,))

    def _connect(self) -> None:
        self.filter.textChanged.connect(self._on_filter)
        self.grouping.currentIndexChanged.connect(self._on_filter)
        for button in self.severities.values():
            button.toggled.connect(self._on_filter)
        self.tree.row_selected.connect(self._on_row)
        self.tree.row_activated.connect(self._on_activated)
        self.text.place_chosen.connect(self._on_place)
        self.to_record.clicked.connect(self._on_to_record)
        self.to_request.clicked.connect(self._on_to_request)
        self.repair.clicked.connect(self._on_repair)
        self._diagnosis.changed.connect(self._refresh)
        self._document.reloaded.connect(self._on_reloaded)

    # Content --------------------------------------------------------------------------------------------------

    def current_finding(self) -> Finding | None:
        """The finding in the current row; None on a group."""
        row = self.tree.current_row()
        return None if row is None or isinstance(row.data, FindingGroup) else row.data

    def show_finding(self, finding: Finding) -> None:
        """Select a finding."""
        number = self.model.number_of(finding)
        if number >= 0:
            self.tree.select_row(number)

    def step(self, by: int) -> None:
        """Select the next (1) or previous (-1) finding, wrapping, and its record.

        Forwards it begins with the finding that is selected but whose record was not shown yet.
        """
        for number in range(len(self.model.rows) - 1, -1, -1):
            self.model.set_expanded(number, True)
        findings = [n for n, row in enumerate(self.model.rows) if not isinstance(row.data, FindingGroup)]
        if not findings:
            return
        current = self.tree.currentIndex().row()
        here = self.current_finding()
        if by > 0 and here is not None and here.key != self._visited:
            number = current
        elif current in findings:
            number = findings[(findings.index(current) + by) % len(findings)]
        else:
            later = [n for n in findings if n > current]
            number = (later or findings)[0] if by > 0 else ([n for n in findings if n < current] or findings)[-1]
        self.tree.select_row(number)
        self._on_to_record()

    def _on_reloaded(self) -> None:
        conversation = self._document.conversation
        if conversation is not None:
            self.client.set_recorded(conversation.transcript.version_names)

    def _refresh(self) -> None:
        """Show the newest report and what is known while there is none."""
        key = self.current_finding().key if self.current_finding() is not None else ""  # type: ignore[union-attr]
        report = self._diagnosis.report
        counts = self._diagnosis.counts()
        for severity, button in self.severities.items():
            button.setText(f"{SIGNS[TONES[severity]]} {counts[severity]:,}")
            button.setToolTip(f"Show {_NAMES[severity]}")
            button.setAccessibleName(f"{counts[severity]:,} {_NAMES[severity]}")
        self.model.set_report(report)
        self._tell_state()
        again = next((row.data for row in self.model.rows if getattr(row.data, "key", None) == key), None)
        if again is not None:
            self.show_finding(again)
        elif self.model.rows:
            self.tree.select_row(1 if len(self.model.rows) > 1 and self.model.rows[1].level else 0)
        self._on_row(self.tree.current_row())
        self._context.actions.refresh()

    def _tell_state(self) -> None:
        report = self._diagnosis.report
        if self._diagnosis.error is not None:
            text = f"✖ The diagnosis failed: {self._diagnosis.error}"
        elif report is None:
            text = "Diagnosing…" if self._diagnosis.running else "The session is not diagnosed yet."
        elif not report.findings:
            text = f"✔ Nothing is wrong with what client {report.client} sends."
        else:
            hidden = len(report.findings) - self.model.shown
            count = len(report.findings)
            text = f"{count:,} {'finding' if count == 1 else 'findings'} for client {report.client}"
            text += f" · {hidden:,} hidden by the filter" if hidden else ""
            text += " · diagnosing again…" if self._diagnosis.running else ""
        self.state.setText(text)

    def _on_filter(self) -> None:
        chosen = [severity for severity, button in self.severities.items() if button.isChecked()]
        self.model.set_filter(self.filter.text(), chosen, self.grouping.currentData())
        self._tell_state()
        if self.model.rows:
            self.tree.select_row(1 if len(self.model.rows) > 1 and self.model.rows[1].level else 0)

    def _on_row(self, row: FlatRow | None) -> None:
        finding = self.current_finding() if row is not None else None
        repairable = any(r.changes_file for f in self._findings() for r in f.repairs)
        self.to_record.setEnabled(finding is not None and bool(finding.records))
        self.to_request.setEnabled(finding is not None and bool(finding.wire or finding.records))
        self.repair.setEnabled(repairable)
        self.repair.setToolTip(
            "Preview how the session would be mended, choose, and write a new file."
            if repairable
            else "No finding has a repair that changes the file."
        )
        if finding is not None:
            self.text.set_parts(finding_parts(finding, self._document.conversation, self._reported_client()))
        elif row is not None:
            group: FindingGroup = row.data
            self.text.set_parts([Note(f"{len(group.findings):,} × {group.title}. Select one to read about it.")])
        else:
            report = self._diagnosis.report
            clean = report is not None and not report.findings
            self.text.set_parts([Note("No finding.", Tone.GOOD if clean else Tone.MUTED)])

    def _reported_client(self) -> str:
        return self._diagnosis.report.client if self._diagnosis.report is not None else ""

    def _findings(self) -> tuple[Finding, ...]:
        return self._diagnosis.report.findings if self._diagnosis.report is not None else ()

    # Ways -----------------------------------------------------------------------------------------------------

    def _on_activated(self, row: FlatRow) -> None:
        if row.expandable:
            self.tree.toggle(self.model.rows.index(row))
        else:
            self._on_to_record()

    def _on_place(self, place: Place) -> None:
        self._document.select_record(place.record, self._document.conversation, place.block)

    def _on_to_record(self) -> None:
        finding, conversation = self.current_finding(), self._document.conversation
        if finding is None or conversation is None or not finding.records:
            return
        record = finding.records[0]
        for candidate in finding.records:
            if block_of(finding, conversation, candidate) >= 0:
                record = candidate
                break
        self._visited = finding.key
        self._document.select_record(record, conversation, block_of(finding, conversation, record))

    def _on_to_request(self) -> None:
        finding, workspace = self.current_finding(), self._context.workspace
        if finding is None or workspace is None:
            return
        widget = workspace.show_view("as_sent")
        show_finding = getattr(widget, "show_finding", None)
        if show_finding is not None:
            show_finding(finding)

    def _on_repair(self) -> None:
        from inspector.views.repair_dialog import open_repair

        open_repair(self._context, self._document, self.window())

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Pass the focus on; a focus proxy would take the other controls out of the Tab order (Qt 6.11)."""
        self.tree.setFocus(event.reason())

    def changeEvent(self, event: QEvent) -> None:
        """Follow the palette."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._recolour()

    def _recolour(self) -> None:
        self.model.set_tones(colours_for(self.palette()).tones)
