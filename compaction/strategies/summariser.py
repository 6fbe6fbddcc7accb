"""The seam for writing summaries, and the summariser that needs no model: an extract in the nine sections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from compaction.strategies.context import ContextView
from compaction.strategies.files import touch_at
from compaction.strategies.parts import Part, ToolPair
from compaction.strategies.prompts import SummaryKind, section_titles
from compaction.transcript.kinds import Flag

OFFLINE_LABEL = "made offline by extraction, no model was asked"


@dataclass(frozen=True, slots=True)
class SummaryTask:
    """What to summarise.

    Attributes:
        view: the context the parts belong to.
        parts: the blocks to summarise, in order.
        kind: the whole, the later part, or the early part of the conversation.
        custom_instructions: what the person (or a hook) wants stressed.
    """

    view: ContextView
    parts: Sequence[Part]
    kind: SummaryKind = "full"
    custom_instructions: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """A formatted summary, who wrote it, and what it took.

    Attributes:
        text: ready for the summary message (`format_compact_summary` was applied).
        label: who wrote it, for the person.
        usage: input, output, cache read, cache creation tokens of the calls; None when no model was asked.
    """

    text: str
    label: str
    usage: tuple[int, int, int, int] | None = None


class Summariser(Protocol):
    """Writes summaries. The offline one is pure; one that asks a model is made only after the person agreed."""

    @property
    def name(self) -> str:
        """For settings and JSON."""

    @property
    def title(self) -> str:
        """For people."""

    @property
    def offline(self) -> bool:
        """Whether it asks no model."""

    def summarise(self, task: SummaryTask) -> Summary:
        """The summary of a task."""


@dataclass(frozen=True, slots=True)
class OfflineSummariser:
    """A deterministic extract: what was asked (verbatim), files, errors and what followed, open todos, current work.

    Attributes:
        user_characters: characters for the user's messages; the newest and the first are kept whole before others.
        file_limit, error_limit: how many files and errors are listed, the newest ones first.
        snippet_characters: length of one quoted snippet.
    """

    user_characters: int = 12_000
    file_limit: int = 30
    error_limit: int = 12
    snippet_characters: int = 400
    name: str = "offline"
    title: str = "Offline extract"
    offline: bool = True

    def summarise(self, task: SummaryTask) -> Summary:
        """The extract in the nine sections; the same task gives the same text."""
        extract = _Extract(task, self)
        titles = section_titles(task.kind)
        bodies: list[Callable[[], str]] = [
            extract.request,
            extract.concepts,
            extract.files,
            extract.errors,
            extract.solving,
            extract.messages,
            extract.pending,
            extract.current,
            extract.next_step,
        ]
        sections = [f"{n}. {title}:\n{body()}" for n, (title, body) in enumerate(zip(titles, bodies, strict=True), 1)]
        head = f"Summary ({OFFLINE_LABEL}):"
        extra = f"\n\nThe user asked to stress: {task.custom_instructions}" if task.custom_instructions else ""
        return Summary("\n\n".join([head, *sections]) + extra, OFFLINE_LABEL)


class _Extract:
    """The facts of one task, found once."""

    def __init__(self, task: SummaryTask, limits: OfflineSummariser) -> None:
        self.limits = limits
        self.kind = task.kind
        self.view = task.view
        view = task.view
        self.pairs = view.pairs_in(task.parts)
        t = view.conversation.transcript
        self.earlier = [
            p.text
            for p in task.parts
            if p.type == "text" and p.origin is not None and int(t.flags[p.origin.record]) & Flag.COMPACT_SUMMARY
        ]
        self.prompts = [p.text for p in task.parts if view.is_prompt(p) and p.type == "text" and p.text.strip()]
        self.answers = [(p.place, p.text) for p in task.parts if p.text.strip() and view.is_answer(p)]
        self.calls = [p for p in task.parts if p.type == "tool_use"]

    def cut(self, text: str, limit: int | None = None) -> str:
        """`text` on at most `limit` characters, the middle left out visibly."""
        limit = limit or self.limits.snippet_characters
        text = text.strip()
        if len(text) <= limit:
            return text
        half = (limit - 20) // 2
        return f"{text[:half]} […{len(text) - 2 * half:,} characters…] {text[-half:]}"

    def request(self) -> str:
        lines = []
        if self.earlier:
            lines.append("Summary of what came still earlier:\n" + self.cut(self.earlier[-1], 8_000))
        if self.prompts:
            lines.append(f"The user began with: {self.cut(self.prompts[0], 1_500)}")
        if len(self.prompts) > 1:
            lines.append(f"The latest request is: {self.cut(self.prompts[-1], 1_500)}")
        return _bullets(lines, "No request of the user is in this part.")

    def concepts(self) -> str:
        suffixes: Counter[str] = Counter()
        for pair in self.pairs:
            touch = touch_at(self.view, pair)
            name = touch.path.replace("\\", "/").rsplit("/", 1)[-1] if touch is not None else ""
            if "." in name.strip("."):
                suffixes["." + name.rsplit(".", 1)[-1]] += 1
        tools = Counter(str(p.value.get("name")) for p in self.calls)
        commands = Counter(_first_word(p.value.get("input")) for p in self.calls if p.value.get("name") == "Bash")
        commands.pop("", None)
        lines = []
        if suffixes:
            lines.append("Kinds of files: " + _counted(suffixes))
        if tools:
            lines.append("Tools used: " + _counted(tools))
        if commands:
            lines.append("Commands run: " + _counted(commands))
        return _bullets(lines, "None stands out.")

    def files(self) -> str:
        last: dict[str, list[str]] = {}
        for pair in self.pairs:
            touch = touch_at(self.view, pair)
            if touch is not None:
                # Taken out and put in again: the order is that of the newest touch.
                last[touch.path] = [*last.pop(touch.path, []), touch.action]
        edits = {t.path: p for p in self.pairs if (t := touch_at(self.view, p)) is not None and t.action != "read"}
        lines = []
        for path, actions in list(last.items())[-self.limits.file_limit :]:
            done = ", ".join(f"{name} {n}×" for name, n in Counter(actions).items())
            change = self._change(edits.get(path))
            lines.append(f"{path} ({done})" + (f"\n  last change: {change}" if change else ""))
        if len(last) > self.limits.file_limit:
            lines.insert(0, f"{len(last) - self.limits.file_limit} files touched earlier are left out.")
        return _bullets(lines, "No file was read or changed.")

    def _change(self, pair: ToolPair | None) -> str:
        if pair is None:
            return ""
        given = pair.input
        if isinstance(given.get("new_string"), str):
            return f"{self.cut(str(given.get('old_string', '')))!r} became {self.cut(given['new_string'])!r}"
        if isinstance(given.get("content"), str):
            return f"written whole, {len(given['content']):,} characters, beginning {self.cut(given['content'], 200)!r}"
        if isinstance(given.get("edits"), list):
            return f"{len(given['edits'])} edits at once"
        return ""

    def errors(self) -> str:
        lines = []
        failed = [pair for pair in self.pairs if pair.failed]
        for pair in failed[-self.limits.error_limit :]:
            followed = self._what_followed(pair)
            message = self.cut(_result_text(pair.result.value.get("content")), 300)
            lines.append(f"{describe_call(pair)} failed: {message}" + (f"\n  then: {followed}" if followed else ""))
        if len(failed) > self.limits.error_limit:
            lines.insert(0, f"{len(failed) - self.limits.error_limit} earlier errors are left out.")
        return _bullets(lines, "No tool reported an error.")

    def _what_followed(self, pair: ToolPair) -> str:
        said = next((text for place, text in self.answers if place > pair.result.place), "")
        call = next((c for c in self.calls if c.place > pair.result.place), None)
        parts = [self.cut(said, 200)] if said else []
        if call is not None:
            parts.append(describe_use(call))
        return "; ".join(parts)

    def solving(self) -> str:
        return _bullets([self.cut(text, 300) for _, text in self.answers[-8:-1]], "Nothing beyond the sections above.")

    def messages(self) -> str:
        """The user's messages in order; whole from the newest back, the first one too, the rest cut when it is full."""
        budget = self.limits.user_characters
        shown: dict[int, str] = {}
        order = [0, *range(len(self.prompts) - 1, 0, -1)] if self.prompts else []
        for number in order:
            text = self.prompts[number].strip()
            room = max(120, min(len(text), budget))
            shown[number] = self.cut(text, room)
            budget -= len(shown[number])
        return _bullets([shown[n] for n in sorted(shown)], "None in this part.")

    def pending(self) -> str:
        todos = latest_todos(self.calls)
        lines = [f"[{state}] {text}" for state, text in todos if state != "completed"]
        return _bullets(lines, "No open todo is recorded.")

    def current(self) -> str:
        lines = []
        if self.answers:
            lines.append(f"The assistant last said: {self.cut(self.answers[-1][1], 1_200)}")
        lines += [describe_use(call) for call in self.calls[-5:]]
        return _bullets(lines, "Nothing was under way.")

    def next_step(self) -> str:
        going = [text for state, text in latest_todos(self.calls) if state == "in_progress"]
        lines = [f"Go on with: {text}" for text in going]
        if self.prompts:
            lines.append(f"It rests on the user's latest words: “{self.cut(self.prompts[-1], 500)}”")
        return _bullets(lines, "None follows from what the user asked.")


