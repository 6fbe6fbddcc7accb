"""The comparison: live previews, ranking, presets, export (issue 6)."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QApplication, QDoubleSpinBox, QLabel, QSpinBox, QStyle, QStyleOptionSlider
from pytestqt.qtbot import QtBot

from compaction.conversation import open_session
from compaction.errors import InputUnreadable
from compaction.resources import resource
from compaction.strategies.registry import STRATEGIES
from inspector.context import AppContext
from inspector.documents.document import Document
from inspector.documents.workbench import Point, Workbench, workbench_of
from inspector.models.comparison import FIGURES, ComparisonModel
from inspector.models.strategy_help import plain_source
from inspector.views.compare.break_even import spent
from inspector.views.compare.comparison_table import bar_height
from inspector.views.compare.names_edit import NamesEdit
from inspector.views.compare.view import CompareView

WAIT = 20_000


@pytest.fixture
def document() -> Document:
    found = Document(Path(resource("sample", "tide-tables.jsonl")))
    found.set_session(open_session(found.main_path))
    return found


@pytest.fixture
def view(app_context: AppContext, document: Document, qtbot: QtBot) -> CompareView:
    found = CompareView(app_context, document)
    qtbot.addWidget(found)
    settled(found.workbench, qtbot)
    return found


def settled(workbench: Workbench, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: not any(c.stale for c in workbench.columns), timeout=WAIT)


def column(view: CompareView, name: str) -> int:
    return next(n for n, c in enumerate(view.workbench.columns, 1) if c.strategy.name == name)


def test_every_strategy_has_a_column_and_the_untouched_session_is_first(view: CompareView) -> None:
    QAbstractItemModelTester(view.model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    assert view.model.columnCount() == len(STRATEGIES) + 1
    assert view.model.headerData(0, view.table.horizontalHeader().orientation()) == "Untouched"
    assert all(c.plan is not None and not c.error for c in view.workbench.columns)


def test_the_kinds_of_tokens_add_up_to_the_total_in_every_column(view: CompareView) -> None:
    kinds = [row for row, figure in enumerate(FIGURES) if figure.category is not None]
    total = next(row for row, figure in enumerate(FIGURES) if figure.title == "Tokens after")
    for number in range(view.model.columnCount()):
        parts = sum(int(view.model.text(row, number).replace(",", "")) for row in kinds)
        assert parts == int(view.model.text(total, number).split(" ")[0].replace(",", ""))


def test_what_a_strategy_writes_as_summary_counts_as_summary(view: CompareView) -> None:
    for name in ("auto-compact", "partial-from", "partial-up-to"):
        plan = view.workbench.columns[column(view, name) - 1].plan
        assert plan is not None
        assert plan.applies
        assert plan.after_categories["summary"] > 100


def test_a_changed_setting_previews_live_and_only_its_column(view: CompareView, qtbot: QtBot) -> None:
    number = column(view, "microcompact-time")
    view.table.setCurrentIndex(view.model.index(2, number))
    chosen = view.workbench.columns[number - 1]
    before = chosen.plan
    others = [c.plan for c in view.workbench.columns if c is not chosen]
    keep = view.form.editors["keep_recent"]
    assert isinstance(keep, QSpinBox)
    keep.setValue(keep.value() + 3)
    assert chosen.stale
    settled(view.workbench, qtbot)
    assert chosen.plan is not None
    assert before is not None
    assert len(chosen.plan.cleared) == len(before.cleared) - 3
    assert [c.plan for c in view.workbench.columns if c is not chosen] == others


def test_a_value_out_of_range_is_refused_and_said(view: CompareView) -> None:
    view.table.setCurrentIndex(view.model.index(2, column(view, "microcompact-time")))
    view._on_setting({"keep_recent": -5})
    assert view.state.text().startswith("✖")


def test_ranking_puts_pinned_columns_first_and_those_that_do_not_apply_last(view: CompareView) -> None:
    pinned = view.workbench.columns[-1]
    view.workbench.set_pinned(pinned, True)
    view.workbench.rank("tokens")
    columns = view.workbench.columns
    assert columns[0] is pinned
    applying = [c.plan.tokens_after for c in columns[1:] if c.plan is not None and c.plan.applies]
    assert applying == sorted(applying)
    flags = [c.plan is not None and c.plan.applies for c in columns[1:]]
    assert flags == sorted(flags, reverse=True)


def test_columns_are_added_duplicated_moved_and_removed(view: CompareView, qtbot: QtBot) -> None:
    workbench = view.workbench
    count = len(workbench.columns)
    first = workbench.columns[0]
    twin = workbench.duplicate(first)
    assert workbench.columns[1] is twin
    workbench.move(twin, 2)
    assert workbench.columns[3] is twin
    workbench.remove(twin)
    added = workbench.add("microcompact-time", {"keep_recent": 1})
    assert len(workbench.columns) == count + 1
    assert "keep recent 1" in added.title
    settled(workbench, qtbot)


def test_another_point_of_the_session_is_compared(view: CompareView, qtbot: QtBot) -> None:
    conversation = view._document.conversation
    assert conversation is not None
    compaction = next(c for c in conversation.compactions if c.kind == "auto")
    view.workbench.set_point(Point("compaction", compaction.record))
    settled(view.workbench, qtbot)
    given = view.workbench.given
    assert given is not None
    assert len(given.conversation.transcript) == compaction.record


def test_presets_are_saved_and_loaded(view: CompareView, tmp_path: Path, qtbot: QtBot) -> None:
    view.workbench.add("microcompact-time", {"keep_recent": 2})
    path = tmp_path / "mine.json"
    view.workbench.save_preset(path)
    saved = json.loads(path.read_text())
    for extra in list(view.workbench.columns[1:]):
        view.workbench.remove(extra)
    view.workbench.load_preset(path)
    settled(view.workbench, qtbot)
    assert view.workbench.preset() == saved
    path.write_text("[]")
    with pytest.raises(InputUnreadable, match="no preset"):
        view.workbench.load_preset(path)
    assert view.workbench.preset() == saved


def test_the_table_is_exported_as_csv_and_markdown(view: CompareView) -> None:
    rows = list(csv.reader(io.StringIO(view.model.as_csv())))
    assert len(rows) == len(FIGURES)
    assert len({len(row) for row in rows}) == 1
    assert view.model.as_markdown().count("\n") == len(FIGURES) + 1


def test_a_preview_never_runs_on_the_gui_thread(
    app_context: AppContext, document: Document, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    from compaction.strategies import registry
    from inspector.documents import workbench as module

    threads: list[str] = []
    real = registry.preview

    def seen(*args: object) -> object:
        threads.append(threading.current_thread().name)
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "preview", seen)
    workbench = workbench_of(app_context, document)
    workbench.start()
    settled(workbench, qtbot)
    assert len(threads) == len(STRATEGIES)
    assert not any(name == "MainThread" for name in threads)
    assert workbench_of(app_context, document) is workbench


def test_the_money_of_a_plan_is_once_plus_next_plus_later_requests(view: CompareView) -> None:
    plan = view.workbench.columns[0].plan
    assert plan is not None
    cost = plan.cost
    assert cost is not None
    found = spent(cost, 3)
    assert found is not None
    assert cost.one_off is not None
    assert cost.next_request is not None
    assert cost.per_request is not None
    assert found[0] == pytest.approx(cost.one_off + cost.next_request + 2 * cost.per_request)


def test_the_model_follows_the_workbench(app_context: AppContext, document: Document, qtbot: QtBot) -> None:
    workbench = workbench_of(app_context, document)
    model = ComparisonModel(workbench)
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    workbench.start()
    settled(workbench, qtbot)
    workbench.rank("loss")
    workbench.remove(workbench.columns[0])
    assert model.columnCount() == len(STRATEGIES)


def test_the_table_opens_at_its_top_and_ends_with_a_whole_row(view: CompareView) -> None:
    view.resize(1280, 620)
    view.show()
    QApplication.processEvents()
    table = view.table
    assert table.verticalScrollBar().value() == 0
    edge = table.viewport().height()
    bottoms = {table.rowViewportPosition(row) + table.rowHeight(row) for row in range(len(FIGURES))}
    assert edge in bottoms
    assert bar_height([20] * 5, 10_000) < 1_000
    assert bar_height([20, 20], 50) == bar_height([20, 20], 0)


def test_sentences_are_shown_whole(view: CompareView) -> None:
    view.resize(1280, 800)
    view.show()
    QApplication.processEvents()
    row = next(n for n, figure in enumerate(FIGURES) if figure.title == "Applies")
    for number in range(view.model.columnCount()):
        room = QRect(0, 0, view.table.columnWidth(number) - 6, 1)
        wrap = int(Qt.TextFlag.TextWordWrap)
        needed = view.table.fontMetrics().boundingRect(room, wrap, view.model.text(row, number))
        assert needed.height() <= view.table.rowHeight(row)
        assert needed.width() <= view.table.columnWidth(number)


def test_the_untouched_session_has_its_money(view: CompareView) -> None:
    rows = {figure.title: row for row, figure in enumerate(FIGURES) if not figure.title.startswith(" ")}
    plan = view.workbench.columns[0].plan
    assert plan is not None
    assert plan.cost is not None
    assert view.model.text(rows["Next request"], 0) == f"${plan.cost.next_request_without:,.4f}"
    assert view.model.text(rows["Each later request"], 0) == f"${plan.cost.per_request_without:,.4f}"
    assert all(view.model.text(row, 0) for title, row in rows.items() if title != "Context")
    assert view.model.text(rows["Cache lost"], 1).endswith(" tokens")


def test_a_list_of_names_is_shown_whole_and_told_when_it_is_left(view: CompareView, qtbot: QtBot) -> None:
    view.resize(1280, 800)
    view.show()
    view.table.setCurrentIndex(view.model.index(2, column(view, "microcompact-time")))
    QApplication.processEvents()
    editor = view.form.editors["compactable_tools"]
    assert isinstance(editor, NamesEdit)
    assert editor.verticalScrollBar().maximum() == 0
    assert editor.document().size().height() > 1
    editor.setPlainText("Read,  Bash")
    with qtbot.waitSignal(editor.changed) as told:
        qtbot.keyClick(editor, Qt.Key.Key_Return)
    assert told.args == [["Read", "Bash"]]
    chosen = view.current_column()
    assert chosen is not None
    assert chosen.settings.compactable_tools == ("Read", "Bash")


def test_a_unit_is_said_once(view: CompareView) -> None:
    view.table.setCurrentIndex(view.model.index(2, column(view, "microcompact-time")))
    titles = [label.text() for label in view.form.findChildren(QLabel)]
    gap, keep = view.form.editors["gap_threshold_minutes"], view.form.editors["keep_recent"]
    assert isinstance(gap, QDoubleSpinBox)
    assert isinstance(keep, QSpinBox)
    assert "Gap threshold minutes" in titles
    assert (gap.suffix(), keep.suffix()) == ("", " results")


def test_sources_name_the_document_for_people() -> None:
    assert plain_source("api.md 1.5 and 2.2") == "sections 1.5 and 2.2 of the API specification"
    own = "own choice: section 4.2 of the compaction specification names no figure"
    assert plain_source("own choice: compaction.md 4.2 names no figure") == own


def test_the_chart_and_its_slider_have_one_scale(view: CompareView) -> None:
    view.resize(1280, 800)
    view.show()
    QApplication.processEvents()
    money = view.money
    for requests in (1, 20, money.slider.maximum()):
        money.slider.setValue(requests)
        option = QStyleOptionSlider()
        money.slider.initStyleOption(option)
        handle = money.slider.style().subControlRect(
            QStyle.ComplexControl.CC_Slider, option, QStyle.SubControl.SC_SliderHandle, money.slider
        )
        middle = money.slider.mapTo(money, handle.topLeft()).x() + handle.width() / 2
        assert abs(middle - money.chart.mapTo(money, QPoint(0, 0)).x() - money.chart.x_of(requests)) <= 1


def test_every_strategy_is_explained_with_its_source_where_it_is_chosen(view: CompareView) -> None:
    for number, chosen in enumerate(view.workbench.columns, 1):
        view.table.setCurrentIndex(view.model.index(2, number))
        said = view.chosen_help.text()
        assert len(said) > 80
        assert re.search(r"Source: sections? \d.* of the [\w ']*specification", said)
        assert said.count(". ") <= 4
        asked = view.model.data(view.model.index(2, number), Qt.ItemDataRole.WhatsThisRole)
        assert said in asked
        assert view.model.headerData(number, Qt.Orientation.Horizontal, Qt.ItemDataRole.WhatsThisRole) == said
        assert chosen.strategy.title in asked


def test_the_report_is_one_page_that_loads_and_runs_nothing(view: CompareView, tmp_path: Path, qtbot: QtBot) -> None:
    view._document.set_title("<script>alert(1)</script>")
    target = tmp_path / "report.html"
    view.save_report(target)
    qtbot.waitUntil(lambda: view.state.text().startswith("Written"), timeout=WAIT)
    page = target.read_text("utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r"(src|href)=[\"']?(?!data:)\w+:", page)
    assert page.count("<rect") > len(view.workbench.columns)
    for column in view.workbench.columns:
        assert column.strategy.title.split(" (")[0] in page
    for figure in FIGURES[1:]:
        assert f"<th>{figure.title.strip()}</th>" in page
    assert page.rstrip().endswith("</html>")


def test_the_exact_request_of_an_api_strategy_is_copied(view: CompareView, qtbot: QtBot) -> None:
    view.table.setCurrentIndex(view.model.index(2, column(view, "api-clear-thinking")))
    view._copy_request()
    qtbot.waitUntil(lambda: view.state.text().startswith("Copied"), timeout=WAIT)
    body = json.loads(QGuiApplication.clipboard().text())
    assert body["context_management"]["edits"][0]["type"] == "clear_thinking_20251015"
    assert body["messages"]
    view.table.setCurrentIndex(view.model.index(2, column(view, "context-collapse")))
    view._copy_request()
    assert "API-level" in view.state.text()
