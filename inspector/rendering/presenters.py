"""Blocks and records to parts: one presenter for each kind of content, chosen by type and tool name.

A presenter that fails on odd content is replaced by the block's JSON with a note that says so: nothing in the input
is fatal. Field names: transcript-format.md 4 and 9.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from inspector.rendering import ansi, diff
from inspector.rendering.parts import (
    Checklist,
    Code,
    Diff,
    Fields,
    Heading,
    Markdown,
    Note,
    Part,
    Picture,
    Prose,
    Terminal,
    Tone,
)
from inspector.rendering.visible_text import bytes_text

Json = Mapping[str, Any]

IMAGE_LIMIT = 32 * 1024 * 1024
"""Most base64 characters of an image that is decoded for display."""

PLAIN_ABOVE = 256 * 1024
"""Longer texts are shown as they are, without colours or line numbers of their own: the rich view folds them."""

SHELL_TOOLS = frozenset({"Bash", "BashOutput", "PowerShell", "KillShell", "TaskOutput"})


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a block alone does not say.

    Attributes:
        role: role of the message the block lies in, "" when unknown.
        tool_name: name of the tool a result belongs to, "" when its call is unknown.
        tool_input: the input of that call, {} when unknown.
        tool_use_result: the client's own copy of the result (`toolUseResult`; never sent), None when absent.
    """

    role: str = ""
    tool_name: str = ""
    tool_input: Json | None = None
    tool_use_result: Any = None


NOTHING = Surroundings()

_ODD_SHAPE = (TypeError, ValueError, KeyError, AttributeError, IndexError, RecursionError)


def parts_of_block(block: object, around: Surroundings = NOTHING) -> list[Part]:
    """The parts of one content block; content of another shape than expected is shown as JSON with a note."""
    if not isinstance(block, Mapping):
        return [Heading("not an object", tone=Tone.WARNING), json_code(block)]
    presenter = BLOCK_PRESENTERS.get(str(block.get("type", "")), _other_block)
    try:
        return list(presenter(block, around))
    except _ODD_SHAPE as error:
        note = Note(f"Shown as JSON: the content has an unexpected shape ({type(error).__name__}).", Tone.WARNING)
        return [Heading(str(block.get("type") or "block"), tone=Tone.WARNING), note, json_code(block)]


def parts_of_record(payload: Json, around: Callable[[int], Surroundings] | None = None) -> list[Part]:
    """The parts of a whole record: its blocks, or what a bookkeeping record holds.

    Args:
        payload: the decoded record.
        around: gives the surroundings of the block at a position of `message.content`.
    """
    message = payload.get("message")
    if isinstance(message, Mapping) and payload.get("type") in ("user", "assistant", None):
        return _message_parts(payload, message, around)
    presenter = RECORD_PRESENTERS.get(str(payload.get("type", "")), _other_record)
    try:
        return list(presenter(payload))
    except _ODD_SHAPE as error:
        return [Note(f"Shown as JSON: unexpected shape ({type(error).__name__}).", Tone.WARNING), json_code(payload)]


def json_code(value: object) -> Code:
    """A value as indented JSON."""
    try:
        return Code(json.dumps(value, ensure_ascii=False, indent=2, default=str), language="json")
    except RecursionError:
        return Code("(nested too deeply to be shown as text; see the JSON section)")


# Records ------------------------------------------------------------------------------------------------------


def _message_parts(payload: Json, message: Json, around: Callable[[int], Surroundings] | None) -> list[Part]:
    parts: list[Part] = list(_record_notes(payload))
    role = str(message.get("role") or payload.get("type") or "")
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return [*parts, Note("The message has no content.", Tone.WARNING), json_code(message)]
    if not content:
        parts.append(Note("The message's content is an empty list."))
    summary = bool(payload.get("isCompactSummary"))
    for position, block in enumerate(content):
        surroundings = around(position) if around else Surroundings(role, tool_use_result=payload.get("toolUseResult"))
        if summary and isinstance(block, Mapping) and block.get("type") == "text":
            parts += [Heading("compact summary", tone=Tone.SYSTEM), Markdown(str(block.get("text", "")))]
        else:
            parts += parts_of_block(block, surroundings)
    return parts


