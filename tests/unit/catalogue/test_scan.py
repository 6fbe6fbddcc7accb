"""Facts read narrowly, many files at once, are those of the full reader, which reads one file and all of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.catalogue import scan
from compaction.catalogue.pricing import price_fingerprint
from compaction.catalogue.responses import FilePart
from compaction.catalogue.scan import ScanJob, SliceResult, Summary, scan_all, summarise
from compaction.transcript import fact_lines
from compaction.transcript.fact_lines import read_facts
from compaction.transcript.transcript import transcript_from_bytes
from tests.generator import FAULTS, Session
from tests.support import case_folders, corpus_files, needs_shared
from tests.unit.accounting.sessions import SessionBuilder, call, text, usage
from tests.unit.catalogue.support import make_library

PRICES = price_fingerprint()


@pytest.fixture(autouse=True, params=["large", "small"], scope="module")
def pieces(request: pytest.FixtureRequest) -> Iterator[None]:
    """Everything holds as well where a file is decoded in many pieces."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "small":
            patch.setattr(fact_lines, "_PIECE_BYTES", 700)
            patch.setattr(fact_lines, "_TOGETHER", 7)
        yield


def job(path: Path) -> ScanJob:
    stat = path.stat()
    return ScanJob(str(path), 0, stat.st_size, stat.st_mtime_ns, 0, 0, None, True, False, PRICES)


def read_in_full(result: SliceResult) -> Summary:
    """The same slice by the full reader; checks the line feeds on the way."""
    data = Path(result.job.path).read_bytes()
    assert result.newlines == data[: result.end].count(b"\n")
    whole = data[result.start : result.end]
    transcript = transcript_from_bytes(whole, result.job.path)
    return summarise(transcript, [FilePart(result.job.path, 0, len(transcript), transcript.line_count, 0)], PRICES)[0]


def check(paths: Sequence[Path]) -> list[Summary]:
    found = []
    for result in scan_all([job(path) for path in paths]):
        assert result.problem == ""
        assert result.summary == read_in_full(result), result.job.path
        found.append(result.summary)
    return found


def session(number: int = 0) -> SessionBuilder:
    """A session that says something in every member that the catalogue tells of."""
    s = SessionBuilder(session=f"0000000{number}-0000-4000-8000-000000000000")
    s.prompt("sort the tide tables")
    for step in range(4):
        s.answer(f"msg_{step}", text(3), call(f"t{step}"), request=f"req_{step}", **usage(3, 60 + number, step, 6))
        s.result(f"t{step}", "done")
        s.records[-1]["message"]["content"][0]["is_error"] = step == 2
    s.boundary("auto", 9000, "what was done")
    s.answer("msg_end", text(2), request="req_end", **usage(1, 2, 3, 4), isSidechain=True)
    s.prompt("and now — größer", isMeta=True)
    s.records += [
        {"type": "custom-title", "customTitle": "Tides 🌊", "sessionId": "x"},
        {
            "type": "system",
            "subtype": "api_error",
            "uuid": "u9",
            "parentUuid": None,
            "timestamp": "2026-01-02T03:04:05Z",
        },
        {
            "type": "progress",
            "uuid": "u10",
            "parentUuid": "u9",
            "data": {
                "type": "agent_progress",
                "agentId": "a1",
                "message": {
                    "type": "assistant",
                    "requestId": "req_a",
                    "message": {"id": "msg_a", "model": "claude-haiku-4-5", "usage": usage(5, 6), "content": []},
                },
            },
        },
        {"type": "brand-new-kind", "something": [1, {"uuid": "not mine"}], "message": {"role": "user"}},
    ]
    return s


