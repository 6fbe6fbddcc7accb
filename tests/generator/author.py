from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

from tests.generator.builder import Response, Result, SessionBuilder, Tool


@dataclass(frozen=True, slots=True)
class Step:
    """A call and what comes back; `result` None leaves the call unanswered."""

    tool: Tool
    result: Result | None
    tokens: int | None = None


class Author:
    """Writes a plausible session by hand: tools act on an invented folder of files, so reads and edits agree."""

    def __init__(self, builder: SessionBuilder, files: dict[str, str]) -> None:
        self.builder = builder
        self.files = files
        self.todos: list[dict[str, str]] = []

    def path(self, name: str) -> str:
        """The absolute path of a project file."""
        return f"{self.builder.cwd}/{name}"

    def say(
        self,
        text: str = "",
        *steps: Step,
        thinking: str | None = None,
        hidden: int = 0,
        interleave: bool = False,
        builder: SessionBuilder | None = None,
    ) -> Response:
        """One response with its steps; `hidden` tokens of thinking are paid for and not in the file."""
        builder = builder or self.builder
        response = builder.assistant(
            text,
            thinking=thinking if thinking is not None else "" if hidden else None,
            tools=[step.tool for step in steps],
            results=[step.result for step in steps],
            interleave=interleave,
            hidden_thinking_tokens=hidden,
        )
        for call, step in zip(response.tools, steps, strict=True):
            if step.tokens is not None and call in builder.ledger.results:
                builder.ledger.context += step.tokens - builder.ledger.results[call]
                builder.ledger.results[call] = step.tokens
        return response

    # --- tools ----------------------------------------------------------------------------------------------------

    def read(self, name: str, *, tokens: int | None = None) -> Step:
        """Read a file of the project; `tokens` where its text is denser than prose (tables of figures)."""
        text = self.files[name]
        lines = text.rstrip("\n").split("\n")
        numbered = "\n".join(f"{number:6}→{line}" for number, line in enumerate(lines, 1))
        file = {"filePath": self.path(name), "content": text, "numLines": len(lines)}
        shown = {"type": "text", "file": file | {"startLine": 1, "totalLines": len(lines)}}
        return Step(Tool("Read", {"file_path": self.path(name)}), Result(numbered, shown=shown), tokens)

    def write(self, name: str, text: str) -> Step:
        """Create a file."""
        self.files[name] = text
        path = self.path(name)
        shown = {"type": "create", "filePath": path, "content": text, "structuredPatch": [], "originalFile": None}
        tool = Tool("Write", {"file_path": path, "content": text})
        return Step(tool, Result(f"File created successfully at: {path}", shown=shown))

    def edit(self, name: str, old: str, new: str) -> Step:
        """Replace a passage that stands once in the file."""
        original = self.files[name]
        if original.count(old) != 1:
            raise ValueError(f"{old!r} stands {original.count(old)} times in {name}")
        changed = original.replace(old, new)
        self.files[name] = changed
        path = self.path(name)
        shown = {
            "filePath": path,
            "oldString": old,
            "newString": new,
            "originalFile": original,
            "structuredPatch": structured_patch(original, changed),
            "userModified": False,
            "replaceAll": False,
        }
        tool = Tool("Edit", {"file_path": path, "old_string": old, "new_string": new})
        return Step(tool, Result(f"The file {path} has been updated successfully.", shown=shown))

    def failed_edit(self, name: str, old: str, new: str) -> Step:
        """An edit whose passage is not in the file."""
        error = f"String to replace not found in file.\nString: {old}"
        tool = Tool("Edit", {"file_path": self.path(name), "old_string": old, "new_string": new})
        sent = f"<tool_use_error>{error}</tool_use_error>"
        return Step(tool, Result(sent, is_error=True, shown=f"Error: {error}"))

    def bash(self, command: str, output: str, *, about: str = "", error: int = 0, tokens: int | None = None) -> Step:
        """A shell command; `error` is its exit code."""
        tool = Tool("Bash", {"command": command, **({"description": about} if about else {})})
        if error:
            text = f"Exit code {error}\n{output}"
            return Step(tool, Result(text, is_error=True, shown=f"Error: {text}"), tokens)
        shown = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
        return Step(tool, Result(output, is_error=False, shown=shown), tokens)

    def grep(self, pattern: str) -> Step:
        """Search the project for a plain text."""
        found = [
            f"{name}:{number}:{line}"
            for name, text in sorted(self.files.items())
            for number, line in enumerate(text.split("\n"), 1)
            if pattern in line and not name.endswith(".csv")
        ]
        names = sorted({line.partition(":")[0] for line in found})
        shown: dict[str, Any] = {"mode": "content", "numFiles": len(names), "filenames": names}
        shown |= {"content": "\n".join(found), "numLines": len(found)}
        tool = Tool("Grep", {"pattern": pattern, "output_mode": "content", "-n": True})
        return Step(tool, Result("\n".join(found) or "No matches found", shown=shown))

    def glob(self, pattern: str, names: list[str]) -> Step:
        """List files."""
        paths = [self.path(name) for name in names]
        shown = {"filenames": paths, "durationMs": 4, "numFiles": len(paths), "truncated": False}
        return Step(Tool("Glob", {"pattern": pattern}), Result("\n".join(paths), shown=shown))

    def todo(self, *items: tuple[str, str]) -> Step:
        """Rewrite the list of things to do: (text, status)."""
        new = [{"content": text, "status": status, "activeForm": text} for text, status in items]
        shown = {"oldTodos": self.todos, "newTodos": new}
        self.todos = new
        answer = "Todos have been modified successfully. Continue to use the todo list to track your progress."
        return Step(Tool("TodoWrite", {"todos": new}), Result(answer, shown=shown))


def structured_patch(before: str, after: str, context: int = 3) -> list[dict[str, Any]]:
    """The hunks of a change in the client's own form, with `context` unchanged lines around each."""
    old, new = before.split("\n"), after.split("\n")
    hunks: list[dict[str, Any]] = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(context):
        lines: list[str] = []
        for kind, old_start, old_end, new_start, new_end in group:
            if kind == "equal":
                lines += [" " + line for line in old[old_start:old_end]]
                continue
            lines += ["-" + line for line in old[old_start:old_end]]
            lines += ["+" + line for line in new[new_start:new_end]]
        first, last = group[0], group[-1]
        hunks.append(
            {
                "oldStart": first[1] + 1,
                "oldLines": last[2] - first[1],
                "newStart": first[3] + 1,
                "newLines": last[4] - first[3],
                "lines": lines,
            }
        )
    return hunks