def _record_notes(payload: Json) -> Iterator[Part]:
    """Facts about the record that change how its content counts."""
    if payload.get("isApiErrorMessage"):
        error = payload.get("error") or payload.get("apiErrorStatus") or ""
        yield Note(f"API error written by the client, not by the model. {error}".strip(), Tone.ERROR)
    if payload.get("isMeta"):
        yield Note("Meta: written by the client, not typed by a person.")
    if payload.get("isVisibleInTranscriptOnly"):
        yield Note("Visible in the transcript only.")
    if payload.get("isSidechain"):
        yield Note("Sidechain: part of a subagent's conversation.")


def _system_record(payload: Json) -> Iterator[Part]:
    subtype = str(payload.get("subtype") or "")
    error = subtype == "api_error" or payload.get("level") == "error"
    yield Heading(f"system {subtype}".strip(), tone=Tone.ERROR if error else Tone.SYSTEM)
    content = payload.get("content")
    if isinstance(content, str) and content:
        yield output(content)
    elif content is not None:
        yield json_code(content)
    known = {"type", "subtype", "content", "uuid", "parentUuid", "sessionId", "version", "cwd", "userType", "timestamp"}
    yield from _rest(payload, known | {"isSidechain", "gitBranch", "slug", "level", "isMeta", "entrypoint"})


def _summary_record(payload: Json) -> Iterator[Part]:
    yield Heading("summary (a title line, not a compaction)", tone=Tone.SYSTEM)
    yield Prose(str(payload.get("summary", "")))
    yield Fields((("leafUuid", str(payload.get("leafUuid", ""))),))


def _attachment_record(payload: Json) -> Iterator[Part]:
    attachment = payload.get("attachment")
    if not isinstance(attachment, Mapping):
        yield from _other_record(payload)
        return
    yield Heading(f"attachment {attachment.get('type', '')}", tone=Tone.SYSTEM)
    shown = {"type"}
    content = attachment.get("content")
    name = str(attachment.get("path") or attachment.get("filename") or "")
    if isinstance(content, str):
        yield output(content)
        shown.add("content")
    elif isinstance(text := _inner_text(content), str):
        yield Code(text, file_name=name)
        shown.add("content")
    if isinstance(attachment.get("prompt"), str):
        yield Prose(str(attachment["prompt"]))
        shown.add("prompt")
    yield from _rest(attachment, shown)


def _inner_text(content: object) -> object:
    """The text of a file that an attachment holds: `content.content` or `content.file.content`."""
    if not isinstance(content, Mapping):
        return None
    file = content.get("file")
    return file.get("content") if isinstance(file, Mapping) else content.get("content")


def _progress_record(payload: Json) -> Iterator[Part]:
    data = payload.get("data")
    if not isinstance(data, Mapping):
        yield from _other_record(payload)
        return
    yield Heading(f"progress {data.get('type', '')}", str(payload.get("parentToolUseID") or ""), Tone.SYSTEM)
    text = data.get("fullOutput") or data.get("output")
    if isinstance(text, str):
        yield output(text)
    embedded = data.get("message")
    if isinstance(embedded, Mapping):
        yield from parts_of_record(embedded)
    yield from _rest(data, {"type", "fullOutput", "output", "message", "normalizedMessages"})


def _other_record(payload: Json) -> Iterator[Part]:
    yield Heading(str(payload.get("type") or "record without a type"), tone=Tone.SYSTEM)
    yield json_code(payload)


RECORD_PRESENTERS: dict[str, Callable[[Json], Iterator[Part]]] = {
    "system": _system_record,
    "summary": _summary_record,
    "attachment": _attachment_record,
    "progress": _progress_record,
}


# Blocks -------------------------------------------------------------------------------------------------------


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
        yield from _rest(given, set())
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
        yield _numbered_code(text, path)
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


# Inputs of tools ----------------------------------------------------------------------------------------------


def _shell_input(given: Json, _around: Surroundings) -> Iterator[Part]:
    if given.get("description"):
        yield Note(str(given["description"]))
    yield Code(str(given.get("command", "")), language="bash")
    yield from _rest(given, {"command", "description"})


def _edit_input(given: Json, around: Surroundings) -> Iterator[Part]:
    path = str(given.get("file_path") or given.get("notebook_path") or "")
    yield Fields((("file", path),))
    recorded = around.tool_use_result
    patch = diff.rows_of_patch(recorded.get("structuredPatch")) if isinstance(recorded, Mapping) else []
    edits = given.get("edits")
    rows: list[diff.DiffRow] = []
    for edit in edits if isinstance(edits, list) else [given]:
        rows += diff.rows_of_texts(str(edit.get("old_string", "")), str(edit.get("new_string", "")))
    if patch and not isinstance(edits, list):
        rows = diff.renumbered(rows, patch)
        yield Note("With the line numbers the client recorded in the result.")
    yield Diff(tuple(rows), path)
    yield from _rest(given, {"file_path", "old_string", "new_string", "edits"})


