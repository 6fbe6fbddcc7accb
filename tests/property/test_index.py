"""The fast decoder and the tolerant one index the same line alike, and nothing raises (issue 2, Reader)."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from compaction.conversation import build_conversation
from compaction.transcript import transcript_from_bytes
from compaction.transcript.index import Batch, Index
from compaction.transcript.records import DECODER, from_object

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
block = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "thinking", "tool_use", "tool_result", "image", "server_tool_use", "odd"])},
    optional={
        "text": text,
        "thinking": text,
        "id": text,
        "tool_use_id": text,
        "name": text,
        "is_error": st.booleans(),
        "content": st.one_of(text, st.lists(st.fixed_dictionaries({"type": text, "text": text}), max_size=2)),
    },
)
count = st.integers(0, 10**6)
usage = st.fixed_dictionaries(
    {"input_tokens": count, "output_tokens": count},
    optional={
        "cache_read_input_tokens": count,
        "cache_creation_input_tokens": count,
        "cache_creation": st.fixed_dictionaries({"ephemeral_5m_input_tokens": count}),
        "speed": text,
        "server_tool_use": st.fixed_dictionaries({"web_search_requests": st.integers(0, 9)}),
    },
)
record = st.fixed_dictionaries(
    {"type": st.sampled_from(["user", "assistant", "system", "progress", "attachment", "mode", "x"])},
    optional={
        "uuid": text,
        "parentUuid": st.one_of(st.none(), text),
        "isSidechain": st.booleans(),
        "isMeta": st.booleans(),
        "subtype": st.sampled_from(["compact_boundary", "microcompact_boundary", "other"]),
        "timestamp": st.sampled_from(["2026-01-01T00:00:00.000Z", "never"]),
        "version": text,
        "compactMetadata": st.fixed_dictionaries({}, optional={"trigger": text, "preTokens": count}),
        "data": st.fixed_dictionaries({"type": text}),
        "message": st.fixed_dictionaries(
            {},
            optional={
                "id": text,
                "model": text,
                "content": st.one_of(text, st.lists(block, max_size=3)),
                "usage": usage,
            },
        ),
    },
)


def columns(record_: Any) -> tuple[Any, ...]:
    index = Index()
    index.add(Batch([record_], [0], [1], [1]))
    return (
        index.records.view().tolist(),
        index.blocks.view().tolist(),
        index.usage.view().tolist(),
        index.types.names,
        index.boundaries,
    )


@given(record)
def test_fast_and_tolerant_decoding_give_the_same_columns(value: dict[str, Any]) -> None:
    data = json.dumps(value, separators=(",", ":")).encode()
    assert columns(DECODER.decode(data)) == columns(from_object(value))


json_value = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)
line = st.one_of(
    st.binary(max_size=60),
    json_value.map(lambda v: json.dumps(v).encode()),
    record.map(lambda v: json.dumps(v).encode()),
    st.dictionaries(st.sampled_from(["type", "uuid", "message", "parentUuid", "data"]), json_value).map(
        lambda v: json.dumps(v).encode()
    ),
)


@given(st.lists(line, max_size=6), st.sampled_from([b"\n", b"\r\n", b"", b"\0", b"\n\n"]))
def test_any_bytes_open_and_every_record_is_addressable(lines: list[bytes], joint: bytes) -> None:
    data = joint.join(lines)
    t = transcript_from_bytes(data)
    end = 0
    for i in range(len(t)):
        assert t.offset[i] >= end
        end = int(t.offset[i]) + int(t.length[i])
        assert t.record_bytes(i) == data[t.offset[i] : end]
        t.preview(i)
    c = build_conversation(t)
    c.chain()
    assert c.compactions is not None
    assert len(c.branches) <= len(t)
