"""The doctor's findings as a flat tree: grouped by kind or severity, filtered by text and severity."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QColor, QFont

from inspector.models.as_sent_rows import lines_text
from inspector.models.flat_tree import FlatRow, FlatTreeModel
from inspector.plain_text import plain_tip
from inspector.rendering.parts import SIGNS, Tone
from inspector.rendering.visible_text import visible

if TYPE_CHECKING:
    from compaction.diagnosis.model import Finding, Report

Grouping = Literal["kind", "severity", "line"]

SEVERITIES = ("error", "warning", "info")

TONES: dict[str, Tone] = {"error": Tone.ERROR, "warning": Tone.WARNING, "info": Tone.INFO}


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Findings that belong together: `title` names them, `severity` is the worst of them."""

    title: str
    severity: str
    findings: tuple[Finding, ...]


class FindingsModel(FlatTreeModel):
    """Groups of findings, worst first; which groups are open is kept when the report changes."""

    columns = ("Finding", "Where", "Ids")

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._report: Report | None = None
        self._texts: dict[int, str] = {}
        self._closed: set[str] = set()
        self._tones: dict[Tone, QColor] = {}
        self._bold = QFont()
        self._bold.setBold(True)
        self.text_filter = ""
        self.severities: frozenset[str] = frozenset(SEVERITIES)
        self.grouping: Grouping = "kind"
        self.toggled.connect(self._on_toggled)

    def set_report(self, report: Report | None) -> None:
        """Show another report with the same filter."""
        self._report = report
        self._texts = {}
        self._rebuild()

    def set_filter(self, text: str, severities: Collection[str], grouping: Grouping) -> None:
        """Show only findings that hold the text (in any of their facts) and have one of the severities."""
        self.text_filter, self.severities, self.grouping = text.casefold().strip(), frozenset(severities), grouping
        self._rebuild()

    def set_tones(self, tones: dict[Tone, QColor]) -> None:
        """Colours of the severities."""
        self._tones = tones
        if self.rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self.rows) - 1, 2))

    @property
    def shown(self) -> int:
        """How many findings pass the filter."""
        return sum(len(row.data.findings) for row in self.rows if isinstance(row.data, FindingGroup))

    def number_of(self, finding: Finding) -> int:
        """The visible row of a finding; its group is opened for it. -1 when the filter hides it."""
        for number, row in enumerate(self.rows):
            if row.data is finding:
                return number
            if isinstance(row.data, FindingGroup) and not row.expanded and finding in row.data.findings:
                self.set_expanded(number, True)
                return number + 1 + row.data.findings.index(finding)
        return -1

    def _rebuild(self) -> None:
        found = self._report.findings if self._report is not None else ()
        findings = [finding for number, finding in enumerate(found) if self._passes(number, finding)]
        rows: list[FlatRow] = []
        for group in grouped(findings, self.grouping):
            row = FlatRow(group, 0, True, group.title not in self._closed)
            rows.append(row)
            if row.expanded:
                rows += [FlatRow(finding, 1) for finding in group.findings]
        self.set_rows(rows)

    def _passes(self, number: int, finding: Finding) -> bool:
        if finding.severity not in self.severities:
            return False
        if not self.text_filter:
            return True
        text = self._texts.get(number)
        if text is None:
            text = self._texts[number] = _search_text(finding)
        return self.text_filter in text

    def _on_toggled(self, group: object) -> None:
        if isinstance(group, FindingGroup):
            self._closed ^= {group.title}

    def children_of(self, row: FlatRow) -> list[FlatRow]:
        """The findings of a group."""
        return [FlatRow(finding) for finding in row.data.findings]

    def text(self, row: FlatRow, column: int) -> str:
        """Sign and title of a group, message and places of a finding."""
        item: FindingGroup | Finding = row.data
        sign = SIGNS[TONES[item.severity]]
        if isinstance(item, FindingGroup):
            return (f"{sign} {len(item.findings):,} × {item.title}", "", "")[column]
        if column == 0:
            return visible(f"{sign} {item.message}")
        if column == 1:
            return lines_text(list(item.lines)) if item.lines else item.wire
        return visible(", ".join(item.ids[:4]) + (" …" if len(item.ids) > 4 else ""))

    def decoration(self, row: FlatRow, column: int, role: int) -> object:
        """Groups in bold, the sign's colour for the first column, the whole message as a tool tip."""
        if role == Qt.ItemDataRole.FontRole:
            return self._bold if isinstance(row.data, FindingGroup) and column == 0 else None
        if role == Qt.ItemDataRole.ForegroundRole and column == 0:
            return self._tones.get(TONES[row.data.severity])
        if role == Qt.ItemDataRole.ToolTipRole and not isinstance(row.data, FindingGroup) and column == 0:
            return plain_tip(visible(row.data.message))
        return None


def _search_text(finding: Finding) -> str:
    """Every fact of a finding that a person may look for, casefolded."""
    words = (finding.code, finding.rule, finding.message, finding.api_error, finding.why, finding.wire)
    numbers = [f"line {line} line {line:,}" for line in finding.lines]
    return " ".join((*words, *finding.ids, *numbers, finding.code.replace("_", " "))).casefold()


def grouped(findings: list[Finding], grouping: Grouping) -> list[FindingGroup]:
    """Findings in groups, the worst group first, then the one with the earliest line."""
    members: dict[str, list[Finding]] = {}
    for finding in findings:
        members.setdefault(_title(finding, grouping), []).append(finding)
    groups = []
    for title, found in members.items():
        found.sort(key=lambda f: (SEVERITIES.index(f.severity), f.lines[:1] or (1 << 62,)))
        groups.append(FindingGroup(title, found[0].severity, tuple(found)))
    if grouping == "line":
        return sorted(groups, key=lambda g: g.findings[0].lines[:1] or (1 << 62,))
    return sorted(groups, key=lambda g: (SEVERITIES.index(g.severity), g.findings[0].lines[:1] or (1 << 62,)))


def _title(finding: Finding, grouping: Grouping) -> str:
    if grouping == "severity":
        return {"error": "errors", "warning": "warnings", "info": "worth knowing"}[finding.severity]
    if grouping == "line":
        return f"line {finding.lines[0]:,}" if finding.lines else "the whole session"
    words = finding.code.replace("_", " ")
    return f"{words} ({finding.rule})" if finding.rule else words
