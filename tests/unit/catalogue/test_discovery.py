"""Where sessions are, and what a path says (transcript-format.md §1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from compaction.catalogue.discovery import Place, client_folders, find_transcripts, place_of


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/p/-a/5d1c.jsonl", Place("main", "", "")),
        ("/p/-a/agent-1f2e3d4c.jsonl", Place("subagent", "1f2e3d4c", "")),
        ("/p/-a/5d/subagents/agent-a1b2c3d.jsonl", Place("subagent", "a1b2c3d", "/p/-a/5d.jsonl")),
        ("/p/-a/5d/subagents/agent-acompact-77.jsonl", Place("compaction_call", "77", "/p/-a/5d.jsonl")),
        ("/p/-a/5d/subagents/workflows/wf_1/agent-9.jsonl", Place("workflow_agent", "9", "/p/-a/5d.jsonl")),
        ("/p/-a/5d/subagents/workflows/wf_1/journal.jsonl", Place("main", "", "")),
    ],
)
def test_the_layouts_of_every_version(path: str, place: Place) -> None:
    assert place_of(path) == place


def test_the_client_folder_follows_its_variable(tmp_path: Path) -> None:
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    (tmp_path / "other" / "projects").mkdir(parents=True)
    assert client_folders({}, tmp_path) == [tmp_path / ".claude" / "projects"]
    assert client_folders({"CLAUDE_CONFIG_DIR": str(tmp_path / "other")}, tmp_path) == [tmp_path / "other" / "projects"]
    assert client_folders({"CLAUDE_CONFIG_DIR": str(tmp_path / "none")}, tmp_path) == []


def test_only_transcripts_are_found_and_tool_results_are_left_alone(tmp_path: Path) -> None:
    for name in ("a.jsonl", "s/subagents/agent-1.jsonl", "s/tool-results/x.jsonl", "notes.txt", "node_modules/y.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"{}\n")
    found = {f.path: f.bytes for f in find_transcripts(tmp_path)}
    assert found == {str(tmp_path / "a.jsonl"): 3, str(tmp_path / "s/subagents/agent-1.jsonl"): 3}


def test_a_single_file_is_its_own_library(tmp_path: Path) -> None:
    path = tmp_path / "session.data"
    path.write_bytes(b"{}")
    assert [f.path for f in find_transcripts(path)] == [str(path)]


def test_links_are_followed_and_a_loop_ends(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.jsonl").write_bytes(b"{}\n")
    (tmp_path / "root" / "inner").mkdir(parents=True)
    (tmp_path / "root" / "linked").symlink_to(tmp_path / "real")
    (tmp_path / "root" / "again").symlink_to(tmp_path / "real")
    (tmp_path / "root" / "inner" / "loop").symlink_to(tmp_path / "root")
    names = [Path(f.path).name for f in find_transcripts(tmp_path / "root")]
    assert names == ["a.jsonl"]


def test_a_folder_that_cannot_be_listed_is_told(tmp_path: Path) -> None:
    problems: list[str] = []
    assert list(find_transcripts(tmp_path / "nothing", problems)) == []
    assert problems
    assert problems[0].startswith(str(tmp_path / "nothing"))