ODD: dict[str, Callable[[list[bytes]], bytes]] = {
    "nothing": lambda lines: b"",
    "whole": lambda lines: b"\n".join(lines) + b"\n",
    "no last line feed": b"\n".join,
    "a last line that is being written": lambda lines: b"\n".join(lines) + b'\n{"type":"user","mess',
    "only a line that is being written": lambda lines: b'{"type":"user","mess',
    "carriage returns": lambda lines: b"\r\n".join(lines) + b"\r\n",
    "blank lines": lambda lines: b"\n\n".join(lines) + b"\n",
    "two records on a line": lambda lines: lines[0] + lines[1] + b"\n" + b"\n".join(lines[2:]) + b"\n",
    "two on a line, one over two lines": lambda lines: (
        lines[0] + lines[1] + b"\n" + lines[2].replace(b",", b",\n", 1) + b"\n" + b"\n".join(lines[3:]) + b"\n"
    ),
    "two on a line, one over two lines at a brace": lambda lines: (
        lines[0] + lines[1] + b"\n" + lines[2][:-1] + b"\n}\n" + b"\n".join(lines[3:]) + b"\n"
    ),
    "two on a line, one over two lines in a text": lambda lines: (
        lines[0]
        + lines[1]
        + b"\n"
        + lines[2].replace(b'"message"', b'"x":"}\n{","message"', 1)
        + b"\n"
        + lines[3]
        + b"\n"
    ),
    "spaces around": lambda lines: b"\n".join(b" " + line + b"  " for line in lines) + b"\n",
    "zeros": lambda lines: b"\0\0" + b"\n".join(lines) + b"\n",
    "a broken line": lambda lines: b"\n".join([lines[0], b'{"usage": {', *lines[1:]]) + b"\n",
    "invalid bytes": lambda lines: b"\n".join([lines[0].replace(b"sort", b"so\xff\xfert"), *lines[1:]]) + b"\n",
    "invalid bytes in what is skipped": lambda lines: (
        b"\n".join([lines[0].replace(b'"message"', b'"x":"\xff","message"', 1), *lines[1:]]) + b"\n"
    ),
    "byte order mark": lambda lines: b"\xef\xbb\xbf" + b"\n".join(lines) + b"\n",
    "a member of another type": lambda lines: (
        b"\n".join([lines[0].replace(b'"uuid":"', b'"uuid":7,"old":"', 1), *lines[1:]]) + b"\n"
    ),
    "a lone surrogate": lambda lines: b"\n".join([lines[0].replace(b"sort", b"\\ud83c"), *lines[1:]]) + b"\n",
    "an array": lambda lines: b"\n".join([*lines, b"[1,2]"]) + b"\n",
    "a request": lambda lines: json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).encode(),
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_files_between_usual_ones(tmp_path: Path, odd: str) -> None:
    paths = []
    for number in range(3):
        lines = session(number).bytes().rstrip(b"\n").split(b"\n")
        paths.append(tmp_path / f"s{number}.jsonl")
        paths[-1].write_bytes((ODD[odd] if number == 1 else ODD["whole"])(lines))
    first, _, third = check(paths)
    assert first.first_prompt == third.first_prompt == "sort the tide tables"
    assert first.custom_title == "Tides 🌊"
    assert (first.compactions, first.tool_errors, first.api_errors, first.tools) == (1, 1, 1, ["Bash"])
    # Five answers and a subagent's inside a progress record; the same ids in another file are responses of that one.
    assert [len(s.responses) for s in (first, third)] == [6, 6]


def test_whole_files_are_read_narrowly_and_odd_ones_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The property below would hold as well if everything were read in full."""
    full: list[str] = []
    monkeypatch.setattr(scan, "_understand", lambda one: full.append(Path(one.job.path).name))
    lines = session().bytes().rstrip(b"\n").split(b"\n")
    for name, make in (("whole", "whole"), ("last", "no last line feed"), ("odd", "blank lines")):
        (tmp_path / name).write_bytes(ODD[make](lines))
    scan_all([job(tmp_path / name) for name in ("whole", "odd", "last")])
    assert full == ["odd"]


def test_a_part_that_turns_out_odd_late_leaves_nothing_behind() -> None:
    one, two = (session(n).bytes() for n in range(2))
    odd = one + b'{"type": broken}\n'
    transcript, parts = read_facts([two, odd, two])
    alone, [part] = read_facts([two])
    assert [p.whole for p in parts] == [True, False, True]
    assert [p.end - p.first for p in parts] == [part.end, 0, part.end]
    assert len(transcript) == 2 * part.end
    assert len(transcript.usage_table) == 2 * len(alone.usage_table)
    assert len(transcript.block_record) == 2 * len(alone.block_record)


def test_each_part_keeps_its_own_lines() -> None:
    one, two = (session(n).bytes() for n in range(2))
    transcript, parts = read_facts([one, b"", b'{"type": broken}\n', two])
    assert [(p.end - p.first, p.whole) for p in parts] == [
        (one.count(b"\n"), True), (0, True), (0, False), (two.count(b"\n"), True)
    ]  # fmt: skip
    for part, data in ((parts[0], one), (parts[3], two)):
        for number, line in enumerate(data.splitlines()):
            assert transcript.line[part.first + number] == number + 1
            assert transcript.payload(part.first + number) == json.loads(line)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_generated_sessions_with_faults(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("scan")
    faults = st.lists(st.sampled_from(sorted(set(FAULTS) - {"huge_line"})), max_size=2, unique=True)
    paths = []
    for number in range(data.draw(st.integers(1, 4))):
        version = data.draw(st.sampled_from(("1.0.128", "2.0.76", "2.1.12", "2.1.217")))
        options = {"seed": data.draw(st.integers(0, 9)), "version": version, "faults": tuple(data.draw(faults))}
        paths.append(Session(rounds=6, **options).write(folder / f"s{number}.jsonl"))
    check(paths)


def test_a_library_at_once(tmp_path: Path) -> None:
    paths = make_library(tmp_path, 8)
    check([*paths, *sorted(p for p in tmp_path.rglob("*.jsonl") if p not in paths)])


@needs_shared
def test_the_corpus_and_the_cases_at_once() -> None:
    paths = [*corpus_files(), *(p for folder in case_folders() for p in sorted(folder.rglob("*.jsonl")))]
    assert len(paths) > 50
    check(paths)
