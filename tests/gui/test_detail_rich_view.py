"""The rich view with hostile content: nothing is read, loaded or followed; long content stays bounded (qt.md 2d)."""

from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QBuffer, QIODevice, QUrl
from PySide6.QtGui import QColor, QImage, QTextCursor
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot

from inspector.rendering import images, writer
from inspector.rendering.blocks import parts_of_block
from inspector.rendering.highlight import lexer_for
from inspector.rendering.parts import Code, Diff, Markdown, Part, Picture, Prose, Terminal, source_text
from inspector.rendering.records import parts_of_record
from inspector.views.detail import links, rich_view
from inspector.views.detail.rich_view import RichView

SECRET = QColor(12, 200, 99)


@pytest.fixture
def view(qtbot: QtBot) -> RichView:
    widget = RichView()
    qtbot.addWidget(widget)
    widget.resize(600, 500)
    return widget


def png(colour: QColor, width: int = 40, height: int = 30) -> bytes:
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(colour)
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")
    return bytes(buffer.data().data())


def points_of(image: QImage, colour: QColor) -> int:
    return sum(
        image.pixelColor(x, y).rgb() == colour.rgb()
        for x in range(0, image.width(), 3)
        for y in range(0, image.height(), 3)
    )


def shown(view: RichView, parts: list[Part]) -> QImage:
    view.set_parts(parts)
    view.show()
    return view.grab().toImage()


@pytest.mark.parametrize("form", ["![x]({0})", "![x](file://{0})", '<img src="file://{0}">', '<img src="{0}">'])
@pytest.mark.parametrize("role", ["assistant", "user"])
def test_a_local_image_named_by_the_session_is_not_shown(view: RichView, tmp_path: Path, form: str, role: str) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(png(SECRET))
    message = {"role": role, "content": form.format(secret)}
    picture = shown(view, parts_of_record({"type": role, "message": message}))
    assert points_of(picture, SECRET) == 0
    assert str(secret) in view.toPlainText().replace("\n", "")


def test_an_image_of_the_session_itself_is_shown(view: RichView) -> None:
    picture = shown(view, [Picture(png(SECRET), "image/png")])
    assert points_of(picture, SECRET) > 50


def test_any_resource_name_gives_the_placeholder(view: RichView, tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(png(SECRET))
    view.set_parts([Prose("x")])
    for name in (QUrl.fromLocalFile(str(secret)), QUrl(str(secret)), QUrl("https://example.org/x.png"), QUrl("")):
        image = view.loadResource(2, name)
        assert isinstance(image, QImage)
        assert (image.width(), image.height()) == (1, 1)


def test_html_of_the_session_is_text(view: RichView) -> None:
    view.set_parts([Markdown("a <b>bold</b> <script>alert(1)</script> <table><tr><td>x"), Prose("<h1>no</h1>")])
    text = view.toPlainText()
    for tag in ("<b>bold</b>", "<script>alert(1)</script>", "<table><tr><td>x", "<h1>no</h1>"):
        assert tag in text


@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        ("https://example.org/a?b=c", True),
        ("http://example.org", True),
        ("javascript:alert(1)", False),
        ("file:///etc/passwd", False),
        ("mailto:a@example.org", False),
        ("https://user:word@example.org/", False),
        ("//host/share", False),
        ("/etc/passwd", False),
        ("https:", False),
        ("data:text/html,x", False),
        ("", False),
    ],
)
def test_only_web_addresses_may_be_opened(target: str, allowed: bool) -> None:
    assert links.may_open(target) is allowed


def click_link(
    view: RichView, monkeypatch: pytest.MonkeyPatch, target: str, button: str
) -> tuple[list[str], list[str]]:
    """Follow a link and press a button of the confirmation; the texts shown and the addresses opened."""
    texts: list[str] = []
    opened: list[str] = []

    def press(box: QMessageBox) -> int:
        texts.append(box.informativeText())
        found = next((b for b in box.buttons() if button in b.text()), None)
        if found is not None:
            found.click()
        return 0

    monkeypatch.setattr(QMessageBox, "exec", press)
    monkeypatch.setattr(links.QDesktopServices, "openUrl", lambda url: opened.append(url.toString()) or True)
    view.set_parts([Markdown(f"[click]({target})")])
    view.anchorClicked.emit(QUrl(target))
    return texts, opened


