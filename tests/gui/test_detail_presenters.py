"""Blocks and records to parts: nothing in the input is fatal, and each kind of content is shown as what it is."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from compaction.conversation import build_conversation
from compaction.transcript import transcript_from_bytes
from inspector.rendering import ansi, diff
from inspector.rendering.blocks import parts_of_block
from inspector.rendering.content import surroundings_of
from inspector.rendering.parts import (
    Checklist,
    Code,
    Diff,
    Fields,
    Heading,
    Markdown,
    Note,
    Picture,
    Prose,
    Terminal,
    source_text,
)
from inspector.rendering.pieces import Surroundings
from inspector.rendering.records import parts_of_record
from inspector.rendering.visible_text import HIDDEN_MARK, for_qt, hidden_controls, visible
from tests.support import corpus_files, needs_shared


def kinds(parts: list[Any]) -> list[type]:
    return [type(part) for part in parts]


def test_visible_text_keeps_its_length_and_hides_no_control_character() -> None:
    text = "a\x00b\x1b\t\n\r\u202e\u2066x\ud83d\u2028é日\x9b"
    shown = visible(text)
    assert len(shown) == len(text)
    assert shown == f"a\ufffdb\ufffd\t\n\ufffd{HIDDEN_MARK}{HIDDEN_MARK}x\ufffd\u21b5é日\ufffd"
    assert hidden_controls(text) == 2


def test_text_for_the_clipboard_has_no_lone_surrogate() -> None:
    assert for_qt("ok \ud83d!") == "ok \ufffd!"
    assert for_qt("\U0001f600") == "\U0001f600"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m plain", [("red", 1), (" plain", None)]),
        ("\x1b[1;91mx", [("x", 9)]),
        ("\x1b[38;5;200mx", [("x", 200)]),
        ("\x1b[38;2;1;2;300mx", [("x", (1, 2, 255))]),
        ("\x1b]0;title\x07after", [("after", None)]),
        ("\x1b[2J\x1b[10;5Hafter", [("after", None)]),
        ("\x1b(Bx\x1b", [("x", None)]),
        ("50%\r100%\ndone", [("100%", None), ("\n", None), ("done", None)]),
        ("a\r\nb", [("a", None), ("\n", None), ("b", None)]),
    ],
)
def test_terminal_colours_are_kept_and_other_escapes_dropped(text: str, expected: list[tuple[str, Any]]) -> None:
    assert [(span.text, span.style.foreground) for span in ansi.parse(text)] == expected


def test_unterminated_escapes_are_read_once() -> None:
    spans = ansi.parse("\x1b]" * 50_000 + "\x1b[" * 50_000)
    assert "".join(span.text for span in spans).count("\x1b") == 0


def test_a_recorded_patch_gives_the_rows_with_its_line_numbers() -> None:
    patch = [{"oldStart": 7, "newStart": 7, "lines": [" a", "-b", "+B", "+C", " d"]}, "odd", {"lines": None}]
    rows = diff.rows_of_patch(patch)
    assert [(row.sign, row.old_line, row.new_line, row.text) for row in rows] == [
        ("@", 0, 0, "line 7 → line 7"),
        (" ", 7, 7, "a"),
        ("-", 8, 0, "b"),
        ("+", 0, 8, "B"),
        ("+", 0, 9, "C"),
        (" ", 9, 10, "d"),
    ]


def test_rows_of_two_texts_rebuild_both_texts() -> None:
    before = "\n".join(f"line {n}" for n in range(40))
    after = before.replace("line 20", "LINE 20\nmore").replace("line 39\n", "")
    rows = diff.rows_of_texts(before, after, context=100)
    assert [row.text for row in rows if row.sign in " -"] == before.splitlines()
    assert [row.text for row in rows if row.sign in " +"] == after.splitlines()
    folded = diff.rows_of_texts(before, after)
    assert any(row.sign == "@" and "equal lines" in row.text for row in folded)
    assert diff.counts(folded) == (2, 1)


def test_texts_with_too_many_lines_are_not_aligned() -> None:
    rows = diff.rows_of_texts("a\n" * 3000, "b\n" * 3000)
    assert rows[0].sign == "@"
    assert diff.counts(rows) == (3000, 3000)


def block_parts(block: dict[str, Any], **around: Any) -> list[Any]:
    return parts_of_block(block, Surroundings(**around))


def test_bash_is_shown_as_code_with_its_description() -> None:
    parts = block_parts(
        {"type": "tool_use", "name": "Bash", "id": "t1", "input": {"command": "ls", "description": "d"}}
    )
    assert parts[0].detail == "t1"
    assert parts[1] == Note("d")
    assert parts[2] == Code("ls", language="bash")


def test_an_edit_is_shown_as_a_diff_with_the_recorded_line_numbers() -> None:
    given = {"file_path": "/x/a.py", "old_string": "a", "new_string": "b"}
    call = {"type": "tool_use", "name": "Edit", "id": "t", "input": given}
    shown = next(part for part in block_parts(call) if isinstance(part, Diff))
    assert [(row.sign, row.text) for row in shown.rows] == [("-", "a"), ("+", "b")]
    recorded = {"structuredPatch": [{"oldStart": 89, "newStart": 89, "lines": [" x", "-a", "+b"]}]}
    shown = next(part for part in block_parts(call, tool_use_result=recorded) if isinstance(part, Diff))
    assert [(row.sign, row.old_line, row.new_line) for row in shown.rows] == [("-", 90, 0), ("+", 0, 90)]


def test_multi_edit_shows_every_edit() -> None:
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}]
    parts = block_parts({"type": "tool_use", "name": "MultiEdit", "input": {"file_path": "f", "edits": edits}})
    shown = next(part for part in parts if isinstance(part, Diff))
    assert diff.counts(shown.rows) == (2, 2)


def test_a_todo_list_is_a_checklist() -> None:
    todos = [{"content": "one", "status": "completed"}, {"content": "two", "priority": "high"}]
    parts = block_parts({"type": "tool_use", "name": "TodoWrite", "input": {"todos": todos}})
    assert Checklist((("completed", "one", ""), ("pending", "two", "priority: high"))) in parts


def test_an_unknown_tool_is_shown_as_json() -> None:
    parts = block_parts({"type": "tool_use", "name": "mcp__x", "input": {"deep": {"a": [1]}}})
    assert isinstance(parts[1], Code)
    assert parts[1].language == "json"


def test_a_known_tool_with_odd_input_falls_back_to_json_with_a_note() -> None:
    parts = block_parts({"type": "tool_use", "name": "TodoWrite", "input": {"todos": "none"}})
    assert any(isinstance(part, Note) and "unexpected shape" in part.text for part in parts)
    assert isinstance(parts[-1], Code)


def test_an_error_result_carries_the_error_mark() -> None:
    parts = block_parts({"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": "boom"})
    assert "error" in parts[0].title
    assert parts[1] == Code("boom")


def test_a_result_list_shows_texts_and_images() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "!!"}}
    block = {"type": "tool_result", "content": [{"type": "text", "text": "\x1b[1mx"}, image, 5]}
    parts = block_parts(block)
    assert any(isinstance(part, Terminal) for part in parts)
    broken = next(part for part in parts if isinstance(part, Picture))
    assert "base64" in broken.problem


def test_a_read_result_moves_its_line_numbers_into_the_margin() -> None:
    around = {"tool_name": "Read", "tool_input": {"file_path": "/x/a.py"}}
    parts = block_parts({"type": "tool_result", "content": "    9→a = 1\n   10→b"}, **around)
    assert parts[1] == Code("a = 1\nb", file_name="/x/a.py", first_line=9)
    parts = block_parts({"type": "tool_result", "content": "    9→a\nnot numbered"}, **around)
    assert parts[1].text == "    9→a\nnot numbered"


def test_empty_signed_thinking_says_what_is_stored() -> None:
    parts = block_parts({"type": "thinking", "thinking": "", "signature": "s" * 1200})
    assert "1,200 characters" in parts[1].text


def test_user_text_is_not_laid_out_as_markdown_and_assistant_text_is() -> None:
    block = {"type": "text", "text": "# x"}
    assert Prose in kinds(block_parts(block, role="user"))
    assert Markdown in kinds(block_parts(block, role="assistant"))


def test_an_image_is_decoded_from_base64() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(b"abc").decode()}
    assert Picture(b"abc", "image/png") in block_parts({"type": "image", "source": source})
    outside = block_parts({"type": "image", "source": {"type": "url", "url": "https://example.org/x.png"}})
    assert any("not loaded" in part.text for part in outside if isinstance(part, Note))


ODD_RECORDS: list[dict[str, Any]] = [
    {},
    {"type": None},
    {"type": "user"},
    {"type": "user", "message": None},
    {"type": "user", "message": {"content": 5}},
    {"type": "user", "message": {"role": "user", "content": []}},
    {"type": "user", "message": {"role": "user", "content": ["text", None, 7, {}, {"type": 9}]}},
    {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "tool_use", "input": None}]}},
    {"type": "assistant", "message": {"content": [{"type": "image", "source": "x"}, {"type": "document"}]}},
    {"type": "system", "content": {"a": 1}},
    {"type": "system", "subtype": "api_error", "error": {"status": 529}},
    {"type": "attachment", "attachment": 3},
    {"type": "attachment", "attachment": {"type": "nested_memory", "content": {"content": "x"}}},
    {"type": "progress", "data": {"type": "agent_progress", "message": {"type": "user", "message": {"content": "x"}}}},
    {"type": "progress"},
    {"type": "summary", "summary": 5},
    {"type": "never-seen", "x": float("nan")},
]


@pytest.mark.parametrize("payload", ODD_RECORDS, ids=lambda payload: str(payload)[:40])
def test_no_record_is_fatal(payload: dict[str, Any]) -> None:
    parts = parts_of_record(payload)
    assert parts


def test_deep_nesting_is_shown_without_a_crash() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    parts = parts_of_block({"type": "strange", "value": value})
    assert any("nested too deeply" in part.text for part in parts if isinstance(part, Code))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("text", Code("text")),
        ({"content": "memory"}, Code("memory", file_name="a.py")),
        ({"type": "text", "file": {"content": "code"}}, Code("code", file_name="a.py")),
    ],
)
def test_the_text_of_an_attachment_is_shown(content: Any, expected: Code) -> None:
    attachment = {"type": "file", "filename": "a.py", "content": content}
    assert expected in parts_of_record({"type": "attachment", "attachment": attachment})


def test_nothing_of_an_attachment_is_left_out() -> None:
    attachment = {"type": "x", "content": [{"a": "deep"}], "prompt": [1], "count": 3}
    parts = parts_of_record({"type": "attachment", "attachment": attachment})
    text = "\n".join(source_text(part) for part in parts)
    for expected in ("deep", "prompt", "count: 3"):
        assert expected in text


def test_meta_and_error_records_say_so() -> None:
    payload = {"type": "assistant", "isApiErrorMessage": True, "message": {"role": "assistant", "content": "x"}}
    assert "not by the model" in parts_of_record(payload)[0].text  # type: ignore[union-attr]


def test_a_system_record_shows_its_text_and_its_other_fields() -> None:
    parts = parts_of_record({"type": "system", "subtype": "x", "content": "hello", "hookCount": 3})
    assert isinstance(parts[0], Heading)
    assert Code("hello") in parts
    assert Fields((("hookCount", "3"),)) in parts


def leaves(value: Any) -> Iterator[str]:
    """Every text inside a decoded value."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name not in ("signature", "data", "media_type", "type", "id", "tool_use_id", "name"):
                yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, str) and value:
        yield value