def _write_input(given: Json, _around: Surroundings) -> Iterator[Part]:
    path = str(given.get("file_path") or given.get("notebook_path") or "")
    yield Fields((("file", path),))
    text = given.get("content", given.get("new_source", ""))
    yield Code(str(text), file_name=path, first_line=1)
    yield from _rest(given, {"file_path", "notebook_path", "content", "new_source"})


def _todo_input(given: Json, _around: Surroundings) -> Iterator[Part]:
    yield Checklist(tuple(_todo(item) for item in given["todos"]))
    yield from _rest(given, {"todos"})


def _todo(item: Json) -> tuple[str, str, str]:
    facts = [f"{name}: {_value_text(value)}" for name, value in item.items() if name not in ("status", "content")]
    return str(item.get("status", "pending")), str(item.get("content", "")), ", ".join(facts)


def _agent_input(given: Json, _around: Surroundings) -> Iterator[Part]:
    yield from _rest(given, {"prompt"})
    yield Markdown(str(given.get("prompt", "")))


def _plan_input(given: Json, _around: Surroundings) -> Iterator[Part]:
    yield Markdown(str(given.get("plan", "")))
    yield from _rest(given, {"plan"})


def _plain_input(given: Json, _around: Surroundings) -> Iterator[Part]:
    yield from _rest(given, set())


ToolPresenter = Callable[[Json, Surroundings], Iterator[Part]]

TOOL_PRESENTERS: dict[str, ToolPresenter] = {
    "Bash": _shell_input,
    "PowerShell": _shell_input,
    "Edit": _edit_input,
    "MultiEdit": _edit_input,
    "Write": _write_input,
    "NotebookEdit": _write_input,
    "TodoWrite": _todo_input,
    "Task": _agent_input,
    "Agent": _agent_input,
    "ExitPlanMode": _plan_input,
    "Read": _plain_input,
    "Glob": _plain_input,
    "Grep": _plain_input,
    "LS": _plain_input,
    "WebFetch": _plain_input,
    "WebSearch": _plain_input,
}


# Helpers ------------------------------------------------------------------------------------------------------


def output(text: str) -> Part:
    """Text of a program: with its colours when it holds escapes and is not folded anyway, else as it is."""
    if len(text) > PLAIN_ABOVE:
        return Code(text)
    return Terminal(text, tuple(ansi.parse(text))) if ansi.has_escapes(text) else Code(text)


def picture(data: str, media_type: str) -> Picture:
    """An image of base64 characters; what cannot be decoded is said in `problem`."""
    if len(data) > IMAGE_LIMIT:
        return Picture(b"", media_type, f"The image has {bytes_text(len(data))} of base64 and is not decoded.")
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        return Picture(b"", media_type, f"The image's base64 cannot be decoded: {error}.")
    return Picture(decoded, media_type, "" if decoded else "The image is empty.")


def _numbered_code(text: str, path: str) -> Code:
    """Output of Read: its line numbers go into the margin when every line has the next one ("   12→text")."""
    if len(text) > PLAIN_ABOVE:
        return Code(text, file_name=path)
    lines = text.split("\n")
    stripped: list[str] = []
    first = 0
    for line in lines:
        number, arrow, rest = line.partition("→")
        if not arrow:
            number, arrow, rest = line.partition("\t")
        if not arrow or not number.strip().isdecimal() or len(number) > 12:
            break
        if not first:
            first = int(number)
        if int(number) != first + len(stripped):
            break
        stripped.append(rest)
    if not stripped or len(stripped) < len(lines):
        return Code(text, file_name=path)
    return Code("\n".join(stripped), file_name=path, first_line=first)


def _rest(given: Json, shown: set[str] | frozenset[str]) -> Iterator[Part]:
    """What was not shown yet: short values as fields, structured ones as JSON."""
    rows: list[tuple[str, str]] = []
    nested: dict[str, Any] = {}
    for name, value in given.items():
        if name in shown:
            continue
        if isinstance(value, (Mapping, list)) and value:
            nested[str(name)] = value
        else:
            rows.append((str(name), _value_text(value)))
    if rows:
        yield Fields(tuple(rows))
    if nested:
        yield json_code(nested)


def _value_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
