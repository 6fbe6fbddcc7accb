"""The filter language of the find bar: what each term means, checked record by record on decoded payloads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.conversation import build_conversation, open_session
from compaction.errors import Cancelled, UsageError
from compaction.progress import Progress
from compaction.transcript import transcript_from_bytes
from inspector.models.filter_language import FIELDS, Term, matches, parse
from inspector.models.outline_structure import OutlineStructure


def structure_of(path: Path) -> OutlineStructure:
    return OutlineStructure(open_session(path).conversation)


def found(structure: OutlineStructure, text: str) -> set[int]:
    return {number for number, match in enumerate(matches(structure, parse(text))) if match}


def blocks_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    content = record.get("message", {}).get("content", [])
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


@pytest.fixture
def sample(sample_session: Path) -> tuple[OutlineStructure, list[dict[str, Any]]]:
    structure = structure_of(sample_session)
    t = structure.conversation.transcript
    return structure, [t.payload(record) for record in range(len(t))]


def test_words_quotes_fields_and_minus_are_parsed() -> None:
    assert parse('tool:Bash -error:yes "two words" -plain http://x/y') == [
        Term("tool", "Bash"),
        Term("error", "yes", True),
        Term("", "two words"),
        Term("", "plain", True),
        Term("", "http://x/y"),
    ]
    assert parse("   ") == []


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("tool:", "has no value"),
        ("colour:red", "no field colour"),
        ('"open', "quote is not closed"),
        ("tokens:many", "not a number"),
        ("error:perhaps", "neither yes nor no"),
    ],
)
def test_what_cannot_be_understood_is_said(
    sample: tuple[OutlineStructure, list[dict[str, Any]]], text: str, cause: str
) -> None:
    with pytest.raises(UsageError, match=cause):
        matches(sample[0], parse(text))


def test_tool_finds_calls_and_their_results(sample: tuple[OutlineStructure, list[dict[str, Any]]]) -> None:
    structure, payloads = sample
    calls = {
        b["id"] for p in payloads for b in blocks_of(p) if b.get("type") == "tool_use" and "bash" in b["name"].lower()
    }
    expected = {
        number
        for number, payload in enumerate(payloads)
        if any(b.get("id") in calls or b.get("tool_use_id") in calls for b in blocks_of(payload))
    }
    assert len(expected) > 10
    assert found(structure, "tool:bash") == expected


def test_error_finds_failed_results_and_api_errors(sample: tuple[OutlineStructure, list[dict[str, Any]]]) -> None:
    structure, payloads = sample
    expected = {
        number
        for number, payload in enumerate(payloads)
        if any(b.get("is_error") is True for b in blocks_of(payload))
        or payload.get("isApiErrorMessage")
        or payload.get("subtype") == "api_error"
    }
    assert expected
    assert found(structure, "error:yes") == expected
    assert found(structure, "-error:yes") == set(range(len(payloads))) - expected


def test_type_takes_record_types_and_block_types(sample: tuple[OutlineStructure, list[dict[str, Any]]]) -> None:
    structure, payloads = sample
    assert found(structure, "type:thinking") == {
        n for n, p in enumerate(payloads) if any(b.get("type") == "thinking" for b in blocks_of(p))
    }
    assert found(structure, "type:compact_boundary") == {
        n for n, p in enumerate(payloads) if "compact_boundary" in str(p.get("subtype"))
    }
    assert found(structure, "type:user") == {n for n, p in enumerate(payloads) if p.get("type") == "user"}


@pytest.mark.parametrize("test", [">200", "<=10", "50-400", "=0", ">1k"])
def test_numbers_compare_characters(sample: tuple[OutlineStructure, list[dict[str, Any]]], test: str) -> None:
    structure, _ = sample
    t = structure.conversation.transcript
    chars = [sum(int(t.block_chars[b]) for b in t.blocks_of(r)) for r in range(len(t))]
    keep = {
        ">200": lambda n: n > 200,
        "<=10": lambda n: n <= 10,
        "50-400": lambda n: 50 <= n <= 400,
        "=0": lambda n: n == 0,
        ">1k": lambda n: n > 1000,
    }[test]
    assert found(structure, f"chars:{test}") == {n for n, count in enumerate(chars) if keep(count)}


def test_places_by_round_epoch_and_line(sample: tuple[OutlineStructure, list[dict[str, Any]]]) -> None:
    structure, payloads = sample
    c = structure.conversation
    assert found(structure, "round:5-6") == {n for n in range(len(payloads)) if c.round_of[n] in (5, 6)}
    assert found(structure, "epoch:2") == {n for n in range(len(payloads)) if c.epoch_of[n] == 1}
    assert found(structure, "line:10") == {9}
    uuid = payloads[20]["uuid"]
    assert 20 in found(structure, f"id:{uuid}")


def test_words_are_searched_in_what_is_shown_not_in_ids_and_folders(tmp_path: Path) -> None:
    def user(uuid: str, text: str) -> dict[str, Any]:
        return {
            "type": "user", "uuid": uuid, "parentUuid": None, "sessionId": "s", "cwd": "/home/needle/x",
            "message": {"role": "user", "content": text},
        }  # fmt: skip

    records = [user("needle-1", "nothing here"), user("u2", "a NEEDLE in hay"), user("u3", 'escaped \\"needle"\nhere')]
    data = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    structure = OutlineStructure(build_conversation(transcript_from_bytes(data)))
    assert found(structure, "needle") == {1, 2}
    assert found(structure, "needle hay") == {1}
    assert found(structure, "needle -hay") == {2}
    assert found(structure, '"in hay"') == {1}


@settings(max_examples=60)
@given(st.text(min_size=1, max_size=12).filter(lambda s: s.strip() == s and s.isprintable()), st.booleans())
def test_any_text_is_found_where_it_stands_however_json_writes_it(text: str, ascii_only: bool) -> None:
    record = {"type": "user", "uuid": "u", "parentUuid": None, "message": {"role": "user", "content": f"x {text} y"}}
    other = {"type": "user", "uuid": "v", "parentUuid": "u", "message": {"role": "user", "content": "-"}}
    data = "".join(json.dumps(r, ensure_ascii=ascii_only) + "\n" for r in (record, other)).encode("utf-8")
    structure = OutlineStructure(build_conversation(transcript_from_bytes(data)))
    mask = matches(structure, [Term("", text)])
    assert mask[0]
    assert mask[1] == (text.casefold() in "-")


def test_a_search_can_be_cancelled(sample: tuple[OutlineStructure, list[dict[str, Any]]]) -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(Cancelled):
        matches(sample[0], parse("the"), progress)


def test_every_field_explains_itself_with_an_example() -> None:
    assert all(field.help.startswith(f"{name}:") and "–" in field.help for name, field in FIELDS.items())
