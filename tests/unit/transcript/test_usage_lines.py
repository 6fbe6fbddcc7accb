from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.accounting.usage import Ledger
from compaction.transcript import open_transcript
from compaction.transcript.usage_lines import UsageLines, open_usage_lines
from tests.unit.accounting.sessions import SessionBuilder, call, text, usage


def session() -> SessionBuilder:
    s = SessionBuilder()
    s.prompt('the word "usage" and "cost-state" in a text')
    for number in range(6):
        s.answer(f"msg_{number}", text(3), call(f"t{number}"), request=f"req_{number}", **usage(3, 60, number, 6))
        s.result(f"t{number}", json.dumps({"usage": {"input_tokens": 9}, "type": "cost-state"}))
    s.records[-1]["toolUseResult"] = {"usage": usage(99, 99, 99, 99), "agentId": "a1"}
    s.state(totalCostUSD=0.5, startTime=0, modelUsage={})
    return s


def counted(path: Path) -> tuple[list[list[int]], int]:
    """Tokens of the responses read narrowly, and how many totals; checked against reading everything."""
    results = []
    for opened in (open_usage_lines(path), open_transcript(path)):
        ledger = Ledger()
        ledger.add(opened)
        settled = ledger.settle()
        results.append((settled.tokens.tolist(), len(settled.client_totals), settled.time.tolist()))
    assert results[0] == results[1]
    return results[0][0], results[0][1]


DAMAGE: dict[str, Callable[[list[bytes]], bytes]] = {
    "line feeds": b"\n".join,
    "carriage returns": b"\r\n".join,
    "no last line feed": lambda lines: b"\n".join(lines)[:-1],
    "two records on a line": lambda lines: lines[0] + b"\n" + lines[1] + lines[2] + b"\n" + b"\n".join(lines[3:]),
    "blank lines and zeros": lambda lines: b"\n\n".join([b"\0\0" + lines[0], *lines[1:]]),
    "a broken line between": lambda lines: b"\n".join([lines[0], b'{"usage": {', *lines[1:]]),
    "invalid bytes": lambda lines: b"\n".join([lines[0].replace(b"text", b"te\xff\xfext"), *lines[1:]]),
    "byte order mark": lambda lines: b"\xef\xbb\xbf" + b"\n".join(lines),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_reading_for_accounting_alone_finds_all_usage_however_odd_the_lines_are(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(DAMAGE[damage](session().bytes().split(b"\n")))
    tokens, totals = counted(path)
    assert len(tokens) == 6
    assert totals == 1


@given(st.integers(1, 700), st.sampled_from(sorted(DAMAGE)))
def test_the_size_of_the_pieces_read_changes_nothing(piece: int, damage: str) -> None:
    import tempfile

    import compaction.transcript.source as source

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "session.jsonl"
        path.write_bytes(DAMAGE[damage](session().bytes().split(b"\n")))
        patch.setattr(source, "CHUNK", piece)
        assert len(counted(path)[0]) == 6


def test_only_lines_that_matter_are_decoded(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(session().bytes())
    narrow = open_usage_lines(path)
    assert isinstance(narrow.format, UsageLines)
    # Twelve records of six responses, the totals, and the prompt that only mentions the words in its text: escaped
    # quotes do not match. The results hold the words as values of the window's copy, and are left out.
    assert len(narrow) == 13
    assert narrow.complete


def test_other_formats_are_read_in_full(tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    path.write_text(
        json.dumps({"model": "claude-opus-5", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]})
    )
    assert open_usage_lines(path).format_name == "messages-api"
