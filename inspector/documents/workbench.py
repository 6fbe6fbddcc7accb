"""The columns of a comparison: strategies with their settings at one point of a session, previewed live."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from PySide6.QtCore import QObject, QTimer, Signal

from compaction.accounting.categories import Category
from compaction.conversation import build_conversation
from compaction.errors import InputUnreadable
from compaction.progress import Progress
from compaction.strategies.inputs import strategy_input
from compaction.strategies.plan import Lost, Plan, StrategyInput
from compaction.strategies.registry import STRATEGIES, Strategy, preview
from compaction.strategies.session_at import prefix_of, round_time_ms, session_at
from compaction.strategies.settings import make_settings, settings_json
from inspector.documents.model_column import with_summariser
from inspector.work.jobs import Op

if TYPE_CHECKING:
    from compaction.conversation import Conversation
    from compaction.strategies.summariser import Summariser
    from inspector.context import AppContext
    from inspector.documents.document import Document

DEBOUNCE_MILLISECONDS = 40
"""Wait after the last change of a setting before a preview starts; first results have to come within 150 ms."""

PointKind = Literal["end", "round", "compaction"]


@dataclass(frozen=True, slots=True)
class Point:
    """Where in the session strategies are compared.

    Attributes:
        kind: `end` the next request; `round` before API round `number`'s response; `compaction` right before the
            boundary record `number`.
        number: 0 for the end.
    """

    kind: PointKind = "end"
    number: int = 0


@dataclass(slots=True, eq=False)
class Column:
    """One strategy with its settings, and its plan once that is computed.

    Attributes:
        strategy: the strategy.
        settings: an instance of its settings dataclass.
        plan: the newest plan; kept, and `stale`, while a newer one is computed. `error` instead when it failed.
        pinned: stays at the left when columns are ranked.
        summariser: who writes this column's summary; None: the comparison's own, offline.
    """

    strategy: Strategy
    settings: Any
    plan: Plan | None = None
    error: str = ""
    stale: bool = True
    pinned: bool = False
    summariser: Summariser | None = None

    @property
    def title(self) -> str:
        """The strategy's title, with its settings where they differ from the defaults."""
        defaults = settings_json(self.strategy.settings_type())
        changed = [f"{k.replace('_', ' ')} {v}" for k, v in settings_json(self.settings).items() if v != defaults[k]]
        changed = [text for text in changed if not text.startswith("enabled ")]
        if self.plan is not None and self.plan.summary_usage is not None:
            changed.append("summary by a model")
        return self.strategy.title + (f" ({', '.join(changed)})" if changed else "")


RANKS: dict[str, tuple[str, Callable[[Plan], float]]] = {
    "tokens": ("Tokens after", lambda plan: plan.tokens_after),
    "cost": ("Cost of the next request", lambda plan: _or_infinite(plan.cost.next_request if plan.cost else None)),
    "one_off": ("One-off cost", lambda plan: _or_infinite(plan.cost.one_off if plan.cost else None)),
    "loss": ("What is lost", lambda plan: things_lost(plan.lost)),
}
"""Ways to rank columns: key → (title, smaller is better)."""


def _or_infinite(value: float | None) -> float:
    return float("inf") if value is None else value


def things_lost(lost: Lost) -> int:
    """Things that the model cannot see any more, counted alike."""
    return lost.user_messages + len(lost.files) + lost.tool_results + lost.thinking_turns


@dataclass(slots=True)
class _Given:
    """What strategies are given at the point, once computed."""

    value: StrategyInput | None = None
    categories: dict[Category, int] = field(default_factory=dict)
    waiting: list[Callable[[StrategyInput], None]] = field(default_factory=list)
    running: bool = False


