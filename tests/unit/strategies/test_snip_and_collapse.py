"""Snip and Context Collapse: compaction.md section 9."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction.conversation import build_conversation
from compaction.strategies.apply import applied
from compaction.strategies.inputs import strategy_input
from compaction.strategies.snip import superseded_reads
from compaction.transcript import transcript_from_bytes
from tests.generator.builder import Result, SessionBuilder, Tool
from tests.unit.strategies.sessions import bash, edit, given_for, plan_of, read, results_in, session, write

TAIL = [(bash(f"tail {n}"), f"tail {n}") for n in range(4)]
LONG = "     1→" + "text " * 300


@pytest.mark.parametrize(
    ("later", "gone"),
    [
        ((read("/a"), LONG), True),
        ((edit("/a"), "done"), True),
        ((write("/a", "x"), "done"), True),
        ((Tool("NotebookEdit", {"notebook_path": "/a"}), "done"), True),
        ((read("/b"), LONG), False),
        ((read("/a", offset=10, limit=5), LONG), False),
        ((edit("/a"), Result("not found", is_error=True)), False),
    ],
)
def test_section_9_a_read_is_superseded_by_a_later_read_edit_or_write(later: tuple[Tool, str], gone: bool) -> None:
    plan = plan_of("snip", given_for(session([(read("/a"), LONG), later, *TAIL])))
    assert plan.applies is gone
    if gone:
        assert LONG not in results_in(plan)[:1] or later[1] == LONG
        assert plan.tokens_freed > 0


def test_section_9_parts_of_a_file_supersede_only_the_same_part() -> None:
    steps = [
        (read("/a", offset=1, limit=9), "first"),
        (read("/a", offset=20, limit=9), "second"),
        (read("/a", offset=1, limit=9), "again"),
        *TAIL,
    ]
    view = given_for(session(steps)).view
    assert superseded_reads(view) == {view.pairs[0].id}


def test_section_9_whole_responses_with_all_their_pairs_or_nothing() -> None:
    builder = SessionBuilder("2.1.39")
    builder.prompt("go")
    builder.assistant(tools=[read("/a"), bash("x")], results=[LONG, "out"])
    builder.assistant(tools=[read("/a"), read("/b")], results=[LONG, LONG])
    builder.assistant(tools=[read("/a"), read("/b")], results=["new a", "new b"])
    for tool, text in TAIL:
        builder.assistant(tools=[tool], results=[text])
    plan = plan_of("snip", given_for(builder))
    assert results_in(plan)[:3] == [LONG, "out", "new a"]
    assert [item.kind for item in plan.removed].count("tool_use") == 2


def test_section_9_an_answer_that_explains_something_stays() -> None:
    builder = SessionBuilder("2.1.39")
    builder.prompt("go")
    builder.assistant("This matters because " + "why " * 200, tools=[read("/a")], results=[LONG])
    builder.assistant(tools=[edit("/a")], results=["done"])
    for tool, text in TAIL:
        builder.assistant(tools=[tool], results=[text])
    assert not plan_of("snip", given_for(builder)).applies
    assert plan_of("snip", given_for(builder), max_text_characters=2_000).applies


def test_section_9_the_chain_holds_and_prompts_stay() -> None:
    builder = session([(read("/a"), LONG), (edit("/a"), "done"), *TAIL])
    given = given_for(builder)
    plan = plan_of("snip", given)
    after = applied(given.conversation.transcript, plan.edits)
    assert after.dangling == []
    assert len(after.roots) == len(given.conversation.roots)
    assert plan.lost.user_messages == 0
    assert len(after.chain()) == len(given.conversation.chain()) - 2


def test_section_9_rounds_with_thinking_in_the_open_loop_stay() -> None:
    """A resumed session closes its open loop; a request document can end with one (api.md 2.4)."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for number, tool in enumerate([read("/a"), edit("/a"), *(tool for tool, _ in TAIL)]):
        call = {"type": "tool_use", "id": f"t{number}", "name": tool.name, "input": tool.input}
        thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
        messages.append({"role": "assistant", "content": [thinking, call]})
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": LONG}
        messages.append({"role": "user", "content": [result]})
    finished = [*messages, {"role": "assistant", "content": "finished"}, {"role": "user", "content": "thanks"}]
    for document, applies in ((messages, False), (finished, True)):
        data = json.dumps({"model": "claude-opus-4-6", "messages": document}).encode()
        given = strategy_input(build_conversation(transcript_from_bytes(data)), now_ms=0)
        assert plan_of("snip", given).applies is applies


def _segments(count: int) -> SessionBuilder:
    builder = SessionBuilder("2.1.39")
    for number in range(count):
        builder.prompt(f"request {number}")
        steps = [read(f"/f{number}.py"), bash(f"test {number}")]
        builder.assistant(tools=steps, results=["     1→" + "x " * 2_000, Result("failed " * 40, is_error=True)])
        builder.assistant(f"outcome {number}")
    return builder


def test_section_9_finished_segments_fold_into_a_stand_in_with_prompt_files_tools_and_outcome() -> None:
    plan = plan_of("context-collapse", given_for(_segments(4)))
    texts = [b["text"] for m in plan.after.messages for b in m.content if b.get("type") == "text"]
    folded = [text for text in texts if text.startswith("<collapsed-segment>")]
    assert len(folded) == 2
    for number, text in enumerate(folded):
        assert f"Prompt: request {number}" in text
        assert f"/f{number}.py (read 1×)" in text
        assert "Bash 1×" in text
        assert "1 calls failed" in text
        assert f"Outcome: outcome {number}" in text
    assert any(text.startswith("request 2") for text in texts)
    assert any("reversible" in note for note in plan.notes)


def test_section_9_the_open_segment_and_small_ones_stay() -> None:
    assert not plan_of("context-collapse", given_for(_segments(1)), keep_recent_segments=1).applies
    assert len(plan_of("context-collapse", given_for(_segments(4)), keep_recent_segments=1).inserted) == 3
    assert not plan_of("context-collapse", given_for(_segments(4)), min_tokens=50_000).applies


def test_section_9_a_fold_is_a_projection_and_the_chain_holds() -> None:
    given = given_for(_segments(5))
    plan = plan_of("context-collapse", given)
    after = applied(given.conversation.transcript, plan.edits)
    assert after.dangling == []
    assert len(after.roots) == 1
    assert plan.lost.user_messages == 3
    assert set(plan.lost.files) == {"/f0.py", "/f1.py", "/f2.py"}
