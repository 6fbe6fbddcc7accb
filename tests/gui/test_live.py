"""An open session that grows: the tree keeps selection and scroll, the end stays in view, calls at work are running."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from compaction.transcript.following import What
from inspector.app import make_context
from inspector.context import AppContext
from inspector.documents.document import Document, Scope
from inspector.documents.live import LiveDocument
from inspector.documents.live_documents import LiveDocuments
from inspector.documents.live_notices import Level, notices_between
from inspector.settings import FOLLOW_END, FOLLOW_LIVE, NOTIFY, Settings
from inspector.views.main_window import MainWindow
from inspector.views.outline_view import OutlineView
from tests.generator import SessionBuilder, Tool


class Writer:
    """A client that writes a session."""

    def __init__(self, folder: Path, rounds: int = 3) -> None:
        self.builder = SessionBuilder("2.1.217", name="live")
        self.builder.prompt("Please look at the harbour")
        for number in range(rounds):
            self.builder.assistant(f"Step {number}", tools=[Tool("Bash", {"command": "ls"})], results=["gauge.toml"])
        self.path = self.builder.write(folder)
        self.written = len(self.builder.lines)

    def flush(self) -> None:
        """Append what the builder has made since."""
        with self.path.open("ab") as file:
            file.write(b"".join(line + b"\n" for line in self.builder.lines[self.written :]))
        self.written = len(self.builder.lines)


@pytest.fixture
def context(qapp: object, own_data_folder: Path) -> Iterator[AppContext]:
    found = make_context(Settings(own_data_folder), "light")
    yield found
    found.runner.close()


@pytest.fixture
def window(context: AppContext, qtbot: QtBot) -> Iterator[MainWindow]:
    made = MainWindow(context)
    qtbot.addWidget(made)
    made.live = LiveDocuments(context, made)
    made.resize(900, 400)
    made.show()
    yield made
    made.live.stop()
    for document in made.documents:
        made.close_document(document)
    made.close()


def opened(window: MainWindow, context: AppContext, path: Path, qtbot: QtBot) -> tuple[Document, LiveDocument]:
    document = window.open_path(path)
    assert context.runner.wait_until_idle()
    window.show_view("tree")
    assert window.live is not None
    live = window.live.by_document[document]
    live.look()
    assert context.runner.wait_until_idle()
    return document, live


def look(live: LiveDocument, context: AppContext) -> None:
    live.look()
    assert context.runner.wait_until_idle()


def test_appended_records_come_by_themselves(
    window: MainWindow, context: AppContext, tmp_path: Path, qtbot: QtBot
) -> None:
    writer = Writer(tmp_path)
    document, live = opened(window, context, writer.path, qtbot)
    before = len(document.session.transcript)
    writer.builder.assistant("One more")
    with qtbot.waitSignal(live.updated, timeout=5000):
        writer.flush()
    assert len(document.session.transcript) == before + 1
    assert document.conversation.transcript is document.session.transcript


def test_selection_and_scroll_stay_while_the_tree_grows(
    window: MainWindow, context: AppContext, tmp_path: Path, qtbot: QtBot
) -> None:
    writer = Writer(tmp_path, rounds=60)
    document, live = opened(window, context, writer.path, qtbot)
    tree = window.view_widget("tree")
    assert isinstance(tree, OutlineView)
    document.select_record(20)
    bar = tree.table.verticalScrollBar()
    bar.setValue(bar.maximum() // 3)
    record, line, place = document.selection.record, int(document.conversation.transcript.line[20]), bar.value()
    writer.builder.assistant("One more", tools=[Tool("Bash", {"command": "ls"})], results=["x"])
    writer.flush()
    look(live, context)
    assert document.selection.record == record
    assert document.selection.conversation is document.conversation
    assert int(document.conversation.transcript.line[document.selection.record]) == line
    assert abs(bar.value() - place) <= tree.table.verticalHeader().defaultSectionSize()


def test_the_end_is_kept_in_view_when_wanted(
    window: MainWindow, context: AppContext, tmp_path: Path, qtbot: QtBot
) -> None:
    writer = Writer(tmp_path, rounds=60)
    context.settings.set(FOLLOW_END, True)
    _, live = opened(window, context, writer.path, qtbot)
    writer.builder.assistant("One more")
    writer.flush()
    look(live, context)
    tree = window.view_widget("tree")
    assert isinstance(tree, OutlineView)
    bar = tree.table.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.value() == bar.maximum(), timeout=3000)


def test_a_call_without_its_result_is_running_and_no_orphan(
    window: MainWindow, context: AppContext, tmp_path: Path, qtbot: QtBot
) -> None:
    writer = Writer(tmp_path)
    document, live = opened(window, context, writer.path, qtbot)
    call = writer.builder.assistant("Now", tools=[Tool("Bash", {"command": "sleep 9"})], results=[None])
    writer.flush()
    look(live, context)
    [block] = document.conversation.running
    assert document.conversation.transcript.block_tool(block) == "Bash"
    tree = window.view_widget("tree")
    assert isinstance(tree, OutlineView)
    assert not tree.structure.block_problems[block]
    writer.builder.result(call.tools[0], "done")
    writer.flush()
    look(live, context)
    assert document.conversation.running == frozenset()


def test_a_session_that_went_quiet_has_no_running_call(
    window: MainWindow, context: AppContext, tmp_path: Path, qtbot: QtBot
) -> None:
    writer = Writer(tmp_path)
    writer.builder.assistant("Now", tools=[Tool("Bash", {"command": "sleep 9"})], results=[None])
    writer.flush()
    os.utime(writer.path, (1_700_000_000, 1_700_000_000))
    document, _ = opened(window, context, writer.path, qtbot)
    assert document.conversation.running == frozenset()
    assert len(document.conversation.uses_without_result) == 1


@pytest.mark.parametrize("what", [What.TRUNCATED, What.REPLACED, What.DELETED, What.RENAMED])
def test_what_else_happens_to_the_file_is_said(
    window: MainWindow, context: AppContext, tmp_path: Path, qtbot: QtBot, what: What
) -> None:
    writer = Writer(tmp_path)
    other = Writer(tmp_path / "other", rounds=1).path
    document, live = opened(window, context, writer.path, qtbot)
    told: list[What] = []
    live.happened.connect(lambda happening: told.append(happening.what))
    if what is What.TRUNCATED:
        writer.path.write_bytes(other.read_bytes())
    elif what is What.REPLACED:
        os.replace(other, writer.path)
    elif what is What.DELETED:
        writer.path.unlink()
    else:
        writer.path.rename(tmp_path / "renamed.jsonl")
    look(live, context)
    qtbot.waitUntil(lambda: what in told, timeout=5000)
    assert document.session is not None
    if what is What.RENAMED:
        assert document.path == tmp_path / "renamed.jsonl"
        assert document.title == "renamed.jsonl"


def test_a_replaced_file_is_still_followed(
    window: MainWindow, context: AppContext, tmp_path: Path, qtbot: QtBot
) -> None:
    """qt.md: after os.replace the watch is lost; it must be set again."""
    writer = Writer(tmp_path)
    document, live = opened(window, context, writer.path, qtbot)
    os.replace(Writer(tmp_path / "other", rounds=1).path, writer.path)
    look(live, context)
    count = len(document.session.transcript)
    with qtbot.waitSignal(live.updated, timeout=5000), writer.path.open("ab") as file:
        file.write(b'{"type":"last-prompt","lastPrompt":"x","sessionId":"s"}\n')
    assert len(document.session.transcript) == count + 1


def test_subagents_appear_as_they_start(window: MainWindow, context: AppContext, tmp_path: Path, qtbot: QtBot) -> None:
    writer = Writer(tmp_path)
    document, live = opened(window, context, writer.path, qtbot)
    assert document.session.subagents == []
    folder = writer.path.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    with qtbot.waitSignal(live.updated, timeout=5000):
        (folder / "agent-0123456789abcdef0.jsonl").write_bytes(b'{"type":"user","isSidechain":true,"uuid":"u"}\n')
    assert [file.agent_id for file in document.session.subagents] == ["0123456789abcdef0"]


def test_following_can_be_switched_off(window: MainWindow, context: AppContext, tmp_path: Path, qtbot: QtBot) -> None:
    writer = Writer(tmp_path)
    opened(window, context, writer.path, qtbot)
    context.settings.set(FOLLOW_LIVE, False)
    window.live.apply_settings()
    assert window.live.by_document == {}


def test_a_closed_tab_is_followed_no_more(
    window: MainWindow, context: AppContext, tmp_path: Path, qtbot: QtBot
) -> None:
    document, _ = opened(window, context, Writer(tmp_path).path, qtbot)
    other, _ = opened(window, context, Writer(tmp_path / "b").path, qtbot)
    window.close_document(document)
    assert list(window.live.by_document) == [other]


def test_notices_are_told_once_and_only_when_wanted(
    window: MainWindow, context: AppContext, tmp_path: Path, qtbot: QtBot
) -> None:
    writer = Writer(tmp_path)
    _, live = opened(window, context, writer.path, qtbot)
    writer.builder.assistant("Before")
    writer.flush()
    look(live, context)
    context.settings.set(NOTIFY, True)
    writer.builder.assistant("Again")
    writer.flush()
    look(live, context)
    writer.builder.compact("Summary: all good")
    writer.builder.assistant("After")
    writer.flush()
    look(live, context)
    assert "compacted" in window.statusBar().currentMessage()


def test_a_level_is_told_when_it_is_passed() -> None:
    low, high = Level(100, 1000, 0, 0), Level(850, 1000, 0, 0)
    assert notices_between(low, high, 80) == ("the context passed 80 % of the window (850 of 1,000 tokens)",)
    assert notices_between(high, Level(900, 1000, 0, 0), 80) == ()
    assert notices_between(high, Level(200, 1000, 1, 0), 80) == ("compacted: the context is 200 tokens now",)
    assert notices_between(low, Level(100, 1000, 0, 2), 80) == ("2 new findings of severity error",)
    assert notices_between(Level(1, 1000, 0, None), Level(1, 1000, 0, 2), 80) == ()


def test_the_selection_kind_survives(window: MainWindow, context: AppContext, tmp_path: Path, qtbot: QtBot) -> None:
    writer = Writer(tmp_path)
    document, live = opened(window, context, writer.path, qtbot)
    document.select_record(2)
    scope = document.selection.scope
    assert scope is not Scope.NONE
    writer.builder.assistant("One more")
    writer.flush()
    look(live, context)
    assert document.selection.scope is not Scope.NONE
    assert document.selection.record == 2