class Workbench(QObject):
    """The comparison of one document. All computing runs in the context's job runner; the document stays as it is.

    Signals:
        columns_changed(): columns were added, removed or moved, or the point changed.
        column_updated(Column): its plan or error is new, or it became stale.
        chosen_changed(): `chosen` changed.
        failed(Exception): the point's request could not be assembled.
    """

    columns_changed = Signal()
    column_updated = Signal(object)
    chosen_changed = Signal()
    failed = Signal(object)

    def __init__(self, context: AppContext, document: Document) -> None:
        super().__init__(document)
        self._context = context
        self._document = document
        self.point = Point()
        self.columns: list[Column] = [Column(s, start_settings(s)) for s in STRATEGIES.values()]
        self.chosen: Column | None = None
        self._given = _Given()
        self._timers: dict[int, QTimer] = {}
        document.reloaded.connect(self._on_reloaded)

    @property
    def given(self) -> StrategyInput | None:
        """What strategies are given at the point; None until the first preview has been asked for and computed."""
        return self._given.value

    @property
    def categories(self) -> dict[Category, int]:
        """Tokens of the untouched context by kind; {} until `given` is there."""
        return self._given.categories

    def start(self) -> None:
        """Compute what is missing; called when a view shows the comparison."""
        for column in self.columns:
            if column.plan is None and not column.error:
                self.refresh(column)

    def set_point(self, point: Point) -> None:
        """Compare at another point of the session."""
        if point != self.point:
            self.point = point
            self._start_over()

    def _on_reloaded(self) -> None:
        self._start_over()

    def _start_over(self) -> None:
        self._given = _Given()
        for column in self.columns:
            column.stale = True
            column.plan, column.error, column.summariser = None, "", None
        self.columns_changed.emit()

    def add(self, name: str, values: Mapping[str, Any] | None = None) -> Column:
        """A new column at the right.

        Raises:
            UsageError: no such strategy or setting.
        """
        strategy = STRATEGIES[name]
        settings = make_settings(strategy.settings_type, values, name) if values else start_settings(strategy)
        column = Column(strategy, settings)
        self.columns.append(column)
        self.columns_changed.emit()
        self.refresh(column)
        return column

    def duplicate(self, column: Column) -> Column:
        """The same strategy and settings once more, beside it."""
        copy = replace(column, pinned=False)
        self.columns.insert(self.columns.index(column) + 1, copy)
        self.columns_changed.emit()
        self.refresh(copy)
        return copy

    def remove(self, column: Column) -> None:
        """Take a column away."""
        self.columns.remove(column)
        if self.chosen is column:
            self.choose(None)
        self.columns_changed.emit()

    def move(self, column: Column, by: int) -> None:
        """Move a column left (−) or right (+)."""
        place = self.columns.index(column)
        self.columns.insert(max(0, min(len(self.columns) - 1, place + by)), self.columns.pop(place))
        self.columns_changed.emit()

    def set_pinned(self, column: Column, on: bool) -> None:
        """Keep a column at the left when ranking."""
        column.pinned = on
        self._pinned_first()
        self.columns_changed.emit()

    def rank(self, key: str) -> None:
        """Sort the columns, best first, pinned ones before all, those that do not apply last."""
        measure = RANKS[key][1]
        self.columns.sort(
            key=lambda c: (not c.pinned, c.plan is None or not c.plan.applies, measure(c.plan) if c.plan else 0.0)
        )
        self.columns_changed.emit()

    def _pinned_first(self) -> None:
        self.columns.sort(key=lambda column: not column.pinned)

    def choose(self, column: Column | None) -> None:
        """The column that the other views (before and after, apply) are about."""
        if column is not self.chosen:
            self.chosen = column
            self.chosen_changed.emit()

    def change_settings(self, column: Column, values: Mapping[str, Any]) -> None:
        """Preview a column with other settings, soon (debounced).

        Raises:
            UsageError: a value is out of range or of the wrong type; the settings stay as they were.
        """
        merged = {**settings_json(column.settings), **values}
        column.settings = make_settings(column.strategy.settings_type, merged, column.strategy.name)
        column.stale = True
        self.column_updated.emit(column)
        timer = self._timers.get(id(column))
        if timer is None:
            timer = self._timers[id(column)] = QTimer(self)
            timer.setSingleShot(True)
            timer.setInterval(DEBOUNCE_MILLISECONDS)
            timer.timeout.connect(lambda: self.refresh(column))
        timer.start()

    def set_summariser(self, column: Column, summariser: Summariser | None) -> None:
        """Preview a column with a summary written by someone else; None: offline again."""
        column.summariser = summariser
        self.refresh(column)
        self.column_updated.emit(column)

    def refresh(self, column: Column) -> None:
        """Compute the column's plan in the background; a newer request for it supersedes this one."""
        column.stale = True
        self._with_given(lambda given: self._preview(column, given))

    def _with_given(self, then: Callable[[StrategyInput], None]) -> None:
        holder = self._given
        if holder.value is not None:
            then(holder.value)
            return
        holder.waiting.append(then)
        conversation = self._document.conversation
        if holder.running or conversation is None:
            return
        holder.running = True
        point = self.point

        def work(_progress: Progress) -> tuple[StrategyInput, dict[Category, int]]:
            given = given_at(conversation, point)
            return given, given.view.categories()  # measured once here, shared by every column

        def done(found: tuple[StrategyInput, dict[Category, int]]) -> None:
            given, holder.categories = found
            holder.value = given
            if holder is self._given:
                for waiting in holder.waiting:
                    waiting(given)
            holder.waiting.clear()

        op = Op("Assembling the request", work, token=f"given {id(self)}", quiet=True)
        self._context.runner.start(op).success(done).failure(self.failed.emit)

    def _preview(self, column: Column, given: StrategyInput) -> None:
        if column not in self.columns:
            return
        strategy, settings, summariser = column.strategy, column.settings, column.summariser

        def work(progress: Progress) -> Plan:
            progress.check()
            return preview(strategy, with_summariser(given, summariser), settings)

        def done(plan: Plan) -> None:
            same = settings is column.settings and summariser is column.summariser
            if given is self._given.value and same:
                column.plan, column.error, column.stale = plan, "", False
                self.column_updated.emit(column)

        def failed(error: Exception) -> None:
            column.plan, column.error, column.stale = None, str(error), False
            self.column_updated.emit(column)

        op = Op(f"Previewing {strategy.title}", work, token=f"preview {id(self)} {id(column)}", quiet=True)
        self._context.runner.start(op).success(done).failure(failed)

    # Presets --------------------------------------------------------------------------------------------------

    def preset(self) -> dict[str, Any]:
        """The columns as plain data, to be saved and shared."""
        return {
            "compactoscope_preset": 1,
            "columns": [
                {"strategy": c.strategy.name, "settings": settings_json(c.settings), "pinned": c.pinned}
                for c in self.columns
            ],
        }

    def save_preset(self, path: Path) -> None:
        """Write the preset to a file of the person's choice."""
        path.write_text(json.dumps(self.preset(), indent=2) + "\n", "utf-8")

    def load_preset(self, path: Path) -> None:
        """Replace the columns by those of a preset file.

        Raises:
            InputUnreadable: it cannot be read or is no preset; the columns stay as they were.
            UsageError: it names a strategy or setting that does not exist.
        """
        try:
            value = json.loads(path.read_text("utf-8"))
            entries = value["columns"]
            columns = [_column_of(entry) for entry in entries]
        except OSError as error:
            raise InputUnreadable(f"cannot be read: {error.strerror or error}", "check the path", str(path)) from error
        except (ValueError, KeyError, TypeError) as error:
            raise InputUnreadable(f"is no preset of columns: {error}", "choose a file saved here", str(path)) from error
        self.columns = columns
        self.choose(None)
        self.columns_changed.emit()


