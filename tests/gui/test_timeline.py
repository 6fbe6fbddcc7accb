"""The stepper: every compaction, the context at any round, what-if beside what was recorded (issue 6)."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from compaction.conversation import open_session
from compaction.resources import resource
from inspector.context import AppContext
from inspector.documents.document import Document
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
    assert names(view)["preTokens"] == f"{compaction.pre_tokens:,} tokens"
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
