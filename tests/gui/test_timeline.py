"""The stepper: every compaction, the context at any round, what-if beside what was recorded (issue 6)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QStyle, QStyleOptionSlider
from pytestqt.qtbot import QtBot

from compaction.conversation import open_session
from compaction.resources import resource
from inspector.context import AppContext
from inspector.documents.document import Document
from inspector.models.timeline import SIGNS
from inspector.views.timeline.strip import TimelineStrip
from inspector.views.timeline.view import TimelineView

WAIT = 20_000


@pytest.fixture
def view(app_context: AppContext, qtbot: QtBot) -> TimelineView:
    document = Document(Path(resource("sample", "tide-tables.jsonl")))
    document.set_session(open_session(document.main_path))
    found = TimelineView(app_context, document)
    found._keep = document  # type: ignore[attr-defined]
    qtbot.addWidget(found)
    qtbot.waitUntil(lambda: found.current >= 0 and found.facts.rowCount() > 0, timeout=WAIT)
    return found


def names(view: TimelineView) -> dict[str, str]:
    rows = range(view.facts.rowCount())
    items = [(view.facts.item(r, 0), view.facts.item(r, 1)) for r in rows]
    return {a.text(): b.text() for a, b in items if a is not None and b is not None}


def test_previous_and_next_walk_over_every_recorded_compaction(view: TimelineView, qtbot: QtBot) -> None:
    conversation = view._document.conversation
    assert conversation is not None
    assert [s.compaction for s in view.steps] == conversation.compactions
    view.select(0)
    seen = [view.steps[view.current].compaction]
    for _ in range(len(view.steps) - 1):
        qtbot.mouseClick(view.next, Qt.MouseButton.LeftButton)
        seen.append(view.steps[view.current].compaction)
    assert seen == conversation.compactions
    view.step(1)
    assert view.current == len(view.steps) - 1


def test_a_step_shows_its_summary_what_it_replaced_and_the_recorded_figures(view: TimelineView, qtbot: QtBot) -> None:
    number = next(n for n, s in enumerate(view.steps) if s.kind == "auto")
    view.select(number)
    qtbot.waitUntil(lambda: "Primary Request" in view.summary.text, timeout=WAIT)
    compaction = view.steps[number].compaction
    assert compaction is not None
    assert names(view)["context before, by the client"] == f"{compaction.pre_tokens:,} tokens"
    assert view.replaced.rowCount() > 0
    assert view._document.selection.record == compaction.record


def test_the_slider_shows_the_context_of_a_round_and_the_tree_follows(view: TimelineView) -> None:
    view.slider.setValue(5)
    conversation = view._document.conversation
    assert conversation is not None
    assert view._document.selection.record == conversation.round(5).first_record
    tokens = conversation.round_context(5)
    assert f"{tokens:,} tokens" in view.bars.toolTip()


def test_a_simulation_stands_beside_the_recorded_ones(view: TimelineView, qtbot: QtBot) -> None:
    recorded = [s for s in view.steps if s.compaction is not None]
    view.simulate.setChecked(True)
    qtbot.waitUntil(lambda: "What if:" in view.state.text(), timeout=WAIT)
    view.form.window_tokens.setValue(100_000)
    qtbot.waitUntil(lambda: any(s.event is not None for s in view.steps), timeout=WAIT)
    assert [s for s in view.steps if s.compaction is not None] == recorded
    assert [s.round for s in view.steps] == sorted(s.round for s in view.steps)
    view.simulate.setChecked(False)
    assert all(s.event is None for s in view.steps)


def test_play_goes_through_all_of_them_and_stops(view: TimelineView, qtbot: QtBot) -> None:
    view._playing.setInterval(10)
    view.select(0)
    view.play.setChecked(True)
    qtbot.waitUntil(lambda: not view.play.isChecked(), timeout=WAIT)
    assert view.current == len(view.steps) - 1


def test_a_step_opens_on_what_it_has_and_says_why_the_rest_is_empty(view: TimelineView, qtbot: QtBot) -> None:
    view.select(next(n for n, s in enumerate(view.steps) if s.kind == "micro"))
    qtbot.waitUntil(lambda: view.texts.currentIndex() == 1, timeout=WAIT)
    assert view.replaced.rowCount() > 0
    assert not view.pages[0].has_content
    assert "asks no model" in view.pages[0].sentence.text()
    view.select(next(n for n, s in enumerate(view.steps) if s.kind == "auto"))
    qtbot.waitUntil(lambda: view.texts.currentIndex() == 0, timeout=WAIT)
    assert view.pages[0].has_content


def test_what_is_not_on_record_says_so_and_claims_no_method(view: TimelineView) -> None:
    rows = {name: row for row, name in enumerate(names(view))}
    assert not any("Tokens" in name for name in rows)
    missing = [row for name, row in rows.items() if names(view)[name] == "not recorded"]
    assert missing
    for row in missing:
        method = view.facts.item(row, 2)
        assert method is not None
        assert method.text() == ""
        assert "Field" in method.toolTip()


def test_every_sign_on_the_strip_and_every_colour_of_the_bars_is_explained(view: TimelineView) -> None:
    for step in view.steps:
        assert SIGNS[step.kind] in view.signs.text()
    assert view.legend.text().count("■") == 9


def test_the_sliders_handle_stands_below_the_strips_cursor(view: TimelineView) -> None:
    view.resize(1100, 700)
    view.show()
    QApplication.processEvents()
    for number in (1, view.slider.maximum() // 2, view.slider.maximum()):
        view.slider.setValue(number)
        option = QStyleOptionSlider()
        view.slider.initStyleOption(option)
        handle = view.slider.style().subControlRect(
            QStyle.ComplexControl.CC_Slider, option, QStyle.SubControl.SC_SliderHandle, view.slider
        )
        middle = view.slider.mapTo(view, handle.topLeft()).x() + handle.width() / 2
        assert abs(middle - view.strip.x_of(number)) <= 1


def test_a_round_whose_context_is_unknown_is_hatched_never_drawn_as_zero(app_context: AppContext, qtbot: QtBot) -> None:
    strip = TimelineStrip(app_context.theme)
    qtbot.addWidget(strip)
    strip.resize(400, 110)
    strip.set_data(np.array([50_000, 60_000, 0, 40_000]), [], [])
    assert strip.has_unknown
    image = strip.grab().toImage()

    def colours(number: int) -> set[int]:
        x = round(strip.x_of(number))
        return {image.pixel(x + dx, y) for dx in range(-20, 20) for y in range(40, 50)}

    muted = app_context.theme.named("muted").rgb()
    assert muted in colours(3)
    assert muted not in colours(2)
    assert colours(2) != colours(3)
