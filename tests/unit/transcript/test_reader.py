"""The index against values derived here from the JSON itself (issue 2, Must hold)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from compaction.errors import InputUnreadable
from compaction.transcript import (
    Flag,
    RecordKind,
    open_transcript,
    read_snapshots,
    transcript_from_bytes,
)
from compaction.transcript.source import FileSource
from tests.support import case_folders, corpus_files, needs_shared


def plain_records(data: bytes) -> list[dict[str, object]]:
    """The JSON objects of a file of whole lines, read with the standard library only."""
    found = []
    for line in data.decode("utf-8", "surrogateescape").split("\n"):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


@needs_shared
@pytest.mark.parametrize("path", corpus_files(), ids=lambda p: p.name)
def test_every_corpus_file_is_indexed_as_the_json_says(path: Path) -> None:
    expected = plain_records(path.read_bytes())
    t = open_transcript(path)
    records = [i for i in range(len(t)) if t.kind[i] != RecordKind.DAMAGED]
    assert len(records) == len(expected)
    for i, value in zip(records, expected, strict=True):
        assert t.payload(i) == value
        assert t.uuid(i) == (value.get("uuid") or "")
        assert t.type_name(i).split("/")[0] == value["type"]
        assert bool(t.flags[i] & Flag.SIDECHAIN) == bool(value.get("isSidechain"))
        message = value.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        blocks = 1 if isinstance(content, str) else len(content) if isinstance(content, list) else 0
        assert len(t.blocks_of(i)) == blocks
    usage_expected = Counter(
        (u["input_tokens"], u.get("output_tokens"), u.get("cache_read_input_tokens") or 0)
        for v in expected
        if isinstance(m := v.get("message"), dict)
        and isinstance(u := m.get("usage"), dict)
        and v["type"] == "assistant"
    )
    usage = [t.usage(i) for i in records if t.kind[i] == RecordKind.ASSISTANT]
    assert Counter((u.input_tokens, u.output_tokens, u.cache_read) for u in usage if u) == usage_expected


@needs_shared
@pytest.mark.parametrize("path", corpus_files(), ids=lambda p: p.name)
def test_records_and_the_bytes_between_them_are_the_whole_file(path: Path) -> None:
    data = path.read_bytes()
    t = open_transcript(path)
    position = 0
    for i in range(len(t)):
        assert data[position : t.offset[i]].strip(b"\r\n \0") == b""
        assert t.record_bytes(i) == data[t.offset[i] : t.offset[i] + t.length[i]]
        assert t.line[i] == data.count(b"\n", 0, int(t.offset[i])) + 1
        position = int(t.offset[i]) + int(t.length[i])
    assert data[position:].strip() == b""


@needs_shared
@pytest.mark.parametrize("folder", case_folders(), ids=lambda p: p.name)
def test_every_case_opens_in_its_format(folder: Path) -> None:
    (path,) = folder.glob("input.json*")
    t = open_transcript(path)
    assert t.format_name == ("messages-api" if path.suffix == ".json" else "claude-code")
    assert len(t) > 0
    assert all(isinstance(t.preview(i), str) for i in range(len(t)))


def test_a_messages_request_is_records_with_exact_spans() -> None:
    body = {
        "model": "m",
        "system": "sys",
        "messages": [
            {"role": "user", "content": 'hi \u00e9 {"messages": []}'},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "out"}]},
        ],
        "tools": [{"name": "Bash"}],
    }
    for indent in (None, 2):
        data = json.dumps(body, indent=indent, ensure_ascii=False).encode()
        t = transcript_from_bytes(data)
        assert t.format_name == "messages-api"
        assert [json.loads(t.record_bytes(i)) for i in range(3)] == body["messages"]
        assert t.document == {"model": "m", "system": "sys", "tools": [{"name": "Bash"}]}
        assert [t.type_name(i) for i in range(3)] == ["user", "assistant", "user"]
        assert list(t.parent_key[1:]) == list(t.uuid_key[:2])


def test_a_session_that_talks_about_messages_is_no_request() -> None:
    line = json.dumps({"type": "user", "uuid": "a", "message": {"content": '{"messages": [1]}'}}).encode()
    assert transcript_from_bytes(line + b"\n" + line).format_name == "claude-code"


def test_keys_of_the_same_id_are_equal_and_absent_ids_are_zero() -> None:
    t = transcript_from_bytes(
        b'{"type":"user","uuid":"a","parentUuid":null}\n{"type":"user","uuid":"b","parentUuid":"a"}'
    )
    assert t.parent_key[1] == t.uuid_key[0]
    assert t.parent_key[0] == 0
    assert t.flags[0] & Flag.PARENT_NULL


def test_timestamps_are_milliseconds_utc_and_zero_when_unreadable() -> None:
    lines = [
        b'{"type":"user","timestamp":"2026-08-01T10:00:56.123Z"}',
        b'{"type":"user","timestamp":"2026-08-01T12:00:56.123+02:00"}',
        b'{"type":"user","timestamp":"yesterday"}',
        b'{"type":"user"}',
    ]
    t = transcript_from_bytes(b"\n".join(lines))
    assert list(t.timestamp_ms) == [1785578456123, 1785578456123, 0, 0]


def test_a_missing_file_and_a_folder_say_so(tmp_path: Path) -> None:
    with pytest.raises(InputUnreadable, match="no such file"):
        open_transcript(tmp_path / "none.jsonl")
    with pytest.raises(InputUnreadable, match="is a folder"):
        open_transcript(tmp_path)


def test_snapshots_come_while_reading_and_the_last_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    count = 150_000
    path.write_bytes(b"".join(b'{"type":"user","uuid":"%d","x":"padding"}\n' % i for i in range(count)))
    snapshots = list(read_snapshots(path))
    assert len(snapshots) == 2
    assert 20_000 <= len(snapshots[0]) < len(snapshots[1]) == count
    assert [s.complete for s in snapshots] == [False, True]
    assert snapshots[0].uuid(1_999) == "1999"


def test_opening_reads_each_byte_once(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(b'{"type":"user","uuid":"%d"}\n' % i for i in range(200_000)))
    t = open_transcript(path)
    assert isinstance(t.source, FileSource)
    sniffed = 1 << 16
    assert t.source.bytes_read <= t.size + sniffed


@pytest.mark.parametrize("cut", [1, 30, 61, 62, 63, 100, 124])
def test_appending_equals_opening_anew_and_reads_only_what_is_new(tmp_path: Path, cut: int) -> None:
    whole = "".join(f'{{"type":"user","uuid":"é{i}","message":{{"content":"x"}}}}\n' for i in range(4)).encode()
    path = tmp_path / "s.jsonl"
    path.write_bytes(whole[:cut])
    t = open_transcript(path)
    with path.open("ab") as file:
        file.write(whole[cut:])
    result = t.append_new()
    fresh = open_transcript(path)
    assert [t.record_bytes(i) for i in range(len(t))] == [fresh.record_bytes(i) for i in range(len(fresh))]
    assert (t.damage, t.line_count, t.size) == (fresh.damage, fresh.line_count, fresh.size)
    last_line_start = whole.rfind(b"\n", 0, cut) + 1
    assert result.bytes_read == len(whole) - last_line_start


def test_a_shorter_or_replaced_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b'{"type":"user","uuid":"a"}\n' * 3)
    t = open_transcript(path)
    path.write_bytes(b'{"type":"user"}\n')
    assert t.append_new().replaced
