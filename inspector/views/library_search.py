"""Search over all sessions: query, filters, results grouped by session; a hit opens at its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDateEdit,
    QDoubleSpinBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListView,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from compaction.catalogue.entries import DAY_MS, SessionFilter
from inspector.context import AppContext
from inspector.documents.library import Library
from inspector.models.library_hits import HitsModel
from inspector.views.library_cells import soften_selection

if TYPE_CHECKING:
    from compaction.catalogue.search import SessionHits

_PLACES = (
    ("Everywhere", ()),
    ("Prompts", ("prompt",)),
    ("Answers", ("answer", "thinking")),
    ("Tool calls", ("tool_use",)),
    ("Tool results", ("tool_result",)),
    ("Summaries", ("summary",)),
)
_WAIT_MILLISECONDS = 300


class LibrarySearch(QWidget):
    """Signals: open_wanted(path, line) when a hit is to be opened."""

    open_wanted = Signal(str, int)

    def __init__(self, context: AppContext, library: Library) -> None:
        super().__init__()
        self._context = context
        self._library = library
        self.model = HitsModel()
        self.query = QLineEdit()
        self.query.setPlaceholderText('Words (all must occur), "a phrase", begin*, -without, this OR that')
        self.query.setClearButtonEnabled(True)
        self.query.setAccessibleName("Search all sessions")
        self.place = QComboBox()
        self.place.addItems([title for title, _ in _PLACES])
        self.place.setAccessibleName("Where to look")
        self.project, self.model_name, self.tool = (self._field(t) for t in ("Project", "Model", "Tool"))
        self.since = QDateEdit()
        self.since.setCalendarPopup(True)
        self.since.setDisplayFormat("yyyy-MM-dd")
        self.since.setDate(self.since.minimumDate())
        self.since.setSpecialValueText("any time")
        self.since.setAccessibleName("Active since")
        self.cost = QDoubleSpinBox(maximum=100_000, prefix="$")
        self.cost.setAccessibleName("Cost at least, USD")
        self.context_size = QSpinBox(maximum=10_000_000, singleStep=10_000)
        self.context_size.setGroupSeparatorShown(True)
        self.context_size.setAccessibleName("Context at least, tokens")
        self.finding, self.compaction, self.error = (QCheckBox(t) for t in ("has finding", "compacted", "has errors"))
        self.list = QListView()
        self.list.setModel(self.model)
        self.list.setUniformItemSizes(True)
        self.list.setSpacing(1)
        self.list.setAccessibleName("Hits")
        self.state = QLabel("Looks at prompts, answers, tool calls and results. Secrets are masked.")
        self.state.setTextFormat(Qt.TextFormat.PlainText)
        self._lay_out()
        self._connect()

    @staticmethod
    def _field(title: str) -> QLineEdit:
        field = QLineEdit()
        field.setPlaceholderText(title)
        field.setAccessibleName(title)
        return field

    def _lay_out(self) -> None:
        first = QHBoxLayout()
        first.addWidget(self.query, 1)
        first.addWidget(self.place)
        second = QGridLayout()
        for column, field in enumerate((self.project, self.model_name, self.tool)):
            second.addWidget(field, 0, column)
            second.setColumnStretch(column, 1)
        labelled: tuple[tuple[str, QWidget], ...] = (
            ("since", self.since),
            ("cost from", self.cost),
            ("context from", self.context_size),
        )
        for column, (title, widget) in enumerate(labelled):
            label = QLabel(title)
            label.setBuddy(widget)
            second.addWidget(label, 0, 3 + 2 * column)
            second.addWidget(widget, 0, 4 + 2 * column)
        for column, box in enumerate((self.finding, self.compaction, self.error)):
            second.addWidget(box, 0, 9 + column)
        layout = QVBoxLayout(self)
        layout.addLayout(first)
        layout.addLayout(second)
        layout.addWidget(self.list, 1)
        layout.addWidget(self.state)

    def _connect(self) -> None:
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(_WAIT_MILLISECONDS)
        self._soon.timeout.connect(self.run)
        for field in (self.query, self.project, self.model_name, self.tool):
            field.textChanged.connect(self._soon.start)
            field.returnPressed.connect(self.run)
        self.place.currentIndexChanged.connect(self._soon.start)
        self.since.dateChanged.connect(self._soon.start)
        self.cost.valueChanged.connect(self._soon.start)
        self.context_size.valueChanged.connect(self._soon.start)
        for box in (self.finding, self.compaction, self.error):
            box.toggled.connect(self._soon.start)
        self.list.doubleClicked.connect(self._open)
        self._context.theme.changed.connect(self._recolour)
        self._recolour()
        for key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            shortcut = QShortcut(QKeySequence(key), self.list)
            shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
            shortcut.activated.connect(lambda: self._open(self.list.currentIndex()))

    def _recolour(self) -> None:
        soften_selection(self.list, self._context.theme)

    def wanted(self) -> SessionFilter:
        """The filter as the fields say it."""
        since = self.since.date()
        start = None if since == self.since.minimumDate() else (since.toJulianDay() - 2440588) * DAY_MS
        return SessionFilter(
            project=self.project.text().strip(),
            model=self.model_name.text().strip(),
            tool=self.tool.text().strip(),
            since_ms=start,
            minimum_cost=self.cost.value() or None,
            minimum_context=self.context_size.value() or None,
            finding="any" if self.finding.isChecked() else "",
            compaction=self.compaction.isChecked(),
            error=self.error.isChecked(),
        )

    def run(self) -> None:
        """Search now, in the background."""
        self._soon.stop()
        text = self.query.text()
        if not any(c.isalnum() for c in text):
            self.model.set_results([])
            return
        self.state.setText("Searching…")
        job = self._library.search(text, self.wanted(), _PLACES[self.place.currentIndex()][1])
        job.success(self._show).failure(self._on_failure)

    def _show(self, results: list[SessionHits]) -> None:
        from compaction.catalogue.search import hits_in

        self.model.set_results(results)
        self.state.setText(hits_in(results) if results else "Nothing found")

    def _on_failure(self, error: Exception) -> None:
        self.model.set_results([])
        self.state.setText(str(error))

    def _open(self, index: QModelIndex) -> None:
        if index.isValid():
            self.open_wanted.emit(*self.model.place(index.row()))
