"""The last pass of an index: findings, silent compactions and the context now, as the other commands tell them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compaction.accounting.current import context_summary
from compaction.catalogue.database import Catalogue, open_catalogue
from compaction.catalogue.entries import SessionEntry
from compaction.catalogue.examine import ExamineJob, examine
from compaction.catalogue.indexer import refresh
from compaction.catalogue.sessions import list_sessions
from compaction.conversation import open_session
from compaction.diagnosis import diagnose
from tests.generator import Session
from tests.support import SHARED, needs_shared
from tests.unit.catalogue.support import every_fault


@pytest.fixture
def catalogue(own_data_folder: Path) -> Iterator[Catalogue]:
    opened = open_catalogue(folder=own_data_folder)
    yield opened
    opened.close()


def entry_of(catalogue: Catalogue, path: Path) -> SessionEntry:
    refresh(catalogue, [path], processes=1)
    [entry] = list_sessions(catalogue)
    return entry


def agrees(entry: SessionEntry, path: Path) -> None:
    session = open_session(path)
    report = diagnose(session)
    severities = [finding.severity for finding in report.findings]
    assert entry.findings == tuple(severities.count(s) for s in ("error", "warning", "info"))
    assert set(entry.finding_codes) == {finding.code for finding in report.findings}
    assert entry.compactions == len(session.conversation.compactions)
    assert entry.context_tokens == context_summary(session.conversation)["tokens"]
    assert entry.damaged == len(session.transcript.damage)
    assert entry.problem == ""


@pytest.mark.parametrize("fault", ["", *every_fault("cut_last_line", "two_records_on_one_line")])
def test_the_row_says_what_the_commands_say(tmp_path: Path, catalogue: Catalogue, fault: str) -> None:
    faults = (fault,) if fault else ()
    path = Session(rounds=12, compactions=1, orphan_results=1, unanswered_calls=1, faults=faults).write(
        tmp_path / "s.jsonl"
    )
    agrees(entry_of(catalogue, path), path)


@needs_shared
@pytest.mark.parametrize("case", ["01-parallel-missing-result", "18-damaged-lines", "24-compaction-thrash"])
def test_the_row_says_what_the_commands_say_of_the_cases(catalogue: Catalogue, case: str) -> None:
    path = SHARED / "cases" / case / "input.jsonl"
    agrees(entry_of(catalogue, path), path)


def test_findings_of_a_changed_file_are_unknown_until_it_is_diagnosed_again(
    tmp_path: Path, catalogue: Catalogue
) -> None:
    path = Session(rounds=10, subagents=0).write(tmp_path / "s.jsonl")
    assert entry_of(catalogue, path).findings is not None
    with path.open("ab") as file:
        file.write(b'{"type":"last-prompt","lastPrompt":"x","sessionId":"s"}\n')
    report = refresh(catalogue, [path], findings=False, processes=1)
    assert (report.indexed, report.examined) == (1, 0)
    assert list_sessions(catalogue)[0].findings is None
    assert refresh(catalogue, [path], processes=1).examined == 1
    assert list_sessions(catalogue)[0].findings is not None
    assert refresh(catalogue, [path], processes=1).examined == 0


def test_a_fault_in_a_rule_concerns_its_session_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: object) -> None:
        raise ZeroDivisionError("a rule divides by nothing")

    monkeypatch.setattr("compaction.diagnosis.diagnose", broken)
    path = Session(rounds=3).write(tmp_path / "s.jsonl")
    found = examine(ExamineJob(1, str(path), path.stat().st_size))
    assert found.problem == "ZeroDivisionError: a rule divides by nothing"
    assert found.errors is None


def test_a_file_that_is_gone_is_a_problem_of_its_row(tmp_path: Path) -> None:
    assert "no such file" in examine(ExamineJob(1, str(tmp_path / "gone.jsonl"), 10)).problem
