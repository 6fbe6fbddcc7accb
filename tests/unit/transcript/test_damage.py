"""Damage is recovered where possible and never fatal (transcript-format.md §2; issue 2, Reader)."""

from __future__ import annotations

import json

import pytest

from compaction.transcript import RecordKind, Transcript, transcript_from_bytes


def record(uuid: str, parent: str | None = None, text: str = "hello") -> bytes:
    value = {
        "type": "user",
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "s",
        "message": {"role": "user", "content": text},
    }
    return json.dumps(value).encode()


def uuids(t: Transcript) -> list[str]:
    return [t.uuid(i) for i in range(len(t)) if t.kind[i] != RecordKind.DAMAGED]


def damage(t: Transcript) -> list[tuple[int, str, int, int]]:
    return [(d.line, d.kind, d.recovered, d.lost_bytes) for d in t.damage]


def spans_reproduce(t: Transcript, data: bytes) -> bool:
    return all(data[t.offset[i] : t.offset[i] + t.length[i]] == t.record_bytes(i) for i in range(len(t)))


A, B, C = record("a"), record("b", "a"), record("c", "b")

CASES = {
    "nul_padding": (A + b"\n" + b"\0" * 9 + B + b"\n" + C + b"\n", [(2, "nul_padding", 1, 9)], "abc"),
    "two_records_one_line": (A + b"\n" + B + C + b"\n", [(2, "two_records_one_line", 2, 0)], "abc"),
    "three_records_one_line": (A + B + C, [(1, "two_records_one_line", 3, 0)], "abc"),
    "spliced_record": (A + b'\n{"type":"mode","x' + B + b"\n", [(2, "spliced_record", 1, 17)], "ab"),
    "blank_line": (A + b"\n\n" + B + b"\n  \n", [(2, "blank_line", 0, 0), (4, "blank_line", 0, 0)], "ab"),
    "truncated_last_line": (A + b"\n" + B[:40], [(2, "truncated_last_line", 0, 40)], "a"),
    "byte_order_mark": (b"\xef\xbb\xbf" + A + b"\n", [(1, "byte_order_mark", 1, 0)], "a"),
    "not_an_object": (A + b"\n[1, 2]\n42\n" + B, [(2, "not_an_object", 0, 6), (3, "not_an_object", 0, 2)], "ab"),
    "invalid_json": (A + b"\n" + B[:40] + b"\n" + C, [(2, "invalid_json", 0, 40)], "ac"),
    "invalid_utf8": (A + b"\n" + record("b", "a", "X").replace(b"X", b"\xff\xfe"), [(2, "invalid_utf8", 1, 0)], "ab"),
    "invalid_escape": (record("a", None, "Q").replace(b"Q", b"C:\\x"), [(1, "invalid_escape", 1, 0)], "a"),
    "nested_too_deeply": (
        A[:-1] + b',"deep":' + b"[" * 20000 + b"]" * 20000 + b"}\n" + B,
        [(1, "nested_too_deeply", 1, 0)],
        "ab",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_damage_is_named_recovered_and_addressable(name: str) -> None:
    data, expected, recovered = CASES[name]
    t = transcript_from_bytes(data)
    assert damage(t) == expected
    assert uuids(t) == list(recovered)
    assert spans_reproduce(t, data)


def test_a_record_nested_in_a_cut_record_is_not_taken_for_a_record() -> None:
    nested = b'{"type":"progress","uuid":"p","data":{"message":' + A + b',"more":"cut'
    t = transcript_from_bytes(nested)
    assert uuids(t) == []
    assert damage(t) == [(1, "truncated_last_line", 0, len(nested))]


@pytest.mark.parametrize(
    "data",
    [
        record("a", None, "\u2028 and \u2029").decode().encode(),
        json.dumps({"type": "user", "uuid": "a", "x": "\u2028"}, ensure_ascii=False).encode(),
        b'{"type":"user","uuid":"a","message":{"role":"user","content":"cut \\ud83d"}}',
        b'{"type":"user","uuid":"a","x":NaN}',
        b'{"type":"user","uuid":"a","x":"\\u0000"}',
        b'{"type":"brand-new","uuid":"a","unknownField":{"y":[1]}}',
        b'{"type":"user","uuid":"a","message":"not an object","timestamp":5,"isMeta":"yes"}',
    ],
)
def test_unusual_but_valid_lines_are_no_damage(data: bytes) -> None:
    t = transcript_from_bytes(data + b"\n")
    assert damage(t) == []
    assert uuids(t) == ["a"]


def test_crlf_line_endings_are_not_part_of_a_record() -> None:
    data = A + b"\r\n" + B + b"\r\n"
    t = transcript_from_bytes(data)
    assert [t.record_bytes(i) for i in range(2)] == [A, B]
    assert damage(t) == []


def test_unknown_types_are_kept_and_named() -> None:
    t = transcript_from_bytes(b'{"type":"brand-new","uuid":"a"}\n{"uuid":"b"}\n')
    assert [t.type_name(i) for i in range(2)] == ["brand-new", ""]
    assert list(t.kind) == [RecordKind.UNKNOWN, RecordKind.UNKNOWN]


def test_an_empty_input_has_no_records() -> None:
    t = transcript_from_bytes(b"")
    assert (len(t), t.line_count, t.damage) == (0, 0, [])


def test_a_line_of_many_megabytes_is_one_record() -> None:
    big = record("big", None, "x" * (9 << 20))
    t = transcript_from_bytes(A + b"\n" + big + b"\n" + B)
    assert uuids(t) == ["a", "big", "b"]
    assert t.block_chars[1] == 9 << 20
    assert len(t.record_bytes(1)) == len(big)