@needs_shared
def test_no_text_of_a_block_is_left_out_in_the_corpus() -> None:
    """Every text of every block (a sample of each tool and type) is in the parts, whole, apart from what changed form:
    escapes of a terminal, line numbers of Read, JSON escapes."""
    seen: Counter[str] = Counter()
    for path in corpus_files():
        conversation = build_conversation(transcript_from_bytes(path.read_bytes()))
        transcript = conversation.transcript
        for row in range(len(transcript.block_record)):
            key = f"{transcript.block_type[row]} {transcript.block_tool(row)} {conversation.pair[row] >= 0}"
            seen[key] += 1
            if seen[key] > 6:
                continue
            block = transcript.block(row)
            around = surroundings_of(conversation, row)
            text = "\n".join(source_text(part) for part in parts_of_block(block, around))
            for leaf in leaves(block):
                shown = leaf in text or json.dumps(leaf, ensure_ascii=False)[1:-1] in text
                lines = [line.lstrip(" 0123456789→\t") for line in leaf.split("\n")]
                numbered = around.tool_name == "Read" and all(line in text for line in lines)
                # Equal lines in the middle of an edit are folded, and their number is said.
                given = json.dumps(block.get("input"), ensure_ascii=False)
                edited = all(
                    line in text or given.count(json.dumps(line, ensure_ascii=False)[1:-1]) > 1
                    for line in leaf.splitlines()
                )
                assert shown or numbered or edited, f"{path.name} {key}: {leaf[:80]!r}"
    assert len(seen) > 40
