"""Edits of a transcript: what is not edited stays, byte for byte, line endings and damage included."""

from __future__ import annotations

import json

import pytest

from compaction.transcript.edits import Edit, InsertRecord, RemoveRecord, ReplaceRecord, apply_edits
from compaction.transcript.transcript import transcript_from_bytes


def _line(name: str) -> bytes:
    return b'{"type":"user","uuid":"%s","message":{"role":"user","content":"x"}}' % name.encode()


A, B, C, NEW = _line("a"), _line("b"), _line("c"), _line("new")


def _applied(data: bytes, edits: list[Edit], *, keep_damage: bool = True) -> bytes:
    return b"".join(apply_edits(transcript_from_bytes(data), edits, keep_damage=keep_damage))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        A,
        A + b"\n",
        A + b"\r\n" + B + b"\r\n",
        b"\xef\xbb\xbf" + A + b"\n\n" + B,
        A + b"\n\x00\x00\x00" + B + b"\n{cut",
        A + B + b"\n" + b"[1]\n" + b'{"type":"user","x":"\xff"}\n',
    ],
)
def test_no_edits_give_the_same_bytes(data: bytes) -> None:
    assert _applied(data, []) == data


@pytest.mark.parametrize(
    ("data", "edits", "expected"),
    [
        (A + b"\n" + B + b"\n", [ReplaceRecord(0, NEW)], NEW + b"\n" + B + b"\n"),
        (A + b"\n" + B + b"\n", [RemoveRecord(0)], B + b"\n"),
        (A + b"\n" + B, [RemoveRecord(1)], A + b"\n"),
        (A + b"\r\n" + B + b"\r\n", [InsertRecord(0, NEW)], A + b"\r\n" + NEW + b"\r\n" + B + b"\r\n"),
        (A, [InsertRecord(0, NEW), InsertRecord(0, C)], A + b"\n" + NEW + b"\n" + C + b"\n"),
        (A + b"\n", [InsertRecord(-1, NEW)], NEW + b"\n" + A + b"\n"),
        (b"\xef\xbb\xbf" + A + b"\n", [InsertRecord(-1, NEW)], b"\xef\xbb\xbf" + NEW + b"\n" + A + b"\n"),
        (A + B + b"\n" + C, [RemoveRecord(0)], B + b"\n" + C),
        (A + B + b"\n" + C, [RemoveRecord(1)], A + b"\n" + C),
        (A + B + b"\n" + C, [InsertRecord(0, NEW)], A + b"\n" + NEW + b"\n" + B + b"\n" + C),
        (A + b"\n" + B + b"\n", [ReplaceRecord(1, C), InsertRecord(1, NEW)], A + b"\n" + C + b"\n" + NEW + b"\n"),
        (A + b"\n" + B + b"\n" + C, [RemoveRecord(1), InsertRecord(1, NEW)], A + b"\n" + NEW + b"\n" + C),
        (A + b"\n\x00\x00" + B + b"\n", [RemoveRecord(0)], b"\x00\x00" + B + b"\n"),
    ],
)
def test_edits_change_their_place_only(data: bytes, edits: list[Edit], expected: bytes) -> None:
    assert _applied(data, edits) == expected


def test_damage_left_out_on_request_and_glued_records_parted() -> None:
    data = A + B + b"\r\n" + b"\x00\x00" + C + b"\n" + b"{cut"
    assert _applied(data, [], keep_damage=False) == A + b"\n" + B + b"\r\n" + C + b"\n"


@pytest.mark.parametrize(
    ("edits", "reason"),
    [
        ([ReplaceRecord(5, NEW)], "has 2"),
        ([InsertRecord(-2, NEW)], "has 2"),
        ([RemoveRecord(0), ReplaceRecord(0, NEW)], "two edits"),
        ([ReplaceRecord(0, b"{\n}")], "one line"),
    ],
)
def test_contradictions_are_refused(edits: list[Edit], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        _applied(A + b"\n" + B + b"\n", edits)


def test_messages_api_document_keeps_its_spacing_and_commas() -> None:
    first, second = b'{"role": "user", "content": "a"}', b'{"role":"assistant","content":"b"}'
    data = b'{"model": "m",\n "messages": [ ' + first + b" ,\n  " + second + b' ], "system": "s"}\n'
    third = b'{"role":"user","content":"c"}'
    assert _applied(data, []) == data
    assert _applied(data, [ReplaceRecord(1, third)]) == data.replace(second, third)
    for edits, left in [
        ([RemoveRecord(0)], ["b"]),
        ([RemoveRecord(1)], ["a"]),
        ([RemoveRecord(0), RemoveRecord(1)], []),
        ([InsertRecord(-1, third)], ["c", "a", "b"]),
        ([InsertRecord(0, third), RemoveRecord(0)], ["c", "b"]),
        ([InsertRecord(1, third)], ["a", "b", "c"]),
    ]:
        document = json.loads(_applied(data, edits))
        assert [m["content"] for m in document["messages"]] == left
        assert document["system"] == "s"
