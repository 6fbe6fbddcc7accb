"""A repair before it is written: the findings with their chosen repair, and what becomes of each record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QColor

from inspector.models.as_sent_rows import lines_text
from inspector.models.findings import TONES
from inspector.models.flat_tree import FlatRow, FlatTreeModel
from inspector.rendering import diff
from inspector.rendering.parts import SIGNS, Code, Diff, Heading, Note, Part, Tone
from inspector.rendering.visible_text import bytes_text, visible

if TYPE_CHECKING:
    from compaction.diagnosis.model import Finding
    from compaction.diagnosis.repair.plan import RecordChange, RepairPlan

LEAVE = "none"
"""The choice that leaves a finding as it is (`compaction.diagnosis.repair.plan.NO_REPAIR`)."""

DIFF_LIMIT = 512 * 1024
"""Most bytes of a record whose change is shown member by member; larger ones are shown as bytes."""

ACTIONS: dict[str, tuple[str, str]] = {
    "replace": ("≠", "changed"),
    "insert": ("＋", "added"),
    "remove": ("−", "removed"),
    "leave_out": ("✂", "left out"),
}


class ChoicesModel(FlatTreeModel):
    """Findings that can be mended, each with the repair that is chosen for it."""

    columns = ("Finding", "Where", "Repair")

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.choices: dict[str, str] = {}
        self._tones: dict[Tone, QColor] = {}

    def set_findings(self, findings: tuple[Finding, ...]) -> None:
        """Show the findings that have at least one repair which changes the file."""
        self.set_rows([FlatRow(f) for f in findings if any(r.changes_file for r in f.repairs)])

    def set_tones(self, tones: dict[Tone, QColor]) -> None:
        """Colours of the severities."""
        self._tones = tones

    def choose(self, finding: Finding, name: str) -> None:
        """Choose a repair by name, or `LEAVE`; the default repair is no choice of its own."""
        if name == default_choice(finding):
            self.choices.pop(finding.key, None)
        else:
            self.choices[finding.key] = name
        self.dataChanged.emit(self.index(0, 2), self.index(max(len(self.rows) - 1, 0), 2))

    def chosen(self, finding: Finding) -> str:
        """The name of the repair for a finding, or `LEAVE`."""
        return self.choices.get(finding.key, default_choice(finding))

    def text(self, row: FlatRow, column: int) -> str:
        """Message, lines, title of the chosen repair."""
        finding: Finding = row.data
        if column == 0:
            return visible(f"{SIGNS[TONES[finding.severity]]} {finding.message}")
        if column == 1:
            return lines_text(list(finding.lines)) if finding.lines else finding.wire
        name = self.chosen(finding)
        return next((repair.title for repair in finding.repairs if repair.name == name), "leave as it is")

    def decoration(self, row: FlatRow, column: int, role: int) -> object:
        """The severity's colour."""
        if role == Qt.ItemDataRole.ForegroundRole and column == 0:
            return self._tones.get(TONES[row.data.severity])
        return None


class ChangesModel(FlatTreeModel):
    """One row for each record that a repair changes."""

    columns = ("Change", "Line", "Because of")

    def set_plan(self, plan: RepairPlan | None) -> None:
        """Show the changes of a plan."""
        self.set_rows([FlatRow(change) for change in plan.changes] if plan is not None else [])

    def text(self, row: FlatRow, column: int) -> str:
        """What happens, where, and for which finding."""
        change: RecordChange = row.data
        if column == 0:
            sign, word = ACTIONS.get(change.action, ("·", change.action))
            return f"{sign} {word}"
        if column == 1:
            return f"{'after ' if change.action == 'insert' else ''}{change.line:,}" if change.line else ""
        return visible(f"{change.finding.replace('_', ' ')}: {change.reason}" if change.finding else change.reason)


def default_choice(finding: Finding) -> str:
    """What happens to a finding when nothing is chosen: its default repair; only errors are mended unasked."""
    repair = finding.default_repair
    if repair is not None and repair.changes_file:
        return repair.name
    if finding.severity != "error":
        return LEAVE
    return next((repair.name for repair in finding.repairs if repair.changes_file), LEAVE)


def change_parts(change: RecordChange) -> list[Part]:
    """The record before and after, member by member."""
    sign, word = ACTIONS.get(change.action, ("·", change.action))
    place = f"line {change.line:,}" if change.line else ""
    parts: list[Part] = [Heading(f"{sign} record {word}", f"{place}  {change.uuid}".strip())]
    if change.reason:
        parts.append(Note(change.reason))
    sizes = [len(data) for data in (change.before, change.after) if data is not None]
    if not sizes:
        return parts
    if max(sizes) > DIFF_LIMIT:
        parts.append(Note(f"The record is large ({bytes_text(max(sizes))}); its bytes after the change:"))
        return [*parts, Code(_decoded(change.after if change.after is not None else change.before))]
    rows = diff.rows_of_texts(_lines(change.before), _lines(change.after))
    return [*parts, Diff(tuple(rows))]


def _lines(data: bytes | None) -> str:
    """A record as indented JSON in its own member order, so that a diff shows members; "" for no record."""
    if data is None:
        return ""
    text = _decoded(data)
    try:
        value: Any = json.loads(text)
        return json.dumps(value, ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text


def _decoded(data: bytes | None) -> str:
    return data.decode("utf-8", "replace") if data is not None else ""


def verdict(plan: RepairPlan) -> tuple[Tone, str]:
    """Whether the repair helps, in one sentence with its figures."""
    before = sum(finding.severity == "error" for finding in plan.findings_before)
    after = sum(finding.severity == "error" for finding in plan.findings_after)
    counts: Mapping[str, int] = plan.counts()
    figures = (
        f"{counts['changed_lines']:,} changed, {counts['added_lines']:,} added, {counts['removed_lines']:,} removed, "
        f"{counts['unchanged_lines']:,} unchanged byte for byte"
    )
    if not plan.changes_anything:
        return Tone.MUTED, "With these choices nothing changes: there is nothing to write."
    errors = f"errors: {before:,} before, {after:,} after"
    if after:
        return Tone.WARNING, f"{errors} · {figures}"
    return Tone.GOOD, f"No error is left ({errors}) · {figures}"
