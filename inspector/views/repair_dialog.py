"""The repair of a session: preview for each record, every choice open, written as a new file, undone on request."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QComboBox,
    QDialog,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QRadioButton,
    QScrollArea,
    QSizePolicy,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from compaction.progress import Progress
from inspector.context import AppContext
from inspector.documents.derived import folder_of, left_behind
from inspector.documents.document import Document
from inspector.documents.written import FileWritten, Write
from inspector.models.flat_tree import FlatRow
from inspector.models.repair import LEAVE, ChangesModel, ChoicesModel, change_parts, verdict
from inspector.rendering.parts import SIGNS, Note, Tone
from inspector.rendering.tones import colours_for
from inspector.views.detail.pages import plain_label
from inspector.views.detail.rich_view import RichView
from inspector.views.flat_tree_view import FlatTreeView
from inspector.work.errors import report_of
from inspector.work.jobs import Op

if TYPE_CHECKING:
    from compaction.diagnosis.model import Finding
    from compaction.diagnosis.repair.plan import RepairPlan
    from compaction.export.writer import Written


class RepairDialog(QDialog):
    """Plans a repair for a document, shows it record by record, and writes it.

    Attributes:
        plan: the newest plan, None while one is made.
        written: what was written, None before.
    """

    def __init__(self, context: AppContext, document: Document, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._document = document
        self.plan: RepairPlan | None = None
        self.written: Written | None = None
        self.setWindowTitle(f"Repair {document.title}")
        self.choices, self.changes = ChoicesModel(self), ChangesModel(self)
        self.findings_tree, self.changes_tree = FlatTreeView(self.choices), FlatTreeView(self.changes)
        self.findings_tree.setAccessibleName("Findings to mend")
        self.changes_tree.setAccessibleName("Changes to records")
        self.preview = RichView()
        self.preview.setAccessibleName("The record before and after")
        self._options = QWidget()
        self._options_layout = QVBoxLayout(self._options)
        self._options_layout.setContentsMargins(10, 8, 10, 8)
        self._group: QButtonGroup | None = None
        self.state, self.risks = plain_label(), plain_label()
        for label in (self.state, self.risks):
            label.setWordWrap(True)
        self.naming = QComboBox()
        self.naming.addItems(["New session id", "Same name, marked"])
        self.naming.setAccessibleName("How the new file is named")
        self.naming.setToolTip(
            "Clients take a session's id from its file name: with a new id they offer it beside the original."
        )
        self.target = QLineEdit()
        self.target.setAccessibleName("New file")
        self.open_after = QCheckBox("Open it when it is written")
        self.open_after.setChecked(True)
        self.write = QPushButton("Write the repaired session")
        self.write.setDefault(True)
        self._build()
        self._connect()
        self._recolour()
        self._on_naming(0)
        if document.path is None or not is_session_id(document.path.stem):
            self.naming.setCurrentIndex(1)
        self._plan()

    def _build(self) -> None:
        intro = plain_label(
            "The original is never changed: a new file is written, every record that is not listed stays "
            "byte for byte, and Undo removes the new file again." + left_behind(self._document)
        )
        intro.setWordWrap(True)
        options = QScrollArea()
        options.setWidget(self._options)
        options.setWidgetResizable(True)
        top = QSplitter(Qt.Orientation.Horizontal)
        top.addWidget(_titled("Findings and the repair chosen for each", self.findings_tree))
        top.addWidget(_titled("What to do with the selected finding", options))
        bottom = QSplitter(Qt.Orientation.Horizontal)
        bottom.addWidget(_titled("Records that change", self.changes_tree))
        bottom.addWidget(_titled("Before and after", self.preview))
        for split, shares in ((top, (600, 400)), (bottom, (400, 600))):
            split.setSizes(list(shares))
            for number, share in enumerate(shares):
                split.setStretchFactor(number, share)
        middle = QSplitter(Qt.Orientation.Vertical)
        middle.addWidget(top)
        middle.addWidget(bottom)
        middle.setStretchFactor(0, 2)
        middle.setStretchFactor(1, 3)
        browse = QPushButton("Choose…")
        browse.clicked.connect(self._on_browse)
        target = QHBoxLayout()
        target.addWidget(QLabel("New file"))
        target.addWidget(self.naming)
        target.addWidget(self.target, 1)
        target.addWidget(browse)
        buttons = QHBoxLayout()
        buttons.addWidget(self.open_after)
        buttons.addStretch(1)
        cancel = QPushButton("Close")
        cancel.clicked.connect(self.reject)
        buttons.addWidget(cancel)
        buttons.addWidget(self.write)
        layout = QVBoxLayout(self)
        layout.setSpacing(8)
        layout.addWidget(intro)
        layout.addWidget(middle, 1)
        layout.addWidget(self.state)
        layout.addWidget(self.risks)
        layout.addLayout(target)
        layout.addLayout(buttons)
        width = self.fontMetrics().averageCharWidth()
        for tree, sizes in ((self.findings_tree, (48, 12)), (self.changes_tree, (18, 11))):
            for column, size in enumerate(sizes):
                tree.horizontalHeader().resizeSection(column, width * size)
        self.resize(width * 170, self.fontMetrics().height() * 46)

    def _connect(self) -> None:
        self.findings_tree.row_selected.connect(self._on_finding)
        self.changes_tree.row_selected.connect(self._on_change)
        self.naming.currentIndexChanged.connect(self._on_naming)
        self.target.textChanged.connect(self._on_target)
        self.write.clicked.connect(self._on_write)

    # The plan -------------------------------------------------------------------------------------------------

    def _plan(self) -> None:
        """Plan in the background with the present choices; the newest choices win."""
        session = self._document.session
        if session is None:
            return
        self.plan = None
        self._refresh_write()
        self._say(Tone.MUTED, "Planning the repair…")
        client, choices = self._document.diagnosis.client, dict(self.choices.choices)

        def work(progress: Progress) -> RepairPlan:
            from compaction.diagnosis.repair.plan import plan_repair

            return plan_repair(session, client, choices, progress)

        job = self._context.runner.start(Op("Planning the repair", work, token=f"repair {id(self)}"))
        job.success(self._on_plan).failure(self._on_failure)

    def _on_plan(self, plan: RepairPlan) -> None:
        self.plan = plan
        first = not self.choices.rows
        if first:
            self.choices.set_findings(plan.findings_before)
        self.changes.set_plan(plan)
        self._say(*verdict(plan))
        left = [finding for finding in plan.findings_after if finding.severity == "error"]
        notes = [f"▲ {risk}" for risk in plan.risks]
        notes += [f"✖ Left: {finding.message}" for finding in left[:5]]
        self.risks.setText("\n".join(notes))
        self.risks.setVisible(bool(notes))
        if first and self.choices.rows:
            self.findings_tree.select_row(0)
        if self.changes.rows:
            self.changes_tree.select_row(0)
        else:
            self._on_change(None)
        self._refresh_write()

    def _on_failure(self, error: Exception) -> None:
        self._say(Tone.ERROR, report_of(error, "Repair").sentence())
        self._refresh_write()

    def _say(self, tone: Tone, text: str) -> None:
        self.state.setText(f"{SIGNS[tone]} {text}".strip())
        palette = self.state.palette()
        palette.setColor(self.state.foregroundRole(), colours_for(self.palette()).tones[tone])
        self.state.setPalette(palette)

    # Choices --------------------------------------------------------------------------------------------------

    def _on_finding(self, row: FlatRow | None) -> None:
        """Offer the repairs of a finding, best first, each with its reason."""
        while (item := self._options_layout.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        if row is None:
            return
        finding: Finding = row.data
        self._group = QButtonGroup(self._options)
        message = plain_label(finding.message)
        message.setWordWrap(True)
        self._options_layout.addWidget(message)
        chosen = self.choices.chosen(finding)
        offers = [(r.name, r.title, r.reason) for r in finding.repairs if r.changes_file]
        offers.append((LEAVE, "Leave as it is", ""))
        for name, title, reason in offers:
            button = QRadioButton(title.replace("&", "&&"))
            button.setChecked(name == chosen)
            button.toggled.connect(
                lambda on, dialog=self, about=finding, choice=name: dialog._on_choice(about, choice) if on else None
            )
            self._group.addButton(button)
            self._options_layout.addWidget(button)
            if reason:
                why = plain_label(reason)
                why.setWordWrap(True)
                why.setIndent(self.fontMetrics().height() * 2)
                palette = why.palette()
                palette.setColor(why.foregroundRole(), colours_for(self.palette()).muted)
                why.setPalette(palette)
                self._options_layout.addWidget(why)
        self._options_layout.addStretch(1)

    def _on_choice(self, finding: Finding, name: str) -> None:
        self.choices.choose(finding, name)
        self._plan()

    def _on_change(self, row: FlatRow | None) -> None:
        self.preview.set_parts(change_parts(row.data) if row is not None else [Note("No record changes.")])

    # Writing --------------------------------------------------------------------------------------------------

    def _on_browse(self) -> None:
        chosen, _ = QFileDialog.getSaveFileName(
            self, "Write the repaired session", self.target.text(), "Sessions (*.jsonl *.json)"
        )
        if chosen:
            self.target.setText(chosen)

    def _on_naming(self, index: int) -> None:
        self.target.setText(str((new_id_target, default_target)[index](self._document)))

    def _on_target(self, _text: str) -> None:
        self._refresh_write()

    def _refresh_write(self) -> None:
        ready = self.plan is not None and self.plan.changes_anything and bool(self.target.text().strip())
        self.write.setEnabled(ready)

    def _on_write(self) -> None:
        plan = self.plan
        if plan is None or not plan.changes_anything:
            return
        target, source = Path(self.target.text().strip()).expanduser(), self._document.main_path
        write = repair_writer(plan, target, source)
        self.write.setEnabled(False)
        self._say(Tone.MUTED, f"Writing {target.name} …")
        job = self._context.runner.start(Op(f"Writing {target.name}", write))
        job.success(lambda written: self._on_written(written, write)).failure(self._on_failure)

    def _on_written(self, files: tuple[Written, ...], write: Write) -> None:
        self.written = files[0]
        path = self.written.path
        self._document.undo_stack.push(FileWritten(self._context, f"Repair to {path.name}", files, write))
        workspace = self._context.workspace
        if workspace is not None:
            report = f" and {files[1].path.name}" if len(files) > 1 else ""
            workspace.tell(f"Wrote {path}{report}")
            if self.open_after.isChecked():
                workspace.open_path(path)
        self.accept()

    def done(self, result: int) -> None:
        """Stop planning when the dialog closes."""
        self._context.runner.supersede(f"repair {id(self)}")
        super().done(result)

    def changeEvent(self, event: QEvent) -> None:
        """Follow the palette."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._recolour()

    def _recolour(self) -> None:
        self.choices.set_tones(colours_for(self.palette()).tones)


