"""Content blocks to parts: one presenter for each type.

A presenter that fails on odd content is replaced by the block's JSON with a note that says so: nothing in the input
is fatal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from inspector.rendering import ansi, diff
from inspector.rendering.parts import Code, Diff, Fields, Heading, Markdown, Note, Part, Prose, Tone
from inspector.rendering.pieces import (
    NOTHING,
    ODD_SHAPE,
    Json,
    Surroundings,
    json_code,
    numbered_code,
    output,
    picture,
    rest,
)
from inspector.rendering.tool_inputs import TOOL_PRESENTERS
from inspector.rendering.visible_text import bytes_text

SHELL_TOOLS = frozenset({"Bash", "BashOutput", "PowerShell", "KillShell", "TaskOutput"})


def parts_of_block(block: object, around: Surroundings = NOTHING) -> list[Part]:
    """The parts of one content block; content of another shape than expected is shown as JSON with a note."""
    if not isinstance(block, Mapping):
        return [Heading("not an object", tone=Tone.WARNING), json_code(block)]
    presenter = BLOCK_PRESENTERS.get(str(block.get("type", "")), _other_block)
    try:
        return list(presenter(block, around))
    except ODD_SHAPE as error:
        note = Note(f"Shown as JSON: the content has an unexpected shape ({type(error).__name__}).", Tone.WARNING)
        return [Heading(str(block.get("type") or "block"), tone=Tone.WARNING), note, json_code(block)]


def _text_block(block: Json, around: Surroundings) -> Iterator[Part]:
    text = str(block.get("text", ""))
    if around.role == "user":
        yield Heading("user text", tone=Tone.USER)
        yield Prose(text)
    elif around.role == "assistant":
        yield Heading("assistant text", tone=Tone.ASSISTANT)
        yield Markdown(text)
    else:
        yield Heading("text", tone=Tone.NEUTRAL)
        yield Markdown(text)
    if not text:
        yield Note("The text is empty.", Tone.WARNING)


def _thinking_block(block: Json, _around: Surroundings) -> Iterator[Part]:
    text, signature = str(block.get("thinking", "")), str(block.get("signature") or "")
    yield Heading("thinking", "signed" if signature else "not signed", Tone.THINKING)
    if text:
        yield Markdown(text, Tone.THINKING)
    elif signature:
        yield Note(f"The thinking text is not stored; its signature of {len(signature):,} characters is.")
    else:
        yield Note("The thinking is empty.")


def _redacted_block(block: Json, _around: Surroundings) -> Iterator[Part]:
    yield Heading("redacted thinking", tone=Tone.THINKING)
    yield Note(f"Encrypted by the API: {len(str(block.get('data') or '')):,} characters.")


def _tool_use_block(block: Json, around: Surroundings) -> Iterator[Part]:
    name = str(block.get("name") or "")
    yield Heading(f"{block.get('type', 'tool_use')} {name}".strip(), str(block.get("id") or ""), Tone.TOOL)
    given = block.get("input")
    if not isinstance(given, Mapping):
        yield Note("The input is not an object.", Tone.WARNING)
        yield json_code(given)
        return
    presenter = TOOL_PRESENTERS.get(name)
    if presenter is None:
        if not given:
            yield Note("The input is empty.")
        yield from rest(given, set())
        return
    yield from presenter(given, around)


def _tool_result_block(block: Json, around: Surroundings) -> Iterator[Part]:
    error = bool(block.get("is_error"))
    title = f"tool_result {around.tool_name}".strip() + (" — error" if error else "")
    yield Heading(title, str(block.get("tool_use_id") or ""), Tone.ERROR if error else Tone.RESULT)
    content = block.get("content")
    if isinstance(content, str):
        yield from _result_text(content, around, error)
    elif isinstance(content, list):
        if not content:
            yield Note("The result's content is an empty list.")
        for item in content:
            if isinstance(item, Mapping) and item.get("type") == "text":
                yield from _result_text(str(item.get("text", "")), around, error)
            else:
                yield from parts_of_block(item, around)
    else:
        yield Note("The result has no content.")
    yield from _client_copy(around)


def _result_text(text: str, around: Surroundings, error: bool) -> Iterator[Part]:
    if not text:
        yield Note("The result is an empty text.")
    elif error or around.tool_name in SHELL_TOOLS or ansi.has_escapes(text):
        yield output(text)
    elif around.tool_name in ("Read", "NotebookRead"):
        path = str((around.tool_input or {}).get("file_path") or "")
        yield numbered_code(text, path)
    elif around.tool_name in ("Task", "Agent", "WebFetch", "WebSearch"):
        yield Markdown(text)
    else:
        yield Code(text)


def _client_copy(around: Surroundings) -> Iterator[Part]:
    """The edit as the client recorded it: it says more than the result text, and was never sent."""
    recorded = around.tool_use_result
    if isinstance(recorded, Mapping) and recorded.get("structuredPatch"):
        rows = diff.rows_of_patch(recorded["structuredPatch"])
        if rows:
            yield Note("The edit as the client recorded it (toolUseResult; never sent to the model):")
            yield Diff(tuple(rows), str(recorded.get("filePath") or ""))


def _image_block(block: Json, _around: Surroundings) -> Iterator[Part]:
    yield Heading("image", tone=Tone.NEUTRAL)
    source = block.get("source")
    if not isinstance(source, Mapping):
        yield json_code(block)
    elif source.get("type") == "base64":
        yield picture(str(source.get("data") or ""), str(source.get("media_type") or ""))
    else:
        yield Note("The image lies outside the transcript and is not loaded.")
        yield Fields(tuple((str(name), str(value)) for name, value in source.items()))


def _document_block(block: Json, _around: Surroundings) -> Iterator[Part]:
    source = block.get("source")
    yield Heading("document", str(block.get("title") or ""))
    if not isinstance(source, Mapping):
        yield json_code(block)
    elif source.get("type") == "text":
        yield Prose(str(source.get("data") or ""))
    elif source.get("type") == "base64":
        size = len(str(source.get("data") or "")) * 3 // 4
        yield Note(f"{source.get('media_type') or 'unknown type'}, {bytes_text(size)}; not shown.")
    else:
        yield json_code(source)


def _reference_block(block: Json, _around: Surroundings) -> Iterator[Part]:
    yield Heading("tool_reference", str(block.get("tool_name") or ""), Tone.RESULT)


def _other_block(block: Json, _around: Surroundings) -> Iterator[Part]:
    tone = Tone.RESULT if str(block.get("type", "")).endswith("_tool_result") else Tone.NEUTRAL
    yield Heading(str(block.get("type") or "block without a type"), str(block.get("tool_use_id") or ""), tone)
    yield json_code(block)


BlockPresenter = Callable[[Json, Surroundings], Iterator[Part]]

BLOCK_PRESENTERS: dict[str, BlockPresenter] = {
    "text": _text_block,
    "thinking": _thinking_block,
    "redacted_thinking": _redacted_block,
    "tool_use": _tool_use_block,
    "server_tool_use": _tool_use_block,
    "mcp_tool_use": _tool_use_block,
    "tool_result": _tool_result_block,
    "mcp_tool_result": _tool_result_block,
    "image": _image_block,
    "document": _document_block,
    "tool_reference": _reference_block,
}
