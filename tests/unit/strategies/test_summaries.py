"""Prompts, the summary message, and the summariser that needs no model: compaction.md section 7."""

from __future__ import annotations

import pytest

from compaction.strategies.prompts import (
    SECTIONS,
    SummaryMessage,
    format_compact_summary,
    section_titles,
    summary_prompt,
)
from compaction.strategies.summariser import OFFLINE_LABEL, OfflineSummariser, SummaryTask
from tests.generator.builder import Result, SessionBuilder, Tool
from tests.unit.strategies.sessions import bash, edit, given_for, read, session, write


def test_section_7_the_prompt_forbids_tools_first_and_last_and_asks_for_nine_sections() -> None:
    prompt = summary_prompt()
    assert "TEXT ONLY" in prompt.splitlines()[0]
    assert "no tool" in prompt.splitlines()[-1]
    assert "<analysis>" in prompt
    for number, title in enumerate(SECTIONS, 1):
        assert f"{number}. {title}" in prompt
    assert len(SECTIONS) == 9


def test_section_7_up_to_ends_with_context_for_continuing_work() -> None:
    assert section_titles("up_to")[8] == "Context for Continuing Work"
    assert section_titles("from") == section_titles("full") == SECTIONS
    assert "early part" in summary_prompt("up_to")
    assert "recent part" in summary_prompt("from")


def test_section_7_custom_instructions_stand_under_their_own_heading() -> None:
    assert "Additional Instructions:\nfocus on tests" in summary_prompt(custom_instructions=" focus on tests ")
    assert "Additional" not in summary_prompt()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("<analysis>think\nhard</analysis>\n<summary>\n1. X\n</summary>", "Summary:\n1. X"),
        ("<summary>a\n\n\n\nb</summary>", "Summary:\na\n\nb"),
        ("  plain text  ", "plain text"),
        ("<analysis>a</analysis>only this", "only this"),
    ],
)
def test_section_7_format_compact_summary(answer: str, expected: str) -> None:
    assert format_compact_summary(answer) == expected


def test_section_7_the_summary_message_and_its_optional_parts() -> None:
    plain = SummaryMessage().text("SUM")
    assert plain.startswith("This session is being continued from a previous conversation that ran out of context.")
    assert plain.endswith("SUM")
    full = SummaryMessage("t.jsonl", recent_kept=True, continue_unasked=True, autonomous=True).text("SUM")
    for phrase in ("t.jsonl", "verbatim", "without asking", "do not recap", "do not greet"):
        assert phrase in full


def _busy_session() -> SessionBuilder:
    builder = SessionBuilder("2.1.39")
    builder.prompt("Write the reader first.\nUse no regular expressions.")
    builder.assistant("I look at it.", tools=[read("/src/reader.py")], results=["     1→x"])
    failed = Result("Exit code 1\nNameError: reader", is_error=True)
    builder.assistant(tools=[bash("pytest -q")], results=[failed])
    builder.assistant("The name is missing.", tools=[edit("/src/reader.py", "x", "y = 1")], results=["done"])
    builder.prompt("No: keep the old name!")
    todos = [{"content": "rename it back", "status": "in_progress"}, {"content": "run tests", "status": "pending"}]
    builder.assistant(
        tools=[Tool("TodoWrite", {"todos": [{"content": "old", "status": "completed"}, *todos]})], results=["ok"]
    )
    builder.assistant("I rename it back now.", tools=[write("/src/new.py", "whole")], results=["done"])
    return builder


def _sections(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, title in enumerate(SECTIONS, 1):
        start = text.index(f"{number}. {title}:") + len(f"{number}. {title}:")
        end = text.index(f"{number + 1}. {SECTIONS[number]}:") if number < len(SECTIONS) else len(text)
        found[title] = text[start:end]
    return found


def test_section_7_the_offline_summary_has_the_nine_sections_with_what_is_needed_to_go_on() -> None:
    view = given_for(_busy_session()).view
    summary = OfflineSummariser().summarise(SummaryTask(view, view.parts))
    assert summary == OfflineSummariser().summarise(SummaryTask(view, view.parts))
    assert OFFLINE_LABEL in summary.text
    assert summary.usage is None
    parts = _sections(summary.text)
    assert "Use no regular expressions." in parts["All user messages"]
    assert "No: keep the old name!" in parts["All user messages"]
    assert "No: keep the old name!" in parts["Primary Request and Intent"]
    assert "/src/reader.py (read 1×, edit 1×)" in parts["Files and Code Sections"]
    assert "'x' became 'y = 1'" in parts["Files and Code Sections"]
    assert "Bash: pytest -q failed: Exit code 1\nNameError: reader" in parts["Errors and fixes"]
    assert "then: The name is missing.; Edit: /src/reader.py" in parts["Errors and fixes"]
    assert "[in_progress] rename it back" in parts["Pending Tasks"]
    assert "[pending] run tests" in parts["Pending Tasks"]
    assert "old" not in parts["Pending Tasks"]
    assert "I rename it back now." in parts["Current Work"]
    assert "rename it back" in parts["Optional Next Step"]


def test_section_7_user_messages_are_whole_from_the_newest_back_within_the_budget() -> None:
    builder = SessionBuilder("2.1.39")
    for number in range(6):
        builder.prompt(f"request {number}: " + chr(ord("a") + number) * 3_000)
        builder.assistant("yes")
    view = given_for(builder).view
    text = OfflineSummariser(user_characters=7_000).summarise(SummaryTask(view, view.parts)).text
    messages = _sections(text)["All user messages"]
    assert "a" * 3_000 in messages
    assert "f" * 3_000 in messages
    assert "c" * 3_000 not in messages
    assert "request 2" in messages


def test_section_7_an_earlier_summary_is_carried_on() -> None:
    builder = _busy_session()
    builder.compact("Summary:\n1. The tide must be right.")
    builder.prompt("go on")
    builder.assistant("going on")
    view = given_for(builder).view
    text = OfflineSummariser().summarise(SummaryTask(view, view.parts)).text
    assert "The tide must be right." in _sections(text)["Primary Request and Intent"]


def test_section_7_client_texts_are_not_user_messages() -> None:
    builder = session([(bash(), "x")])
    builder.prompt("<system-reminder>be careful</system-reminder>")
    builder.prompt("<command-name>/clear</command-name>")
    builder.assistant("ok")
    view = given_for(builder).view
    messages = _sections(OfflineSummariser().summarise(SummaryTask(view, view.parts)).text)["All user messages"]
    assert "Mend it." in messages
    assert "be careful" not in messages
    assert "/clear" not in messages
