"""What comes back into the context after a compaction (compaction.md 6): files, skills, the plan, running agents."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compaction.accounting.estimate import CHARACTERS_PER_TOKEN_ROUGH, compact_json, rough_tokens
from compaction.request.wire import Json
from compaction.strategies.context import ContextView
from compaction.strategies.files import touch_at
from compaction.strategies.parts import Part, ToolPair
from compaction.strategies.plan import Item
from compaction.strategies.settings import setting

_SOURCE = "compaction.md 6"
FILE_MARKER = "\n[… the rest of the file was cut to stay within the restore budget; use Read to see it …]"
SKILL_MARKER = "\n[… this skill was truncated to stay within the restore budget; invoke it again to read the rest …]"

_MEMORY_NAMES = ("CLAUDE.md", "CLAUDE.local.md", "MEMORY.md")
_MEMORY_FOLDERS = ("/.claude/rules/", "/.claude/memory/")
_PLAN_FOLDER = "/.claude/plans/"


@dataclass(frozen=True, slots=True)
class RestoreSettings:
    """Budgets of the post-compact restore, in tokens of the rough estimate (characters / 4)."""

    restore: bool = setting(True, "Whether files, skills, the plan and agents come back at all.", _SOURCE)
    max_files: int = setting(5, "Files that come back at most.", _SOURCE, unit="files", minimum=0)
    total_tokens: int = setting(50_000, "All restored files together.", _SOURCE, unit="tokens", minimum=0)
    file_tokens: int = setting(5_000, "One restored file; the rest is cut.", _SOURCE, unit="tokens", minimum=0)
    skill_tokens: int = setting(5_000, "One restored skill; it is cut at its head.", _SOURCE, unit="tokens", minimum=0)
    skills_tokens: int = setting(25_000, "All restored skills together.", _SOURCE, unit="tokens", minimum=0)


@dataclass(frozen=True, slots=True)
class Restored:
    """One thing that comes back.

    Attributes:
        kind: file, skill, plan, agents.
        label: its path or name.
        block: the text block that is sent.
        content_tokens: rough tokens of the content alone, without wrapping and marker.
        cut: whether the content was cut.
        record, line: where the content comes from.
    """

    kind: str
    label: str
    block: Json
    content_tokens: int
    cut: bool
    record: int = -1
    line: int = 0

    @property
    def cost(self) -> int:
        """What counts against the budget: the rough estimate of the attachment's JSON, tokens."""
        return rough_tokens(compact_json(self.block))

    def item(self, tokens: int) -> Item:
        """The plan's item for it."""
        label = f"{self.kind}: {self.label}" + (" (cut)" if self.cut else "")
        return Item(self.record, self.line, f"restored {self.kind}", label, tokens_after=tokens)


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as the transcript last showed it: content, when (milliseconds), and where."""

    path: str
    content: str
    read_ms: int
    record: int
    line: int
    partial: bool = False


def is_memory_file(path: str) -> bool:
    """Memory files have their own way back into the context (compaction.md 6)."""
    plain = path.replace("\\", "/")
    return plain.rsplit("/", 1)[-1] in _MEMORY_NAMES or any(folder in plain for folder in _MEMORY_FOLDERS)


def is_plan_file(path: str) -> bool:
    """Plan files are restored as the plan, not as files."""
    return _PLAN_FOLDER in path.replace("\\", "/")


def choose_files(
    files: Sequence[FileState], kept_paths: set[str], limits: RestoreSettings, now_ms: int
) -> list[Restored]:
    """The files that come back: newest first by read time, within all three budgets.

    Args:
        files: the state of every file, in any order.
        kept_paths: files whose Read result survives in the kept tail.
    """
    chosen: list[Restored] = []
    spent = 0
    candidates = [
        f for f in files if not is_memory_file(f.path) and not is_plan_file(f.path) and f.path not in kept_paths
    ]
    newest_first = sorted(range(len(candidates)), key=lambda n: (candidates[n].read_ms, n), reverse=True)
    for number in newest_first[: limits.max_files]:
        restored = restored_file(candidates[number], limits.file_tokens, now_ms)
        if spent + restored.cost <= limits.total_tokens:
            chosen.append(restored)
            spent += restored.cost
    return chosen


def restored_file(file: FileState, max_tokens: int, now_ms: int) -> Restored:
    """One file as it is sent, cut to `max_tokens` (rough) and labelled with its age."""
    limit = max_tokens * CHARACTERS_PER_TOKEN_ROUGH
    content = file.content[:limit]
    cut = len(content) < len(file.content)
    part = ", a part of it" if file.partial else ""
    head = f"Restored after the compaction: {file.path} as it was {age_text(now_ms - file.read_ms)} earlier{part}."
    body = f"{head}\n{content}{FILE_MARKER if cut else ''}"
    return Restored("file", file.path, _reminder(body), rough_tokens(content), cut, file.record, file.line)


def choose_skills(skills: Sequence[tuple[str, str, Part]], limits: RestoreSettings) -> list[Restored]:
    """The invoked skills that come back, newest first; the oldest are dropped when the budget is full.

    Args:
        skills: (name, text, part) of every invocation, oldest first; of one name the newest text counts.
    """
    newest: dict[str, tuple[str, Part]] = {}
    for name, text, part in skills:
        newest.pop(name, None)
        newest[name] = (text, part)
    chosen: list[Restored] = []
    spent = 0
    for name, (text, part) in reversed(newest.items()):
        body = truncated_skill(text, limits.skill_tokens)
        cut = len(body) != len(text)
        block = _reminder(f"Skill invoked earlier in this session: {name}\n{body}")
        line = part.origin.line if part.origin is not None else 0
        restored = Restored("skill", name, block, rough_tokens(body), cut, part.record, line)
        if spent + restored.cost <= limits.skills_tokens:
            chosen.append(restored)
            spent += restored.cost
    return chosen


def truncated_skill(text: str, max_tokens: int) -> str:
    """A skill cut at its head: `max_tokens × 4 − len(marker)` characters and the marker (compaction.md 6)."""
    limit = max_tokens * CHARACTERS_PER_TOKEN_ROUGH
    if len(text) <= limit:
        return text
    return text[: max(0, limit - len(SKILL_MARKER))] + SKILL_MARKER


def restored_context(
    view: ContextView, kept: Sequence[Part], limits: RestoreSettings, now_ms: int
) -> tuple[Restored, ...]:
    """Everything that comes back after a compaction that keeps `kept`: files, agents, plan, skills, in that order."""
    if not limits.restore:
        return ()
    places = {part.place for part in kept}
    surviving = {
        touch.path
        for pair in view.pairs
        if pair.result.place in places
        and not pair.cleared
        and (touch := touch_at(view, pair))
        and touch.action == "read"
    }
    found = choose_files(newest_files(view, surviving, limits.max_files), surviving, limits, now_ms)
    found += running_agents(view)
    found += current_plan(view, limits, now_ms)
    found += choose_skills([s for s in invoked_skills(view) if s[2].place not in places], limits)
    return tuple(found)


def file_states(view: ContextView) -> dict[str, FileState]:
    """The state of every file that the context's own Read, Edit and Write records show, by path."""
    found = ((path, file_state(view, pairs)) for path, pairs in touches_by_path(view).items())
    return {path: state for path, state in found if state is not None}


