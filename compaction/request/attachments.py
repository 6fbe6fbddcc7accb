"""Attachment records as the text that the model gets (transcript-format.md §9).

New clients store the text they sent (`rendered`); for older records it is made from the attachment's fields by the
generation's templates (resources/resume-profiles.json). Template fields are plain names with dots, filled without
`str.format`, so session text can never be read as a template.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from compaction.request.entries import Entry, text
from compaction.request.profiles import ResumeProfile
from compaction.request.wire import Json

_FIELD = re.compile(r"\{([A-Za-z_.]+)(:>6)?\}")
_REMINDER_HOOKS = ("SessionStart", "UserPromptSubmit")


def reminder(words: str) -> str:
    """Text in the tags that clients put around what they inject."""
    return f"<system-reminder>\n{words}\n</system-reminder>"


def bare_reminder(words: str) -> str:
    """The text inside reminder tags (unchanged when there are none)."""
    return words.removeprefix("<system-reminder>\n").removesuffix("\n</system-reminder>")


def rendered_messages(entry: Entry, profile: ResumeProfile) -> list[list[Json]] | None:
    """The messages that an attachment adds to the request, each as its blocks.

    [] when it is never sent, None when the text that was sent for it is not known.
    """
    recorded = entry.payload.get("rendered")
    if recorded and profile.reads_rendered:
        return _recorded(recorded)
    attachment = entry.payload.get("attachment")
    if not isinstance(attachment, dict):
        return []
    kind = text(attachment.get("type"))
    if "*" in profile.silent or kind in profile.silent:
        return []
    template = profile.attachments.get(kind)
    if template is None:
        return None
    renderer = _RENDERERS[template["render"]]
    try:
        found = renderer(attachment, template)
    except (KeyError, TypeError, AttributeError, ValueError):
        return None  # fields of another version: shown as unknown instead of guessed
    return None if found is None else [_message(item) for item in found]


def _message(item: str | list[Json]) -> list[Json]:
    return [{"type": "text", "text": reminder(item)}] if isinstance(item, str) else item


def _recorded(recorded: Any) -> list[list[Json]]:
    """`rendered`: a list of messages (or one text) exactly as they were sent."""
    messages: list[list[Json]] = []
    for message in recorded if isinstance(recorded, list) else [recorded]:
        content = message.get("content") if isinstance(message, dict) else message
        if isinstance(content, str):
            messages.append([{"type": "text", "text": content}])
        elif isinstance(content, list):
            messages.append([block for block in content if isinstance(block, dict)])
    return messages


def filled(template: str, values: Json) -> str:
    """`template` with its {fields} replaced.

    Raises:
        KeyError: a field is not in `values`.
    """

    def value(match: re.Match[str]) -> str:
        found: Any = values
        for name in match.group(1).split("."):
            found = found[name]
        words = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
        return f"{words:>6}" if match.group(2) else words

    return _FIELD.sub(value, template)


def _text(attachment: Json, template: Json) -> list[str] | None:
    words: str | None = template["text"]
    return None if words is None else [filled(words, attachment)]


def _hook_success(attachment: Json, template: Json) -> list[str]:
    wanted = attachment.get("hookEvent") in _REMINDER_HOOKS and bool(attachment.get("content"))
    return [filled(template["text"], attachment)] if wanted else []


def _lines(attachment: Json, template: Json) -> list[str]:
    return _joined(attachment, template, "\n")


def _joined(attachment: Json, template: Json, joint: str) -> list[str]:
    items = attachment[template["list"]]
    words = items if isinstance(items, str) else joint.join(items)
    return [filled(template["text"], {**attachment, "lines": words})] if words else []


def _queued_command(attachment: Json, template: Json) -> list[str | list[Json]]:
    prompt = attachment["prompt"]
    others: list[Json] = []
    if isinstance(prompt, list):
        others = [block for block in prompt if block.get("type") != "text"]
        given = [block for block in prompt if block.get("type") == "text" or not template["keeps_media"]]
        prompt = "\n".join(text(block.get("text")) for block in given)
    origin = attachment.get("origin")
    kinds = (attachment.get("commandMode"), origin.get("kind") if isinstance(origin, dict) else None)
    chosen: str = template["text"]
    if "task-notification" in kinds:
        chosen = template.get("task", chosen)
    words = filled(chosen, {"prompt": prompt})
    if others and template["keeps_media"]:
        return [[{"type": "text", "text": reminder(words)}, *others]]
    return [words]


def _file(attachment: Json, template: Json) -> list[str] | None:
    content = attachment["content"]
    if content.get("type") == "file_unchanged":
        return []
    if content.get("type") != "text":
        return None
    file = content["file"]
    lines = [
        filled(template["line"], {"number": str(number), "text": line})
        for number, line in enumerate(file["content"].split("\n"), int(file.get("startLine", 1)))
    ]
    out = _call_and_result({"file_path": attachment["filename"]}, "\n".join(lines) + template["suffix"], template)
    return out + ([filled(template["truncated"], attachment)] if attachment.get("truncated") else [])


def _directory(attachment: Json, template: Json) -> list[str]:
    path = attachment["path"]
    asked = {"command": f"ls {path}", "description": f"Lists files in {path}"}
    return _call_and_result(asked, attachment["content"], template)


def _call_and_result(asked: Json, body: str, template: Json) -> list[str]:
    words = json.dumps(asked, ensure_ascii=False, separators=(",", ":"))
    values = {"input": words, "lines": body, "json": json.dumps(body, ensure_ascii=False)}
    return [filled(template["call"], values), filled(template["result"], values)]


def _selection(attachment: Json, template: Json) -> list[str]:
    content = attachment["content"]
    if len(content) > template["limit"]:
        content = content[: template["limit"]] + "\n... (truncated)"
    return [filled(template["text"], {**attachment, "content": content})]


def _hook_response(attachment: Json, template: Json) -> list[str]:
    response = attachment["response"]
    specific = response.get("hookSpecificOutput") or {}
    return [words for words in (response.get("systemMessage"), specific.get("additionalContext")) if words]


def _todo(attachment: Json, template: Json) -> list[str]:
    items = [
        filled(template["item"], {**item, "number": str(number)})
        for number, item in enumerate(attachment["content"], 1)
    ]
    return [template["text"] + (filled(template["items"], {"items": "\n".join(items)}) if items else "")]


def _deferred_tools(attachment: Json, template: Json) -> list[str]:
    again = attachment.get("readdedNames") or []
    new = attachment.get("addedLines") or [n for n in attachment.get("addedNames") or [] if n not in again]
    removed = attachment.get("removedNames") or []
    servers = [name for name in removed if name.startswith("mcp__")]
    own = [name for name in removed if not name.startswith("mcp__")]
    parts = [filled(template["added"], {"lines": "\n".join(new)})] if new else []
    if again:
        count = f"{len(again)} deferred tool{' is' if len(again) == 1 else 's are'}"
        parts.append(filled(template["again"], {"count": count, "names": ", ".join(again)}))
    for key, names in (("removed_mcp", servers), ("removed", own)):
        if names:
            parts.append(filled(template[key], {"lines": "\n".join(names)}))
    return _ambient(parts, not new and not again, template)


def _agents(attachment: Json, template: Json) -> list[str]:
    lines, removed = attachment.get("addedLines") or [], attachment.get("removedTypes") or []
    parts = []
    if lines:
        note = template["note"] if attachment.get("showConcurrencyNote") else ""
        chosen = template["first"] if attachment.get("isInitial") else template["added"]
        parts.append(filled(chosen, {"lines": "\n".join(lines)}) + note)
    if removed:
        parts.append(filled(template["removed"], {"lines": "\n".join(f"- {name}" for name in removed)}))
    return _ambient(parts, not lines, template)


def _mcp_instructions(attachment: Json, template: Json) -> list[str]:
    blocks, removed = attachment.get("addedBlocks") or [], attachment.get("removedNames") or []
    parts = [filled(template["added"], {"lines": "\n\n".join(blocks)})] if blocks else []
    if removed:
        parts.append(filled(template["removed"], {"lines": "\n".join(removed)}))
    return _ambient(parts, not blocks, template)


def _ambient(parts: list[str], only_removals: bool, template: Json) -> list[str]:
    if not parts:
        return []
    return ["\n\n".join(parts) + (template["ambient"] if only_removals else "")]


_RENDERERS: dict[str, Callable[[Json, Json], Sequence[str | list[Json]] | None]] = {
    "text": _text,
    "hook_success": _hook_success,
    "lines": _lines,
    "queued_command": _queued_command,
    "file": _file,
    "directory": _directory,
    "selection": _selection,
    "hook_response": _hook_response,
    "todo": _todo,
    "deferred_tools": _deferred_tools,
    "agents": _agents,
    "mcp_instructions": _mcp_instructions,
}
