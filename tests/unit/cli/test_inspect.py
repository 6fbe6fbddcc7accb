"""`inspect --json` against values derived here from the plain JSON, not by the code under test (issue 2, Must hold)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from compaction.cli.main import main
from tests.support import case_folders, corpus_files, needs_shared


def inspect(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["inspect", str(path), "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def blocks(record: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return [b for b in content if b.get("type") == kind] if isinstance(content, list) else []


@needs_shared
@pytest.mark.parametrize("path", corpus_files(), ids=lambda p: p.name)
def test_counts_of_every_corpus_file(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = inspect(path, capsys)
    raw = path.read_bytes()
    records, broken = [], 0
    for line in raw.split(b"\n"):
        try:
            records.append(json.loads(line))
        except ValueError:
            broken += bool(line)
    assert found["bytes"] == len(raw)
    assert found["lines"] == raw.count(b"\n") + (0 if raw.endswith(b"\n") else 1)
    assert found["records"] == len(records)
    assert len(found["damaged_lines"]) == broken
    assert found["record_types"] == Counter(r["type"] for r in records)
    assert found["client_versions"] == list(dict.fromkeys(r["version"] for r in records if r.get("version")))
    assert set(found["session_ids"]) == {r["sessionId"] for r in records if r.get("sessionId")}
    assistants = [r for r in records if r["type"] == "assistant"]
    assert set(found["models"]) == {r["message"]["model"] for r in records if r.get("message", {}).get("model")}
    assert found["responses"] == len({r["message"]["id"] for r in assistants})
    uses = [b["id"] for r in records for b in blocks(r, "tool_use")]
    results = [b["tool_use_id"] for r in records for b in blocks(r, "tool_result")]
    assert (found["tool_uses"], found["tool_results"]) == (len(uses), len(results))
    assert found["tool_uses_without_result"] == list(dict.fromkeys(i for i in uses if i not in set(results)))
    assert found["tool_results_without_use"] == list(dict.fromkeys(i for i in results if i not in set(uses)))
    chained = [r for r in records if r.get("uuid")]
    known = {r["uuid"] for r in chained}
    assert found["roots"] == sum(r.get("parentUuid") is None for r in chained)
    dangling = [r["parentUuid"] for r in chained if r.get("parentUuid") and r["parentUuid"] not in known]
    assert found["dangling_parents"] == dangling
    assert found["sidechain_records"] == sum(bool(r.get("isSidechain")) for r in records)
    boundaries = [r for r in records if r.get("subtype") == "compact_boundary"]
    recorded = [c for c in found["compactions"] if c["kind"] in ("auto", "manual")]
    assert [c["kind"] for c in recorded] == [b["compactMetadata"]["trigger"] for b in boundaries]
    assert [c["pre_tokens"] for c in recorded] == [b["compactMetadata"]["preTokens"] for b in boundaries]


@needs_shared
@pytest.mark.parametrize("folder", case_folders(), ids=lambda p: p.name)
def test_every_case_is_inspected_as_text_and_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = folder.glob("input.json*")
    assert inspect(path, capsys)["records"] > 0
    assert main(["inspect", str(path)]) == 0
    assert "API rounds" in capsys.readouterr().out


def test_a_missing_file_is_exit_3_with_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tmp_path / "none")]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "none" in line
    assert "no such file" in line


def test_bad_usage_is_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect"]) == 2
    assert main(["no-such-command"]) == 2
    assert "usage" in capsys.readouterr().err
