"""Attachment records as the text that the model gets (transcript-format.md §9).

New clients store the text they sent (`rendered`); for older records it is made from the attachment's fields by the
generation's templates (resources/resume-profiles.json). Template fields are plain names with dots, filled without
`str.format`, so session text can never be read as a template.
"""

from __future__ import annotations

import json
import re
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


def rendered_blocks(entry: Entry, profile: ResumeProfile) -> list[Json] | None:
    """The blocks that an attachment adds to the request: [] when it is never sent, None when its text is unknown."""
    recorded = entry.payload.get("rendered")
    if recorded and "*" not in profile.silent:
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
        texts = renderer(attachment, template)
    except (KeyError, TypeError, AttributeError, ValueError):
        return None
    return None if texts is None else [{"type": "text", "text": reminder(words)} for words in texts]


def _recorded(recorded: Any) -> list[Json]:
    """`rendered`: a list of messages (or one text) exactly as they were sent."""
    blocks: list[Json] = []
    for message in recorded if isinstance(recorded, list) else [recorded]:
        content = message.get("content") if isinstance(message, dict) else message
        if isinstance(content, str):
            blocks.append({"type": "text", "text": content})
        elif isinstance(content, list):
            blocks += [block for block in content if isinstance(block, dict)]
    return blocks


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
    return None if template["text"] is None else [filled(template["text"], attachment)]


def _hook_success(attachment: Json, template: Json) -> list[str]:
    wanted = attachment.get("hookEvent") in _REMINDER_HOOKS and bool(attachment.get("content"))
    return [filled(template["text"], attachment)] if wanted else []


def _lines(attachment: Json, template: Json) -> list[str]:
    return _joined(attachment, template, "\n")


def _paragraphs(attachment: Json, template: Json) -> list[str]:
    return _joined(attachment, template, "\n\n")


def _joined(attachment: Json, template: Json, joint: str) -> list[str]:
    items = attachment[template["list"]]
    words = items if isinstance(items, str) else joint.join(items)
    return [filled(template["text"], {**attachment, "lines": words})] if words else []


def _queued_command(attachment: Json, template: Json) -> list[str]:
    prompt = attachment["prompt"]
    if isinstance(prompt, list):
        prompt = "\n".join(text(block.get("text")) for block in prompt if block.get("type") == "text")
    return [filled(template["text"], {"prompt": prompt})]


def _file(attachment: Json, template: Json) -> list[str] | None:
    content = attachment["content"]
    if content.get("type") != "text":
        return None
    file = content["file"]
    first = int(file.get("startLine", 1))
    lines = [
        filled(template["line"], {"number": str(number), "text": line})
        for number, line in enumerate(file["content"].split("\n"), first)
    ]
    body = "\n".join(lines)
    asked = json.dumps({"file_path": attachment["filename"]}, ensure_ascii=False, separators=(",", ":"))
    values = {"input": asked, "lines": body, "json": json.dumps(body, ensure_ascii=False)}
    return [filled(template["call"], values), filled(template["result"], values)]


def _todo(attachment: Json, template: Json) -> list[str]:
    items = [
        filled(template["item"], {**item, "number": str(number)})
        for number, item in enumerate(attachment["content"], 1)
    ]
    return [template["text"] + (filled(template["items"], {"items": "\n".join(items)}) if items else "")]


def _deferred_tools(attachment: Json, template: Json) -> list[str] | None:
    added, again = attachment.get("addedNames") or [], attachment.get("readdedNames") or []
    removed = attachment.get("removedNames") or []
    parts = []
    new = [name for name in attachment.get("addedLines") or added if name not in again]
    if new:
        parts.append(filled(template["added"], {"lines": "\n".join(new)}))
    if again:
        parts.append(filled(template["again"], {"count": str(len(again)), "names": ", ".join(again)}))
    if removed:
        if template["removed"] is None:
            return None
        parts.append(filled(template["removed"], {"lines": "\n".join(removed)}))
    return ["\n\n".join(parts)] if parts else []


_RENDERERS = {
    "text": _text,
    "hook_success": _hook_success,
    "lines": _lines,
    "paragraphs": _paragraphs,
    "queued_command": _queued_command,
    "file": _file,
    "todo": _todo,
    "deferred_tools": _deferred_tools,
}