def latest_todos(calls: Sequence[Part]) -> list[tuple[str, str]]:
    """The todo list as last written: (state, text) of each entry; [] when there is none."""
    for call in reversed(calls):
        given = call.value.get("input")
        todos = given.get("todos") if call.value.get("name") == "TodoWrite" and isinstance(given, dict) else None
        if isinstance(todos, list):
            return [
                (str(todo.get("status", "pending")), str(todo.get("content", "")))
                for todo in todos
                if isinstance(todo, dict)
            ]
    return []


def describe_call(pair: ToolPair) -> str:
    """A tool call with what it was about, in a few words."""
    return describe_use(pair.use) if pair.use is not None else f"an unknown call ({pair.id})"


def describe_use(call: Part) -> str:
    """A tool_use block in a few words: the tool and its most telling input."""
    given = call.value.get("input")
    name = str(call.value.get("name") or "tool")
    if isinstance(given, dict):
        for key in ("command", "file_path", "notebook_path", "pattern", "query", "url", "description", "prompt"):
            value = given.get(key)
            if isinstance(value, str) and value.strip():
                line = " ".join(value.split())
                return f"{name}: {line[:160]}{'…' if len(line) > 160 else ''}"
    return name


def _result_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(i.get("text", "")) for i in content if isinstance(i, dict) and i.get("type") == "text")
    return ""


def _first_word(given: Any) -> str:
    command = given.get("command") if isinstance(given, dict) else None
    words = command.split() if isinstance(command, str) else []
    return words[0] if words else ""


def _counted(counter: Counter[str]) -> str:
    ordered = sorted(counter.items(), key=lambda item: (-item[1], item[0]))[:12]
    return ", ".join(f"{name} ({n})" for name, n in ordered)


def _bullets(lines: Sequence[str], nothing: str) -> str:
    return "\n".join(f"- {line}" for line in lines) if lines else f"- {nothing}"
