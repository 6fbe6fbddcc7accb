"""Whole records to parts: messages by their blocks, others by what they hold (transcript-format.md 4 and 9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from inspector.rendering.blocks import parts_of_block
from inspector.rendering.parts import Code, Fields, Heading, Markdown, Note, Part, Prose, Tone
from inspector.rendering.pieces import ODD_SHAPE, Json, Surroundings, json_code, output, rest


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
    except ODD_SHAPE as error:
        return [Note(f"Shown as JSON: unexpected shape ({type(error).__name__}).", Tone.WARNING), json_code(payload)]


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
    yield from rest(payload, known | {"isSidechain", "gitBranch", "slug", "level", "isMeta", "entrypoint"})


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
    yield from rest(attachment, shown)


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
    yield from rest(data, {"type", "fullOutput", "output", "message", "normalizedMessages"})


def _other_record(payload: Json) -> Iterator[Part]:
    yield Heading(str(payload.get("type") or "record without a type"), tone=Tone.SYSTEM)
    yield json_code(payload)


RECORD_PRESENTERS: dict[str, Callable[[Json], Iterator[Part]]] = {
    "system": _system_record,
    "summary": _summary_record,
    "attachment": _attachment_record,
    "progress": _progress_record,
}
