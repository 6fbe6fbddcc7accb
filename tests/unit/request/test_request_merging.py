"""Rows into messages (clients.md; transcript-format.md §9)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction.errors import UsageError
from compaction.request import Assembler, default_client, generation_for, generations
from tests.unit.request.support import GENERATIONS, MIDDLE, NEW, OLD, Story, call, shape, text, thinking


@pytest.mark.parametrize("client", GENERATIONS)
def test_records_of_one_response_become_one_message(client: str) -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", thinking())
    story.assistant("a2", "m1", text("one"))
    story.assistant("a3", "m1", call("a"))
    story.result("r1", "a")
    story.assistant("a4", "m2", text("two"))
    found = story.request(client)
    assert shape(found)[1] == "assistant: thinking, 'one', call a"
    assert [(o.record, o.line, o.block) for o in found.messages[1].origins if o] == [(1, 2, 0), (2, 3, 0), (3, 4, 0)]


def test_neighbouring_user_records_are_joined_with_a_line_break_by_new_clients() -> None:
    story = Story()
    story.user("u1", "first")
    story.user("u2", "second")
    story.assistant("a1", "m1", text("one"))
    assert shape(story.request(NEW))[0] == "user: 'first\\n', 'second'"
    assert shape(story.request(MIDDLE))[0] == "user: 'first', 'second'"


def test_results_lead_the_merged_message_except_in_the_oldest_generation() -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", call("a"))
    story.user("u2", "while you work", isMeta=True)
    story.result("r1", "a", parent="u2")
    story.assistant("a2", "m2", text("done"))
    assert shape(story.request(MIDDLE))[2] == "user: result a, 'while you work'"
    assert shape(story.request(OLD))[2] == "user: 'while you work', result a"


def interleaved() -> Story:
    """A response whose second block was written behind the first call's result (8 % of real responses)."""
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", call("a"))
    story.result("r1", "a")
    story.assistant("a2", "m1", call("b"))
    story.result("r2", "b")
    story.assistant("a3", "m2", text("done"))
    return story


@pytest.mark.parametrize("client", [NEW, MIDDLE])
def test_an_interleaved_response_is_merged_across_its_results(client: str) -> None:
    assert shape(interleaved().request(client))[1:3] == ["assistant: call a, call b", "user: result a, result b"]


def test_the_oldest_generation_merges_only_adjacent_pieces() -> None:
    assert shape(interleaved().request(OLD))[1:5] == [
        "assistant: call a",
        "user: result a",
        "assistant: call b",
        "user: result b",
    ]


def test_calls_stand_behind_text_unless_thinking_lies_between_them() -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", call("a"), text("after"))
    story.result("r1", "a")
    story.assistant("a2", "m2", thinking(), call("b"), thinking(), call("c"))
    story.result("r2", "b")
    story.result("r3", "c")
    story.assistant("a3", "m3", text("done"))
    found = shape(story.request(NEW))
    assert found[1] == "assistant: 'after', call a"
    assert found[3] == "assistant: thinking, call b, thinking, call c"


def test_a_renamed_tool_is_sent_under_its_present_name() -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", call("a", "Task", prompt="look"))
    story.result("r1", "a")
    story.assistant("a2", "m2", text("done"))
    assert story.request(NEW).messages[1].content[0]["name"] == "Agent"
    assert story.request(MIDDLE).messages[1].content[0]["name"] == "Task"


def test_the_middle_generation_sends_only_the_keys_it_knows() -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant(
        "a1", "m1", {"id": "a", "type": "tool_use", "name": "Bash", "input": {}, "caller": {"type": "direct"}}
    )
    story.result("r1", "a")
    story.assistant("a2", "m2", text("done"))
    assert list(story.request(MIDDLE).messages[1].content[0]) == ["type", "id", "name", "input"]
    assert list(story.request(NEW).messages[1].content[0]) == ["id", "type", "name", "input", "caller"]


def test_cache_control_is_absent_and_key_order_kept() -> None:
    story = Story()
    block = {"cache_control": {"type": "ephemeral"}, "text": "go", "type": "text"}
    story.user("u1", [block])
    story.assistant("a1", "m1", text("one"))
    assert list(story.request(NEW).messages[0].content[0]) == ["text", "type"]
    assert "cache_control" in json.loads(story.rows[0])["message"]["content"][0]


def reminded(content: object, attachment: dict[str, Any], **fields: Any) -> Story:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", call("a"))
    story.result("r1", "a", content)
    story.attachment("t1", attachment, **fields)
    story.assistant("a2", "m2", text("done"))
    return story


