from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from tests.generator.builder import Content, Result, SessionBuilder, Tool
from tests.generator.faults import apply_faults
from tests.generator.picture import image_block, png
from tests.generator.words import Words

SUMMARY_SECTIONS = (
    "Primary Request and Intent",
    "Key Technical Concepts",
    "Files and Code Sections",
    "Errors and fixes",
    "Problem Solving",
    "All user messages",
    "Pending Tasks",
    "Current Work",
    "Optional Next Step",
)


@dataclass(slots=True)
class Session:
    """A seeded random session; the same arguments give the same bytes.

    Attributes:
        seed, version: which session, written by which client.
        rounds: API responses of the main thread; `records` overrides it.
        records: stop after this many lines of the main file.
        compactions: None lets the context decide, as the client does; a number spreads that many evenly.
        microcompactions: how many times old results are cleared, spread evenly.
        result_characters: mean size of a tool result.
        prompt_every: responses from one prompt to the next.
        parallel, thinking, images, progress, api_errors, forks: how likely each is in a round, 0 … 1.
        subagents: how many calls start a subagent, spread evenly.
        orphan_results, unanswered_calls: how many results lose their call, and calls their result.
        persisted: how many results go to tool-results/.
        hour_share: the share of cache writes kept one hour instead of five minutes.
        faults: names from `tests.generator.faults`, applied to the file's bytes (`name@line`).
    """

    seed: int = 0
    version: str = "2.1.217"
    rounds: int = 100
    records: int | None = None
    compactions: int | None = None
    microcompactions: int = 0
    result_characters: int = 1200
    prompt_every: int = 7
    parallel: float = 0.25
    thinking: float = 0.5
    images: float = 0.01
    progress: float = 0.1
    api_errors: float = 0.01
    forks: float = 0.0
    subagents: int = 1
    orphan_results: int = 0
    unanswered_calls: int = 0
    persisted: int = 1
    hour_share: float = 1.0
    faults: tuple[str, ...] = ()
    _rng: random.Random = field(init=False)
    _words: Words = field(init=False)
    _plan: dict[int, list[str]] = field(init=False)

    def lines(self, builder: SessionBuilder | None = None) -> Iterator[bytes]:
        """The lines of the main file without line endings, undamaged; endless memory is not needed."""
        builder = builder or self._builder()
        self._rng = random.Random(f"session-{self.seed}")
        self._words = Words(self._rng)
        self._plan = self._spread()
        written = 0
        wanted = self.records
        builder.file_history_snapshot()
        for number in count(1) if wanted is not None else range(1, self.rounds + 1):
            self._round(builder, number)
            for line in builder.lines:
                yield line
                written += 1
                if written == wanted:
                    return
            builder.lines.clear()
            if len(builder.call_record) > 10_000:
                builder.call_record.clear()
                builder.call_name.clear()
        if builder.version.since("2.1.81"):
            builder.last_prompt(self._words.text(60))
        yield from builder.lines

    def to_bytes(self) -> bytes:
        """The main file with its faults."""
        return apply_faults(b"".join(line + b"\n" for line in self.lines()), self.faults)

    def write(self, path: Path) -> Path:
        """Write the main file to `path` and subagents and tool-results beside it; returns `path`."""
        builder = self._builder(path.stem)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            batch: list[bytes] = []
            for line in self.lines(builder):
                batch.append(line)
                if len(batch) == 4096:
                    file.write(b"\n".join(batch) + b"\n")
                    batch.clear()
                    builder.write_other_files(path.parent)
            if batch:
                file.write(b"\n".join(batch) + b"\n")
        builder.write_other_files(path.parent)
        if self.faults:
            path.write_bytes(apply_faults(path.read_bytes(), self.faults))
        return path

    # --- the plot -------------------------------------------------------------------------------------------------

    def _builder(self, name: str = "session") -> SessionBuilder:
        return SessionBuilder(self.version, seed=self.seed, hour_share=self.hour_share, name=name)

    def _spread(self) -> dict[int, list[str]]:
        """Which rounds hold the events that were asked for by number."""
        # A session of `records` lines has about one round per three lines.
        rounds = self.rounds if self.records is None else max(10, self.records // 3)
        plan: dict[int, list[str]] = {}
        wanted = (
            ("compact", self.compactions or 0),
            ("microcompact", self.microcompactions),
            ("subagent", self.subagents),
            ("persisted", self.persisted),
            ("orphan", self.orphan_results),
            ("unanswered", self.unanswered_calls),
        )
        for offset, (event, times) in enumerate(wanted):
            for number in range(times):
                # Offset, so that two events that were asked for once do not fall into the same round.
                plan.setdefault(max(2, (number + 1) * rounds // (times + 1)) + offset, []).append(event)
        return plan

    def _round(self, builder: SessionBuilder, number: int) -> None:
        chance, events = self._rng.random, self._plan.get(number, [])
        if "compact" in events or (self.compactions is None and self._over_threshold(builder)):
            forced = "compact" in events
            self._compact(builder, "manual" if forced and number % 2 else "auto")
        if "microcompact" in events:
            builder.microcompact(keep=5, marked=builder.version.since("2.1.12"))
        if number % self.prompt_every == 1 or self.prompt_every == 1:
            self._prompt(builder)
        if chance() < self.api_errors and builder.version.since("2.0.5"):
            builder.api_error()
        before = builder.bookmark() if chance() < self.forks else None
        if "subagent" in events:
            self._subagent(builder)
        else:
            self._answer(builder, events)
        if before is not None:
            builder.rewind(before)
            builder.prompt(self._words.text(80))
            self._answer(builder, [])

    def _over_threshold(self, builder: SessionBuilder) -> bool:
        return builder.ledger.estimate_now >= builder.version.auto_compact_threshold

    def _prompt(self, builder: SessionBuilder) -> None:
        text = self._words.text(self._rng.randrange(20, 300))
        content: Content = text
        if self._rng.random() < self.images * self.prompt_every:
            colour = bytes(self._rng.randrange(256) for _ in range(3))
            content = [{"type": "text", "text": text}, image_block(png(16, 16, colour))]
        builder.prompt(content)
        if builder.version.since("2.1.92") and self._rng.random() < 0.3:
            reminder = "The task tools have not been used recently."
            builder.attachment("task_reminder", content=[], itemCount=0, sent=reminder)

    def _answer(self, builder: SessionBuilder, events: list[str]) -> None:
        rng, words = self._rng, self._words
        tools = [self._tool() for _ in range(rng.randrange(2, 5) if rng.random() < self.parallel else 1)]
        thinking = words.text(rng.randrange(80, 700)) if rng.random() < self.thinking else None
        text = words.text(rng.randrange(40, 400)) if rng.random() < 0.6 or not tools else ""
        if "persisted" in events and builder.version.since("2.1.2"):
            response = builder.assistant(text, thinking=thinking, tools=[Tool("Bash", {"command": "make tables"})])
            builder.persisted_result(response.tools[0], words.output(40_000))
            return
        results: list[Result | str | None] = [self._result(builder, tool) for tool in tools]
        if "unanswered" in events:
            results[0] = None
        interleave = len(tools) > 1 and rng.random() < 0.4
        response = builder.assistant(text, thinking=thinking, tools=tools, results=results, interleave=interleave)
        if "orphan" in events:
            builder.result(builder.ids.tool_use(), words.output(200), parent=builder.leaf)
        if rng.random() < self.progress and builder.version.between("2.1.12", "2.1.63"):
            builder.progress(
                "bash_progress", response.tools[0], output="", fullOutput="", elapsedTimeSeconds=2, totalLines=0
            )
        if rng.random() < self.progress and builder.version.since("2.1.1"):
            builder.turn_duration(rng.randrange(2_000, 300_000))

    def _subagent(self, builder: SessionBuilder) -> None:
        task = self._words.text(180)
        name = "Agent" if builder.version.since("2.1.63") else "Task"
        call = Tool(name, {"description": task[:30], "prompt": task, "subagent_type": "Explore"})
        response = builder.assistant(tools=[call])
        leaf = builder.leaf
        child = builder.subagent(response.tools[0], task)
        for _ in range(3):
            tool = self._tool()
            child.assistant(self._words.text(90), tools=[tool], results=[self._result(builder, tool)])
        builder.leaf = leaf if builder.version.subagents == "inline" else builder.leaf
        builder.end_subagent(response.tools[0], child, self._words.text(400))

    def _compact(self, builder: SessionBuilder, trigger: str) -> None:
        summary = "Summary:\n" + "\n".join(
            f"{number}. {title}:\n   {self._words.text(900)}\n" for number, title in enumerate(SUMMARY_SECTIONS, 1)
        )
        path = f"{builder.cwd}/tides/table.py"
        builder.compact(
            summary,
            trigger=trigger,
            preserve=4 if builder.version.since("2.1.217") else 0,
            restore={path: self._words.output(3_000)},
        )

    def _tool(self) -> Tool:
        rng, words = self._rng, self._words
        file = f"/Users/ada/tide-tables/tides/part_{rng.randrange(40)}.py"
        kind = rng.choice(("Bash", "Bash", "Read", "Read", "Grep", "Edit", "Write", "Glob"))
        inputs: dict[str, dict[str, Any]] = {
            "Bash": {"command": words.text(40), "description": words.text(20)},
            "Read": {"file_path": file},
            "Grep": {"pattern": words.text(8), "output_mode": "content"},
            "Glob": {"pattern": "**/*.py"},
            "Edit": {"file_path": file, "old_string": words.output(60), "new_string": words.output(70)},
            "Write": {"file_path": file, "content": words.output(300)},
        }
        return Tool(kind, inputs[kind])

    def _result(self, builder: SessionBuilder, tool: Tool) -> Result:
        rng = self._rng
        size = max(1, int(rng.expovariate(1 / self.result_characters)))
        output = self._words.output(min(size, 60_000))
        failed = rng.random() < 0.05
        if failed:
            return Result(f"Error: {output[:200]}", is_error=True, shown=f"Error: {output[:200]}")
        if tool.name == "Bash":
            shown: Any = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
            return Result(output, is_error=False, shown=shown)
        if tool.name == "Read":
            file = {"filePath": tool.input["file_path"], "content": output, "numLines": output.count("\n") + 1}
            return Result(output, shown={"type": "text", "file": file | {"startLine": 1}})
        if tool.name in ("Edit", "Write"):
            done = f"The file {tool.input['file_path']} has been updated."
            return Result(done, shown={"filePath": tool.input["file_path"], "structuredPatch": []})
        return Result(output, shown={"mode": "content", "numFiles": 0, "filenames": [], "content": output})
