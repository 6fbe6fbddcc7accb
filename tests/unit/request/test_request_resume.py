"""What a client changes when it loads a session (clients.md, "What resume sends")."""

from __future__ import annotations

import pytest

from compaction.request import generation_for
from tests.unit.request.support import GENERATIONS, MIDDLE, NEW, OLD, Story, call, shape, text, thinking


@pytest.mark.parametrize("client", GENERATIONS)
def test_a_call_without_result_in_the_middle_is_dropped_and_its_text_kept(client: str) -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", text("I will"))
    story.assistant("a2", "m1", call("lost"))
    story.assistant("a3", "m2", text("later"))
    found = story.request(client)
    assert shape(found) == ["user: 'go'", "assistant: 'I will'", "assistant: 'later'"]
    assert [(d.record, d.block) for d in found.dropped] == [(2, 0)]


@pytest.mark.parametrize("client", [OLD, MIDDLE])
def test_older_clients_send_an_orphaned_result_as_it_is(client: str) -> None:
    assert shape(orphan().request(client)) == [
        "user: 'go'",
        "assistant: 'one'",
        "user: result gone",
        "assistant: 'two'",
    ]


def orphan() -> Story:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", text("one"))
    story.result("r1", "gone")
    story.assistant("a2", "m2", text("two"))
    return story


def test_new_clients_replace_an_orphaned_result_by_a_placeholder_text() -> None:
    found = orphan().request(NEW)
    assert shape(found) == ["user: 'go'", "assistant: 'one'", "user: '(no content)'", "assistant: 'two'"]
    assert found.messages[2].origins == [None]


def test_a_leading_orphan_gets_its_own_words() -> None:
    story = Story()
    story.result("r1", "gone")
    story.assistant("a1", "m1", text("one"))
    assert shape(story.request(NEW))[0] == "user: '[Orphaned tool result removed due to conversation resume]'"


def test_a_second_result_of_one_call_is_dropped_by_new_clients() -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", call("a"))
    story.result("r1", "a", "first")
    story.result("r2", "a", "second")
    story.assistant("a2", "m2", text("done"))
    assert shape(story.request(NEW))[2] == "user: result a"
    assert story.request(NEW).messages[2].content[0]["content"] == "first"
    assert shape(story.request(MIDDLE))[2] == "user: result a, result a"


@pytest.mark.parametrize("client", GENERATIONS)
def test_an_open_end_is_closed_before_the_new_prompt(client: str) -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", call("a"))
    story.result("r1", "a")
    found = story.request(client)
    assert shape(found)[-1] == "assistant: 'No response requested.'"
    assert found.messages[-1].origins == [None]


def test_the_call_that_was_running_when_the_session_ended_is_answered_by_new_clients() -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", call("a"))
    found = story.request(NEW)
    assert shape(found) == ["user: 'go'", "assistant: call a", "user: result a", "assistant: 'No response requested.'"]
    answer = found.messages[2].content[0]
    assert answer["is_error"] is True
    assert answer["content"] == generation_for(NEW).answers_interrupted_calls
    assert shape(story.request(OLD)) == ["user: 'go'", "assistant: 'No response requested.'"]


def test_an_earlier_lost_call_of_the_interrupted_turn_gets_the_repairs_answer() -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", call("lost"))
    story.assistant("a2", "m2", call("b"))
    story.result("r2", "b")
    story.assistant("a3", "m3", call("running"))
    found = story.request(NEW)
    assert shape(found)[1:3] == ["assistant: call lost", "user: result lost"]
    assert found.messages[2].content[0]["content"] == "[Tool result missing due to internal error]"


def test_no_closing_text_behind_the_output_of_a_local_command() -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", text("one"))
    story.user("u2", "<local-command-caveat>Caveat</local-command-caveat>", isMeta=True)
    story.user("u3", "<command-name>/model</command-name>")
    story.user("u4", "<local-command-stdout>set</local-command-stdout>")
    assert shape(story.request(NEW))[-1].startswith("user: ")
    assert shape(story.request(MIDDLE))[-1] == "assistant: 'No response requested.'"


