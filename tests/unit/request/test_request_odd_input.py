"""Nothing in a transcript is fatal to the assembly: odd types in every field that it reads."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from compaction.conversation import build_conversation
from compaction.request import Assembler
from compaction.transcript import transcript_from_bytes
from tests.unit.request.support import GENERATIONS, Story, call, text, thinking

ODD: tuple[Any, ...] = (None, True, 0, -1, 3.5, "", "x", [], {}, [None], [{}], [[1]], {"type": 5}, [{"type": None}])


def base() -> list[Any]:
    story = Story()
    story.user("u1", "go")
    story.attachment("t0", {"type": "deferred_tools_delta", "addedNames": ["A"], "removedNames": ["mcp__b"]})
    story.attachment("t1", {"type": "file", "filename": "/a", "content": {"type": "text", "file": {"content": "a"}}})
    story.assistant("a1", "m1", thinking(), text("one"), call("a"), call("b", "Task"))
    story.result("r1", "a", [text("x"), {"type": "tool_reference", "tool_name": "WebFetch"}])
    story.result("r2", "b", parent="a1", sourceToolAssistantUUID="a1")
    story.attachment("t2", {"type": "queued_command", "prompt": [text("q")], "origin": {"kind": "human"}})
    story.attachment("t3", {"type": "x"}, rendered=[{"content": "<system-reminder>r</system-reminder>"}])
    story.system("l1", "local_command", content="out")
    story.system("x1", "microcompact_boundary", microcompactMetadata={"compactedToolIds": ["a"]})
    story.add("p1", "progress", data={})
    story.assistant("a2", "m2", text("two"), requestRef="q1")
    kept = {"anchorUuid": "s1", "uuids": ["a2"], "allUuids": ["a2"]}
    story.system("b1", "compact_boundary", parent=None, compactMetadata={"preservedMessages": kept, "preTokens": 5})
    story.user("s1", "summary", isCompactSummary=True, origin={"kind": "task-notification"})
    story.raw({"type": "api-request-shape", "shapeHash": "s", "shape": {"system": [], "tools": []}})
    story.raw({"type": "api-request-blob", "hash": "h", "message": {"role": "user", "content": [text("w")]}})
    story.raw(
        {"type": "api-request", "id": "q1", "shapeHash": "s", "params": {}, "base": "q0", "keep": 1, "tail": ["h"]}
    )
    story.raw({"type": "last-prompt", "leafUuid": "a2", "explicit": True})
    story.assistant("a3", "m3", call("open"), requestRef="q1")
    return [json.loads(row) for row in story.rows]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += places(item, (*path, key))
    return found


def with_odd(records: list[Any], path: tuple[Any, ...], odd: Any) -> bytes:
    changed = copy.deepcopy(records)
    target = changed
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = odd
    return ("\n".join(json.dumps(record) for record in changed) + "\n").encode()


@pytest.mark.parametrize("seed", range(3))
def test_odd_values_anywhere_are_no_error(seed: int) -> None:
    records = base()
    every = places(records)
    chance = random.Random(seed)
    for _ in range(25):
        path, odd = chance.choice(every), chance.choice(ODD)
        conversation = build_conversation(transcript_from_bytes(with_odd(records, path, odd)))
        for client in GENERATIONS:
            assembler = Assembler(conversation, client)
            requests = [assembler.request(), *(request for _, request in assembler.rounds())]
            requests += [assembler.request(n) for n in range(1, conversation.round_count + 1)]
            for request in requests:
                assert all(len(m.content) == len(m.origins) for m in request.messages), (path, odd)


def test_an_empty_file_gives_an_empty_request() -> None:
    conversation = build_conversation(transcript_from_bytes(b""))
    for client in GENERATIONS:
        assert Assembler(conversation, client).request().messages == []
