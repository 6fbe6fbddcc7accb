"""What comes back after a compaction: compaction.md section 6, restore budgets."""

from __future__ import annotations

import pytest

from compaction.strategies.restore import (
    FILE_MARKER,
    SKILL_MARKER,
    FileState,
    RestoreSettings,
    choose_files,
    file_states,
    restored_context,
    truncated_skill,
)
from tests.generator.builder import Result, SessionBuilder, Tool
from tests.unit.strategies.sessions import bash, edit, given_for, plan_of, read, session, write

NOW = 1_000_000_000


def _file(path: str, size: int, age: int = 1_000) -> FileState:
    return FileState(path, "x" * size, NOW - age, 0, 1)


def test_section_14_exercise_3_budgets_and_exclusions() -> None:
    files = [
        _file("src/auth.ts", 20_000, 10),
        _file("src/db.ts", 8_000, 20),
        _file("src/api.ts", 30_000, 30),
        _file("CLAUDE.md", 4_000, 5),
    ]
    chosen = choose_files(files, set(), RestoreSettings(), NOW)
    assert [(r.label, r.content_tokens, r.cut) for r in chosen] == [
        ("src/auth.ts", 5_000, False),
        ("src/db.ts", 2_000, False),
        ("src/api.ts", 5_000, True),
    ]
    assert FILE_MARKER in chosen[2].block["text"]


def test_section_6_defaults() -> None:
    s = RestoreSettings()
    assert (s.max_files, s.total_tokens, s.file_tokens, s.skill_tokens, s.skills_tokens) == (
        5,
        50_000,
        5_000,
        5_000,
        25_000,
    )


def test_section_6_newest_first_and_at_most_five() -> None:
    files = [_file(f"f{n}", 100, age=n * 1_000) for n in range(8)]
    chosen = choose_files(files, set(), RestoreSettings(), NOW)
    assert [r.label for r in chosen] == ["f0", "f1", "f2", "f3", "f4"]


def test_section_6_the_total_budget_counts_the_json_and_admits_only_what_fits() -> None:
    files = [_file("big1", 20_000, 1), _file("big2", 20_000, 2), _file("small", 400, 3)]
    chosen = choose_files(files, set(), RestoreSettings(total_tokens=6_000), NOW)
    assert [r.label for r in chosen] == ["big1", "small"]
    assert sum(r.cost for r in chosen) <= 6_000


@pytest.mark.parametrize(
    "path", ["CLAUDE.md", "/a/CLAUDE.local.md", "/a/.claude/rules/x.md", "C:\\p\\CLAUDE.md", "/h/.claude/plans/p.md"]
)
def test_section_6_memory_and_plan_files_have_their_own_way_back(path: str) -> None:
    assert choose_files([_file(path, 100)], set(), RestoreSettings(), NOW) == []


def test_section_6_a_file_whose_read_survives_in_the_kept_tail_is_not_restored_again() -> None:
    steps = [(read("/a.py"), "     1→alpha"), (read("/b.py"), "     1→beta"), (bash(), "out " * 50)]
    view = given_for(session(steps)).view
    tail = view.parts[-5:]
    assert any(pair.input.get("file_path") == "/b.py" for pair in view.pairs if pair.result in tail)
    labels = [r.label for r in restored_context(view, tail, RestoreSettings(), NOW)]
    assert labels == ["/a.py"]


def test_section_6_contents_come_from_the_transcripts_own_reads_edits_and_writes() -> None:
    shown = {"type": "text", "file": {"filePath": "/a.py", "content": "one\ntwo\n"}}
    edited = {"filePath": "/c.py", "originalFile": "left\nright\n", "oldString": "left", "newString": "LEFT"}
    steps = [
        (read("/a.py"), Result("     1→one\n     2→two", shown=shown)),
        (edit("/a.py", "two", "TWO"), "done"),
        (read("/b.py"), "     1→x\n     2→y\n\n<system-reminder>careful</system-reminder>"),
        (edit("/c.py", "left", "LEFT"), Result("done", shown=edited)),
        (write("/d.py", "whole"), "done"),
        (read("/e.py"), Result("no such file", is_error=True)),
        (edit("/f.py", "a", "b"), "done"),
    ]
    states = file_states(given_for(session(steps)).view)
    assert {path: state.content for path, state in states.items()} == {
        "/a.py": "one\nTWO\n",
        "/b.py": "x\ny",
        "/c.py": "LEFT\nright\n",
        "/d.py": "whole",
    }


def test_section_6_restored_files_say_how_old_they_are() -> None:
    plan = plan_of(
        "auto-compact", given_for(session([(write("/d.py", "whole file " * 20), "done"), (bash(), "x " * 900)]))
    )
    texts = [b["text"] for m in plan.after.messages for b in m.content if b.get("type") == "text"]
    assert any("/d.py as it was 2 hours earlier" in text for text in texts)


def test_section_6_a_skill_is_cut_at_its_head_to_the_budget_with_its_marker() -> None:
    text = "s" * 30_000
    cut = truncated_skill(text, 5_000)
    assert len(cut) == 5_000 * 4
    assert cut == "s" * (20_000 - len(SKILL_MARKER)) + SKILL_MARKER
    assert truncated_skill("short", 5_000) == "short"


def test_section_6_skills_come_back_newest_first_within_their_budget() -> None:
    builder = SessionBuilder("2.1.39")
    builder.prompt("use your skills")
    for name in ("alpha", "beta", "gamma"):
        call = builder.assistant(tools=[Tool("Skill", {"skill": name})], results=["Launching skill"]).tools[0]
        builder.prompt([{"type": "text", "text": f"{name} says " + "w" * 18_000}], meta=True, sourceToolUseID=call)
    builder.assistant("done " * 3_000)
    restored = restored_context(given_for(builder).view, (), RestoreSettings(skills_tokens=10_000), NOW)
    assert [(r.kind, r.label) for r in restored] == [("skill", "gamma"), ("skill", "beta")]


def test_section_6_plan_file_and_running_agents_come_back() -> None:
    builder = SessionBuilder("2.1.39")
    builder.prompt("plan it")
    builder.assistant(tools=[write("/h/.claude/plans/calm-sea.md", "1. sail")], results=["done"])
    launched = Result("launched", shown={"status": "async_launched", "agentId": "a1"})
    ended = Result("launched", shown={"status": "async_launched", "agentId": "a2"})
    builder.assistant(tools=[Tool("Task", {"description": "look"})], results=[launched])
    builder.assistant(tools=[Tool("Task", {"description": "seek"})], results=[ended])
    builder.prompt("<task-notification>a2 is done</task-notification>")
    builder.assistant("fine")
    restored = restored_context(given_for(builder).view, (), RestoreSettings(), NOW)
    assert [(r.kind, r.label) for r in restored] == [("agents", "1 running"), ("plan", "/h/.claude/plans/calm-sea.md")]
    assert "a1" in restored[0].block["text"]
    assert "1. sail" in restored[1].block["text"]


def test_section_6_nothing_comes_back_when_restoring_is_off() -> None:
    given = given_for(session([(write("/d.py", "whole"), "done")]))
    assert restored_context(given.view, (), RestoreSettings(restore=False), NOW) == ()