def test_the_clients_own_error_message_is_sent_only_by_the_oldest_generation_after_a_resume() -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("e1", "x1", text("API Error: 500"), model="<synthetic>", isApiErrorMessage=True)
    story.user("u2", "retry")
    story.assistant("a1", "m1", text("one"))
    assert "API Error" in str(shape(story.request(OLD)))
    assert "API Error" not in str(shape(story.request(MIDDLE)))
    found = story.request(NEW)
    assert "API Error" not in str(shape(found))
    assert found.dropped[0].record == 1


def test_thinking_of_another_model_is_not_sent_by_new_clients() -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", thinking(), model="claude-opus-4-8")
    story.assistant("a2", "m1", text("one"), model="claude-opus-4-8")
    assert shape(story.request(NEW))[1] == "assistant: thinking, 'one'"
    other = story.request(NEW, model="claude-sonnet-4-6")
    assert shape(other)[1] == "assistant: 'one'"
    assert "claude-opus-4-8" in other.dropped[0].reason
    assert shape(story.request(MIDDLE, model="claude-sonnet-4-6"))[1] == "assistant: thinking, 'one'"


def test_a_dated_model_name_is_the_same_model() -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", thinking(), model="claude-haiku-4-5-20251001")
    story.assistant("a2", "m1", text("one"), model="claude-haiku-4-5-20251001")
    assert shape(story.request(NEW, model="claude-haiku-4-5"))[1] == "assistant: thinking, 'one'"


def test_a_response_of_thinking_alone_is_dropped_by_new_clients() -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", thinking())
    story.user("u2", "again")
    story.assistant("a2", "m2", text("one"))
    assert shape(story.request(NEW)) == ["user: 'go\\n', 'again'", "assistant: 'one'"]


def test_blank_text_beside_other_content_is_left_out_by_new_clients() -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", text("\n\n"))
    story.assistant("a2", "m1", text("one"))
    assert shape(story.request(NEW))[1] == "assistant: 'one'"
    assert shape(story.request(OLD))[1] == "assistant: '\\n\\n', 'one'"


def resumable(context: int) -> Story:
    story = Story()
    story.user("u1", "go")
    for number in range(6):
        story.assistant(f"a{number}", f"m{number}", call(f"c{number}"), usage={"input_tokens": context})
        story.result(f"r{number}", f"c{number}", "x" * 100_000)
    story.assistant("a9", "m9", text("done"), usage={"input_tokens": context, "output_tokens": 1})
    return story


def test_old_results_are_cleared_on_resume_above_the_warning_level_and_the_newest_three_stay() -> None:
    """Six results of 25,000 tokens: cleared oldest first until at most 40,000 are left, the newest three never."""
    messages = resumable(135_000).request(OLD).messages
    results = [b["content"] for m in messages for b in m.content if b["type"] == "tool_result"]
    assert [r == "[Old tool result content cleared]" for r in results] == [True, True, True, False, False, False]


def test_nothing_is_cleared_below_the_warning_level_or_by_new_clients() -> None:
    assert "cleared]" not in str(resumable(134_000).request(OLD).messages)
    assert "cleared]" not in str(resumable(135_000).request(NEW).messages)


def test_a_next_request_above_the_threshold_is_named_as_a_summary_request() -> None:
    assert [u["kind"] for u in resumable(155_000).request(MIDDLE).unaccounted] == ["auto_compact"]
    assert resumable(155_000).request(NEW).unaccounted == []
    assert [u["kind"] for u in resumable(167_000).request(NEW).unaccounted] == ["auto_compact"]


def test_unpaired_surrogates_are_replaced_from_the_version_that_heals_them() -> None:
    story = Story()
    story.user("u1", "cut \ud83d")
    story.assistant("a1", "m1", text("one"))
    assert story.request("2.1.332").messages[0].content[0]["text"] == "cut \ufffd"
    assert story.request("2.1.120").messages[0].content[0]["text"] == "cut \ud83d"


def test_a_split_response_is_made_whole_and_an_early_result_moved_behind_its_call() -> None:
    story = Story()
    story.user("u1", "go")
    story.result("r1", "a", sourceToolAssistantUUID="a1")
    story.assistant("a1", "m1", call("a"))
    story.attachment("t1", {"type": "total_tokens_reminder", "text": "left"})
    story.assistant("a2", "m1", call("b"))
    story.result("r2", "b")
    story.assistant("a3", "m2", text("done"))
    assert shape(story.request(NEW))[:3] == ["user: 'go'", "assistant: call a, call b", "user: result a, result b"]