NOTE = {
    "type": "nested_memory",
    "path": "/m.md",
    "content": {"path": "/m.md", "content": "remember", "type": "Project"},
}
WRAPPED = "<system-reminder>\nContents of /m.md:\n\nremember\n</system-reminder>"


@pytest.mark.parametrize("client", [NEW, MIDDLE])
def test_a_reminder_becomes_part_of_the_result_before_it(client: str) -> None:
    assert reminded("output\n", NOTE).request(client).messages[2].content[0]["content"] == f"output\n\n{WRAPPED}"


def test_the_oldest_generation_sends_no_attachments_of_a_loaded_session() -> None:
    assert reminded("output", NOTE).request(OLD).messages[2].content[0]["content"] == "output"


def test_a_reminder_behind_a_list_result_is_one_more_item_or_stands_beside() -> None:
    story = reminded([text("output")], NOTE)
    assert story.request(NEW).messages[2].content[0]["content"] == [text("output\n"), text(WRAPPED)]
    assert shape(story.request(MIDDLE))[2] == f"user: result a, {WRAPPED!r}"


def test_attachments_behind_a_prompt_stand_before_it() -> None:
    story = Story()
    story.user("u1", "go")
    story.attachment("t1", NOTE)
    story.assistant("a1", "m1", text("one"))
    assert story.request(MIDDLE).messages[0].content == [text(WRAPPED), text("go")]


def test_the_stored_text_of_an_attachment_is_sent_as_it_is() -> None:
    stored = [{"content": "<system-reminder>\nexact\n</system-reminder>"}]
    story = reminded("output", {"type": "something_new"}, rendered=stored, renderedRole="user")
    words = "<system-reminder>\nexact\n</system-reminder>"
    assert story.request(NEW).messages[2].content[0]["content"] == f"output\n\n{words}"
    beside = reminded(
        "output", {"type": "something_new"}, rendered=stored, renderedRole="user", renderedBesideToolResult=True
    )
    assert shape(beside.request(NEW))[2] == f"user: result a, {words!r}"


def test_an_attachment_whose_text_is_not_known_is_named() -> None:
    found = reminded("output", {"type": "something_new"}).request(NEW)
    assert found.messages[2].content[0]["content"] == "output"
    assert [(u["kind"], u["line"], u["attachment"]) for u in found.unaccounted] == [("attachment", 4, "something_new")]


def test_bookkeeping_attachments_are_not_sent() -> None:
    found = reminded("output", {"type": "command_permissions", "allowedTools": []}).request(NEW)
    assert found.messages[2].content[0]["content"] == "output"
    assert found.unaccounted == []


def test_session_text_in_an_attachment_is_never_read_as_a_template() -> None:
    odd = {"type": "nested_memory", "content": {"path": "/m", "content": "{hookName} {0.__class__}"}}
    assert "{hookName} {0.__class__}" in reminded("x", odd).request(NEW).messages[2].content[0]["content"]


def test_a_queued_command_with_a_picture_keeps_it_beside_the_result() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    story = reminded("output", {"type": "queued_command", "prompt": [text("look"), picture], "commandMode": "prompt"})
    found = story.request(NEW).messages[2].content
    assert [block["type"] for block in found] == ["tool_result", "text", "image"]
    assert "look" in found[1]["text"]


def test_a_task_notification_is_wrapped_by_new_clients() -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", text("one"))
    story.user("u2", "<task-notification>x</task-notification>", origin={"kind": "task-notification"})
    story.assistant("a2", "m2", text("two"))
    words = story.request(NEW).messages[2].content[0]["text"]
    assert words.startswith("<system-reminder>\n[SYSTEM NOTIFICATION")
    assert words.endswith("<task-notification>x</task-notification>\n</system-reminder>")


def test_local_command_records_are_user_text_for_new_clients_only() -> None:
    story = Story()
    story.user("u1", "go")
    story.system("l1", "local_command", content="<local-command-stdout>x</local-command-stdout>")
    story.assistant("a1", "m1", text("one"))
    assert shape(story.request(NEW))[0] == "user: 'go\\n', '<local-command-stdout>x</local-command-stdout>'"
    assert shape(story.request(MIDDLE))[0] == "user: 'go'"


def references(*names: str) -> Story:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", call("a", "ToolSearch"))
    story.result("r1", "a", [{"type": "tool_reference", "tool_name": name} for name in names])
    story.assistant("a2", "m2", text("done"))
    return story


