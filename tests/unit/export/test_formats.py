"""Export formats: what they hold, and that nothing in a session can make them load or run anything."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from compaction.conversation import Session, build_conversation, open_session
from compaction.errors import NothingWritten, UsageError
from compaction.export.formats import FORMATS, ExportOptions
from compaction.export.formats.html import html_page
from compaction.export.formats.markdown import fence, inline, markdown, prose
from compaction.export.journal import Journal
from compaction.request.assemble import assemble, default_client
from compaction.transcript import transcript_from_bytes
from tests.generator.builder import Result, SessionBuilder, Tool
from tests.support import corpus_files, needs_shared

EVIL = (
    '<script>alert(1)</script><img src="http://evil.example/x.png" onerror=x> '
    "![p](http://evil.example/y.png) ```` \ud83d"
)
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def _evil_session() -> Session:
    builder = SessionBuilder("2.1.39", model="claude-opus-4-6")
    builder.prompt(EVIL)
    builder.assistant(
        EVIL, thinking=EVIL, tools=[Tool("Bash", {"command": EVIL})], results=[Result(EVIL, is_error=True)]
    )
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    bad = {
        "type": "image",
        "source": {"type": "base64", "media_type": 'image/svg+xml" onload="x', "data": '"><script>'},
    }
    builder.prompt([{"type": "text", "text": "see"}, image, bad])
    builder.compact(EVIL)
    builder.prompt("more")
    builder.assistant("done")
    return Session(build_conversation(transcript_from_bytes(builder.to_bytes(), EVIL.replace("/", "_"))))


class _Page(HTMLParser):
    """Collects tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs


def test_html_runs_nothing_loads_nothing_and_escapes_everything() -> None:
    text = "".join(html_page(_evil_session()))
    page = _Page()
    page.feed(text)
    assert not page.tags & {"script", "iframe", "object", "embed", "link", "form", "base", "a"}
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    sources = [value for name, value in page.attributes if name in ("src", "href", "srcset")]
    assert sources == [f"data:image/png;base64,{PNG}"]
    assert "default-src 'none'" in text
    assert "&lt;script&gt;alert(1)" in text
    assert "url(" not in text
    assert "<svg" in text


def test_html_shows_every_message_with_its_line_and_compactions() -> None:
    session = _evil_session()
    text = "".join(html_page(session))
    assert "Conversation compacted (auto" in text
    assert text.count("<article") == 7
    for record in range(len(session.transcript)):
        if session.transcript.type_name(record) == "user":
            assert f"line {session.transcript.line[record]}" in text


def test_markdown_holds_no_html_and_no_image_that_a_viewer_would_fetch() -> None:
    text = "".join(markdown(_evil_session()))
    outside = re.sub(r"^(`{3,})[^\n]*\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert "<script" not in outside
    assert "![" not in outside.replace("!\\[", "")
    assert "Bash result" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a <b> & c", "a &lt;b> &amp; c"),
        ("code `<b>` and <i>", "code `<b>` and &lt;i>"),
        ("``a ` <b>`` <c>", "``a ` <b>`` &lt;c>"),
        ("```js\nif (a < b)\n```\n<p>", "```js\nif (a < b)\n```\n&lt;p>"),
        ("```\nopen <x>", "```\nopen <x>\n```"),
        ("~~~\n```\n~~~\n![x](http://y)", "~~~\n```\n~~~\n!\\[x](http://y)"),
    ],
)
def test_markdown_prose_keeps_code_and_escapes_the_rest(text: str, expected: str) -> None:
    assert prose(text) == expected


def test_markdown_fences_are_longer_than_what_they_hold() -> None:
    assert fence("a ```` b").startswith("`````\n")
    assert inline("# *a*\n[x](y)") == "\\# \\*a\\* \\[x\\](y)"


def test_messages_is_the_next_request_and_opens_as_one(tmp_path: Path) -> None:
    session = _evil_session()
    journal = Journal(tmp_path / "journal")
    written = FORMATS["messages"].write(session, tmp_path / "out.json", ExportOptions(journal=journal))
    request = assemble(session.conversation, default_client(session.conversation))
    body = json.loads(written.path.read_bytes())
    assert body["messages"] == [{"role": m.role, "content": m.content} for m in request.messages]
    again = open_session(written.path)
    assert again.transcript.format_name == "messages-api"
    assert len(again.transcript) == len(request.messages)


@pytest.mark.parametrize("name", list(FORMATS))
def test_every_format_writes_a_part_up_to_a_round_and_refuses_an_unknown_one(name: str, tmp_path: Path) -> None:
    session = _evil_session()
    journal = Journal(tmp_path / "journal")
    whole = FORMATS[name].write(session, tmp_path / "whole", ExportOptions(journal=journal))
    part = FORMATS[name].write(session, tmp_path / "part", ExportOptions(at=1, journal=journal))
    assert part.size < whole.size or name == "messages"
    with pytest.raises(UsageError, match="no API round 99"):
        FORMATS[name].write(session, tmp_path / "none", ExportOptions(at=99, journal=journal))
    with pytest.raises(NothingWritten, match="exists"):
        FORMATS[name].write(session, tmp_path / "whole", ExportOptions(journal=journal))
    assert [e.lineage["format"] for e in journal.entries() if e.state == "done"] == [name, name]


@needs_shared
@pytest.mark.parametrize("path", corpus_files()[::9], ids=lambda p: p.stem)
def test_jsonl_export_is_byte_identical_and_every_format_takes_every_session(path: Path, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    session = open_session(path)
    for name, chosen in FORMATS.items():
        written = chosen.write(session, tmp_path / name, ExportOptions(journal=journal))
        if name == "jsonl":
            assert written.path.read_bytes() == path.read_bytes()
        assert written.size > 0


@pytest.mark.parametrize("data", [b"", b"{", b"[1]\n", b'{"type":"user"}\n', b"\x00\x00\n"])
@pytest.mark.parametrize("name", list(FORMATS))
def test_odd_inputs_are_exported_without_an_error(name: str, data: bytes, tmp_path: Path) -> None:
    session = Session(build_conversation(transcript_from_bytes(data)))
    written = FORMATS[name].write(session, tmp_path / "out", ExportOptions(journal=Journal(tmp_path / "journal")))
    assert written.path.exists()
