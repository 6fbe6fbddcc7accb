"""Before and after a strategy, or two sessions, block by block (issue 6)."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtTest import QAbstractItemModelTester
from pytestqt.qtbot import QtBot

from compaction.conversation import open_session
from compaction.request.alignment import Change
from compaction.resources import resource
from inspector.context import AppContext
from inspector.documents.document import Document
from inspector.models.before_after import BlockRow, RoundGroup
from inspector.views.before_after.view import BeforeAfterView, plan_comparison, session_comparison

WAIT = 20_000


def loaded() -> Document:
    found = Document(Path(resource("sample", "tide-tables.jsonl")))
    found.set_session(open_session(found.main_path))
    return found


@pytest.fixture
def view(app_context: AppContext, qtbot: QtBot) -> BeforeAfterView:
    document = loaded()
    found = BeforeAfterView(app_context, document)
    found._keep = document  # type: ignore[attr-defined]
    qtbot.addWidget(found)
    qtbot.waitUntil(lambda: not any(c.stale for c in found.workbench.columns), timeout=WAIT)
    return found


def choose(view: BeforeAfterView, name: str, qtbot: QtBot) -> None:
    column = next(c for c in view.workbench.columns if c.strategy.name == name)
    view.workbench.choose(column)
    title = column.strategy.title

    def shown() -> bool:
        found = view.model.comparison
        return found is not None and found.right.title == title

    qtbot.waitUntil(shown, timeout=WAIT)


def changes(view: BeforeAfterView) -> set[Change]:
    comparison = view.model.comparison
    assert comparison is not None
    return {row.change for row in comparison.rows}


def test_cleared_results_are_shown_where_they_are_and_totals_add_up(view: BeforeAfterView, qtbot: QtBot) -> None:
    QAbstractItemModelTester(view.model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    choose(view, "microcompact-time", qtbot)
    column = view.workbench.chosen
    assert column is not None
    plan = column.plan
    assert plan is not None
    comparison = view.model.comparison
    assert comparison is not None
    touched = [r for r in comparison.rows if r.change in (Change.CLEARED, Change.REPLACED)]
    assert len(touched) == len(plan.cleared)
    for group in comparison.groups:
        assert group.tokens_before == sum(row.tokens_before for row in group.rows)
    assert sum(g.tokens_before for g in comparison.groups) == sum(comparison.left.tokens.values())


def test_both_sides_differ_by_what_the_comparison_says_is_freed(view: BeforeAfterView, qtbot: QtBot) -> None:
    assert view.workbench.given is not None
    plans = [column.plan for column in view.workbench.columns if column.plan is not None and column.plan.applies]
    assert len(plans) > 3
    for plan in plans:
        comparison = plan_comparison(view.workbench.given, plan)
        sides = sum(comparison.left.tokens.values()), sum(comparison.right.tokens.values())
        assert sides[0] - sides[1] == plan.tokens_freed
        assert sum(row.tokens_after for row in comparison.rows) == sides[1]


def test_a_summary_is_inserted_and_what_it_stands_for_removed(view: BeforeAfterView, qtbot: QtBot) -> None:
    choose(view, "auto-compact", qtbot)
    assert {Change.INSERTED, Change.REMOVED} <= changes(view)


def test_only_what_changes_can_be_shown_and_the_next_change_is_reached_by_key(
    view: BeforeAfterView, qtbot: QtBot
) -> None:
    choose(view, "microcompact-time", qtbot)
    view.only_changes.setChecked(True)
    blocks = [row.data for row in view.model.rows if isinstance(row.data, BlockRow)]
    assert blocks
    assert all(b.change is not Change.KEPT for b in blocks)
    view.only_changes.setChecked(False)
    view.next_change.click()
    current = view.tree.current_row()
    assert current is not None
    assert isinstance(current.data, BlockRow)
    assert current.data.change is not Change.KEPT
    assert "cleared" in view.difference.toPlainText() or "replaced" in view.difference.toPlainText()


def test_rounds_are_groups_and_activating_a_block_selects_its_record(view: BeforeAfterView, qtbot: QtBot) -> None:
    choose(view, "microcompact-time", qtbot)
    assert isinstance(view.model.rows[0].data, RoundGroup)
    row = next(r for r in view.model.rows if isinstance(r.data, BlockRow) and r.data.record >= 0)
    view.tree.row_activated.emit(row)
    assert view._document.selection.record == row.data.record


def test_two_open_sessions_are_compared_by_their_records() -> None:
    one, other = loaded(), loaded()
    comparison = session_comparison(one, other)
    assert {row.change for row in comparison.rows} == {Change.KEPT}
    assert sum(comparison.left.tokens.values()) == sum(comparison.right.tokens.values())
