"""Inputs nobody should write and everybody may be given: name → bytes, small enough to run every command over each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.unit.session_samples import Lines

Json = dict[str, Any]

ESCAPES = "\x1b[31mred\x1b]0;title\x07\x9b2J\u202e\r\nline<b onclick=x>&amp;<img src='http://192.0.2.1/x'>"
"""Terminal escapes (7 and 8 bit), a title change, a bell, a direction override, line breaks and markup in one text."""
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**53 + 1, 2**63, 2**64, 10**400, -(10**25), 1.5, -0.0, 1e308, float("nan"), float("inf"),
    "", "x" * 5000, "\ud83d", "\x00", ESCAPES, "../../x", "/etc/x", [], [None], ["a", 1], {}, {"a": None}, [[[]]],
)  # fmt: skip
ODD_TIMES: tuple[Any, ...] = (
    "9999-99-99", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", "0000-00-00T00:00:00Z", "10000-01-01T00:00:00Z",
    "-0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "2026-02-30T00:00:00Z", "2026-09-01T08:00:00+99:99", 0, -1,
    1e300, 10**30, float("nan"), None, "", [], {}, "now", "2026-09-01T08:00:00.000000000000000Z",
)  # fmt: skip


def ordinary() -> Lines:
    """A session with rounds, tools, a compaction with its summary, and rounds after it."""
    lines = Lines().user("u1", "Draw the tide tables.").call("a1", "m1", "t1").result("r1", "t1")
    lines.call("a2", "m2", "t2", file_path="/work/sea/tides.txt").result("r2", "t2", "x" * 400)
    lines.say("a3", "m3").user("u2", "And the moon?").say("a4", "m4").compaction("b1", "s1")
    lines.user("u3", "Go on.").call("a5", "m5", "t5").result("r5", "t5", [{"type": "text", "text": "fine"}])
    return lines.say("a6", "m6")


def hostile_inputs() -> dict[str, bytes]:
    """Every input, by a name that says what is wrong with it."""
    found = dict(_raw())
    for name, records in {**dict(_shapes()), **dict(_fields())}.items():
        found[name] = _jsonl(records)
    return found


def _jsonl(records: list[Any]) -> bytes:
    return b"".join(json.dumps(r).encode() + b"\n" for r in records)


def _raw() -> Iterator[tuple[str, bytes]]:
    """Bytes that are hardly a session."""
    whole = ordinary().data()
    lines = whole.splitlines(keepends=True)
    text = whole.decode()
    noise = bytes((i * 7919 + i // 251 * 31) % 256 for i in range(20_000))
    yield "empty", b""
    yield "one newline", b"\n"
    yield "only spaces", b" \t\r\n" * 50
    yield "noise", noise
    yield "noise between records", lines[0] + noise + b"\n" + b"".join(lines[1:])
    cut = whole[-300:].replace(b"6", b"\0")
    yield "NULs between and inside", lines[0] + b"\x00" * 5000 + b"".join(lines[1:5]) + cut
    yield "CRLF", whole.replace(b"\n", b"\r\n")
    yield "CR only", whole.replace(b"\n", b"\r")
    yield "byte order mark", b"\xef\xbb\xbf" + whole
    yield "UTF-16 LE", b"\xff\xfe" + text.encode("utf-16-le")
    yield "UTF-16 BE without mark", text.encode("utf-16-be")
    yield "UTF-32", text.encode("utf-32")
    yield "Latin-1", whole.replace(b"tide", b"\xe9\xff\xfe")
    yield "cut in the last line", whole[:-150]
    yield "all on one line", whole.replace(b"\n", b" ")
    yield "no ending, spliced", b"".join(line[:-40] for line in lines)
    yield "array at the top", b"[" + b",".join(line.strip() for line in lines) + b"]"
    yield "pretty-printed record", json.dumps(json.loads(lines[0]), indent=2).encode()
    yield "scalars a line", b'1\n"x"\nnull\ntrue\n[]\n{}\n-\nNaN\nInfinity\n1e999\n'
    yield "records within brackets", b"{" * 3000 + b"\n" + b'{"a":' * 3000 + b"\n" + whole
    brackets = b"[" * 100_000 + b"]" * 100_000
    yield "100,000 deep list", b'{"type":"user","uuid":"u","message":' + brackets + b"}\n" + whole
    yield "100,000 deep unclosed", b'{"a":' * 100_000 + b"\n" + whole
    deep = b'{"x":' * 900 + b"1" + b"}" * 900
    yield "900 deep input", whole.replace(b'{"command": "t1"}', deep)
    yield "900 deep metadata", whole.replace(b'"compactMetadata": {', b'"compactMetadata": {"deep": ' + deep + b", ")
    yield "lone surrogates", whole.replace(b'"t1"', b'"\\ud83d"').replace(b'"Bash"', b'"\\udc00\\ud800"')
    halves = whole.replace(b'"u1"', b'"\\ud83d"').replace(b'"m1"', b'"\\ud800"')
    yield "surrogate ids", halves.replace(b"2222", b"\\udfff")
    doubled = whole.replace(b'"uuid"', b'"uuid": 7, "uuid": null, "uuid"')
    yield "duplicate keys", doubled.replace(b'{"parent', b'{"type": 3, "parent')
    yield (
        "other agent: Codex",
        (
            b'{"timestamp":"2026-09-01T08:00:00Z","type":"session_meta","payload":{"id":"x","cwd":"/w","cli_version":"0.1"}}\n'
            b'{"timestamp":"2026-09-01T08:00:01Z","type":"response_item","payload":{"type":"message","role":"user",'
            b'"content":[{"type":"input_text","text":"hi"}]}}\n{"type":"event_msg","payload":{"type":"token_count","info":null}}\n'
        ),
    )
    yield (
        "other agent: opencode",
        json.dumps(
            {
                "info": {"id": "ses_1"},
                "messages": [{"info": {"role": "user"}, "parts": [{"type": "text", "text": "x"}]}],
            }
        ).encode(),
    )
    chat = [{"role": "system", "content": "s"}, {"role": "tool", "tool_call_id": 1, "content": None}]
    yield "other agent: chat completions", json.dumps({"model": "x", "messages": chat}).encode()
    yield from _requests()


def _requests() -> Iterator[tuple[str, bytes]]:
    """Messages-API documents."""
    pair = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": ESCAPES, "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": ESCAPES}]},
    ]
    roles = ("tool", "", None, 5, [], "ASSISTANT", "system", "\ud83d", ESCAPES)
    odd: list[Any] = [{"role": role, "content": "x"} for role in roles]
    contents = [{"role": role, "content": value} for value in ODD_VALUES for role in ("user", "assistant")]
    documents: dict[str, Any] = {
        "request: no messages": {"messages": []},
        "request: messages null": {"messages": None},
        "request: messages of scalars": {"messages": [1, None, "x", [], True, {}, 1.5]},
        "request: unknown roles": {"messages": pair + odd},
        "request: odd contents": {"messages": contents},
        "request: odd blocks": {"messages": [{"role": "user", "content": [*ODD_VALUES]}, *pair]},
        "request: odd surroundings": {"messages": pair, "model": 5, "system": [None, 1], "tools": [{}, 2]},
        "request: tools of a wrong type": {"messages": pair, "tools": {"x": 1}, "system": 5, "cache_control": {}},
        "request: names with escapes": {"messages": pair, "model": ESCAPES, "system": ESCAPES, "tools": [pair[0]]},
        "request: messages twice": {"messages": pair, "x": {"messages": [1]}},
    }
    for name, document in documents.items():
        yield name, json.dumps(document).encode()
    yield "request: messages key twice", b'{"messages":[{"role":"user","content":"a"}],"messages":[1,2,3]}'
    yield "request: cut", json.dumps(documents["request: unknown roles"]).encode()[:-60]


def _shapes() -> Iterator[tuple[str, list[Any]]]:
    """Sessions whose records stand in odd relations."""
    plain = ordinary().records
    yield "no types", [{k: v for k, v in r.items() if k != "type"} for r in plain]
    yield "no uuids", [{k: v for k, v in r.items() if "uid" not in k} for r in plain]
    yield "own parents", [{**r, "parentUuid": r["uuid"], "logicalParentUuid": r["uuid"]} for r in plain]
    yield "parents in a ring", [{**r, "parentUuid": plain[i - 1]["uuid"]} for i, r in enumerate(plain)]
    yield "parents backwards", [{**r, "parentUuid": plain[(i + 1) % len(plain)]["uuid"]} for i, r in enumerate(plain)]
    yield "the same uuid everywhere", [{**r, "uuid": "same", "parentUuid": "same"} for r in plain]
    yield "every record thrice", plain + plain + plain
    yield "reversed", plain[::-1]
    yield "all sidechains", [{**r, "isSidechain": True} for r in plain]
    yield "all meta", [{**r, "isMeta": True} for r in plain]
    yield "all compact summaries", [{**r, "isCompactSummary": True, "isVisibleInTranscriptOnly": True} for r in plain]
    boundary = next(r for r in plain if r.get("subtype") == "compact_boundary")
    yield "boundary first", [boundary, *plain]
    yield "boundary last", [*plain, {**boundary, "uuid": "b9"}]
    yield "only a boundary", [boundary]
    yield "only boundaries", [{**boundary, "uuid": f"b{i}", "parentUuid": None} for i in range(60)]
    yield "every record a boundary", [{**boundary, **{k: r[k] for k in ("uuid", "parentUuid")}} for r in plain]
    yield "boundaries of all kinds", [*plain, *({**boundary, "uuid": f"b{i}", "subtype": s} for i, s in enumerate(
        ("microcompact_boundary", "compact_boundary", "snip_boundary", "", None, 5, [], ESCAPES)))]  # fmt: skip
    yield "only assistants", [r for r in plain if r["type"] == "assistant"]
    yield "only results", [r for r in plain if r["uuid"].startswith("r")]
    yield "only users", [r for r in plain if r["uuid"].startswith("u")]
    yield "only bookkeeping", [{"type": t, "leafUuid": "u1", "summary": ESCAPES, "messageId": 5} for t in (
        "summary", "file-history-snapshot", "queue-operation", "last-prompt", "custom-title", "tag", "mode", "progress",
        "attachment", "system", "cost-state", "", ESCAPES, "\ud83d")]  # fmt: skip
    yield "one call 2,000 times", [plain[0], *(
        {**r, "uuid": f"x{i}{r['uuid']}", "parentUuid": "u1"} for i in range(1000) for r in plain[1:3])]  # fmt: skip
    yield "one response 500 times", [plain[0], *({**plain[1], "uuid": f"x{i}"} for i in range(500))]
    names = [json.loads(json.dumps(r).replace('"Bash"', json.dumps(ESCAPES)).replace("1111", "../..")) for r in plain]
    yield "names with escapes", names
    yield "every text escapes", [_texts(r) for r in plain]


def _texts(record: Json) -> Json:
    kept = ("type", "subtype", "uuid", "parentUuid", "timestamp")
    return {key: value if key in kept else _escaped(value) for key, value in record.items()}


def _escaped(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: v if k in ("type", "role", "id", "tool_use_id") else _escaped(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_escaped(v) for v in value]
    return ESCAPES if isinstance(value, str) else value


def _fields() -> Iterator[tuple[str, list[Any]]]:
    """An ordinary session once for every odd value, in every place of one field (a record of each kind gets it)."""
    places: dict[str, Callable[[Json, Any], None]] = {}

    def top(key: str) -> Callable[[Json, Any], None]:
        return lambda record, value: record.__setitem__(key, value)

    def message(key: str) -> Callable[[Json, Any], None]:
        return lambda record, value: record["message"].__setitem__(key, value) if "message" in record else None

    for key in (
        "type", "uuid", "parentUuid", "sessionId", "version", "isSidechain", "isMeta", "isCompactSummary", "cwd",
        "gitBranch", "agentId", "requestId", "message", "toolUseResult", "compactMetadata", "logicalParentUuid",
        "microcompactMetadata", "slug", "sourceToolAssistantUUID", "isApiErrorMessage", "subtype", "attachment", "data",
    ):  # fmt: skip
        places[key] = top(key)
    for key in ("id", "role", "model", "content", "usage", "stop_reason", "container", "context_management"):
        places[f"message.{key}"] = message(key)
    places["message.content[0]"] = _block
    for key in ("type", "id", "name", "input", "tool_use_id", "content", "text", "is_error", "source", "cache_control"):
        places[f"message.content[].{key}"] = _in_block(key)
    for key in (
        "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation",
        "server_tool_use", "service_tier", "iterations", "speed", "inference_geo",
    ):  # fmt: skip
        places[f"usage.{key}"] = _in_usage(key)
    for key in (
        "trigger", "preTokens", "postTokens", "preservedMessages", "preservedSegment", "durationMs", "userContext",
        "messagesSummarized", "preCompactDiscoveredTools", "cumulativeDroppedTokens",
    ):  # fmt: skip
        places[f"compactMetadata.{key}"] = _in_metadata(key)
    for name, place in places.items():
        yield f"odd {name}", _copies(place, ODD_VALUES)
    yield "odd timestamp", _copies(top("timestamp"), ODD_TIMES)
    yield "odd preservedMessages", _copies(_in_metadata("preservedMessages"), (
        {"uuids": v} for v in ODD_VALUES))  # fmt: skip
    yield "odd preservedMessages.anchorUuid", _copies(_in_metadata("preservedMessages"), (
        {"anchorUuid": v, "uuids": ["u1", v, "b1"], "allUuids": v} for v in ODD_VALUES))  # fmt: skip
    yield "odd preservedSegment parts", _copies(_in_metadata("preservedSegment"), (
        {"headUuid": v, "anchorUuid": v, "tailUuid": "u1"} for v in ODD_VALUES))  # fmt: skip


def _copies(place: Callable[[Json, Any], None], values: Any) -> list[Any]:
    """One session for each value, one after the other: the value stands in two records of three, the third is whole."""
    records: list[Any] = []
    for number, value in enumerate(values):
        copy = json.loads(json.dumps(ordinary().records).replace('"uuid": "', f'"uuid": "{number}'))
        for position, record in enumerate(copy):
            if record["parentUuid"]:
                record["parentUuid"] = f"{number}{record['parentUuid']}"
            if (position + number) % 3:
                place(record, value)
        records += copy
    return records


def _blocks(record: Json) -> list[Json]:
    content = record["message"].get("content") if isinstance(record.get("message"), dict) else None
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def _block(record: Json, value: Any) -> None:
    if _blocks(record):
        record["message"]["content"] = [value, *record["message"]["content"], value]


def _in_block(key: str) -> Callable[[Json, Any], None]:
    def place(record: Json, value: Any) -> None:
        for block in _blocks(record):
            block[key] = value

    return place


def _in_usage(key: str) -> Callable[[Json, Any], None]:
    def place(record: Json, value: Any) -> None:
        if isinstance(record.get("message"), dict) and "usage" in record["message"]:
            record["message"]["usage"][key] = value

    return place


def _in_metadata(key: str) -> Callable[[Json, Any], None]:
    def place(record: Json, value: Any) -> None:
        if "compactMetadata" in record:
            record["compactMetadata"][key] = value

    return place
