"""The request that led to an API round, recorded requests and their proof (clients.md)."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from compaction.errors import UsageError
from compaction.request import Assembler
from tests.support import corpus_files, needs_shared
from tests.unit.request.support import NEW, OLD, Story, call, shape, text


def two_rounds() -> Story:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", text("I will"))
    story.assistant("a2", "m1", call("a"))
    story.result("r1", "a")
    story.assistant("a3", "m2", text("done"))
    story.user("u2", "more")
    return story


def test_the_request_of_a_round_ends_before_its_response() -> None:
    story = two_rounds()
    assert shape(story.request(NEW, 1)) == ["user: 'go'"]
    assert shape(story.request(NEW, 2)) == ["user: 'go'", "assistant: 'I will', call a", "user: result a"]


def test_a_running_clients_request_has_no_marks_of_a_resume() -> None:
    story = two_rounds()
    assert "No response requested." not in str(shape(story.request(OLD, 2)))
    assert shape(story.request(OLD))[-1] == "assistant: 'No response requested.'"


@pytest.mark.parametrize("at", [0, 3, -1])
def test_a_round_that_does_not_exist_is_a_usage_error(at: int) -> None:
    with pytest.raises(UsageError, match="the session has 2"):
        two_rounds().request(NEW, at)


def test_recorded_microcompactions_are_applied_to_later_rounds_and_named_on_resume() -> None:
    story = Story("2.1.14")
    story.user("u1", "go")
    story.assistant("a1", "m1", call("a"))
    story.result("r1", "a", "long output")
    story.system("x1", "microcompact_boundary", microcompactMetadata={"trigger": "auto", "compactedToolIds": ["a"]})
    story.assistant("a2", "m2", text("done"))
    assert story.request(NEW, 2).messages[2].content[0]["content"] == "[Old tool result content cleared]"
    following = story.request(NEW)
    assert following.messages[2].content[0]["content"] == "long output"
    assert [(u["kind"], u["ids"]) for u in following.unaccounted] == [("microcompaction", ["a"])]


def test_attachments_that_a_microcompaction_removed_are_not_sent_later() -> None:
    story = Story("2.1.14")
    story.user("u1", "go")
    story.attachment("t1", {"type": "total_tokens_reminder", "text": "five left"})
    story.assistant("a1", "m1", text("one"))
    details = {"trigger": "auto", "compactedToolIds": [], "clearedAttachmentUUIDs": ["t1"]}
    story.system("x1", "microcompact_boundary", microcompactMetadata=details)
    story.user("u2", "more")
    story.assistant("a2", "m2", text("two"))
    assert "five left" in str(shape(story.request(NEW, 1)))
    later = story.request(NEW, 2)
    assert "five left" not in str(shape(later))
    assert [(d.record, d.reason) for d in later.dropped] == [(1, "cleared by a microcompaction")]


def test_what_the_server_cut_before_the_model_saw_it_is_named() -> None:
    story = two_rounds()
    edit = {"type": "clear_tool_uses_20250919", "cleared_input_tokens": 5000, "cleared_tool_uses": 3}
    place = next(i for i, row in enumerate(story.rows) if '"m2"' in row)
    record = json.loads(story.rows[place])
    record["message"]["context_management"] = {"applied_edits": [edit]}
    story.rows[place] = json.dumps(record)
    named = story.request(NEW, 2).unaccounted
    assert [(u["kind"], u["edit"]) for u in named] == [("server_edit", edit)]
    assert story.request(NEW, 1).unaccounted == []


def test_a_silent_drop_is_named_as_unknown() -> None:
    story = Story("2.1.5")
    story.user("u1", "go")
    for number, context in enumerate((90_000, 140_000, 100_000, 101_000), 1):
        usage = {"input_tokens": context, "output_tokens": 5}
        story.assistant(f"a{number}", f"m{number}", call(f"c{number}"), usage=usage)
        story.result(f"r{number}", f"c{number}")
    assert story.request(NEW, 2).unaccounted == []
    named = story.request(NEW, 4).unaccounted
    assert [u["kind"] for u in named] == ["silent_drop"]
    assert "140000" in named[0]["message"]
    assert "items unknown" in named[0]["message"]


@needs_shared
def test_rounds_in_order_are_the_exact_requests_on_real_sessions() -> None:
    """Sharing work between rounds changes no request (a result that came late may stand one round earlier)."""
    from compaction.conversation import build_conversation
    from compaction.transcript import open_transcript

    same = total = 0
    for path in corpus_files()[:24]:
        conversation = build_conversation(open_transcript(path))
        assembler = Assembler(conversation)
        for number, shared in assembler.rounds():
            if number % 5 and number != conversation.round_count:
                continue
            exact = assembler.request(number)
            same += [(m.role, m.content) for m in shared.messages] == [(m.role, m.content) for m in exact.messages]
            total += 1
    assert total > 100
    assert same >= total - 2


def digest(role: str, content: list[dict[str, Any]]) -> str:
    """clients.md: SHA-256 of the message as JSON with sorted keys and no spaces."""
    words = json.dumps({"role": role, "content": content}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(words.encode()).hexdigest()


REMINDER = [text("<system-reminder>\nonly the wire had this\n</system-reminder>"), text("go")]


def recorded(*, blob: bool = True) -> Story:
    """A session with the request records of a new client; the first message is known from a blob alone."""
    story = Story()
    story.user("u1", "go")
    first = digest("user", REMINDER)
    story.raw({"type": "api-request-shape", "shapeHash": "s1", "shape": {"system": [text("rules")], "tools": []}})
    if blob:
        marked = [REMINDER[0], {**REMINDER[1], "cache_control": {"type": "ephemeral"}}]
        story.raw({"type": "api-request-blob", "hash": first, "message": {"role": "user", "content": marked}})
    params = {"model": "claude-sonnet-4-6", "max_tokens": 32000, "thinking": {"type": "adaptive"}}
    story.raw({"type": "api-request", "id": "q1", "shapeHash": "s1", "params": params, "keep": 0, "tail": [first]})
    story.assistant("a1", "m1", text("I will"), requestRef="q1")
    story.assistant("a2", "m1", call("a"), requestRef="q1")
    story.result("r1", "a", "é 😀")
    answer = digest("assistant", [text("I will"), call("a")])
    output = digest("user", [{"type": "tool_result", "tool_use_id": "a", "content": "é 😀"}])
    tail = [answer, output]
    edits = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    more = {**params, "context_management": edits}
    story.raw(
        {"type": "api-request", "id": "q2", "shapeHash": "s1", "params": more, "base": "q1", "keep": 1, "tail": tail}
    )
    story.assistant("a3", "m2", text("done"), requestRef="q2")
    return story


def test_a_recorded_request_is_rebuilt_and_proven_by_hash() -> None:
    found = recorded().request(NEW, 2)
    assert found.verified == "hash"
    assert found.unaccounted == []
    assert found.messages[0].content == REMINDER
    assert shape(found)[1:] == ["assistant: 'I will', call a", "user: result a"]
    assert (found.system, found.tools) == ([text("rules")], [])
    assert found.thinking == {"type": "adaptive"}
    assert found.params["context_management"]["edits"][0]["type"] == "clear_thinking_20251015"


def test_blocks_of_a_blob_point_to_the_record_they_are_in_and_injected_ones_to_none() -> None:
    origins = recorded().request(NEW, 1).messages[0].origins
    assert origins[0] is None
    assert origins[1] is not None
    assert origins[1].line == 1


def test_a_message_that_nothing_accounts_for_is_named_and_the_request_not_called_proven() -> None:
    found = recorded(blob=False).request(NEW, 2)
    assert found.verified == "profile"
    assert [(u["kind"], u["index"]) for u in found.unaccounted] == [("unproven_message", 0)]
    assert shape(found)[0] == "user: 'go'"
    assert len(found.messages) == 3


def test_a_changed_record_no_longer_matches_its_hash() -> None:
    story = recorded()
    story.rows = [row.replace("I will", "I would") for row in story.rows]
    assert [u["kind"] for u in story.request(NEW, 2).unaccounted] == ["unproven_message"]


def test_a_request_whose_base_is_not_in_the_file_says_so() -> None:
    story = recorded()
    story.rows = [row for row in story.rows if '"id": "q1"' not in row]
    found = story.request(NEW, 2)
    assert found.verified == "profile"
    assert found.unaccounted[0]["kind"] == "missing_base"


def test_the_next_request_is_never_called_proven() -> None:
    assert recorded().request(NEW).verified == "profile"