def _column_of(entry: Mapping[str, Any]) -> Column:
    strategy = STRATEGIES[entry["strategy"]]
    settings = make_settings(strategy.settings_type, entry["settings"], strategy.name)
    return Column(strategy, settings, pinned=bool(entry.get("pinned")))


def start_settings(strategy: Strategy) -> Any:
    """The defaults, switched on: who compares strategies wants to see what they would do."""
    defaults = strategy.settings_type()
    switches = {"enabled": True} if hasattr(defaults, "enabled") else {}
    return make_settings(strategy.settings_type, switches, strategy.name)


def given_at(conversation: Conversation, point: Point) -> StrategyInput:
    """What strategies are given at a point of a session; pure but for the time at the end of the session.

    Raises:
        CompactoscopeError: the round is not there, or the request cannot be assembled.
    """
    now = time.time_ns() // 1_000_000
    if point.kind == "round":
        stamp = round_time_ms(conversation, point.number)
        return strategy_input(session_at(conversation, point.number), now_ms=stamp or now)
    if point.kind == "compaction":
        stamp = int(conversation.transcript.timestamp_ms[point.number])
        before = build_conversation(prefix_of(conversation.transcript, point.number))
        return strategy_input(before, now_ms=stamp or now)
    return strategy_input(conversation, now_ms=now)


def workbench_of(context: AppContext, document: Document) -> Workbench:
    """The document's one workbench: every view of a tab shares it."""
    found = document.findChild(Workbench)
    return found if isinstance(found, Workbench) else Workbench(context, document)