def open_repair(context: AppContext, document: Document, parent: QWidget) -> None:
    """Show the dialog until the person closes it."""
    dialog = RepairDialog(context, document, parent)
    dialog.exec()
    dialog.deleteLater()


def repair_writer(plan: RepairPlan, target: Path, source: str) -> Write:
    """What writes a plan to a new file, and beside it a report of the bytes that are in no record of it (G12)."""

    def write(progress: Progress) -> tuple[Written, ...]:
        from compaction.cli.repair import left_out, made
        from compaction.export.transcripts import write_edits
        from compaction.export.writer import write_new_file

        written = write_edits(
            target,
            plan.original,
            plan.edits,
            operation="repair",
            source=source,
            lineage={"client": plan.client, "repairs": made(plan), "risks": list(plan.risks)},
            keep_damage=plan.keep_damage,
            progress=progress,
        )
        report = left_out(plan)
        if not report:
            return (written,)
        side = write_new_file(
            target.with_name(f"{target.name}.left-out.json"),
            [json.dumps(report, indent=1).encode() + b"\n"],
            operation="repair report",
            lineage={"belongs_to": str(target)},
            progress=progress,
        )
        return (written, side)

    return write


def new_id_target(document: Document) -> Path:
    """A name beside the original with a session id of its own: clients take the id from the file's name."""
    suffix = document.path.suffix if document.path is not None else ""
    return folder_of(document) / f"{uuid.uuid4()}{suffix or '.jsonl'}"


def default_target(document: Document) -> Path:
    """A free name beside the original: session.repaired.jsonl, session.repaired-2.jsonl…"""
    path = folder_of(document) / (document.path.name if document.path is not None else f"{document.title}.jsonl")
    suffix = path.suffix or ".jsonl"
    number = 1
    while True:
        name = f"{path.stem}.repaired{'' if number == 1 else f'-{number}'}{suffix}"
        if not path.with_name(name).exists():
            return path.with_name(name)
        number += 1


def is_session_id(name: str) -> bool:
    """Whether a file's name is a session id, as clients make them (a UUID)."""
    try:
        return str(uuid.UUID(name)) == name.lower()
    except ValueError:
        return False


def _titled(title: str, widget: QWidget) -> QWidget:
    box = QWidget()
    layout = QVBoxLayout(box)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(3)
    label = plain_label(title)
    label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
    layout.addWidget(label)
    layout.addWidget(widget, 1)
    return box
