"""The window around the views: start page, tabs, errors, recent files, palette, help, drag and drop, layout."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QUndoCommand
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot

from inspector.actions.help import page_here
from inspector.app import make_context
from inspector.context import AppContext
from inspector.documents.document import Document, LoadState
from inspector.documents.workbench import Workbench
from inspector.settings import Settings
from inspector.views import document_page
from inspector.views.document_page import DocumentPage
from inspector.views.help_window import HelpWindow, keys_page, pages
from inspector.views.main_window import MainWindow
from inspector.views.palette import Palette, score
from inspector.views.registry import VIEWS, ViewSpec
from tests import generator


def test_the_start_page_opens_the_sample(window: MainWindow, app_context: AppContext) -> None:
    assert window.start_page.isVisible()
    QTest.mouseClick(window.start_page.sample_button, Qt.MouseButton.LeftButton)
    assert app_context.runner.wait_until_idle()
    document = window.current_document
    assert document is not None
    assert document.state is LoadState.READY
    assert f"{len(document.conversation.transcript):,} records" in window._status_text()  # type: ignore[union-attr]


def test_opened_files_are_remembered_and_missing_ones_are_greyed(
    window: MainWindow, app_context: AppContext, tmp_path: Path
) -> None:
    path = generator.Session(seed=1, rounds=3).write(tmp_path / "a" / "one.jsonl")
    window.open_path(path)
    assert app_context.runner.wait_until_idle()
    assert app_context.settings.recent_files == [str(path)]
    path.unlink()
    assert app_context.actions.run("file.close")
    item = window.start_page.recent.item(0)
    assert "gone" in item.text()
    assert not item.flags() & Qt.ItemFlag.ItemIsEnabled


def test_opening_a_file_twice_shows_its_tab(window: MainWindow, app_context: AppContext, sample_session: Path) -> None:
    first = window.open_path(sample_session)
    second = window.open_path(sample_session)
    assert first is second
    assert window.tabs.count() == 1
    app_context.runner.wait_until_idle()


def test_a_file_that_cannot_be_read_says_why_and_offers_to_try_again(
    window: MainWindow, app_context: AppContext, tmp_path: Path
) -> None:
    path = tmp_path / "absent.jsonl"
    document = window.open_path(path)
    assert app_context.runner.wait_until_idle()
    assert document.state is LoadState.FAILED
    page = window.tabs.currentWidget()
    assert isinstance(page, DocumentPage)
    said = " ".join(label.text() for label in page._waiting.findChildren(QLabel))
    assert "absent.jsonl could not be opened" in said
    assert "no such file" in said
    generator.Session(seed=1, rounds=3).write(path)
    page._waiting._again.click()
    assert app_context.runner.wait_until_idle()
    assert document.state is LoadState.READY
    assert str(path) not in window.message_bar.text


def test_a_reload_that_fails_keeps_what_is_shown_and_tells(
    window: MainWindow, app_context: AppContext, tmp_path: Path
) -> None:
    path = generator.Session(seed=1, rounds=3).write(tmp_path / "one.jsonl")
    document = window.open_path(path)
    assert app_context.runner.wait_until_idle()
    shown = document.conversation
    path.unlink()
    assert app_context.actions.run("session.reload")
    assert app_context.runner.wait_until_idle()
    assert document.conversation is shown
    assert document.state is LoadState.READY
    assert window.message_bar.isVisible()
    assert "one.jsonl" in window.message_bar.text
    window.message_bar._close.setFocus()
    QTest.keyClick(window.message_bar._close, Qt.Key.Key_Escape)
    assert not window.message_bar.isVisible()


def test_a_large_file_shows_its_first_rows_while_the_rest_is_read(
    window: MainWindow, app_context: AppContext, tmp_path: Path
) -> None:
    path = generator.Session(seed=1, records=12_000, result_characters=30).write(tmp_path / "big.jsonl")
    counts: list[int] = []
    document = window.open_path(path)
    document.reloaded.connect(lambda: counts.append(len(document.conversation.transcript)))  # type: ignore[union-attr]
    assert app_context.runner.wait_until_idle(60)
    assert counts[-1] >= 12_000
    assert counts == sorted(counts)
    assert document.state is LoadState.READY


def test_cancelling_while_opening_keeps_the_window_usable(
    window: MainWindow, app_context: AppContext, sample_session: Path
) -> None:
    document = window.open_path(sample_session)
    document.close()
    assert app_context.runner.wait_until_idle()
    assert document.state in (LoadState.CANCELLED, LoadState.READY)
    assert app_context.actions.run("file.close")


def test_undo_says_what_it_undoes(window: MainWindow, app_context: AppContext, sample_session: Path) -> None:
    document = window.open_path(sample_session)
    assert app_context.runner.wait_until_idle()
    assert not app_context.actions.enabled("edit.undo")
    document.undo_stack.push(QUndoCommand("MicroCompact & more"))
    shown = app_context.actions.qaction("edit.undo", window)
    assert shown.isEnabled()
    assert shown.text() == "&Undo MicroCompact && more"
    assert app_context.actions.run("edit.undo")
    assert shown.text() == "&Undo"
    assert app_context.actions.qaction("edit.redo", window).isEnabled()


def test_text_of_a_session_is_never_taken_for_markup(
    window: MainWindow, app_context: AppContext, tmp_path: Path
) -> None:
    path = generator.Session(seed=1, rounds=3).write(tmp_path / "<b>bold<img src=x>.jsonl")
    window.open_path(path)
    assert app_context.runner.wait_until_idle()
    for label in window.statusBar().findChildren(QLabel):
        assert label.textFormat() is Qt.TextFormat.PlainText or "<" not in label.text()
    assert window._file_label.textFormat() is Qt.TextFormat.PlainText


def test_dropping_files_and_folders_opens_their_sessions(
    window: MainWindow, app_context: AppContext, tmp_path: Path
) -> None:
    for name in ("one", "two", "agent-1"):
        generator.Session(seed=1, rounds=2).write(tmp_path / "folder" / f"{name}.jsonl")
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / "folder"))])
    window.dropEvent(
        QDropEvent(
            QPointF(5, 5), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        )
    )
    assert app_context.runner.wait_until_idle()
    assert [document.title for document in window.documents] == ["one.jsonl", "two.jsonl"]


def test_the_palette_runs_what_fits_the_typed_letters(window: MainWindow, app_context: AppContext) -> None:
    palette = Palette(app_context, window)
    palette.refresh("dark col")
    assert palette.list.count() >= 1
    assert palette.list.item(0).data(Qt.ItemDataRole.UserRole) == "view.theme_dark"
    palette.run_current()
    assert app_context.theme.dark
    app_context.actions.run("view.theme_light")
    palette.refresh("View: dark col")
    assert palette.list.item(0).data(Qt.ItemDataRole.UserRole) == "view.theme_dark"
    palette.refresh("zzzz")
    assert palette.matches("zzzz") == []
    assert palette.list.item(0).text() == "No command fits"
    palette.run_current()
    assert not app_context.theme.dark
    palette.deleteLater()


def test_the_palette_says_why_a_command_cannot_run(
    window: MainWindow, app_context: AppContext, sample_session: Path
) -> None:
    apply = "session.apply"

    def lines(typed: str) -> dict[str, str]:
        palette = Palette(app_context, window)
        palette.refresh(typed)
        items = [palette.list.item(row) for row in range(palette.list.count())]
        if items[0].data(Qt.ItemDataRole.UserRole) == apply:
            palette.run_current()
        palette.deleteLater()
        return {item.data(Qt.ItemDataRole.UserRole): item.text() for item in items}

    assert "Open a session first." in lines("apply the chosen strategy")[apply]
    window.open_path(sample_session)
    assert app_context.runner.wait_until_idle()
    assert "Open Compare first." in lines("apply the chosen strategy")[apply]
    window.show_view("compare")
    assert app_context.runner.wait_until_idle()
    workbench = app_context.current_document.findChild(Workbench)  # type: ignore[union-attr]
    assert isinstance(workbench, Workbench)
    idle = next(column for column in workbench.columns if column.plan is not None and not column.plan.applies)
    workbench.choose(idle)
    found = lines("apply the chosen strategy")
    assert idle.plan is not None
    assert idle.plan.reason in found[apply], "the reason stands there, and Enter does not run it"
    assert len(window.documents) == 1
    assert apply not in lines(""), "without typing only what can run is listed"


def test_the_key_of_a_dock_gives_it_the_focus_and_then_hides_it(window: MainWindow, app_context: AppContext) -> None:
    app_context.actions.run("file.open_sample")
    assert app_context.runner.wait_until_idle()
    window.activateWindow()
    dock = window.docks["findings"]
    window.show_view("tree")
    assert dock.isVisible()
    app_context.actions.run("view.show.findings")
    assert dock.isVisible()
    assert dock.isAncestorOf(window.focusWidget())
    app_context.actions.run("view.show.findings")
    assert not dock.isVisible()


def test_the_palette_lists_only_what_can_run(window: MainWindow, app_context: AppContext) -> None:
    palette = Palette(app_context, window)
    assert {match.action_id for match in palette.matches("")} == {
        action.id for action in app_context.actions if app_context.actions.enabled(action.id)
    }
    palette.deleteLater()


def test_matching_prefers_starts_of_words_over_scattered_letters() -> None:
    assert score("open", "Open folder") == 0
    assert score("fold", "Open folder") == 5
    scattered = score("ofr", "Open folder")
    assert scattered is not None
    assert scattered > 100
    assert score("xyz", "Open folder") is None


def test_help_shows_pages_and_the_keys_that_really_exist(window: MainWindow, app_context: AppContext) -> None:
    keys = keys_page(app_context)
    assert all(action.label in keys for action in app_context.actions if action.keys)
    help_window = HelpWindow.open(app_context, "keys")
    assert "Keyboard" in help_window.browser.toPlainText()
    for name in pages():
        help_window.show_page(name)
        assert help_window.browser.toPlainText().strip(), name
    assert HelpWindow.open(app_context, "keys") is help_window
    help_window.close()


def test_f1_opens_the_page_of_the_view_with_the_focus(
    window: MainWindow, app_context: AppContext, sample_session: Path
) -> None:
    assert page_here(app_context) == "index"
    window.open_path(sample_session)
    assert app_context.runner.wait_until_idle()
    window.show_view("tree")
    assert page_here(app_context) == "tree"
    window.show_view("findings")
    assert page_here(app_context) == "findings"
    assert {spec.help for spec in VIEWS if spec.help} <= set(pages())


def test_help_never_reads_a_file_outside_its_folder(
    window: MainWindow, app_context: AppContext, tmp_path: Path
) -> None:
    from PySide6.QtGui import QImage, QTextDocument

    secret = QImage(40, 30, QImage.Format.Format_RGB32)
    secret.fill(Qt.GlobalColor.red)
    secret.save(str(tmp_path / "secret.png"))
    browser = HelpWindow.open(app_context, "keys").browser
    kind = QTextDocument.ResourceType.ImageResource.value
    for name in (
        f"file://{tmp_path}/secret.png",
        f"{tmp_path}/secret.png",
        "../../pyproject.toml",
        "https://e.x/a.png",
    ):
        loaded = browser.loadResource(kind, QUrl(name))
        assert isinstance(loaded, QImage)
        assert (loaded.width(), loaded.height()) == (1, 1), name
    browser.window().close()


def test_a_view_that_cannot_be_made_is_told_and_the_window_goes_on(
    window: MainWindow, app_context: AppContext, qtbot: QtBot
) -> None:
    def broken(_context: AppContext, _document: Document) -> QWidget:
        raise RuntimeError("broken view")

    widget = document_page.make_view(ViewSpec("x", "X", "tree", "center", broken), app_context, Document(None))
    qtbot.addWidget(widget)
    assert isinstance(widget, QLabel)
    assert "broken view" in widget.text()
    assert app_context.errors.reports[-1].title == "Showing X"


def test_layout_and_sessions_come_back(qtbot: QtBot, tmp_path: Path, sample_session: Path) -> None:
    settings = Settings(tmp_path / "config")
    context = make_context(settings, "light")
    first = MainWindow(context)
    qtbot.addWidget(first)
    first.restore_layout()
    first.show()
    first.open_path(sample_session)
    assert context.runner.wait_until_idle()
    for dock in first.docks.values():
        dock.hide()
    first.close()
    again = make_context(Settings(tmp_path / "config"), "light")
    second = MainWindow(again)
    qtbot.addWidget(second)
    second.restore_layout()
    second.show()
    assert all(dock.isHidden() for dock in second.docks.values())
    assert again.actions.run("file.reopen_last")
    assert again.runner.wait_until_idle()
    assert [document.path for document in second.documents] == [sample_session]
    assert again.actions.run("view.reset_layout")
    assert all(dock.isVisible() == dock.spec.shown for dock in second.docks.values() if dock.spec.area == "right")
    second.close()


def test_a_closed_tab_leaves_nothing_behind(
    window: MainWindow, app_context: AppContext, sample_session: Path, qtbot: QtBot
) -> None:
    document = window.open_path(sample_session)
    assert app_context.runner.wait_until_idle()
    QApplication.processEvents()
    ghost = weakref.ref(document.session)  # type: ignore[type-var]
    assert app_context.actions.run("file.close")
    del document

    def gone() -> bool:
        # Work that was under way holds the session until it notices.
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
        app_context.runner.wait_until_idle()
        gc.collect()
        return ghost() is None

    qtbot.waitUntil(gone, timeout=10_000)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_switching_colours_with_a_session_open_repaints_everything(
    window: MainWindow, app_context: AppContext, sample_session: Path, mode: str
) -> None:
    window.open_path(sample_session)
    assert app_context.runner.wait_until_idle()
    app_context.actions.run(f"view.theme_{mode}")
    picture = window.grab().toImage()
    assert (
        picture.pixelColor(600, 300).lightness() < 128
        if mode == "dark"
        else picture.pixelColor(600, 300).lightness() > 128
    )
    app_context.actions.run("view.theme_light")


def test_docks_make_room_for_a_wide_view_and_come_back_as_they_were(
    window: MainWindow, app_context: AppContext, sample_session: Path
) -> None:
    window.open_path(sample_session)
    assert app_context.runner.wait_until_idle()
    window.docks["findings"].hide()
    before = {name: dock.isHidden() for name, dock in window.docks.items()}
    assert not before["detail"]
    window.show_view("compare")
    assert all(dock.isHidden() for dock in window.docks.values())
    window.show_view("tree")
    assert {name: dock.isHidden() for name, dock in window.docks.items()} == before
    assert app_context.actions.run("file.close")
    assert all(dock.isHidden() for dock in window.docks.values())
