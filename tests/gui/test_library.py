"""The library's window: sessions, projects, filters, costs of a selection, search that opens at the place, usage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QStyleOptionViewItem
from pytestqt.qtbot import QtBot

from compaction.catalogue.entries import SessionEntry, Totals
from compaction.catalogue.settings import LibrarySettings, load_library_settings, save_library_settings
from inspector.app import make_context
from inspector.context import AppContext
from inspector.models.library import COLUMNS, CONTEXT, COST, FINDINGS, LAST, TITLE, LibraryModel, Role
from inspector.models.library_hits import HitsModel
from inspector.models.library_projects import ProjectModel, in_project, project_rows
from inspector.settings import Settings
from inspector.views.library_cells import FindingsDelegate, line_of
from inspector.views.library_compare import CompareSessions
from inspector.views.library_settings import LibrarySettingsDialog
from inspector.views.library_window import LibraryWindow, show_library
from inspector.views.main_window import MainWindow
from tests.unit.catalogue.library import KEY, build


def entry(number: int, **changes: object) -> SessionEntry:
    """A made-up session."""
    values: dict[str, object] = {
        "id": number, "owner": "", "session_id": f"session-{number}", "path": f"/s/{number}.jsonl", "kind": "main",
        "title": f"Title {number}", "project": "/home/someone/work", "branch": "main", "models": ("claude-opus-4-6",),
        "versions": ("2.1.217",), "tools": ("Bash",), "first_ms": 1_780_000_000_000,
        "last_ms": 1_780_000_000_000 + number, "total": Totals(cost_usd=number), "own": Totals(),
        "bytes": 10, "mtime_ns": 0, "lines": 1, "records": 1, "damaged": 0,
        "subagents": 0, "context_tokens": 1000 * number, "series": (1, 2, 3), "compactions": 0, "api_errors": 0,
        "tool_errors": 0, "findings": (0, 0, 0), "finding_codes": (), "problem": "", "forked_from": "",
    }  # fmt: skip
    return SessionEntry(**{**values, **changes})  # type: ignore[arg-type]


@pytest.fixture
def context(qapp: object, own_data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AppContext]:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(own_data_folder / "none"))
    found = make_context(Settings(own_data_folder / "config"), "light")
    yield found
    found.runner.close()


@pytest.fixture
def main_window(context: AppContext, qtbot: QtBot) -> Iterator[MainWindow]:
    made = MainWindow(context)
    qtbot.addWidget(made)
    made.show()
    yield made
    for document in made.documents:
        made.close_document(document)
    made.close()


@pytest.fixture
def window(main_window: MainWindow, context: AppContext, tmp_path: Path) -> Iterator[LibraryWindow]:
    """The library over two known sessions, indexed."""
    build(tmp_path / "projects")
    save_library_settings(LibrarySettings(folders=(str(tmp_path / "projects"),)))
    shown = show_library(context)
    assert context.runner.wait_until_idle(60)
    yield shown
    shown.close()
    assert context.runner.wait_until_idle(60)
    shown.library.close()


def titles(window: LibraryWindow) -> list[str]:
    model = window.sessions.model
    return [model.entry(row).project.rsplit("/", 1)[-1] for row in range(model.rowCount())]


def test_the_sessions_of_the_folders_are_listed_the_newest_first(window: LibraryWindow) -> None:
    assert titles(window) == ["bakery", "harbour"]
    model = window.sessions.model
    shown = [model.index(0, column).data() for column in (CONTEXT, COST, FINDINGS)]
    assert shown[0].replace(",", "").isdigit()
    assert shown[1].startswith("$")
    assert shown[2] not in ("", "?")


def test_sorting_filtering_and_projects(window: LibraryWindow) -> None:
    sessions = window.sessions
    sessions.table.sortByColumn(LAST, Qt.SortOrder.AscendingOrder)
    assert titles(window) == ["harbour", "bakery"]
    sessions.filter.setText("GAUGE")
    sessions.apply_filter()
    assert titles(window) == ["harbour"]
    sessions.filter.setText("")
    sessions.kind.setCurrentText("Compacted")
    assert titles(window) == ["bakery"]
    sessions.kind.setCurrentIndex(0)
    rows = [row.name for row in sessions.projects.rows]
    assert rows == ["All projects", "home/someone", "bakery", "harbour"]
    sessions.tree.setCurrentIndex(sessions.projects.index(3, 0))
    assert titles(window) == ["harbour"]


def test_a_selection_is_added_up_with_every_response_once(window: LibraryWindow, context: AppContext) -> None:
    window.sessions.table.selectAll()
    assert context.runner.wait_until_idle()
    text = window.sessions.summary.text()
    assert text.startswith("2 selected: $")
    assert "each counted once" in text
    window.sessions.compare_selected()
    dialog = window.sessions.findChild(CompareSessions)
    assert dialog.table.columnCount() == 2
    dialog.close()


def test_a_session_opens_in_the_main_window(
    window: LibraryWindow, main_window: MainWindow, context: AppContext
) -> None:
    window.sessions.table.selectRow(0)
    window.sessions.open_selected()
    assert context.runner.wait_until_idle(30)
    assert main_window.current_document.path.name == "bakery.jsonl"


def test_a_hit_opens_at_its_place_and_shows_no_secret(
    window: LibraryWindow, main_window: MainWindow, context: AppContext
) -> None:
    window.show_search()
    window.search.query.setText("station")
    window.search.run()
    assert context.runner.wait_until_idle()
    model = window.search.model
    assert model.rowCount() == 2
    assert KEY not in model.index(1, 0).data()
    window.search._open(model.index(1, 0))
    assert context.runner.wait_until_idle(30)
    document = main_window.current_document
    line = model.place(1)[1]
    assert int(document.conversation.transcript.line[document.selection.record]) == line


def test_search_fields_restrict_and_wrong_queries_are_told(window: LibraryWindow, context: AppContext) -> None:
    search = window.search
    search.query.setText("tide")
    for set_field, expected in (
        (lambda: search.project.setText("bakery"), 1),
        (lambda: search.project.setText(""), 2),
        (lambda: search.compaction.setChecked(True), 1),
        (lambda: (search.compaction.setChecked(False), search.place.setCurrentText("Prompts")), 2),
        (lambda: search.cost.setValue(1000), 0),
    ):
        set_field()
        search.run()
        assert context.runner.wait_until_idle()
        sessions = sum(1 for row in range(search.model.rowCount()) if search.model.place(row)[1] == 0)
        assert sessions == expected
    search.query.setText("-without")
    search.run()
    assert context.runner.wait_until_idle()
    assert "nothing to search for" in search.state.text()


def test_usage_is_drawn_by_day(window: LibraryWindow, context: AppContext) -> None:
    window.tabs.setCurrentIndex(2)
    assert context.runner.wait_until_idle()
    chart = window.usage
    assert chart is not None
    for measure in range(3):
        chart.measure.setCurrentIndex(measure)
        assert len(chart.plot.getPlotItem().items) == 2
    chart.group.setCurrentIndex(1)
    assert context.runner.wait_until_idle()
    names = [chart.summary.item(row).text() for row in range(chart.summary.count())]
    assert names[0].startswith("Total ")
    assert any("opus" in name for name in names)


def test_changed_folders_are_noticed(window: LibraryWindow, context: AppContext, tmp_path: Path) -> None:
    next((tmp_path / "projects").rglob("bakery.jsonl")).unlink()
    window.library.refresh()
    assert context.runner.wait_until_idle(30)
    assert titles(window) == ["harbour"]


def test_a_look_that_finds_nothing_new_adds_nothing_up_again(window: LibraryWindow, context: AppContext) -> None:
    titles_of_jobs: list[str] = []
    context.runner.started.connect(lambda job: titles_of_jobs.append(job.op.title))
    window.library.refresh()
    assert context.runner.wait_until_idle(30)
    assert titles_of_jobs == ["Indexing sessions"]
    assert titles(window) == ["bakery", "harbour"]


def test_a_folder_can_be_added(window: LibraryWindow, context: AppContext, tmp_path: Path) -> None:
    build(tmp_path / "more")
    window.add_folder(tmp_path / "more")
    assert context.runner.wait_until_idle(30)
    assert len(titles(window)) == 4
    assert str(tmp_path / "more") in load_library_settings().folders


def test_the_settings_are_edited_and_take_effect(window: LibraryWindow, context: AppContext, tmp_path: Path) -> None:
    dialog = LibrarySettingsDialog(window.library.stored_settings)
    assert dialog.settings() == window.library.stored_settings
    dialog.folders.selectAll()
    dialog.folders.item(0).setSelected(True)
    dialog.remove_selected()
    (tmp_path / "other").mkdir()
    build(tmp_path / "other")
    dialog.folders.addItem(str(tmp_path / "other"))
    dialog.owner.setText("ada@desk")
    window.library.change_settings(dialog.settings())
    assert context.runner.wait_until_idle(60)
    stored = load_library_settings()
    assert stored == LibrarySettings("", "ada@desk", (str(tmp_path / "other"),))
    paths = [entry.path for entry in window.sessions.model.entries]
    assert any("/other/" in path for path in paths)
    dialog.deleteLater()


def test_columns_are_chosen_and_kept(window: LibraryWindow, context: AppContext) -> None:
    branch = next(n for n, column in enumerate(COLUMNS) if column.title == "Branch")
    assert window.sessions.table.isColumnHidden(branch)
    window.sessions.show_column(branch, True)
    again = LibraryWindow(context)
    assert not again.sessions.table.isColumnHidden(branch)
    again.deleteLater()


def test_a_catalogue_that_cannot_be_used_is_told(
    main_window: MainWindow, context: AppContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPACTOSCOPE_DATABASE", f"postgresql://nobody@/none?host={tmp_path}")
    shown = show_library(context)
    assert context.runner.wait_until_idle(60)
    assert "database server" in shown.notice.text()
    shown.close()


def test_the_window_starts_without_sqlalchemy_and_charts() -> None:
    import subprocess
    import sys

    code = (
        "import sys; import inspector.views.library_window;"
        "sys.exit(str([m for m in ('sqlalchemy', 'pyqtgraph', 'alembic') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "[]"


def test_the_model_keeps_the_contract_of_qt_and_the_selection(qtbot: QtBot) -> None:
    model = LibraryModel()
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_entries([entry(n) for n in range(1, 6)], 0.0)
    kept = [model.index(0, TITLE), model.index(2, TITLE)]
    from PySide6.QtCore import QPersistentModelIndex

    persistent = [QPersistentModelIndex(index) for index in kept]
    names = [index.data() for index in kept]
    model.sort(LAST, Qt.SortOrder.AscendingOrder)
    assert [QPersistentModelIndex.data(p, Qt.ItemDataRole.DisplayRole) for p in persistent] == names
    model.set_filter(lambda e: e.id != 5)
    assert not persistent[0].isValid()
    assert model.row_of(5) == -1
    assert model.entry(model.row_of(3)).id == 3


def test_what_has_no_value_sorts_last_in_both_orders() -> None:
    model = LibraryModel()
    model.set_entries([entry(1, context_tokens=None), entry(2), entry(3)], 0.0)
    for order, expected in ((Qt.SortOrder.AscendingOrder, [2, 3, 1]), (Qt.SortOrder.DescendingOrder, [3, 2, 1])):
        model.sort(CONTEXT, order)
        assert [model.entry(row).id for row in range(3)] == expected


@pytest.mark.parametrize("column", range(len(COLUMNS)))
def test_every_column_sorts_and_shows_any_session(column: int) -> None:
    model = LibraryModel()
    odd = entry(2, findings=None, context_tokens=None, first_ms=0, last_ms=0, models=(), title="", series=())
    model.set_entries([entry(1), odd, entry(3, total=Totals(unpriced=1))], 0.0)
    model.sort(column, Qt.SortOrder.DescendingOrder)
    assert all(isinstance(model.index(row, column).data(), str) for row in range(3))
    assert COLUMNS[column].tip


def test_a_session_that_is_being_written_is_marked() -> None:
    model = LibraryModel()
    model.set_entries([entry(1, mtime_ns=int(1e9 * 1000)), entry(2)], now=1030.0)
    live = [model.index(row, TITLE).data(Role.LIVE) for row in range(2)]
    assert sorted(live) == [False, True]
    spoken = [model.index(row, TITLE).data(Qt.ItemDataRole.AccessibleTextRole) for row in range(2)]
    assert sum("being written now" in text for text in spoken) == 1


def test_projects_form_a_tree_with_joined_folders() -> None:
    entries = [entry(1, project="/a/b/c"), entry(2, project="/a/b/c/d"), entry(3, project="/a/x"), entry(4, project=""),
               entry(5, project="C:\\w\\y")]  # fmt: skip
    rows = project_rows(entries)
    assert [(row.depth, row.name, row.sessions) for row in rows] == [
        (0, "All projects", 5), (1, "(unknown)", 1), (1, "C:/w/y", 1), (1, "a", 3), (2, "b/c", 2),
        (3, "d", 1), (2, "x", 1),
    ]  # fmt: skip
    for row in rows:
        assert sum(in_project(e, row.path) for e in entries) == row.sessions
    model = ProjectModel()
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_entries(entries)
    assert model.row_of("/a/x") == 6
    assert model.row_of("/gone") == 0


def test_a_path_that_looks_like_markup_is_shown_as_it_is() -> None:
    model = ProjectModel()
    model.set_entries([entry(1, project="/<b>bold</b>/<img src=x>")])
    tip = model.index(1, 0).data(Qt.ItemDataRole.ToolTipRole)
    assert "<" not in tip


def test_the_hits_model_keeps_the_contract_of_qt() -> None:
    model = HitsModel()
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_results([])
    assert model.rowCount() == 0


def test_a_sparkline_stays_in_its_cell() -> None:
    room = QRectF(10, 20, 100, 30)
    for series in ((5,), (0, 0), (1, 5, 2), tuple(range(48))):
        points = line_of(series, room)
        assert len(points) >= 2
        assert all(room.left() <= p.x() <= room.right() and room.top() <= p.y() <= room.bottom() for p in points)


def test_badges_are_drawn_in_their_colours(context: AppContext) -> None:
    model = LibraryModel()
    model.set_entries([entry(1, findings=(2, 0, 0))], 0.0)
    image = QImage(120, 24, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.white)
    painter = QPainter(image)
    option = QStyleOptionViewItem()
    option.rect = image.rect()
    FindingsDelegate(context.theme).paint(painter, option, model.index(0, FINDINGS))
    painter.end()
    red = context.theme.named("error")
    found = {image.pixelColor(x, y).name() for x in range(120) for y in range(24)}
    assert red.name() in found