def test_references_to_tools_that_a_resumed_client_has_not_are_removed() -> None:
    found = references("mcp__gone__tool").request(NEW).messages[2].content
    assert found[0]["content"] == [text("[Tool references removed - tools no longer available]")]
    kept = references("WebFetch", "mcp__gone__tool").request(NEW).messages[2].content
    assert kept[0]["content"] == [{"type": "tool_reference", "tool_name": "WebFetch"}]
    assert kept[1] == text("Tool loaded.")
    removed = references("WebFetch").request(MIDDLE).messages[2].content
    assert removed[0]["content"] == [text("[Tool references removed - tool search not enabled]")]


def test_the_default_client_is_the_newest_version_in_the_file() -> None:
    story = Story(version="2.1.9")
    story.user("u1", "go")
    story.version = "2.1.40"
    story.user("u2", "go")
    assert default_client(story.conversation()) == "2.1.40"


@pytest.mark.parametrize(
    ("version", "generation"),
    [
        ("1.0.17", OLD),
        ("1.0.128", OLD),
        ("2.0.5", MIDDLE),
        ("2.1.7", MIDDLE),
        ("2.1.23", NEW),
        ("2.1.332", NEW),
        ("3.0", NEW),
    ],
)
def test_the_nearest_generation_is_taken_for_other_versions(version: str, generation: str) -> None:
    assert generation_for(version).version == generation


def test_a_client_that_is_no_version_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        generation_for("latest")
    assert all(profile.version in str(caught.value) for profile in generations())


def test_a_messages_api_file_is_its_own_request() -> None:
    from compaction.conversation import build_conversation
    from compaction.transcript import transcript_from_bytes

    body = {
        "model": "claude-opus-5-5",
        "max_tokens": 5,
        "system": "be brief",
        "tools": [{"name": "Bash", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [call("a")]},
            {"role": "user", "content": [text("first"), {"type": "tool_result", "tool_use_id": "a", "content": "x"}]},
        ],
    }
    conversation = build_conversation(transcript_from_bytes(json.dumps(body).encode()))
    found = Assembler(conversation, NEW).request()
    assert shape(found) == ["user: 'go'", "assistant: call a", "user: 'first', result a"]
    assert (found.model, found.system, found.params) == ("claude-opus-5-5", [text("be brief")], {"max_tokens": 5})
    assert found.tools == body["tools"]


def test_inputs_that_a_tool_no_longer_takes_are_dropped_when_their_successor_is_there() -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", call("a", "SendMessage", type="message", recipient="r", to="r", message="m"))
    story.result("r1", "a")
    story.assistant("a2", "m2", call("b", "SendMessage", type="message", recipient="r", content="c"))
    story.result("r2", "b")
    story.assistant("a3", "m3", call("c", "ExitPlanMode", plan="P"))
    story.result("r3", "c")
    story.assistant("a4", "m4", text("done"))
    new = [b["input"] for m in story.request(NEW).messages for b in m.content if b["type"] == "tool_use"]
    assert new[:2] == [{"to": "r", "message": "m"}, {"type": "message", "recipient": "r", "content": "c"}]
    middle = [b["input"] for m in story.request(MIDDLE).messages for b in m.content if b["type"] == "tool_use"]
    assert (new[2], middle[2]) == ({"plan": "P"}, {})


def mixed() -> Story:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", {"type": "server_tool_use", "id": "s", "name": "advisor", "input": {}})
    story.assistant("a2", "m1", {"type": "advisor_tool_result", "tool_use_id": "s", "content": {}})
    story.assistant("a3", "m1", call("a"))
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    block = {"type": "tool_result", "tool_use_id": "a", "is_error": True, "content": [text("x"), picture, text("y")]}
    story.user("r1", [block])
    story.assistant("a4", "m2", text("done"))
    return story


def test_what_exactly_the_measured_version_mends_is_mended_for_it_alone() -> None:
    """Error results hold text only (R10); blocks of the advisor are not sent back."""
    measured = mixed().request("2.1.332")
    assert shape(measured)[1:3] == ["assistant: call a", "user: result a"]
    assert measured.messages[2].content[0]["content"] == [text("x\n\ny")]
    assert len(measured.dropped) == 2
    earlier = mixed().request("2.1.240")
    assert [b["type"] for b in earlier.messages[1].content] == ["server_tool_use", "advisor_tool_result", "tool_use"]
    assert [b["type"] for b in earlier.messages[2].content[0]["content"]] == ["text", "image", "text"]


def test_a_response_that_loses_all_its_blocks_says_so() -> None:
    story = Story()
    story.user("u1", "go")
    story.assistant("a1", "m1", {"type": "fallback", "from": "x", "to": "y"})
    story.user("u2", "more")
    story.assistant("a2", "m2", text("done"))
    assert shape(story.request("2.1.332"))[1] == "assistant: '[Advisor response]'"