def touches_by_path(view: ContextView) -> dict[str, list[ToolPair]]:
    """The successful calls on every file, oldest first; the files in the order of their newest touch."""
    found: dict[str, list[ToolPair]] = {}
    for pair in view.pairs:
        touch = touch_at(view, pair)
        if touch is not None and pair.result.origin is not None:
            found[touch.path] = [*found.pop(touch.path, []), pair]
    return found


def file_state(view: ContextView, pairs: Sequence[ToolPair]) -> FileState | None:
    """A file as its calls left it, None when they do not tell: from the last read or write on, edits applied."""
    t = view.conversation.transcript
    touches = [touch_at(view, pair) for pair in pairs]
    whole = [n for n, touch in enumerate(touches) if touch is not None and touch.action != "edit"]
    state: FileState | None = None
    for pair, touch in zip(pairs[whole[-1] if whole else 0 :], touches[whole[-1] if whole else 0 :], strict=True):
        origin = pair.result.origin
        if touch is None or origin is None:
            continue
        content = _content_after(pair, t.payload(origin.record).get("toolUseResult"), state)
        partial = touch.partial and touch.action == "read"
        stamp = int(t.timestamp_ms[origin.record])
        state = None
        if content is not None:
            state = FileState(touch.path, content, stamp, origin.record, origin.line, partial)
    return state


def newest_files(view: ContextView, kept_paths: set[str], count: int) -> list[FileState]:
    """The states of the `count` files touched last that may come back; others are not even read."""
    touches = touches_by_path(view)
    stamps = view.conversation.transcript.timestamp_ms
    newest = sorted(touches, key=lambda path: int(stamps[touches[path][-1].result.record]), reverse=True)
    found: list[FileState] = []
    for path in newest:
        if len(found) == count:
            break
        if not is_memory_file(path) and not is_plan_file(path) and path not in kept_paths:
            state = file_state(view, touches[path])
            found += [state] if state is not None else []
    return found


