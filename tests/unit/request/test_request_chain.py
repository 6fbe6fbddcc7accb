"""Which records a client puts into the request: leaf, walk, gaps, siblings, boundary (transcript-format.md §6, §7)."""

from __future__ import annotations

import json

import pytest

from tests.unit.request.support import GENERATIONS, MIDDLE, NEW, OLD, Story, call, shape, text


def parallel() -> Story:
    """One response with two calls whose results hang on different records of it."""
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", call("a"))
    story.assistant("a2", "m1", call("b"))
    story.result("r1", "a", parent="a1")
    story.result("r2", "b", parent="a2")
    story.assistant("a3", "m2", text("done"))
    return story


def test_new_clients_put_back_the_parallel_results_that_the_walk_misses() -> None:
    assert shape(parallel().request(NEW))[:4] == [
        "user: 'go'",
        "assistant: call a, call b",
        "user: result a, result b",
        "assistant: 'done'",
    ]


@pytest.mark.parametrize("client", [OLD, MIDDLE])
def test_older_clients_lose_the_parallel_result_and_with_it_the_call(client: str) -> None:
    found = parallel().request(client)
    assert shape(found)[:4] == ["user: 'go'", "assistant: call b", "user: result b", "assistant: 'done'"]
    assert [d.reason for d in found.dropped] == [
        "tool_use without a result: the client drops the call when it loads the session"
    ]


def test_a_progress_record_is_a_link_for_new_clients_and_the_end_of_the_walk_for_old_ones() -> None:
    story = Story()
    story.user("u1", "first")
    story.add("p1", "progress", data={"type": "hook_progress"})
    story.assistant("a1", "m1", text("answer"))
    assert shape(story.request(NEW)) == ["user: 'first'", "assistant: 'answer'"]
    assert shape(story.request(OLD)) == ["assistant: 'answer'"]


def gap(seconds: int) -> Story:
    story = Story()
    story.user("u1", "first")
    story.assistant("a1", "m1", text("one"))
    story.user("u2", "second", parent="never-written", seconds=seconds)
    story.assistant("a2", "m2", text("two"))
    return story


def test_a_missing_parent_is_healed_by_the_record_before_it_in_time() -> None:
    assert shape(gap(3).request(NEW)) == ["user: 'first'", "assistant: 'one'", "user: 'second'", "assistant: 'two'"]


def test_a_gap_of_more_than_five_seconds_is_not_healed() -> None:
    assert shape(gap(6).request(NEW)) == ["user: 'second'", "assistant: 'two'"]


@pytest.mark.parametrize("client", [OLD, MIDDLE])
def test_older_clients_lose_everything_before_a_gap(client: str) -> None:
    assert shape(gap(3).request(client)) == ["user: 'second'", "assistant: 'two'"]


