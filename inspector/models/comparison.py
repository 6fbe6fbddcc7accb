"""The comparison as a table: one column a strategy (the untouched session first), one row a figure."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from compaction.accounting.categories import Category
from compaction.strategies.cost import PlanCost
from compaction.strategies.plan import Plan, StrategyInput
from compaction.strategies.telemetry import will_retrigger
from inspector.documents.workbench import Column, Workbench
from inspector.models.strategy_help import strategy_help
from inspector.plain_text import plain_tip

Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()
BAR_ROW = 0
"""The row whose cells are stacked bars on one scale."""
COLUMN_ROLE = int(Qt.ItemDataRole.UserRole) + 1
"""The `Column` of a cell, None for the untouched session."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the comparison.

    Attributes:
        title: what it is; `tip` where it comes from.
        with_plan: its text for a strategy's plan.
        untouched: its text for the session as it is, with the money of any plan, which knows the session's too.
        category: the kind of tokens it counts, None for other figures.
    """

    title: str
    tip: str
    with_plan: Callable[[Plan, StrategyInput], str]
    untouched: Callable[[StrategyInput, PlanCost | None], str] = lambda _given, _cost: "–"
    category: Category | None = None


def tokens(value: int | None) -> str:
    """Tokens as text; None is said, never shown as zero."""
    return "unknown" if value is None else f"{value:,}"


def dollars(value: float | None) -> str:
    """USD as text; None is said, never shown as zero."""
    if value is None:
        return "unpriced"
    return f"−${-value:,.4f}" if value < 0 else f"${value:,.4f}"


def _cost(name: str, form: Callable[[Any], str]) -> Callable[[Plan, StrategyInput], str]:
    return lambda plan, _given: form(getattr(plan.cost, name)) if plan.cost is not None else "unknown"


def _untouched(money: Callable[[PlanCost], str]) -> Callable[[StrategyInput, PlanCost | None], str]:
    return lambda _given, cost: money(cost) if cost is not None else "unknown"


def _amount(value: int) -> str:
    return f"{value:,} tokens"


def _break_even(plan: Plan, _given: StrategyInput) -> str:
    if plan.cost is None or plan.cost.per_request is None:
        return "unpriced"
    found = plan.cost.break_even_requests
    return "never" if found is None else "at once" if found == 0 else f"after {found:,} requests"


def _warnings(plan: Plan, given: StrategyInput) -> str:
    said = [f"✖ {v.rule}: {v.message}" for v in plan.violations]
    if will_retrigger(plan.tokens_after, given.thresholds):
        said.append("▲ would compact again at the next turn")
    said += [f"· {note}" for note in plan.notes]
    return "\n".join(said) or "none"


def _category(category: Category) -> Figure:
    return Figure(
        f"  {category.title}",
        "Tokens of this kind in the context afterwards; the kinds add up to the total.",
        lambda plan, _given: tokens(plan.after_categories.get(category.key, 0)),
        category=category,
    )


def _files(plan: Plan, _given: StrategyInput) -> str:
    names = [path.rsplit("/", 1)[-1] for path in plan.lost.files]
    return f"{len(names)}" + (f": {', '.join(names[:3])}{' …' if len(names) > 3 else ''}" if names else "")


_LOST = "What the model cannot see any more after the plan."
FIGURES: tuple[Figure, ...] = (
    Figure(
        "Context",
        "Tokens by kind on a common scale, with the thresholds of the client profile.",
        lambda *_: "",
        lambda *_: "",
    ),
    Figure(
        "Applies",
        "Whether there is anything to do, and why.",
        lambda plan, _given: ("✔ " if plan.applies else "– does not apply: ") + plan.reason,
        lambda *_: "the session as it is",
    ),
    Figure(
        "Tokens after",
        "The context after the plan; the method stands behind it.",
        lambda plan, _given: f"{tokens(plan.tokens_after)} ({plan.method})",
        lambda given, _cost: f"{tokens(given.view.tokens)} ({given.view.total.method})",
    ),
    Figure("Tokens freed", "Before minus after, by one method.", lambda plan, _given: tokens(plan.tokens_freed)),
    *(_category(category) for category in Category),
    Figure("Cost once", "The summary request; 0 where no model is called.", _cost("one_off", dollars)),
    Figure(
        "Next request",
        "The prefix that is kept is read from the cache, the rest is written.",
        _cost("next_request", dollars),
        _untouched(lambda cost: dollars(cost.next_request_without)),
    ),
    Figure("  without it", "The next request of the untouched session.", _cost("next_request_without", dollars)),
    Figure(
        "Each later request",
        "Cache warm, growing as the session did.",
        _cost("per_request", dollars),
        _untouched(lambda cost: dollars(cost.per_request_without)),
    ),
    Figure("  without it", "Each later request of the untouched session.", _cost("per_request_without", dollars)),
    Figure("Break-even", "When the plan has paid for itself.", _break_even),
    Figure(
        "Saved until auto-compact",
        "Against waiting for the automatic compaction and paying for it.",
        _cost("saved_until_auto_compact", dollars),
    ),
    Figure(
        "Cache kept",
        "Tokens of the warm cache that the next request still reads.",
        _cost("cache_tokens_kept", _amount),
        _untouched(lambda cost: _amount(cost.cache_tokens_kept + cost.cache_tokens_lost)),
    ),
    Figure(
        "Cache lost",
        "Tokens of the warm cache that are written anew.",
        _cost("cache_tokens_lost", _amount),
        _untouched(lambda _money: _amount(0)),
    ),
    Figure("Model calls", "Calls of a model to carry it out.", lambda plan, _given: str(plan.model_calls)),
    Figure("Time", "Estimated where a model is called.", lambda plan, _given: f"{plan.duration_ms / 1000:,.1f} s"),
    Figure("User messages lost", _LOST, lambda plan, _given: str(plan.lost.user_messages)),
    Figure("Files lost", _LOST, _files),
    Figure("Tool results lost", _LOST, lambda plan, _given: str(plan.lost.tool_results)),
    Figure("Thinking turns lost", _LOST, lambda plan, _given: str(plan.lost.thinking_turns)),
    Figure("Warnings", "Pairs, API rules, prefix-bound thinking, another compaction right after.", _warnings),
)
"""The rows, top to bottom."""
TEXT_ROWS = ("Applies", "Files lost", "Warnings")
"""Rows of sentences: several lines high, aligned to the left."""


class ComparisonModel(QAbstractTableModel):
    """Rows are `FIGURES`; column 0 is the untouched session, the others are the workbench's columns."""

    def __init__(self, workbench: Workbench, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.workbench = workbench
        self._given: StrategyInput | None = None
        workbench.columns_changed.connect(self._reset)
        workbench.column_updated.connect(self._updated)

    def column(self, number: int) -> Column | None:
        """The workbench's column behind a table column; None for the untouched session."""
        columns = self.workbench.columns
        return columns[number - 1] if 1 <= number <= len(columns) else None

    def _reset(self) -> None:
        self.beginResetModel()
        self.endResetModel()

    def _updated(self, column: Column) -> None:
        if column in self.workbench.columns:
            number = self.workbench.columns.index(column) + 1
            # While it is computed anew only the bar (paler) and the header (…) look different.
            self._tell_cells(number, BAR_ROW + 1 if column.stale and column.plan is not None else len(FIGURES))
            self.headerDataChanged.emit(Qt.Orientation.Horizontal, number, number)
        if self.workbench.given is not self._given:
            # The untouched session is known as soon as the first plan is.
            self._given = self.workbench.given
            self._tell_cells(0, len(FIGURES))

    def _tell_cells(self, number: int, rows: int) -> None:
        # One by one: for a range the view paints everything again, for one cell only that.
        for row in range(rows):
            cell = self.index(row, number)
            self.dataChanged.emit(cell, cell)

    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(FIGURES)

    def columnCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.workbench.columns) + 1

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation == Qt.Orientation.Vertical:
            if role == Qt.ItemDataRole.DisplayRole:
                return FIGURES[section].title
            asked = role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.WhatsThisRole)
            return FIGURES[section].tip if asked else None
        column = self.column(section)
        if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.WhatsThisRole):
            return strategy_help(column.strategy.name) if column is not None else "The session as it is."
        if role == Qt.ItemDataRole.DisplayRole:
            if column is None:
                return "Untouched"
            return ("📌 " if column.pinned else "") + column.title + (" …" if column.stale else "")
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        if role == COLUMN_ROLE:
            return self.column(index.column())
        if role == Qt.ItemDataRole.WhatsThisRole:
            return self._explanation(index)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            # A bare count stands under the other figures, also in a row of sentences.
            left = FIGURES[index.row()].title in TEXT_ROWS and any(
                map(str.isalpha, self.text(index.row(), index.column()))
            )
            side = Qt.AlignmentFlag.AlignLeft if left else Qt.AlignmentFlag.AlignRight
            return int(side | Qt.AlignmentFlag.AlignVCenter)
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
            text = self.text(index.row(), index.column())
            if role == Qt.ItemDataRole.AccessibleTextRole and index.row() == BAR_ROW:
                return self.text(2, index.column())
            if role == Qt.ItemDataRole.ToolTipRole:
                return plain_tip(text) if len(text) > 24 else None
            return text
        return None

    def _explanation(self, index: Index) -> str:
        figure, column = FIGURES[index.row()], self.column(index.column())
        about = strategy_help(column.strategy.name) if column is not None else ""
        return f"{figure.title.strip()}: {figure.tip}" + (f"\n\n{column.strategy.title}: {about}" if column else "")

    def text(self, row: int, number: int) -> str:
        """The text of a cell."""
        figure, given, column = FIGURES[row], self.workbench.given, self.column(number)
        if column is None and figure.category is not None:
            return tokens(self.workbench.categories.get(figure.category, 0)) if given is not None else ""
        if column is None:
            if given is None:
                return "computing …" if row == 2 else ""
            plans = (c.plan for c in self.workbench.columns if c.plan is not None)
            return figure.untouched(given, next((plan.cost for plan in plans if plan.cost is not None), None))
        if column.error:
            return f"✖ {column.error}" if row == 1 else ""
        if column.plan is None or given is None:
            return "computing …" if row == 1 else ""
        return figure.with_plan(column.plan, given)

    def rows_as_text(self) -> list[list[str]]:
        """The whole table with headers, for copying and export; the bar row is left out."""
        count = self.columnCount()
        head = ["", *(str(self.headerData(n, Qt.Orientation.Horizontal)) for n in range(count))]
        body = [
            [FIGURES[row].title.strip(), *(self.text(row, n).replace("\n", "; ") for n in range(count))]
            for row in range(1, len(FIGURES))
        ]
        return [head, *body]

    def as_csv(self) -> str:
        """The table as CSV (RFC 4180)."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\r\n").writerows(self.rows_as_text())
        return out.getvalue()

    def as_markdown(self) -> str:
        """The table as Markdown; what could be markup is escaped."""
        head, *body = [[cell.replace("|", "\\|").replace("<", "&lt;") for cell in row] for row in self.rows_as_text()]
        rows = [head, ["---"] + ["---:"] * (len(head) - 1), *body]
        return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"
