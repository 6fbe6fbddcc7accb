"""The doctor: findings with places, causes and repairs; the shared cases; the command line (cli.md)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from compaction.cli.main import main
from compaction.conversation import open_session
from compaction.diagnosis import Report, diagnose
from compaction.diagnosis.records import RECORD_RULES
from compaction.diagnosis.repair.registry import FIXES
from compaction.resources import resource
from tests.support import case_folders, corpus_files, needs_shared
from tests.unit.request_samples import BROKEN
from tests.unit.session_samples import Lines

CASES = case_folders()


def input_of(folder: Path) -> Path:
    return next(folder.glob("input.*"))


def expected_of(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "expected.md").read_text("utf-8")
    block = re.search(r"```json\n(.*?)```", text, re.DOTALL)
    assert block is not None
    found: list[dict[str, Any]] = json.loads(block.group(1))
    return found


def _agrees(expected: dict[str, Any], finding: dict[str, Any]) -> bool:
    """Whether a finding says what an expected one says; words are compared without their quotes."""
    for key, value in expected.items():
        if key == "api_text":
            if value.replace("`", "") not in finding["api_error"].replace("`", ""):
                return False
        elif key == "severity" and value == "info_if_loader_collects_by_id_else_error":
            if finding["severity"] != "info":
                return False
        elif finding.get(key) != value:
            return False
    return True


@needs_shared
@pytest.mark.parametrize("folder", CASES, ids=[c.name for c in CASES])
def test_each_shared_case_is_diagnosed_as_expected(folder: Path) -> None:
    findings = [f.as_json() for f in diagnose(open_session(input_of(folder))).findings]
    expected = expected_of(folder)
    for entry in expected:
        assert any(_agrees(entry, finding) for finding in findings), (entry, findings)
    # Nothing beside the expected is an error: one fault is told once.
    assert {f["code"] for f in findings if f["severity"] == "error"} <= {e["code"] for e in expected}


@needs_shared
def test_parallel_side_branches_are_an_error_for_a_loader_that_does_not_collect_by_id() -> None:
    folder = next(c for c in CASES if c.name.startswith("22-"))
    report = diagnose(open_session(input_of(folder)), "2.0.76")
    assert [(f.code, f.severity) for f in report.findings] == [("sibling_results_off_chain", "error")]


CORPUS_ERRORS = {
    "06": {"sibling_results_off_chain"},
    "10": {"whitespace_text_block"},
    "14": {"sibling_results_off_chain"},
    "15": {"dangling_parent"},
    "18": {"sibling_results_off_chain"},
    "19": {"dangling_parent"},
    "20": {"sibling_results_off_chain"},
    "22": {"sibling_results_off_chain"},
    "27": {"sibling_results_off_chain"},
    "32": {"sibling_results_off_chain", "whitespace_text_block"},
    "33": {"whitespace_text_block"},
    "34": {"sibling_results_off_chain"},
    "43": {"whitespace_text_block"},
    "50": {"sibling_results_off_chain"},
    "53": {"sibling_results_off_chain"},
    "56": {"whitespace_text_block"},
    "62": {"result_without_tool_use"},
}
"""Errors in the real transcripts, each confirmed with the real clients: 1.0.128 and 2.0.76 lose the calls or the
records, or send what the API refuses."""


@needs_shared
def test_errors_in_real_transcripts_are_those_that_clients_were_seen_to_trip_over() -> None:
    found = {}
    for path in corpus_files():
        codes = {f.code for f in diagnose(open_session(path)).errors()}
        if codes:
            found[path.name[:2]] = codes
    assert found == CORPUS_ERRORS


def _only(report: Report) -> dict[str, Any]:
    (finding,) = report.findings
    return finding.as_json()


def test_an_orphaned_result_shows_where_its_call_is_and_why_it_is_cut_off() -> None:
    lines = Lines().user("u1", "Build.").call("a1", "m1", "x1").compaction("b1", "s1")
    found = _only(diagnose(lines.result("r1", "x1").user("u2", "On.").conversation()))
    assert found["why"] == "The compaction on line 3 cut the call (line 2) off from its result."
    assert found["call_exists_before_boundary"] is True
    assert (found["wire"], found["path"], found["lines"]) == ("messages.0.content.1", "message.content[0]", [5])
    assert [r["name"] for r in found["repairs"]] == ["readopt_call", "result_to_text", "remove_result"]
    assert set(found["clients"]) == {"1.0.128", "2.0.76", "2.1.332"}


def test_an_orphaned_call_says_that_the_request_was_interrupted() -> None:
    lines = Lines().user("u1", "Go.").call("a1", "m1", "x1").user("u2", "[Request interrupted by user for tool use]")
    found = _only(diagnose(lines.user("u3", "On.").conversation()))
    assert found["code"] == "tool_use_without_result"
    assert found["why"] == "The request was interrupted (line 3) before the result was written."


def test_an_orphaned_call_says_that_the_session_was_resumed() -> None:
    lines = Lines().user("u1", "Go.").call("a1", "m1", "x1")
    lines.version = "2.1.130"
    found = _only(diagnose(lines.user("u2", "Back again.").conversation()))
    assert found["why"] == "The session ended after the call and was resumed on line 3."


def test_several_calls_of_one_message_are_one_finding_and_messages_are_told_apart() -> None:
    lines = Lines().user("u1", "Go.").call("a1", "m1", "x1").call("a2", "m1", "x2").user("u2", "Stop.")
    lines.call("a3", "m2", "x3").user("u3", "Well?")
    found = [f for f in diagnose(lines.conversation()).findings if f.code == "tool_use_without_result"]
    assert [(f.ids, f.wire, f.lines) for f in found] == [
        (("x1", "x2"), "messages.1", (2, 3)),
        (("x3",), "messages.3", (5,)),
    ]


def test_user_text_between_call_and_result_is_no_fault_where_the_client_puts_results_first() -> None:
    lines = Lines().user("u1", "Go.").call("a1", "m1", "x1").user("u2", "One more thing.").result("r1", "x1")
    conversation = lines.say("a2", "m2").conversation()
    assert diagnose(conversation, "2.1.120").findings == ()
    assert [f.code for f in diagnose(conversation, "1.0.128").findings] == ["result_not_first"]


def test_doctor_prints_one_json_document_and_exits_1_with_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.jsonl"
    file.write_bytes(Lines().user("u1", "Go.").call("a1", "m1", "x1").user("u2", "Well?").data())
    assert main(["doctor", str(file), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    (finding,) = document["findings"]
    keys = ("code", "rule", "severity", "message", "api_error", "wire", "lines", "ids", "repairs")
    assert set(keys) <= set(finding)
    assert [set(r) >= {"name", "title", "default"} for r in finding["repairs"]] == [True, True]
    assert [r["name"] for r in finding["repairs"] if r["default"]] == ["insert_result"]
    assert main(["doctor", str(file)]) == 1
    printed = capsys.readouterr().out
    assert "tool_use_without_result:x1" in printed
    assert finding["api_error"] in printed


def test_doctor_exits_0_without_errors_and_3_without_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "s.jsonl"
    file.write_bytes(Lines().user("u1", "Go.").say("a1", "m1").data())
    before = file.read_bytes()
    assert main(["doctor", str(file)]) == 0
    assert "nothing is wrong" in capsys.readouterr().out
    assert main(["doctor", str(tmp_path / "absent.jsonl")]) == 3
    assert main(["doctor", str(file), "--client", "banana"]) == 2
    assert file.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["s.jsonl"]


def test_every_finding_code_is_explained() -> None:
    """resources/docs/findings.md has a heading for each code that a rule can give."""
    text = resource("docs", "findings.md").read_text("utf-8")
    explained = set(re.findall(r"^### `([a-z0-9_]+)`", text, re.MULTILINE))
    known = {code for rule in RECORD_RULES for code in rule.codes} | {code for _, code, _ in BROKEN} | set(FIXES)
    assert known - explained == set()
    assert explained - known == set()
