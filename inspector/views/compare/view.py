"""Strategies side by side: bars on one scale, every figure below, settings and money of the chosen column."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QEvent, QMargins, QModelIndex, QPoint, Qt
from PySide6.QtGui import QAction, QFocusEvent, QFontMetrics, QGuiApplication, QKeySequence
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPushButton,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from compaction.errors import CompactoscopeError
from compaction.export.document import safe_utf8
from compaction.export.writer import Written, write_new_file
from compaction.progress import Progress
from compaction.strategies.registry import STRATEGIES
from inspector.context import AppContext
from inspector.documents.derived import apply_column, can_apply, why_not
from inspector.documents.document import Document, Selection
from inspector.documents.workbench import RANKS, Column, Point, Workbench, workbench_of
from inspector.models.comparison import BAR_ROW, ComparisonModel
from inspector.models.strategy_help import strategy_help
from inspector.plain_text import plain_tip
from inspector.views.compare.bar_delegate import BarDelegate
from inspector.views.compare.break_even import BreakEven
from inspector.views.compare.comparison_table import ComparisonTable
from inspector.views.compare.model_summary import ModelSummary
from inspector.views.compare.report import comparison_report, exact_request
from inspector.views.compare.settings_form import SettingsForm
from inspector.views.compare.stack import legend_text
from inspector.views.detail.pages import plain_label
from inspector.views.elided_label import ElidedLabel
from inspector.views.flow_layout import FlowLayout, together
from inspector.views.turning_splitter import TurningSplitter
from inspector.work.jobs import Job, Op

_APPLY_TIP = "Carries the plan out on a copy in a tab of its own. Nothing is written."


class CompareView(QWidget):
    """The comparison of one document's workbench."""

    def __init__(self, context: AppContext, document: Document) -> None:
        super().__init__()
        self._context = context
        self._document = document
        self.workbench: Workbench = workbench_of(context, document)
        self.model = ComparisonModel(self.workbench, self)
        self.table = ComparisonTable()
        self.table.setTabKeyNavigation(False)
        self.table.setModel(self.model)
        self.table.setAccessibleName("Strategies side by side")
        self.delegate = BarDelegate(self.workbench, context.theme)
        self.table.setItemDelegateForRow(BAR_ROW, self.delegate)
        self._scale_top = 0
        self.point = QComboBox()
        self.point.setAccessibleName("Point of the session")
        self.rank = QComboBox()
        self.rank.setAccessibleName("Rank the columns")
        self.form, self.money = SettingsForm(), BreakEven(context.theme)
        self.legend, self.state = QLabel(), ElidedLabel()
        self.chosen_title, self.chosen_help = plain_label(), plain_label()
        self.model_summary = ModelSummary(context, self.workbench)
        self.menu_button, self.add_button = QToolButton(), QToolButton()
        self.apply_button = QPushButton("Apply to a copy")
        self._build()
        self._connect()
        self._fill_points()
        self._shape()
        self._recolour()
        self.workbench.start()
        self.table.choose_unseen(self.model.index(2, 1))

    # Building -------------------------------------------------------------------------------------------------

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Pass the focus on; a focus proxy would take the other controls out of the Tab order (Qt 6.11)."""
        self.table.setFocus(event.reason())

    def _build(self) -> None:
        self.rank.addItem("as placed", "")
        for key, (title, _measure) in RANKS.items():
            self.rank.addItem(title, key)
        add_menu, more = QMenu(self), QMenu(self)
        for name, strategy in STRATEGIES.items():
            add_menu.addAction(strategy.title, partial(self.workbench.add, name))
        self.add_button.setText("Add a column")
        self.add_button.setMenu(add_menu)
        for text, handler in self._commands():
            more.addAction(text, handler)
        self.menu_button.setText("Save and copy")
        self.menu_button.setMenu(more)
        for button in (self.add_button, self.menu_button):
            button.setProperty("framed", True)
            button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        bar = FlowLayout(QMargins(8, 6, 8, 4))
        for title, widget in (("At", self.point), ("Rank by", self.rank)):
            label = QLabel(title)
            label.setBuddy(widget)
            bar.addWidget(together(label, widget, grows=True))
        bar.addWidget(self.add_button)
        bar.addWidget(self.menu_button)
        table = self.table
        table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header = table.horizontalHeader()
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignCenter | Qt.AlignmentFlag(int(Qt.TextFlag.TextWordWrap)))
        header.setSectionsClickable(True)
        header.setMinimumHeight(self.fontMetrics().height() * 3 + 12)
        table.verticalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        side = QWidget()
        layout = QVBoxLayout(side)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        font = self.chosen_title.font()
        font.setBold(True)
        self.chosen_title.setFont(font)
        self.chosen_title.setWordWrap(True)
        self.chosen_title.setContentsMargins(8, 8, 8, 2)
        layout.addWidget(self.chosen_title)
        self.chosen_help.setWordWrap(True)
        self.chosen_help.setContentsMargins(8, 0, 8, 4)
        self.chosen_help.setAccessibleName("What the strategy does")
        scroll = QScrollArea()
        scroll.setAccessibleName("The chosen strategy and its settings")
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.chosen_help)
        column.addWidget(self.form)
        column.addStretch(1)
        scroll.setWidget(inside)
        layout.addWidget(scroll, 1)
        layout.addWidget(self.model_summary)
        # What scrolls above ends here: without the line its last row seems to belong to the money.
        line = QFrame()
        line.setFrameShape(QFrame.Shape.HLine)
        layout.addWidget(line)
        layout.addWidget(self.money)
        self.apply_button.setIcon(self._context.theme.icon("apply"))
        self.apply_button.setToolTip(_APPLY_TIP)
        self.apply_button.setEnabled(False)
        below = QHBoxLayout()
        below.setContentsMargins(8, 0, 8, 8)
        below.addWidget(self.apply_button)
        layout.addLayout(below)
        split = TurningSplitter(110)
        split.addWidget(table)
        split.addWidget(side)
        split.setStretchFactor(0, 1)
        split.setSizes([660, 300])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(bar)
        self.legend.setContentsMargins(9, 0, 9, 4)
        self.legend.setWordWrap(True)
        self.legend.setTextFormat(Qt.TextFormat.RichText)  # our own words and colours only
        layout.addWidget(self.legend)
        layout.addWidget(split, 1)
        self.state.setContentsMargins(9, 2, 9, 4)
        layout.addWidget(self.state)

    def _commands(self) -> list[tuple[str, Callable[[], None]]]:
        return [
            ("Copy the table as CSV", lambda: self._copy(self.model.as_csv())),
            ("Copy the table as Markdown", lambda: self._copy(self.model.as_markdown())),
            ("Save the table as CSV …", lambda: self._save("CSV (*.csv)", self._save_csv)),
            ("Save the table as Markdown…", lambda: self._save("Markdown (*.md)", self._save_markdown)),
            ("Save as a report…", self._save_report),
            ("Save as a picture…", lambda: self._save("PNG (*.png)", self._save_picture)),
            ("Copy the exact request JSON of the column", self._copy_request),
            ("Save the columns as a preset…", lambda: self._save("Preset (*.json)", self.workbench.save_preset)),
            ("Load a preset…", self._load_preset),
        ]

    def _connect(self) -> None:
        w = self.workbench
        w.columns_changed.connect(self._on_columns)
        w.column_updated.connect(self._on_updated)
        w.chosen_changed.connect(self._on_chosen)
        w.failed.connect(lambda error: self.state.setText(f"✖ {error}"))
        self.form.changed.connect(self._on_setting)
        self.apply_button.clicked.connect(self.apply_chosen)
        self.point.activated.connect(self._on_point)
        self.rank.activated.connect(lambda _index: self._on_rank())
        selection = self.table.selectionModel()
        selection.currentChanged.connect(self._on_current)
        self.table.customContextMenuRequested.connect(self._on_menu)
        self.table.horizontalHeader().sectionClicked.connect(self.table.selectColumn)
        self._document.reloaded.connect(self._fill_points)
        self._document.selection_changed.connect(self._on_selection)
        for text, keys, handler in (
            ("Remove the column", "Del", w.remove),
            ("Duplicate the column", "Ctrl+D", w.duplicate),
            ("Move the column left", "Ctrl+Left", lambda column: w.move(column, -1)),
            ("Move the column right", "Ctrl+Right", lambda column: w.move(column, 1)),
            ("Pin the column", "Ctrl+T", lambda column: w.set_pinned(column, not column.pinned)),
        ):
            action = QAction(text, self)
            action.setShortcut(QKeySequence(keys))
            action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            action.triggered.connect(lambda _on=False, handler=handler: self._with_column(handler))
            self.table.addAction(action)

    # State ----------------------------------------------------------------------------------------------------

    def current_column(self) -> Column | None:
        """The column of the current cell; None on the untouched session."""
        index = self.table.currentIndex()
        return self.model.column(index.column()) if index.isValid() else None

    def _with_column(self, handler: Callable[[Column], object]) -> None:
        column = self.current_column()
        if column is not None:
            handler(column)

    def _fill_points(self) -> None:
        conversation = self._document.conversation
        self.point.clear()
        self.point.addItem("the next request (end of the session)", Point())
        if conversation is not None:
            selected = self._document.selection.round
            if selected > 0:
                self.point.addItem(f"before API round {selected} (selected)", Point("round", selected))
            for number, compaction in enumerate(conversation.compactions, 1):
                if compaction.kind in ("auto", "manual"):
                    title = f"before compaction {number} ({compaction.kind}, line {compaction.line})"
                    self.point.addItem(title, Point("compaction", compaction.record))
        for place in range(self.point.count()):
            if self.point.itemData(place) == self.workbench.point:
                self.point.setCurrentIndex(place)

    def _on_selection(self, selection: Selection) -> None:
        if selection.round > 0 and selection.conversation is self._document.conversation:
            self._fill_points()

    def _on_point(self, place: int) -> None:
        point = self.point.itemData(place)
        if isinstance(point, Point):
            self.workbench.set_point(point)

    def _on_rank(self) -> None:
        key = self.rank.currentData()
        if key:
            self.workbench.rank(key)

    def _on_columns(self) -> None:
        self._shape()
        self.workbench.start()
        self._select_chosen()

    def _select_chosen(self) -> None:
        chosen = self.workbench.chosen
        if chosen in self.workbench.columns:
            number = self.workbench.columns.index(chosen) + 1
            self.table.setCurrentIndex(self.model.index(max(0, self.table.currentIndex().row()), number))

    def _shape(self) -> None:
        width = self.fontMetrics().averageCharWidth()
        font = self.table.horizontalHeader().font()
        font.setBold(True)
        bold = QFontMetrics(font)
        for column in range(self.model.columnCount()):
            # A title wraps between words; a longer word needs a wider column.
            words = str(self.model.headerData(column, Qt.Orientation.Horizontal) or "").split()
            longest = max((bold.horizontalAdvance(word) for word in words), default=0)
            self.table.setColumnWidth(column, max(width * 22, longest + width * 3))
        self.table.fit_rows()

    def _on_updated(self, column: Column) -> None:
        top = self.delegate.scale_top()
        if top != self._scale_top:
            # All bars are on one scale; without this only the changed column is painted again.
            self._scale_top = top
            self.table.viewport().update()
        self.table.fit_rows()
        if column is self.workbench.chosen:
            self._show_plan(column)
        waiting = sum(c.stale for c in self.workbench.columns)
        given = self.workbench.given
        text = f"Computing {waiting} of {len(self.workbench.columns)} columns…" if waiting else ""
        if given is not None and not waiting:
            text = (
                f"{given.wire.client} profile, {given.wire.model or 'model unknown'}, {len(given.wire.messages):,} "
                f"messages; nothing is written before you apply a column."
            )
        self.state.setText(text)

    def _on_current(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if current.isValid():
            self.workbench.choose(self.model.column(current.column()))

    def _on_chosen(self) -> None:
        column = self.workbench.chosen
        self.chosen_title.setText(column.strategy.title if column is not None else "The session as it is")
        text = strategy_help(column.strategy.name) if column is not None else "The request as it would be sent now."
        self.chosen_help.setText(text)
        self.form.show_column(column)
        self._show_plan(column)

    def _show_plan(self, column: Column | None) -> None:
        plan = column.plan if column is not None else None
        self.money.set_cost(plan.cost if plan is not None else None)
        self.model_summary.show_column(column)
        reason = why_not(column)
        self.apply_button.setToolTip(plain_tip(reason) or _APPLY_TIP)
        ready = not reason
        if ready != self.apply_button.isEnabled():
            self.apply_button.setEnabled(ready)
            self._context.actions.refresh()  # "Apply" in the menu follows the column

    def apply_chosen(self) -> None:
        """Carry the chosen column's plan out on a copy."""
        column = self.workbench.chosen
        if column is not None and can_apply(column):
            apply_column(self._context, self._document, self.workbench, column)

    def _on_setting(self, values: dict[str, object]) -> None:
        column = self.workbench.chosen
        if column is None:
            return
        try:
            self.workbench.change_settings(column, values)
        except CompactoscopeError as error:
            self.state.setText(f"✖ {error}")

    # Menus and export -----------------------------------------------------------------------------------------

    def _on_menu(self, place: QPoint) -> None:
        index = self.table.indexAt(place)
        menu = QMenu(self)
        if self.model.column(index.column()) is not None:
            menu.addActions(self.table.actions())
            menu.addSeparator()
        menu.addAction("Copy the cell", lambda: self._copy(str(index.data() or "")))
        menu.exec(self.table.viewport().mapToGlobal(place))

    def _copy(self, text: str) -> None:
        QGuiApplication.clipboard().setText(text)
        self.state.setText(f"Copied {len(text):,} characters.")

    def _copy_request(self) -> None:
        column = self.current_column()
        plan = column.plan if column is not None else None
        if plan is None or plan.server_edit is None:
            self.state.setText(
                "Choose a column of an API-level strategy first: only those have a request of their own."
            )
            return
        self.state.setText("Putting the request together…")
        op = Op("Putting the request together", lambda _progress: exact_request(plan), token=f"request {id(self)}")
        self._context.runner.start(op).success(self._copy)

    def _save_report(self) -> None:
        name, _ = QFileDialog.getSaveFileName(self, "Save the report", "", "HTML (*.html)")
        if name:
            self.save_report(Path(name if name.endswith(".html") else name + ".html"))

    def save_report(self, path: Path) -> Job[Written]:
        """Write the comparison as one HTML page, off the GUI thread; the file dialog asked before replacing one."""
        pieces = comparison_report(self.model, self._document.title, self.delegate.lines())
        source = self._document.path

        def write(progress: Progress) -> Written:
            return write_new_file(
                path,
                (safe_utf8(piece) for piece in pieces),
                operation="export",
                source=source if source is not None and source.is_file() else None,
                lineage={"format": "comparison"},
                overwrite=True,
                progress=progress,
            )

        job = self._context.runner.start(Op(f"Writing {path.name}", write))
        job.success(lambda written: self.state.setText(f"Written {written.path}"))
        return job.failure(lambda error: self.state.setText(f"✖ {error}"))

    def _save(self, pattern: str, write: Callable[[Path], object]) -> None:
        name, _ = QFileDialog.getSaveFileName(self, "Save", "", pattern)
        if not name:
            return
        suffix = pattern.rsplit("*", 1)[-1].rstrip(")")
        path = Path(name if name.endswith(suffix) else name + suffix)
        try:
            write(path)
        except OSError as error:
            self.state.setText(f"✖ {path}: {error.strerror or error}")
        else:
            self.state.setText(f"Written {path}")

    def _save_csv(self, path: Path) -> None:
        path.write_bytes(self.model.as_csv().encode("utf-8"))

    def _save_markdown(self, path: Path) -> None:
        path.write_text(self.model.as_markdown(), "utf-8")

    def _save_picture(self, path: Path) -> None:
        self.table.grab().save(str(path), "PNG")

    def _load_preset(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, "Load a preset", "", "Preset (*.json)")
        if name:
            try:
                self.workbench.load_preset(Path(name))
            except CompactoscopeError as error:
                self.state.setText(f"✖ {error}")

    # Looks ----------------------------------------------------------------------------------------------------

    def changeEvent(self, event: QEvent) -> None:
        """Follow a change of the theme."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._recolour()

    def _recolour(self) -> None:
        self.legend.setText(legend_text(self._context.theme))
