"""Structure: rounds, pairs, chain, epochs, forks, sidechains (compaction.md §3; transcript-format.md §5–§8)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction.conversation import Conversation, build_conversation, group_by_api_round
from compaction.transcript import transcript_from_bytes


def user(uuid: str, parent: str | None, content: Any = "hi", **more: Any) -> dict[str, Any]:
    return {"type": "user", "uuid": uuid, "parentUuid": parent, "message": {"role": "user", "content": content}, **more}


def assistant(
    uuid: str, parent: str | None, message_id: str, block: Any = None, context: int = 0, **more: Any
) -> dict[str, Any]:
    message = {
        "id": message_id,
        "role": "assistant",
        "model": "claude-opus-4-5",
        "content": [block or {"type": "text", "text": "ok"}],
        "usage": {"input_tokens": context, "output_tokens": 1},
    }
    return {"type": "assistant", "uuid": uuid, "parentUuid": parent, "message": message, **more}


def use(identifier: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": identifier, "name": "Bash", "input": {"command": "ls"}}


def result(identifier: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": identifier, "content": "out"}]


def boundary(uuid: str, trigger: str = "auto", pre: int = 155_000) -> dict[str, Any]:
    return {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": uuid,
        "parentUuid": None,
        "compactMetadata": {"trigger": trigger, "preTokens": pre},
    }


def conversation(*records: dict[str, Any]) -> Conversation:
    return build_conversation(transcript_from_bytes(b"".join(json.dumps(r).encode() + b"\n" for r in records)))


def test_grouping_exercise_of_section_14_2() -> None:
    """user, A1, result, A1, A2, result, A2 gives 3 groups of 1, 3 and 3 messages (compaction.md §3)."""
    groups = group_by_api_round([None, "A1", None, "A1", "A2", None, "A2"])
    assert [len(g) for g in groups] == [1, 3, 3]
    assert [i for g in groups for i in g] == list(range(7))


def test_records_of_one_message_id_are_one_response_and_one_round() -> None:
    c = conversation(
        user("u", None),
        assistant("a1", "u", "m1", use("t1")),
        user("r1", "a1", result("t1")),
        assistant("a2", "r1", "m1"),
        assistant("b", "a2", "m2"),
    )
    assert (c.response_count, c.round_count) == (2, 2)
    assert c.response_records(0) == [1, 3]
    assert list(c.round_of) == [0, 1, 1, 1, 2]
    assert c.round(1).first_record == 1
    assert c.round(1).end_record == 4
    with pytest.raises(IndexError, match="no API round 3"):
        c.round(3)


def test_pairs_join_by_id_across_siblings() -> None:
    c = conversation(
        user("u", None),
        assistant("a1", "u", "m", use("t1")),
        assistant("a2", "a1", "m", use("t2")),
        user("r1", "a1", result("t1")),
        user("r2", "a2", result("t2")),
        assistant("x", "r2", "n", use("t3")),
        user("o", "x", result("gone")),
    )
    assert list(c.pair) == [-1, 3, 4, 1, 2, -1, -1]
    assert c.uses_without_result == [5]
    assert c.results_without_use == [6]
    assert c.duplicate_results == []


def test_a_second_result_for_one_call_is_a_duplicate_but_a_replayed_record_is_none() -> None:
    first = user("r", "a", result("t"))
    c = conversation(user("u", None), assistant("a", "u", "m", use("t")), first, first, user("r2", "a", result("t")))
    assert c.duplicate_results == [4]


def test_a_duplicate_uuid_means_the_nearest_earlier_record() -> None:
    c = conversation(user("u", None), user("d", "u"), assistant("x", "d", "m"), user("d", "x"), user("y", "d"))
    assert list(c.parent) == [-1, 0, 1, 2, 3]


def test_parents_that_are_not_in_the_file_dangle_and_cycles_end() -> None:
    c = conversation(user("a", "gone"), user("b", "c"), user("c", "b"), user("self", "self"))
    assert c.dangling == [0, 3]
    assert sorted(c.chain(2)) == [1, 2]


def test_parallel_results_and_progress_are_no_branches_but_a_second_prompt_is() -> None:
    progress = {"type": "progress", "uuid": "p", "parentUuid": "a1", "data": {"type": "bash_progress"}}
    c = conversation(
        user("u", None),
        assistant("a1", "u", "m", use("t1")),
        assistant("a2", "a1", "m", use("t2")),
        progress,
        user("r1", "a1", result("t1")),
        user("r2", "a2", result("t2")),
        assistant("b", "r2", "n"),
        user("p1", "b", "first try"),
        user("p2", "b", "second try"),
    )
    assert [(f.parent, f.children) for f in c.branches] == [(6, (7, 8))]


def test_epochs_are_cut_by_file_position_and_preludes_have_no_round() -> None:
    c = conversation(
        user("u", None),
        assistant("a", "u", "m1", context=150_000),
        boundary("cb"),
        user("s", "cb", "summary", isCompactSummary=True),
        user("p", "s", "go on"),
        assistant("b", "p", "m2", context=50_000),
    )
    assert [(e.kind, e.first_record, e.end_record, e.boundary_record) for e in c.epochs] == [
        ("start", 0, 2, -1),
        ("auto", 2, 6, 2),
    ]
    assert list(c.round_of) == [0, 1, 0, 0, 0, 2]
    (found,) = c.compactions
    assert (found.kind, found.round, found.line, found.pre_tokens) == ("auto", 1, 3, 155_000)
    assert (found.context_before, found.context_after) == (150_000, 50_000)


def test_a_summary_without_boundary_is_a_legacy_compaction() -> None:
    c = conversation(
        user("u", None),
        assistant("a", "u", "m1"),
        user("s", None, "summary", isCompactSummary=True),
        assistant("b", "s", "m2"),
    )
    assert [x.kind for x in c.compactions] == ["legacy"]


def test_a_file_may_begin_with_a_boundary() -> None:
    c = conversation(boundary("cb", "manual"), user("s", "cb", "summary", isCompactSummary=True))
    assert [(e.kind, e.boundary_record) for e in c.epochs] == [("manual", 0)]
    assert [x.kind for x in c.compactions] == ["manual"]


def test_a_fall_of_more_than_15000_tokens_with_no_record_is_silent_but_a_rewind_is_not() -> None:
    turns = [
        user("u", None),
        assistant("a", "u", "m1", context=90_000),
        user("p", "a"),
        assistant("b", "p", "m2", context=74_999),
    ]
    assert [(x.kind, x.round) for x in conversation(*turns).compactions] == [("silent", 1)]
    turns[-1] = assistant("b", "p", "m2", context=75_000)
    assert conversation(*turns).compactions == []
    rewound = [
        user("u", None),
        assistant("a", "u", "m1", context=20_000),
        user("p", "a"),
        assistant("b", "p", "m2", context=90_000),
        user("q", "a"),
        assistant("c", "q", "m3", context=30_000),
    ]
    assert conversation(*rewound).compactions == []


def test_server_iterations_do_not_look_like_a_compaction() -> None:
    """The top level is the sum of two calls; the context is the last message iteration (transcript-format.md §5)."""
    doubled = assistant("a", "u", "m1", context=223_140)
    call = {"type": "message", "input_tokens": 113_158}
    doubled["message"]["usage"]["iterations"] = [{"type": "message", "input_tokens": 109_982}, call]
    c = conversation(user("u", None), doubled, user("p", "a"), assistant("b", "p", "m2", context=114_000))
    assert c.round_context(1) == 113_158
    assert c.compactions == []


def test_sidechains_are_threads_of_their_own_linked_by_their_prompt() -> None:
    task = {"type": "tool_use", "id": "t", "name": "Task", "input": {"prompt": "look"}}
    c = conversation(
        user("u", None),
        assistant("a", "u", "m1", task),
        user("s1", None, "look", isSidechain=True),
        assistant("s2", "s1", "m2", isSidechain=True),
        user("r", "a", result("t")),
        {"type": "mode", "mode": "plan"},
    )
    assert list(c.thread) == [0, 0, 1, 1, 0, -1]
    assert c.thread_roots == [-1, 2]
    assert c.inline_starter(1) == 1
    assert c.round_count == 1
    assert c.leaf == 4


def test_a_subagents_own_file_is_its_main_thread() -> None:
    c = conversation(user("s1", None, isSidechain=True), assistant("s2", "s1", "m", isSidechain=True))
    assert c.is_subagent_file
    assert list(c.thread) == [0, 0]
    assert c.round_count == 1


def test_the_leaf_is_last_prompts_unless_the_conversation_went_on() -> None:
    prompt = {"type": "last-prompt", "leafUuid": "a"}
    turns = [user("u", None), assistant("a", "u", "m1"), user("x", "a"), assistant("y", "x", "m2")]
    assert conversation(*turns, prompt).leaf == 1
    assert conversation(*turns[:2], prompt, *turns[2:]).leaf == 4
    assert conversation(*turns, {"type": "last-prompt", "leafUuid": "gone"}).leaf == 3
    assert conversation().leaf == -1