@pytest.mark.parametrize("client", GENERATIONS)
def test_what_stands_before_the_last_boundary_is_not_sent(client: str) -> None:
    story = Story()
    story.user("u1", "old")
    story.assistant("a1", "m1", text("old answer"))
    story.system("b1", "compact_boundary", parent=None, compactMetadata={"trigger": "auto", "preTokens": 9})
    story.user("s1", "summary", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    story.assistant("a2", "m2", text("new answer"))
    assert shape(story.request(client)) == ["user: 'summary'", "assistant: 'new answer'"]


def preserving() -> Story:
    """A compaction that keeps u2 and a2; the next prompt hangs on the preserved tail (1 of 4 in real files)."""
    story = Story()
    story.user("u1", "old")
    story.assistant("a1", "m1", text("old answer"))
    story.user("u2", "kept")
    story.assistant("a2", "m2", text("kept answer"))
    kept = {"anchorUuid": "s1", "uuids": ["u2", "a2"], "allUuids": ["u2", "a2"]}
    story.system("b1", "compact_boundary", parent=None, compactMetadata={"trigger": "auto", "preservedMessages": kept})
    story.user("s1", "summary", isCompactSummary=True)
    story.user("u3", "next", parent="a2")
    story.assistant("a3", "m3", text("next answer"))
    return story


def test_new_clients_send_summary_then_preserved_messages_then_what_follows() -> None:
    assert shape(preserving().request(NEW)) == [
        "user: 'summary\\n', 'kept'",
        "assistant: 'kept answer'",
        "user: 'next'",
        "assistant: 'next answer'",
    ]


def test_a_preserved_segment_without_a_list_is_walked_from_its_tail() -> None:
    story = preserving()
    story.rows = [row.replace("preservedMessages", "unknownField") for row in story.rows]
    boundary = next(i for i, row in enumerate(story.rows) if "compact_boundary" in row)
    record = json.loads(story.rows[boundary])
    record["compactMetadata"]["preservedSegment"] = {"headUuid": "u2", "anchorUuid": "s1", "tailUuid": "a2"}
    story.rows[boundary] = json.dumps(record)
    assert shape(story.request(NEW))[:2] == ["user: 'summary\\n', 'kept'", "assistant: 'kept answer'"]


def forked() -> Story:
    """Two answers to one prompt; the second was written last, the first is what the session went on from."""
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", text("one"))
    story.assistant("a2", "m2", text("dead end"), parent="u1")
    return story


def test_the_checkpoint_leaf_is_used_unless_later_records_continue_past_it() -> None:
    story = forked()
    story.raw({"type": "last-prompt", "lastPrompt": "go", "leafUuid": "a1", "sessionId": "s"})
    assert shape(story.request(NEW)) == ["user: 'go'", "assistant: 'one'"]
    story.user("u3", "again", parent="a1")
    story.assistant("a3", "m3", text("three"))
    assert shape(story.request(NEW))[-2:] == ["user: 'again'", "assistant: 'three'"]


def test_without_a_checkpoint_the_last_record_is_the_leaf() -> None:
    assert shape(forked().request(NEW)) == ["user: 'go'", "assistant: 'dead end'"]


def test_a_rewind_holds_until_the_next_record() -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", text("one"))
    story.user("u2", "regretted")
    story.assistant("a2", "m2", text("dead end"))
    ordinary = {"type": "last-prompt", "lastPrompt": "go", "leafUuid": "a1", "sessionId": "s"}
    story.raw(ordinary)
    assert shape(story.request(NEW))[-1] == "assistant: 'dead end'"
    story.raw({**ordinary, "explicit": True})
    assert shape(story.request(NEW)) == ["user: 'go'", "assistant: 'one'"]
    story.raw({**ordinary, "leafUuid": None, "explicit": True})
    assert story.request(NEW).messages == []


def test_a_checkpoint_before_a_boundary_is_void() -> None:
    story = forked()
    story.raw({"type": "last-prompt", "lastPrompt": "go", "leafUuid": "a1", "sessionId": "s"})
    story.system("b1", "compact_boundary", parent=None, compactMetadata={"trigger": "manual", "preTokens": 9})
    story.user("s1", "summary", isCompactSummary=True)
    story.assistant("a3", "m3", text("three"))
    assert shape(story.request(NEW)) == ["user: 'summary'", "assistant: 'three'"]


def test_older_clients_continue_from_the_newest_timestamp() -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", text("one"))
    story.user("u2", "late", seconds=100)
    story.assistant("a2", "m2", text("written first"), parent="a1", seconds=-50)
    assert shape(story.request(MIDDLE))[2] == "user: 'late'"
    assert shape(story.request(NEW)) == ["user: 'go'", "assistant: 'one'", "assistant: 'written first'"]


@pytest.mark.parametrize("client", [NEW, MIDDLE])
def test_sidechain_records_are_left_out(client: str) -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", text("one"))
    story.user("x1", "subagent", parent=None, isSidechain=True)
    story.assistant("x2", "m9", text("subagent answer"), isSidechain=True)
    assert shape(story.request(client)) == ["user: 'go'", "assistant: 'one'"]


def test_a_subagents_own_file_is_its_conversation() -> None:
    story = Story()
    story.user("x1", "task", parent=None, isSidechain=True, agentId="abc")
    story.assistant("x2", "m9", text("answer"), isSidechain=True, agentId="abc")
    assert shape(story.request(NEW)) == ["user: 'task'", "assistant: 'answer'"]


def test_a_cycle_of_parents_ends() -> None:
    story = Story()
    story.user("u1", "go", parent="a1")
    story.assistant("a1", "m1", text("one"), parent="u1")
    for client in GENERATIONS:
        assert len(story.request(client).messages) <= 2


def test_a_record_replayed_with_the_same_uuid_is_sent_once_with_its_later_content() -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", text("one"))
    story.user("u1", "go again", parent=None)
    story.assistant("a2", "m2", text("two"), parent="a1")
    for client in GENERATIONS:
        assert shape(story.request(client))[0] == "user: 'go again'"


def test_records_on_damaged_lines_are_invisible_to_the_client_that_skips_the_line() -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", text("one"))
    story.user("u2", "glued")
    story.assistant("a2", "m2", text("lost"))
    story.user("u3", "last")
    story.rows[2:4] = [story.rows[2] + story.rows[3]]
    assert shape(story.request(OLD))[0] == "user: 'last'"
    assert "lost" not in json.dumps(shape(story.request(NEW)))
