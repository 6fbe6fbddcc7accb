"""Small invented requests, one or more for each API rule; the tests of the request rules read them."""

from __future__ import annotations

import base64
import struct
from typing import Any

from compaction.diagnosis.view import PLAIN_API
from compaction.request.wire import WireMessage, WireRequest

Json = dict[str, Any]


def call(identity: str, name: str = "Bash", **value: Any) -> Json:
    return {"type": "tool_use", "id": identity, "name": name, "input": value or {"command": "date"}}


def answer(identity: str, content: Any = "done", **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": identity, "content": content, **more}


def text(value: str) -> Json:
    return {"type": "text", "text": value}


def thought(value: str = "Consider.", signature: str = "SigA") -> Json:
    return {"type": "thinking", "thinking": value, "signature": signature}


def user(*blocks: Json | str) -> Json:
    return {"role": "user", "content": [text(b) if isinstance(b, str) else b for b in blocks]}


def assistant(*blocks: Json | str) -> Json:
    return {"role": "assistant", "content": [text(b) if isinstance(b, str) else b for b in blocks]}


def png(width: int = 4, height: int = 4) -> Json:
    data = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\x08\x02\0\0\0"
    return image(base64.b64encode(data).decode())


def image(data: str, media_type: str = "image/png") -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def marked(value: str, ttl: str = "5m") -> Json:
    return {**text(value), "cache_control": {"type": "ephemeral", "ttl": ttl}}


def request(messages: list[Json], **more: Any) -> WireRequest:
    """A wire request of a plain API document; thinking may be given by its type alone."""
    wire = []
    for message in messages:
        content = message["content"]
        blocks = [text(content)] if isinstance(content, str) else content
        wire.append(WireMessage(message["role"], blocks, [None] * len(blocks)))
    thinking = more.pop("thinking", None)
    params = {key: more.pop(key) for key in ("max_tokens", "container", "cache_control") if key in more}
    return WireRequest(
        client=more.pop("client", PLAIN_API),
        at=None,
        messages=wire,
        model=more.pop("model", "claude-sonnet-4-5"),
        tools=more.pop("tools", None),
        system=more.pop("system", None),
        thinking={"type": thinking} if isinstance(thinking, str) else thinking,
        params=params,
    )


SERVER_CALL = {"type": "server_tool_use", "id": "srvtoolu_9", "name": "web_search", "input": {"query": "tide"}}
SERVER_RESULT = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_9", "content": []}
MCP_CALL = {"type": "mcp_tool_use", "id": "mcptoolu_9", "name": "find", "server_name": "files", "input": {}}
MCP_RESULT = {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_9", "is_error": False, "content": []}
CODE_CALL = {"type": "server_tool_use", "id": "srvtoolu_8", "name": "code_execution", "input": {"code": "6*7"}}
REFERENCE = {"type": "tool_reference", "tool_name": "mcp__maps__route"}

BROKEN: list[tuple[str, str, WireRequest]] = [
    ("R01", "tool_use_without_result", request([user("go"), assistant(call("a1")), user("next")])),
    (
        "R01",
        "tool_use_without_result",
        request([user("go"), assistant(call("a1"), call("a2")), user(answer("a1"), "next")]),
    ),
    ("R01", "tool_use_without_result", request([user("go"), assistant(call("a1"), call("a2")), user(answer("a1"))])),
    ("R01", "tool_use_without_result", request([user("go"), assistant(call("a1")), assistant("so")])),
    ("R02", "result_without_tool_use", request([user(answer("a1"), "next")])),
    ("R02", "result_without_tool_use", request([user("go"), assistant("x"), user("more", answer("a1"))])),
    (
        "R03",
        "result_not_adjacent",
        request([user("go"), assistant(call("a1")), user("sum"), assistant("so"), user(answer("a1"))]),
    ),
    ("R03", "result_not_adjacent", request([user(answer("a1")), assistant(call("a1")), user("then")])),
    ("R04", "result_not_first", request([user("go"), assistant(call("a1")), user("note", answer("a1"))])),
    ("R03", "result_not_adjacent", request([user("go"), assistant(call("a1")), user("note"), user(answer("a1"))])),
    (
        "R04",
        "result_not_first",
        request([user("go"), assistant(call("a1"), call("a2")), user(answer("a1"), png(), answer("a2"))]),
    ),
    (
        "R05",
        "duplicate_tool_result",
        request([user("go"), assistant(call("a1")), user(answer("a1"), answer("a1", "twice"))]),
    ),
    (
        "R06",
        "duplicate_tool_use_id",
        request([user("go"), assistant(call("a1"), call("a1", "Read")), user(answer("a1"), answer("a1"))]),
    ),
    (
        "R06",
        "tool_use_id_reused",
        request(
            [user("go"), assistant(call("a1")), user(answer("a1")), assistant(call("a1")), user(answer("a1"), "end")]
        ),
    ),
    ("R07", "invalid_tool_use_id", request([user("go"), assistant(call("fn:1")), user(answer("fn:1"))])),
    (
        "R07",
        "tool_input_not_object",
        request([user("go"), assistant({**call("a1"), "input": '{"comm'}), user(answer("a1"))]),
    ),
    ("R07", "tool_name_too_long", request([user("go"), assistant(call("a1", "B" * 201)), user(answer("a1"))])),
    (
        "R07",
        "tool_result_lacks_id",
        request([user("go"), assistant("x"), user({"type": "tool_result", "content": "y"})]),
    ),
    ("R08", "block_in_wrong_role", request([user("go"), assistant(call("a1"), answer("a1")), user("next")])),
    ("R08", "block_in_wrong_role", request([user("go", call("a1")), assistant("x"), user("next")])),
    ("R09", "tools_not_defined", request([user("go"), assistant(call("a1")), user(answer("a1"))], tools=[])),
    ("R09", "duplicate_tool_names", request([user("go")], tools=[{"name": "Bash"}, {"name": "Bash"}])),
    (
        "R10",
        "error_result_not_text",
        request([user("go"), assistant(call("a1")), user(answer("a1", [png()], is_error=True))]),
    ),
    ("R11", "empty_text_block", request([user("go"), assistant("", call("a1")), user(answer("a1"))])),
    ("R12", "whitespace_text_block", request([user("go"), assistant("\n\t "), user("next")])),
    ("R13", "empty_message", request([user("go"), assistant(), user("next")])),
    ("R14", "final_text_ends_with_whitespace", request([user("go"), assistant("It is ")], model="claude-haiku-4-5")),
    ("R15", "conversation_ends_with_assistant", request([user("go"), assistant("It is")], model="claude-sonnet-4-6")),
    ("R15", "conversation_ends_with_assistant", request([user("go"), assistant("It is")], model="claude-opus-5-5")),
    ("R16", "first_message_not_user", request([assistant("hello"), user("go")])),
    ("R16", "first_message_is_system", request([{"role": "system", "content": "be kind"}, user("go")])),
    ("R17", "consecutive_same_role", request([user("go"), user("now"), assistant("yes"), user("so")])),
    (
        "R18",
        "thinking_order_suspect",
        request(
            [
                user("go"),
                assistant(thought(), thought("b", "SigB"), call("a1"), call("a2")),
                user(answer("a1"), answer("a2")),
            ],
            thinking="enabled",
        ),
    ),
    ("R18", "thinking_text_empty_but_signed", request([user("go"), assistant(thought(""), "x"), user("next")])),
    ("R19", "invalid_thinking_signature", request([user("go"), assistant(thought("a", ""), "x"), user("next")])),
    (
        "R19",
        "invalid_thinking_signature",
        request([user("go"), assistant({"type": "thinking", "thinking": "a"}, "x"), user("next")]),
    ),
    (
        "R19",
        "invalid_thinking_signature",
        request([user("go"), assistant({"type": "redacted_thinking", "data": ""}, "x"), user("next")]),
    ),
    (
        "R20",
        "thinking_field_missing",
        request([user("go"), assistant({"type": "thinking", "signature": "SigA"}, "x"), user("next")]),
    ),
    ("R20", "thinking_field_missing", request([user("go"), assistant(thought("", ""), "x"), user("next")])),
    (
        "R21",
        "open_loop_lacks_leading_thinking",
        request([user("go"), assistant("hm", call("a1")), user(answer("a1"))], thinking="enabled"),
    ),
    (
        "R22",
        "thinking_not_first",
        request([user("go"), assistant("x", thought(), call("a1")), user(answer("a1"))], thinking="enabled"),
    ),
    (
        "R22",
        "thinking_while_disabled",
        request([user("go"), assistant(thought(), call("a1"))], thinking="disabled", model="claude-sonnet-4-5"),
    ),
    ("R23", "server_result_without_use", request([user("go"), assistant(SERVER_RESULT, "x"), user("next")])),
    (
        "R23",
        "server_result_without_use",
        request([user("go"), assistant(SERVER_CALL), user("stop"), assistant(SERVER_RESULT, "x"), user("next")]),
    ),
    ("R24", "server_use_without_result", request([user("go"), assistant(SERVER_CALL), user("next")])),
    (
        "R24",
        "server_use_without_result",
        request([user("go"), assistant(SERVER_CALL, call("a1")), user(answer("a1"), "and be quick")]),
    ),
    ("R25", "mcp_use_without_result", request([user("go"), assistant(MCP_CALL), user("next")])),
    ("R25", "mcp_result_without_use", request([user("go"), assistant(MCP_RESULT, "x"), user("next")])),
    (
        "R26",
        "tool_reference_unknown",
        request(
            [user("go"), assistant(call("a1", "ToolSearch")), user(answer("a1", [REFERENCE]), "next")],
            tools=[{"name": "ToolSearch"}],
        ),
    ),
    ("R27", "container_missing", request([user("go"), assistant(CODE_CALL, call("a1")), user(answer("a1"))])),
    ("R29", "image_too_large", request([user(png(8001, 5), "see")])),
    ("R29", "image_too_large", request([user(*[png(2001, 5)] * 21, "see")])),
    ("R30", "image_too_many_bytes", request([user(image("iVBO" * 1_310_721), "see")])),
    ("R31", "image_empty", request([user("go"), assistant(call("a1")), user(answer("a1", [image("")]), "see")])),
    ("R31", "image_media_type", request([user(image("iVBORw0KGgo=", "image/bmp"), "see")])),
    ("R31", "image_unrecognised", request([user(image(base64.b64encode(b"<html>not an image").decode()), "see")])),
    ("R32", "too_many_media", request([user(*[png()] * 101, "see")])),
    ("R33", "too_many_cache_markers", request([user(*[marked(str(n)) for n in range(5)])])),
    ("R33", "too_many_cache_markers", request([user(*map(marked, "abcd"))], cache_control={"type": "ephemeral"})),
    ("R34", "cache_marker_on_wrong_block", request([user("a", marked(""))])),
    (
        "R34",
        "cache_marker_on_wrong_block",
        request([user("a"), assistant({**thought(), "cache_control": {"type": "ephemeral"}}, "x"), user("b")]),
    ),
    ("R35", "cache_lifetime_order", request([user(marked("a"), marked("b", "1h"))])),
    ("R36", "prompt_too_long", request([user("word " * 170_000)])),
    (
        "R37",
        "input_and_max_tokens_too_long",
        request([user("word " * 120_000)], max_tokens=64_000, model="claude-sonnet-4-20250514"),
    ),
    ("R38", "request_too_large", request([user("x" * (32 * 1024 * 1024))])),
    ("R39", "lone_surrogate", request([user("go"), assistant(call("a1")), user(answer("a1", "cut \ud83d"))])),
    ("R39", "lone_surrogate", request([user("go"), assistant(call("a1", command="\udc00 x")), user(answer("a1"))])),
    ("R40", "nul_character", request([user("go"), assistant(call("a1")), user(answer("a1", "A\0B"))])),
]
"""Rule, finding code, and a request that breaks it."""

SOUND: list[tuple[str, WireRequest]] = [
    ("a call that ends the array is pending (R01)", request([user("go"), assistant(call("a1"))])),
    ("an empty string as a result (R11)", request([user("go"), assistant(call("a1")), user(answer("a1", ""))])),
    ("text after the results (R04)", request([user("go"), assistant(call("a1")), user(answer("a1"), "next")])),
    (
        "results in two user messages that are combined (R17)",
        request([user("go"), assistant(call("a1"), call("a2")), user(answer("a1")), user(answer("a2"), "next")]),
    ),
    (
        "the tail of a client's next request is pending, partly answered too (G10)",
        request([user("go"), assistant(call("a1"), call("a2")), user(answer("a1"))], client="2.1.332"),
    ),
    (
        "an open server call that the server may still run (R24)",
        request([user("go"), assistant(SERVER_CALL, call("a1")), user(answer("a1"))]),
    ),
    ("a paired server call (R23)", request([user("go"), assistant(SERVER_CALL, SERVER_RESULT, "x"), user("next")])),
    ("a paired MCP call (R25)", request([user("go"), assistant(MCP_CALL, MCP_RESULT, "x"), user("next")])),
    (
        "orphans before a compaction block (R28)",
        request(
            [
                user("go"),
                assistant(call("a1")),
                user("what"),
                assistant({"type": "compaction", "content": "so far"}, "yes"),
                user("on"),
            ]
        ),
    ),
    (
        "adaptive thinking needs no leading block (R21)",
        request([user("go"), assistant(call("a1")), user(answer("a1"))], thinking="adaptive"),
    ),
    (
        "a reference to a deferred tool of the request (R26)",
        request(
            [user("go"), assistant(call("a1", "ToolSearch")), user(answer("a1", [REFERENCE]), "next")],
            tools=[{"name": "ToolSearch"}, {"name": "mcp__maps__route", "defer_loading": True}],
        ),
    ),
    ("four cache markers, lifetimes falling (R33, R35)", request([user(marked("a", "1h"), *map(marked, "bcd"))])),
    ("a whole emoji (R39)", request([user("\U0001f680 go")])),
    ("a prefill that the model takes (R15)", request([user("go"), assistant("It is")], model="claude-haiku-4-5")),
]
"""A request that breaks no rule, and which one it comes close to."""