def test_a_link_opens_only_after_its_exact_target_was_confirmed(
    view: RichView, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, opened = click_link(view, monkeypatch, "https://example.org/a", "Open in browser")
    assert texts == ["https://example.org/a"]
    assert opened == ["https://example.org/a"]


def test_a_refused_link_is_not_opened(view: RichView, monkeypatch: pytest.MonkeyPatch) -> None:
    assert click_link(view, monkeypatch, "https://example.org/a", "Cancel")[1] == []


def test_a_script_link_can_not_be_opened(view: RichView, monkeypatch: pytest.MonkeyPatch) -> None:
    texts, opened = click_link(view, monkeypatch, "javascript:alert(1)", "Open in browser")
    assert texts == ["javascript:alert(1)"]
    assert opened == []


def test_a_host_that_looks_like_another_is_shown_in_ascii() -> None:
    assert "xn--" in links.exact_target("https://exаmple.org/")


def test_a_link_of_the_session_can_not_pose_as_show_all(view: RichView, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rich_view, "confirm_and_open", lambda target, parent: False)
    emitted: list[object] = []
    view.show_all.connect(emitted.append)
    view.set_parts([Code("x" * (writer.PART_LIMIT + 10))])
    view.anchorClicked.emit(QUrl("fold-0000000000000000:0"))
    assert emitted == []


def test_a_10_mb_block_is_folded_and_says_so(view: RichView) -> None:
    text = "x" * (10 * 1024 * 1024)
    view.set_parts(parts_of_block({"type": "tool_result", "tool_use_id": "t", "content": text}))
    assert "Showing the first 256 KB of 10.0 MB as plain text. Show all" in view.toPlainText()
    assert view.document().characterCount() < writer.PART_LIMIT * 1.1
    assert [whole for _, whole in view.folded] == [text]
    block = view.document().begin()
    while block.isValid():
        assert block.length() <= writer.LINE_LIMIT + 1
        block = block.next()


def test_scripts_beyond_ascii_are_folded_earlier(view: RichView) -> None:
    view.set_parts([Code("日" * (writer.PART_LIMIT // 2))])
    assert len(view.folded) == 1
    assert view.document().characterCount() < writer.PART_LIMIT // 2


def test_show_all_gives_the_whole_text(view: RichView) -> None:
    text = "y" * (writer.PART_LIMIT + 10)
    view.set_parts([Code(text)])
    emitted: list[tuple[str, str]] = []
    view.show_all.connect(emitted.append)
    cursor = view.document().find("Show all")
    view.anchorClicked.emit(QUrl(cursor.charFormat().anchorHref()))
    assert emitted == [("Code", text)]


def test_many_large_parts_stay_bounded_together(view: RichView) -> None:
    view.set_parts([Code("z" * 200_000) for _ in range(20)])
    assert view.document().characterCount() < writer.DOCUMENT_LIMIT * 1.1
    assert len(view.folded) >= 17


@pytest.mark.parametrize(
    "text",
    ["a" * 200_000, "| a |\n" * 5000, "[" * 20_000, "*" * 20_000, "> " * 10_000 + "x", "word " * 40_000],
    ids=["unbroken", "table rows", "brackets", "stars", "quotes", "long"],
)
def test_markdown_that_would_take_long_is_shown_plain_or_bounded(view: RichView, text: str) -> None:
    view.set_parts([Markdown(text)])
    assert view.document().blockCount() < 20_000
    heavy = len(text) > writer.MARKDOWN_LIMIT or len(text.split(maxsplit=1)[0]) > 2 * writer.LINE_LIMIT
    assert ("Shown as plain text" in view.toPlainText()) is (heavy or text.startswith("|"))


def test_control_and_direction_characters_are_visible(view: RichView) -> None:
    view.set_parts([Code("nul \x00 rtl \u202e esc \x1b end \ud800")])
    text = view.toPlainText()
    assert "\u202e" not in text
    assert "nul \ufffd rtl \u21c4 esc \ufffd end \ufffd" in text
    assert "1 character that changes the direction of text" in text


def test_a_fenced_block_is_coloured_by_its_language(view: RichView) -> None:
    view.set_parts([Markdown("text\n\n```python\ndef f():\n    return 1\n```\n")])
    view.finish_colours()
    block = view.document().find("def f").block()
    colours = {span.format.foreground().color().name() for span in block.layout().formats()}
    assert len(colours) >= 2


@pytest.mark.parametrize(
    ("language", "file_name", "expected"),
    [
        ("python", "", "Python"),
        ("JSON", "", "JSON"),
        ("no-such-language", "a.py", ""),
        ("", "/x/a.py", "Python"),
        ("", "C:\\x\\Makefile", "Makefile"),
        ("", "b.h", "C"),
        ("", "b.ts", "TypeScript"),
        ("", "b.rs", "Rust"),
        ("", "noending", ""),
        ("", "", ""),
    ],
)
def test_the_language_follows_its_name_or_the_file_name(language: str, file_name: str, expected: str) -> None:
    lexer = lexer_for(language, file_name)
    assert (lexer.name if lexer is not None else "") == expected


def test_choosing_a_language_imports_no_plug_in() -> None:
    """Other packages register lexers whose import takes a quarter of a second on the GUI thread."""
    code = "from inspector.rendering.highlight import lexer_for as f; f('', 'a.py'); f('x', ''); import sys; "
    code += "print([name for name in sys.modules if name.startswith(('mako', 'IPython'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_table_after_code_has_a_bold_header_without_empty_lines(view: RichView) -> None:
    view.set_parts([Markdown("```\nx\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")])
    document = view.document()
    for cell in ("a", "b"):
        cursor = document.find(cell)
        assert cursor.charFormat().fontWeight() == 700
        table = cursor.currentTable()
        assert table is not None
        inside = table.cellAt(cursor)
        assert inside.firstCursorPosition().block() == inside.lastCursorPosition().block()


def test_code_of_an_unknown_language_stays_plain(view: RichView) -> None:
    view.set_parts([Code("def f(): pass", language="no-such-language")])
    view.finish_colours()
    assert view.document().begin().layout().formats() == []


def test_long_code_is_not_highlighted(view: RichView) -> None:
    view.set_parts([Code("def f(): pass\n" * 9000, language="python")])
    view.finish_colours()
    assert view.document().begin().layout().formats() == []


def test_terminal_colours_reach_the_document(view: RichView) -> None:
    from inspector.rendering import ansi

    text = "\x1b[31mred\x1b[0m plain"
    view.set_parts([Terminal(text, tuple(ansi.parse(text)))])
    assert view.toPlainText() == "red plain"
    cursor = view.document().find("red")
    other = view.document().find("plain")
    assert cursor.charFormat().foreground() != other.charFormat().foreground()


def test_a_diff_shows_signs_beside_its_colours(view: RichView) -> None:
    parts = parts_of_block(
        {"type": "tool_use", "name": "Edit", "input": {"file_path": "a", "old_string": "x\ny", "new_string": "x\nz"}}
    )
    view.set_parts(parts)
    text = view.toPlainText()
    assert "− y" in text
    assert "+ z" in text
    assert any(isinstance(part, Diff) for part in parts)


def test_images_that_can_not_be_shown_say_why(view: RichView) -> None:
    vector = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><image href="file:///etc/x"/></svg>'
    for data in (b"not an image", vector, png(SECRET)[:60]):
        view.set_parts([Picture(data, "image/png")])
        assert "▲" in view.toPlainText()


def test_a_huge_image_is_not_decoded(view: RichView) -> None:
    header = bytearray(png(SECRET))
    header[16:24] = (60_000).to_bytes(4, "big") * 2
    view.set_parts([Picture(bytes(header), "image/png")])
    assert "▲" in view.toPlainText()


def test_a_wide_image_is_shown_scaled_down(view: RichView) -> None:
    view.set_parts([Picture(png(SECRET, 4000, 10), "image/png")])
    cursor = QTextCursor(view.document())
    cursor.setPosition(1)
    assert cursor.charFormat().toImageFormat().width() <= images.PICTURE_SHOWN


def test_copying_gives_plain_text_only(view: RichView) -> None:
    view.set_parts([Markdown("[a](https://example.org) **b**")])
    view.selectAll()
    data = view.createMimeDataFromSelection()
    assert data.text() == "a b"
    assert not data.hasHtml()


def test_find_wraps_around(view: RichView) -> None:
    view.set_parts([Prose("one two one")])
    assert view.find_text("two")
    assert view.find_text("one")
    assert view.find_text("one")
    assert view.find_text("one", backward=True)
    assert not view.find_text("three")


def test_source_text_of_every_part_is_its_whole_text() -> None:
    data = base64.b64encode(b"x").decode()
    parts = parts_of_record(
        {
            "type": "assistant",
            "message": {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "T"},
                    {"type": "tool_use", "name": "TodoWrite", "input": {"todos": [{"content": "c", "status": "s"}]}},
                    {"type": "tool_use", "name": "Edit", "input": {"old_string": "o", "new_string": "n"}},
                    {"type": "image", "source": {"type": "base64", "data": data}},
                ],
            },
        }
    )
    text = "\n".join(source_text(part) for part in parts)
    for expected in ("T", "[s] c", "-o", "+n"):
        assert expected in text
