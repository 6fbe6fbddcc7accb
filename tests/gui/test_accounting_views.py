"""The context chart, the cost panel and the gauge, on sessions made for it and on a real one."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QHelpEvent, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QToolTip
from pytestqt.qtbot import QtBot

from compaction.accounting.categories import Category
from compaction.accounting.settings import SETTINGS, WindowSettings
from inspector.context import AppContext
from inspector.documents.accounting import accounting_of
from inspector.documents.document import Document, Scope
from inspector.models.round_table import COLUMNS
from inspector.views.charts.context_chart import ContextChart
from inspector.views.charts.context_plot import COST_MODES
from inspector.views.charts.stack_item import columns_of
from inspector.views.context_gauge import ContextGauge
from inspector.views.cost_panel import CostPanel
from inspector.views.limits_dialog import LimitsDialog
from inspector.views.main_window import MainWindow
from tests.unit.accounting.sessions import SessionBuilder, call, text, usage

Open = Callable[[SessionBuilder], Document]


def long_session(rounds: int = 40) -> SessionBuilder:
    s = SessionBuilder()
    s.prompt("go " * 50)
    context = 30_000
    for number in range(rounds):
        s.answer(f"msg_{number}", text(10), call(f"t{number}"), **usage(3, 60, context, 600))
        s.result(f"t{number}", "output line\n" * 60)
        context += 600
        if number == rounds // 2:
            s.boundary("auto", context + 700, "Summary: " + "word " * 300)
            context = 33_000
    return s


@pytest.fixture
def open_session(app_context: AppContext, tmp_path: Path, qtbot: QtBot) -> Open:
    def opened(session: SessionBuilder) -> Document:
        path = tmp_path / "session.jsonl"
        path.write_bytes(session.bytes())
        document = Document(path)
        document.load(app_context.runner)
        assert app_context.runner.wait_until_idle()
        return document

    return opened


def counted(context: AppContext, document: Document) -> None:
    accounting = accounting_of(document)
    accounting.ensure(context.runner)
    for _ in range(400):
        QApplication.processEvents()
        if accounting.accounts is not None and not accounting.running and not context.runner.jobs:
            return
        QTest.qWait(5)
    raise AssertionError(f"not counted: {accounting.error}")


@pytest.fixture
def chart(app_context: AppContext, open_session: Open, qtbot: QtBot) -> ContextChart:
    view = ContextChart(app_context, open_session(long_session()))
    qtbot.addWidget(view)
    view.resize(1000, 500)
    view.show()
    counted(app_context, view._document)
    QTest.qWait(30)
    return view


def test_a_click_in_the_chart_selects_the_round_and_a_selection_moves_the_cursor(chart: ContextChart) -> None:
    document = chart._document
    box = chart.plot.getPlotItem().vb
    place = box.mapViewToScene(QPointF(7.2, 10_000.0))
    QTest.mouseClick(chart.plot.viewport(), Qt.MouseButton.LeftButton, pos=chart.plot.mapFromScene(place))
    assert (document.selection.scope, document.selection.round) == (Scope.ROUND, 7)
    assert chart.plot.cursor_line.value() == 7
    conversation = document.conversation
    assert conversation is not None
    document.select_record(conversation.round(12).first_record)
    assert (chart.plot.cursor_round, chart.plot.cursor_line.value()) == (12, 12)
    assert "Round 12 of 40" in chart.state.text()


def test_the_chart_works_by_keyboard(chart: ContextChart) -> None:
    chart.select_round(5)
    for key, modifier, round_after in (
        (Qt.Key.Key_Right, Qt.KeyboardModifier.NoModifier, 6),
        (Qt.Key.Key_Left, Qt.KeyboardModifier.NoModifier, 5),
        (Qt.Key.Key_PageDown, Qt.KeyboardModifier.NoModifier, 15),
        (Qt.Key.Key_Right, Qt.KeyboardModifier.ControlModifier, 22),
        (Qt.Key.Key_Home, Qt.KeyboardModifier.NoModifier, 1),
        (Qt.Key.Key_Left, Qt.KeyboardModifier.NoModifier, 1),
        (Qt.Key.Key_End, Qt.KeyboardModifier.NoModifier, 40),
    ):
        QTest.keyClick(chart.plot, key, modifier)
        assert chart.plot.cursor_round == round_after
    before = chart.plot.getPlotItem().vb.viewRange()[0]
    QTest.keyClick(chart.plot, Qt.Key.Key_Plus)
    after = chart.plot.getPlotItem().vb.viewRange()[0]
    assert after[1] - after[0] < before[1] - before[0]
    QTest.keyClick(chart.plot, Qt.Key.Key_0)
    assert chart.plot.getPlotItem().vb.viewRange()[0] == pytest.approx(before)
    assert chart.plot.accessibleName()


def test_legend_and_table_say_what_the_chart_shows(chart: ContextChart) -> None:
    accounts = chart.accounts
    assert accounts is not None
    chart.select_round(3)
    legend = {chart.legend.item(r, 0).text(): chart.legend.item(r, 1).text() for r in range(chart.legend.rowCount())}
    assert legend["Context"] == "31,803"
    parts = accounts.series.parts[2]
    assert legend["Tool result"] == f"{int(parts[Category.TOOL_RESULT]):,}"
    assert sum(int(legend[c.title].replace(",", "")) for c in Category) == 31_803
    chart.table_button.click()
    assert chart.pages.currentWidget() is chart.table
    model = chart.table_model
    assert model.rowCount() == 40
    shown = [model.index(2, c).data() for c in range(len(COLUMNS))]
    assert shown[COLUMNS.index("Context")] == "31,803"
    assert model.index(21, COLUMNS.index("Event")).data().startswith("automatic compaction")
    assert chart.table.currentIndex().row() == 2


def test_a_session_that_grows_keeps_its_chart_until_it_is_counted_again(
    chart: ContextChart, app_context: AppContext, qtbot: QtBot
) -> None:
    document = chart._document
    assert document.path is not None
    chart.select_round(7)
    session = long_session(44)
    document.path.write_bytes(session.bytes())
    document.load(app_context.runner)
    qtbot.waitUntil(lambda: document.conversation is not None and document.conversation.round_count == 44)
    assert chart.accounts is not None
    assert chart.accounts.series.rounds == 40
    qtbot.waitUntil(lambda: chart.accounts is not None and chart.accounts.series.rounds == 44, timeout=10_000)
    assert chart.table_model.rowCount() == 44
    assert chart.plot.getPlotItem().vb.viewRange()[0] == pytest.approx([0.5, 44.5])


def test_another_file_in_its_place_empties_the_chart_first(
    chart: ContextChart, app_context: AppContext, qtbot: QtBot
) -> None:
    document = chart._document
    assert document.path is not None
    document.path.write_bytes(long_session(3).bytes())
    document.load(app_context.runner)
    qtbot.waitUntil(lambda: document.conversation is not None and document.conversation.round_count == 3)
    assert chart.accounts is None
    qtbot.waitUntil(lambda: chart.accounts is not None, timeout=10_000)
    assert chart.accounts is not None
    assert chart.accounts.series.rounds == 3


def test_the_tip_of_a_round_names_method_and_source_of_every_figure(chart: ContextChart, qtbot: QtBot) -> None:
    tip = chart.tip(3)
    for needed in ("31,803", "recorded", "estimated shares", "median error", "Tool result", "computed", "public list"):
        assert needed in tip
    place = chart.plot.mapFromScene(chart.plot.getPlotItem().vb.mapViewToScene(QPointF(3.0, 5_000.0)))
    event = QHelpEvent(QEvent.Type.ToolTip, place, chart.plot.mapToGlobal(place))
    QApplication.sendEvent(chart.plot.viewport(), event)
    qtbot.waitUntil(lambda: QToolTip.text() == tip)
    QToolTip.hideText()


def test_a_model_name_in_a_tip_is_no_html(app_context: AppContext, open_session: Open, qtbot: QtBot) -> None:
    session = SessionBuilder(model="<img src='file:///etc/passwd'>")
    session.answer("msg_1", **usage(3, 1, 20_000))
    view = ContextChart(app_context, open_session(session))
    qtbot.addWidget(view)
    counted(app_context, view._document)
    assert "<" not in view.tip(1)


def test_limits_of_the_chosen_client_are_drawn(chart: ContextChart, app_context: AppContext) -> None:
    assert sorted(line.value() for line in chart.plot._limits) == [147_000, 167_000, 177_000, 200_000]
    chart.accounting.choose(client="2.0.76", overrides=WindowSettings(disable_auto_compact=True))
    QTest.qWait(20)
    counted(app_context, chart._document)
    assert sorted(line.value() for line in chart.plot._limits) == [148_000, 165_000, 200_000]
    chart.limits_button.click()
    assert chart.plot.getPlotItem().vb.viewRange()[1][1] >= 200_000


@pytest.mark.parametrize("width", [1000, 800])
def test_the_name_of_a_limit_stands_on_its_own_line_and_nothing_is_drawn_through_it(
    chart: ContextChart, width: int, qtbot: QtBot
) -> None:
    chart.resize(width, 260)
    chart.limits_button.setChecked(True)
    QApplication.processEvents()
    box = chart.plot.getPlotItem().vb
    [compaction] = chart.plot._events
    across = box.mapFromView(QPointF(compaction.value(), 0)).x()
    plates = chart.plot.names.plates()
    assert len(plates) == len(chart.plot._limits) == 4
    for line in chart.plot._limits:
        name = next(text for text in plates if text.endswith(f" {line.value() / 1000:.0f}K"))
        height = box.mapFromView(QPointF(0, line.value())).y()
        assert plates[name].top() <= height <= plates[name].bottom()
        assert box.rect().contains(plates[name])
        assert not plates[name].left() <= across <= plates[name].right()
    boxes = list(plates.values())
    assert not any(a.intersects(b) for n, a in enumerate(boxes) for b in boxes[n + 1 :])


def test_straight_lines_are_a_whole_number_of_pixels_wide_so_that_all_look_alike(chart: ContextChart) -> None:
    widths = {line.pen.widthF() for line in [*chart.plot._limits, *chart.plot._events]}
    assert len(widths) == 1
    assert widths.pop().is_integer()


def test_compactions_are_marked_and_cost_has_an_axis(chart: ContextChart) -> None:
    [line] = chart.plot._events
    assert line.value() == 21.5
    axis = chart.plot.getPlotItem().getAxis("right")
    assert axis.isVisible()
    accounts = chart.accounts
    assert accounts is not None
    _, y = chart.plot.cost_curve.getData()
    assert y[-1] * axis.scale == pytest.approx(float(np.nansum(accounts.round_usd)))
    chart.cost_mode.setCurrentText(COST_MODES[2])
    assert not axis.isVisible()
    assert not chart.plot.cost_curve.isVisible()


def test_exports_png_svg_and_csv(chart: ContextChart, tmp_path: Path) -> None:
    for suffix in ("png", "svg", "csv"):
        chart.export(tmp_path / f"chart.{suffix}")
    assert QImage(str(tmp_path / "chart.png")).width() >= 900
    assert "<svg" in (tmp_path / "chart.svg").read_text()
    rows = list(csv.reader(io.StringIO((tmp_path / "chart.csv").read_text())))
    assert rows[0] == list(COLUMNS)
    assert len(rows) == 41
    context = COLUMNS.index("Context")
    first = len(("Round", "Line", "Model", "Context", "Output"))
    for row in rows[1:]:
        assert sum(int(n) for n in row[first : first + len(Category)]) == int(row[context])
    assert {p.name for p in tmp_path.glob("chart.*")} == {"chart.png", "chart.svg", "chart.csv"}


def test_fifty_thousand_rounds_are_drawn_in_as_many_columns_as_there_are_pixels() -> None:
    totals = np.arange(50_000) % 977
    totals[12_345] = 5_000
    chosen, edges = columns_of(totals, 0, len(totals), 900)
    assert len(chosen) <= 900
    assert 12_345 in chosen  # no peak is lost
    assert (edges[0], edges[-1]) == (0.5, 50_000.5)
    alone, _ = columns_of(totals, 100, 140, 900)
    assert alone.tolist() == list(range(100, 140))
    assert len(columns_of(totals, 5, 5, 900)[0]) == 0


def test_cost_panel_lists_buckets_models_and_the_reconciliation(
    app_context: AppContext, open_session: Open, qtbot: QtBot
) -> None:
    session = long_session(6)
    session.answer("msg_odd", model="gpt-6", stop=None, **usage(10, 1))
    document = open_session(session)
    panel = CostPanel(app_context, document)
    qtbot.addWidget(panel)
    panel.show()
    counted(app_context, document)
    model = panel.model
    shown = {model.index(r, 0).data(): [model.index(r, c).data() for c in range(1, 6)] for r in range(model.rowCount())}
    accounts = panel.accounting.accounts
    assert accounts is not None
    assert panel.total.text().startswith(f"${accounts.cost.total_usd:,.4f} + 11 tokens unpriced")
    assert shown["Cache read"][0] == f"{accounts.cost.tokens[2]:,}"
    assert shown["gpt-6"][1] == "unpriced"
    assert shown["Summed over every record"][0] == f"{sum(accounts.cost.files[0].raw_tokens):,}"
    assert shown["Each response once over all files"][0] == f"{sum(accounts.cost.tokens):,}"
    assert shown["Output recorded as a placeholder"][2] == "1"
    assert all(model.index(r, 5).data() or model.index(r, 1).data() == "" for r in range(model.rowCount()))
    row = next(r for r in range(model.rowCount()) if model.index(r, 0).data() == "Reconciliation")
    panel.tree.select_row(row)
    assert "every record" in panel.note.text()


def test_cost_panel_goes_to_a_compaction_and_changes_the_price_set(
    app_context: AppContext, open_session: Open, qtbot: QtBot
) -> None:
    document = open_session(long_session(6))
    panel = CostPanel(app_context, document)
    qtbot.addWidget(panel)
    panel.show()
    counted(app_context, document)
    titles = [row.data.title for row in panel.model.rows]
    panel.model.set_expanded(titles.index("Compactions"), True)
    place = next(n for n, row in enumerate(panel.model.rows) if row.data.title.startswith("Automatic compaction"))
    panel.tree.select_row(place)
    QTest.keyClick(panel.tree, Qt.Key.Key_Return)
    conversation = document.conversation
    assert conversation is not None
    assert document.selection.record == conversation.compactions[0].record
    before = panel.accounting.accounts
    panel.prices.setCurrentText("design document")
    panel.prices.activated.emit(panel.prices.currentIndex())
    QTest.qWait(20)
    counted(app_context, document)
    assert panel.accounting.accounts is not before
    assert panel.accounting.accounts is not None
    assert panel.accounting.accounts.cost.prices.name == "design document"


@pytest.mark.parametrize(
    ("context", "words"),
    [(100_000, "40 % left"), (150_000, "context low"), (170_000, "auto-compact due"), (178_000, "blocked")],
)
def test_the_gauge_has_four_levels_in_words_and_names_its_sources(
    app_context: AppContext, open_session: Open, qtbot: QtBot, context: int, words: str
) -> None:
    session = SessionBuilder()
    session.prompt("go")
    session.answer("msg_1", **usage(0, 0, context))
    document = open_session(session)
    gauge = ContextGauge(app_context, document)
    qtbot.addWidget(gauge)
    gauge.show()
    counted(app_context, document)
    assert words in gauge.label.text()
    for needed in ("recorded", "167,000", "177,000", "Token budget", "clients.md"):
        assert needed in gauge.toolTip()
    assert gauge.label.text() in gauge.accessibleName()


def test_the_gauge_alone_does_not_divide_the_context_of_every_round(
    app_context: AppContext, open_session: Open, qtbot: QtBot
) -> None:
    document = open_session(long_session(4))
    gauge = ContextGauge(app_context, document)
    qtbot.addWidget(gauge)
    accounting = accounting_of(document)
    qtbot.waitUntil(lambda: accounting.current is not None and not accounting.running)
    assert accounting.accounts is None
    counted(app_context, document)
    assert accounting.accounts is not None


def test_the_warning_is_hidden_right_after_a_compaction_section_1(
    app_context: AppContext, open_session: Open, qtbot: QtBot
) -> None:
    session = SessionBuilder()
    session.prompt("go")
    session.answer("msg_1", **usage(0, 0, 178_000))
    session.boundary("manual", 178_000, "Summary: " + "word " * 300)
    document = open_session(session)
    gauge = ContextGauge(app_context, document)
    qtbot.addWidget(gauge)
    counted(app_context, document)
    assert gauge.label.text().endswith("just compacted")
    assert gauge.accounting.suppression.suppressed


def test_the_gauge_opens_the_chart_in_the_window(window: MainWindow, app_context: AppContext, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(long_session().bytes())
    document = window.open_path(path)
    assert app_context.runner.wait_until_idle()
    counted(app_context, document)
    gauge = next(g for g in window.findChildren(ContextGauge) if g.accounting is accounting_of(document))
    QTest.keyClick(gauge, Qt.Key.Key_Return)
    view = window.view_widget("context")
    assert isinstance(view, ContextChart)
    assert view.isVisible()
    view.select_round(9)
    assert document.selection.round == 9


def test_every_override_of_the_specification_is_a_setting_of_the_session_view(
    app_context: AppContext, open_session: Open, qtbot: QtBot
) -> None:
    document = open_session(long_session(4))
    accounting = accounting_of(document)
    dialog = LimitsDialog(accounting, ["2.1.50"])
    qtbot.addWidget(dialog)
    assert set(dialog.editors) == {spec.key for spec in SETTINGS}
    assert all(editor.toolTip() and editor.accessibleName() for editor in dialog.editors.values())
    percent = dialog.editors["auto_compact_percent"]
    assert isinstance(percent, QLineEdit)
    percent.setText("200")
    dialog.accept()
    assert "up to 100" in dialog.problem.text()
    percent.setText("20")
    accounting.ensure(app_context.runner)
    dialog.accept()
    assert accounting.overrides.auto_compact_percent == 20
    counted(app_context, document)
    assert accounting.current is not None
    assert accounting.current.thresholds.auto_compact_threshold == 36_000
