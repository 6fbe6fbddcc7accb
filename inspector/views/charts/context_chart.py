from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QMargins, QRect, QSize
from PySide6.QtGui import QFontMetrics, QPainter, QPixmap
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QFileDialog,
    QHeaderView,
    QMenu,
    QStackedWidget,
    QTableView,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from compaction.accounting.categories import Category
from compaction.errors import NothingWritten
from inspector.context import AppContext
from inspector.documents.accounting import accounting_of
from inspector.documents.document import Document, Scope, Selection
from inspector.models.round_table import COLUMNS, WIDEST, RoundTable, events_by_round
from inspector.rendering.visible_text import visible
from inspector.views.charts.context_plot import COST_MODES, ContextPlot
from inspector.views.charts.legend import Legend
from inspector.views.detail.pages import plain_label
from inspector.views.elided_label import ElidedLabel
from inspector.views.flow_layout import FlowLayout
from inspector.views.limits_dialog import LimitsDialog
from inspector.views.turning_splitter import TurningSplitter

if TYPE_CHECKING:
    from compaction.accounting.accounts import SessionAccounts


class ContextChart(QWidget):
    """The context over API rounds: chart or table, legend at the cursor, limits of the chosen client, export."""

    def __init__(self, context: AppContext, document: Document) -> None:
        super().__init__()
        self._context = context
        self._document = document
        self.accounting = accounting_of(document)
        self.plot = ContextPlot(context.theme)
        self.legend = Legend(context.theme)
        self.table_model = RoundTable(self)
        self.table = QTableView()
        self.state = ElidedLabel()
        self.facts = plain_label()
        self._events: dict[int, str] = {}
        self._build()
        self.plot.tip_of = self.tip
        self.plot.round_chosen.connect(self.select_round)
        self.plot.round_opened.connect(self._open_round)
        self.table.selectionModel().currentRowChanged.connect(self._on_table_row)
        self.table.doubleClicked.connect(lambda index: self._open_round(index.row() + 1))
        self.accounting.changed.connect(self.refresh)
        document.selection_changed.connect(self._on_selection)
        context.theme.changed.connect(self._recolour)
        self.accounting.ensure(context.runner)
        self.refresh()
        self._on_selection(document.selection)

    def _build(self) -> None:
        bar = FlowLayout(QMargins(8, 2, 8, 4), spacing=6)
        self.cost_mode = QComboBox()
        self.cost_mode.setAccessibleName("Cost on the right axis")
        self.cost_mode.addItems(COST_MODES)
        self.cost_mode.currentTextChanged.connect(self.plot.set_cost_mode)
        self.limits_button = self._button("All limits", "Make room for every limit of the window.", checkable=True)
        self.limits_button.toggled.connect(self.plot.set_show_limits)
        client = self._button("Client and limits…", "Choose the client profile and its overrides.")
        client.clicked.connect(self.choose_limits)
        self.table_button = self._button("Table", "Show the figures as a table.", checkable=True)
        fit = self._button("Whole session", "Show every round (0). Wheel or + and − zoom, dragging pans.")
        fit.clicked.connect(self.plot.fit)
        export = self._button("Export", "Save the chart or its figures.")
        menu = QMenu(export)
        for title, suffix in (("PNG image…", "png"), ("SVG drawing…", "svg"), ("CSV table…", "csv")):
            menu.addAction(title, partial(self.choose_export, suffix))
        export.setMenu(menu)
        export.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.facts.setWordWrap(True)
        self.facts.setContentsMargins(9, 6, 9, 0)
        for widget in (self.cost_mode, self.limits_button, client, self.table_button, fit, export):
            bar.addWidget(widget)
        self.table.setModel(self.table_model)
        self.table.setAccessibleName("Context by API round, as a table")
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setWordWrap(False)
        self.table.setShowGrid(False)
        self.table.setTabKeyNavigation(False)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.table.verticalHeader().setDefaultSectionSize(int(self.fontMetrics().height() * 1.4))
        bold = self.table.horizontalHeader().font()
        bold.setBold(True)
        titles, figures = QFontMetrics(bold), self.fontMetrics()
        for column, title in enumerate(COLUMNS):
            needed = figures.horizontalAdvance(WIDEST.get(title, "1,000,000"))
            self.table.setColumnWidth(column, max(titles.horizontalAdvance(title), needed) + figures.height())
        self.table.horizontalHeader().setStretchLastSection(True)
        self.pages = QStackedWidget()
        self.pages.addWidget(self.plot)
        self.pages.addWidget(self.table)
        self.table_button.toggled.connect(lambda shown: self.pages.setCurrentIndex(int(shown)))
        split = TurningSplitter(85)
        split.addWidget(self.pages)
        split.addWidget(self.legend)
        split.setStretchFactor(0, 1)
        split.setStretchFactor(1, 0)
        split.setCollapsible(0, False)
        self.state.setContentsMargins(9, 2, 9, 4)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.facts)
        layout.addLayout(bar)
        layout.addWidget(split, 1)
        layout.addWidget(self.state)
        self.setFocusProxy(self.plot)

    @staticmethod
    def _button(text: str, tip: str, checkable: bool = False) -> QToolButton:
        button = QToolButton()
        button.setText(text)
        button.setProperty("framed", True)
        button.setToolTip(tip)
        button.setAccessibleDescription(tip)
        button.setCheckable(checkable)
        return button

    # Content --------------------------------------------------------------------------------------------------

    @property
    def accounts(self) -> SessionAccounts | None:
        """The accounts shown, None while they are made or when they are of a replaced session."""
        return self.accounting.shown

    def refresh(self) -> None:
        """Show the newest accounts, or what is known while there are none."""
        accounts = self.accounts
        self.plot.set_accounts(accounts, self.accounting.current if accounts is not None else None)
        self.table_model.set_accounts(accounts)
        self._events = events_by_round(accounts) if accounts is not None else {}
        self.legend.show_round(accounts, self.plot.cursor_round or self._last_round())
        self._tell()

    def _last_round(self) -> int:
        return self.accounts.series.rounds if self.accounts is not None else 0

    def _tell(self) -> None:
        accounts, current = self.accounts, self.accounting.current
        if self.accounting.error is not None:
            self.facts.setText(f"✖ The count failed: {self.accounting.error}")
        elif accounts is None or current is None:
            self.facts.setText("Counting tokens…" if self.accounting.running else "Not counted yet.")
        else:
            t, now = current.thresholds, current.state
            bands = {"none": "", "microcompact": " · budget band: MicroCompact", "autocompact": " · budget band: "
                     "AutoCompact", "blocking_compact": " · budget band: blocking compact"}  # fmt: skip
            ahead = "auto-compact" if t.auto_compact_on else "the window's end"
            self.facts.setText(
                f"{now.tokens:,} tokens ({current.tokens.method}) · {now.percent_left} % left until {ahead} at "
                f"{t.reference:,} · {now.budget_percent:.0f} % of {t.window:,}{bands[now.budget_band]} · "
                f"limits of {t.profile.title}"
            )
            self.facts.setToolTip("\n".join(f"{k.replace('_', ' ')} = {v}" for k, v in t.formulas().items()))
        self.state.setText(self._sentence(self.plot.cursor_round))

    def _sentence(self, number: int) -> str:
        """What the cursor stands on, in words."""
        accounts = self.accounts
        if accounts is None:
            return ""
        if not 1 <= number <= accounts.series.rounds:
            return "Click a round, or use the arrow keys; Ctrl with an arrow goes to the next compaction."
        usage, c = accounts.series.usage, accounts.series.conversation
        place = number - 1
        first = int(c.round_first_records[place])
        parts = [f"Round {number:,} of {accounts.series.rounds:,}", f"line {int(c.transcript.line[first]):,}"]
        if c.transcript.model(first):
            parts.append(c.transcript.model(first))
        context = int(usage.context[place])
        parts.append(f"context {context:,} tokens" if context else "context not recorded")
        before = int(accounts.series.predecessor[place])
        if before >= 0 and context and usage.context[before]:
            parts.append(f"{context - int(usage.context[before]):+,} tokens since round {before + 1:,}")
        usd = float(accounts.round_usd[place])
        parts.append(f"${usd:,.4f}" if usd == usd else "cost unknown")
        if not usage.final[place] and context:
            recovered = int(accounts.recovered[place])
            about = f", ≈{recovered:,} tokens by growth" if recovered >= 0 else ""
            parts.append(f"output not final on record{about}")
        if number in self._events:
            parts.append(self._events[number])
        return " · ".join(parts)

    def tip(self, number: int) -> str:
        """Every figure of a round with its method and source, plain text."""
        accounts = self.accounts
        if accounts is None:
            return ""
        series, place = accounts.series, number - 1
        usage, total = series.usage, int(series.usage.context[place])
        error = series.user_calibration.error
        margin = f", median error of the estimator here {error:.0%}" if error is not None else ""
        lines = [
            self._sentence(number),
            f"Context {total:,}: recorded, input + cache read + cache creation." if total else "No usage on record.",
            "Output: a placeholder on record; where the context grew, by that growth."
            if not usage.final[place] and total
            else f"Output {int(usage.output[place]):,}: recorded.",
            f"Cache read {int(usage.cache_read[place]):,}, written {int(usage.written[place]):,}: recorded.",
            f"Parts: estimated shares that add up to the recorded context{margin}.",
        ]
        shown = [c for c in reversed(Category) if series.parts[place, c]]
        lines += [f"  {c.title}: {int(series.parts[place, c]):,}" for c in shown]
        if series.hidden_thinking[place]:
            lines.append(f"  of the thinking hidden: {int(series.hidden_thinking[place]):,} (residual)")
        lines.append(f"Cost: computed from recorded tokens, {accounts.cost.prices.name}.")
        # Qt takes a text that looks like HTML for HTML, and a model's name comes from the file.
        return "\n".join(visible(line) for line in lines).replace("<", "‹").replace(">", "›")

    def _recolour(self) -> None:
        self.plot.recolour()
        self.legend.recolour()

    # Selection ------------------------------------------------------------------------------------------------

    def select_round(self, number: int) -> None:
        """Select a round (1-based) in the document, so that the tree shows it."""
        c = self._document.conversation
        if c is None or not 1 <= number <= c.round_count:
            return
        found = c.round(number)
        self._document.select(
            Selection(
                Scope.ROUND,
                c,
                found.first_record,
                records=range(found.first_record, found.end_record),
                response=found.response,
                round=number,
                epoch=found.epoch,
            )
        )

    def _on_selection(self, selection: Selection) -> None:
        if selection.conversation is not self._document.conversation or selection.conversation is None:
            return
        c = selection.conversation
        number = selection.round
        if number <= 0 and selection.record >= 0:
            # Before the first response of an epoch: the round that comes next.
            number = int(c.round_first_records.searchsorted(selection.record)) + 1
        number = min(number, c.round_count)
        self.plot.set_cursor_round(number)
        self.legend.show_round(self.accounts, number)
        self.state.setText(self._sentence(number))
        self.plot.setAccessibleDescription(self.state.text())
        if number > 0 and self.table.currentIndex().row() != number - 1 and number <= self.table_model.rowCount():
            self.table.setCurrentIndex(self.table_model.index(number - 1, 0))

    def _on_table_row(self) -> None:
        row = self.table.currentIndex().row()
        if row >= 0 and self.table.hasFocus():
            self.select_round(row + 1)

    def _open_round(self, number: int) -> None:
        self.select_round(number)
        if self._context.workspace is not None:
            self._context.workspace.show_view("tree")

    def choose_limits(self) -> None:
        """Ask for the client profile and its overrides."""
        c = self._document.conversation
        LimitsDialog(self.accounting, list(c.transcript.version_names) if c is not None else [], self).open()

    # Export ---------------------------------------------------------------------------------------------------

    def choose_export(self, suffix: str) -> None:
        """Ask where to, and export as "png", "svg" or "csv"."""
        name = Path(self._document.title).stem + f"-context.{suffix}"
        chosen, _ = QFileDialog.getSaveFileName(self, "Export the context", name, f"{suffix.upper()} (*.{suffix})")
        if chosen:
            try:
                self.export(Path(chosen))
            except NothingWritten as error:
                self._context.errors.report(error, "Exporting the context")

    def export(self, target: Path) -> None:
        """Write the chart (.png, .svg) or its figures (.csv); a half-written file never bears the wanted name.

        Raises:
            NothingWritten: it could not be written; the cause is named.
        """
        unfinished = target.with_name(f".{target.name}.part")
        try:
            if target.suffix == ".csv":
                unfinished.write_text(self.table_model.as_csv(), "utf-8")
            elif target.suffix == ".svg":
                self._draw_svg(unfinished)
            else:
                picture = self._picture()
                if not picture.save(str(unfinished), "PNG"):
                    raise OSError("the image writer refused it")
            unfinished.replace(target)
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            raise NothingWritten(
                f"the chart cannot be written: {error}", "choose another folder", str(target)
            ) from error

    def _picture(self) -> QPixmap:
        """Chart and legend side by side, as on screen."""
        plot, legend = self.plot.grab(), self.legend.grab()
        size = QSize(plot.width() + legend.width(), max(plot.height(), legend.height()))
        picture = QPixmap(size)
        picture.setDevicePixelRatio(plot.devicePixelRatio())
        picture.fill(self._context.theme.named("base"))
        painter = QPainter(picture)
        painter.drawPixmap(0, 0, plot)
        painter.drawPixmap(round(plot.width() / plot.devicePixelRatio()), 0, legend)
        painter.end()
        return picture

    def _draw_svg(self, target: Path) -> None:
        generator = QSvgGenerator()
        generator.setFileName(str(target))
        size = self.plot.size()
        generator.setSize(size)
        generator.setViewBox(QRect(0, 0, size.width(), size.height()))
        generator.setTitle("Context by API round")
        painter = QPainter()
        if not painter.begin(generator):
            raise OSError("the file cannot be opened for writing")
        painter.fillRect(QRect(0, 0, size.width(), size.height()), self._context.theme.named("base"))
        self.plot.render(painter)
        painter.end()
