"""A column's summary by a model: asked first, previewed afterwards, never sent again by itself (issues 6 and 8)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QSpinBox
from pytestqt.qtbot import QtBot

from compaction.conversation import open_session
from compaction.resources import resource
from inspector.context import AppContext
from inspector.documents.document import Document
from inspector.documents.workbench import Point
from inspector.settings import API_BASE_URL
from inspector.views.compare.view import CompareView
from tests.gui.test_summaries import answer_consent
from tests.unit.summaries.loopback import Api, serving, stream

WAIT = 20_000


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, app_context: AppContext) -> Iterator[Api]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
    with serving() as found:
        app_context.settings.set(API_BASE_URL, found.url)
        yield found


@pytest.fixture
def view(app_context: AppContext, qtbot: QtBot) -> CompareView:
    document = Document(Path(resource("sample", "tide-tables.jsonl")))
    document.set_session(open_session(document.main_path))
    found = CompareView(app_context, document)
    qtbot.addWidget(found)
    wanted = ("snip", "auto-compact", "partial-from")
    for extra in [c for c in found.workbench.columns if c.strategy.name not in wanted]:
        found.workbench.remove(extra)
    settled(found, qtbot)
    choose(found, "auto-compact")
    return found


def settled(view: CompareView, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: not any(c.stale for c in view.workbench.columns), timeout=WAIT)


def choose(view: CompareView, name: str) -> None:
    number = next(n for n, c in enumerate(view.workbench.columns, 1) if c.strategy.name == name)
    view.table.setCurrentIndex(view.model.index(2, number))


def ask(view: CompareView, qtbot: QtBot, *, send: bool = True) -> None:
    answer_consent(send=send)
    view.model_summary.button.click()
    qtbot.waitUntil(view.model_summary.button.isEnabled, timeout=WAIT)
    settled(view, qtbot)


def test_it_is_offered_only_where_a_model_would_write_a_summary(view: CompareView) -> None:
    assert not view.model_summary.isHidden()
    choose(view, "snip")
    assert view.model_summary.isHidden()


def test_after_consent_the_plan_holds_the_models_summary_and_its_usage(
    view: CompareView, qtbot: QtBot, api: Api
) -> None:
    api.replies = [stream()]
    column = view.workbench.chosen
    assert column is not None
    ask(view, qtbot)
    plan = column.plan
    assert plan is not None
    assert "build it" in plan.summary
    assert plan.summary_usage == (10, 300, 1000, 20)
    assert "summary by a model" in column.title
    assert "written by claude-opus-4-6" in view.model_summary.state.text()
    assert len(api.requests) == 1
    assert "build it" in str(plan.after.messages[0].content)


def test_another_setting_point_or_refusal_sends_nothing(view: CompareView, qtbot: QtBot, api: Api) -> None:
    choose(view, "partial-from")
    column = view.workbench.chosen
    assert column is not None
    ask(view, qtbot, send=False)
    assert api.requests == []
    assert column.summariser is None
    api.replies = [stream()]
    ask(view, qtbot)
    assert len(api.requests) == 1
    keep = view.form.editors["keep_rounds"]
    assert isinstance(keep, QSpinBox)
    keep.setValue(keep.value() + 1)
    settled(view, qtbot)
    assert column.plan is not None
    assert "build it" not in column.plan.summary
    assert "summary by a model" not in column.title
    keep.setValue(keep.value() - 1)
    settled(view, qtbot)
    assert "build it" in column.plan.summary
    view.workbench.set_point(Point("round", 20))
    settled(view, qtbot)
    assert column.summariser is None
    assert len(api.requests) == 1


def test_a_failure_is_said_and_the_column_stays_offline(view: CompareView, qtbot: QtBot, api: Api) -> None:
    api.replies = [stream("no summary in here")]
    ask(view, qtbot)
    assert "no <summary> block" in view.model_summary.state.text()
    column = view.workbench.chosen
    assert column is not None
    assert column.plan is not None
    assert column.plan.summary_usage is None