def _content_after(pair: ToolPair, shown: Any, before: FileState | None) -> str | None:
    """A file's content after a call, from the call's input and the record's copy of the result; None if unknown."""
    given = pair.input
    if pair.tool == "Write":
        content = given.get("content")
        return content if isinstance(content, str) else None
    details: Mapping[str, Any] = shown if isinstance(shown, dict) else {}
    if pair.tool == "Read":
        file = details.get("file")
        content = file.get("content") if isinstance(file, dict) else None
        return content if isinstance(content, str) else _without_line_numbers(pair.result.value.get("content"))
    original = details.get("originalFile")
    text = original if isinstance(original, str) else before.content if before is not None else None
    if text is None:
        return None
    edits = given.get("edits") if isinstance(given.get("edits"), list) else [given]
    for edit in edits or []:
        old, new = (edit.get("old_string"), edit.get("new_string")) if isinstance(edit, dict) else (None, None)
        if not isinstance(old, str) or not isinstance(new, str):
            return None
        if old not in text:
            return None
        text = text.replace(old, new) if edit.get("replace_all") else text.replace(old, new, 1)
    return text


_NUMBERED = re.compile(r"^ *\d+[→\t](.*)$")


def _without_line_numbers(content: Any) -> str | None:
    """The file's text out of a Read result (`   1→…` before each line); None when it is not one."""
    if not isinstance(content, str):
        return None
    lines = []
    for line in content.split("\n"):
        found = _NUMBERED.match(line)
        if found is None:
            break
        lines.append(found.group(1))
    return "\n".join(lines) if lines else None


def invoked_skills(view: ContextView) -> list[tuple[str, str, Part]]:
    """Skills whose text the client put into the context: name, text, and the part that holds it, oldest first."""
    t = view.conversation.transcript
    if not any(part.type == "tool_use" and part.value.get("name") == "Skill" for part in view.parts):
        return []
    calls = {
        str(part.value.get("id")): _skill_name(part.value.get("input"))
        for part in view.parts
        if part.type == "tool_use" and part.value.get("name") == "Skill"
    }
    found = []
    for part in view.parts:
        if part.role != "user" or part.type != "text" or part.origin is None or part.origin.block < 0:
            continue
        call = t.payload(part.origin.record).get("sourceToolUseID")
        name = calls.get(call, "") if isinstance(call, str) else ""
        if name:
            found.append((name, part.text, part))
    return found


def _skill_name(given: Any) -> str:
    if not isinstance(given, dict):
        return ""
    return next((v for key in ("skill", "command", "name") if isinstance(v := given.get(key), str)), "")


def current_plan(view: ContextView, limits: RestoreSettings, now_ms: int) -> list[Restored]:
    """The plan file as it last stood, cut like a file; [] when the session has none."""
    touches = [(path, pairs) for path, pairs in touches_by_path(view).items() if is_plan_file(path)]
    state = file_state(view, touches[-1][1]) if touches else None
    if state is None:
        return []
    restored = restored_file(state, limits.file_tokens, now_ms)
    return [
        Restored("plan", state.path, restored.block, restored.content_tokens, restored.cut, state.record, state.line)
    ]


def running_agents(view: ContextView) -> list[Restored]:
    """Agents that were started in the background and whose end was not announced yet, as one text."""
    t = view.conversation.transcript
    open_agents: dict[str, tuple[str, int]] = {}
    for pair in view.pairs:
        if pair.tool not in ("Task", "Agent") or pair.result.origin is None:
            continue
        shown = t.payload(pair.result.origin.record).get("toolUseResult")
        if (
            isinstance(shown, dict)
            and shown.get("status") == "async_launched"
            and isinstance(shown.get("agentId"), str)
        ):
            description = pair.input.get("description")
            open_agents[shown["agentId"]] = (description if isinstance(description, str) else "", pair.result.record)
    for part in view.parts:
        if part.role == "user" and "<task-notification>" in part.text:
            for agent in [a for a in open_agents if a in part.text]:
                del open_agents[agent]
    if not open_agents:
        return []
    lines = [f"- {agent}: {json.dumps(text, ensure_ascii=False)}" for agent, (text, _) in open_agents.items()]
    body = "Agents still running in the background when the conversation was compacted:\n" + "\n".join(lines)
    record = next(iter(open_agents.values()))[1]
    return [Restored("agents", f"{len(lines)} running", _reminder(body), rough_tokens(body), False, record)]


def age_text(milliseconds: int) -> str:
    """An age for people: "40 seconds", "12 minutes", "3 hours", "5 days"."""
    seconds = max(0, milliseconds // 1000)
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}s"
    return f"{seconds} second{'s' if seconds != 1 else ''}"


def _reminder(body: str) -> Json:
    return {"type": "text", "text": f"<system-reminder>\n{body}\n</system-reminder>"}
