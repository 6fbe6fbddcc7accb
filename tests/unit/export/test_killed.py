"""SIGKILL at random moments of apply and export: whole files or none, the original untouched (issue 6, "Must hold")."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compaction.export.journal import Journal, stands
from tests.generator import Session
from tests.support import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="SIGKILL and fork are POSIX"),
]

LONGEST_SECONDS = {"write": 0.35, "cli": 1.2}


@pytest.mark.parametrize(("what", "kills"), [("write", 200), ("cli", 200)])
def test_killed_writers_leave_whole_files_or_none_and_the_journal_names_the_rest(
    what: str, kills: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPACTOSCOPE_DATA", str(tmp_path / "data"))
    source, folder = tmp_path / "session.jsonl", tmp_path / "out"
    Session(seed=5, records=400).write(source)
    folder.mkdir()
    original, age = hashlib.sha256(source.read_bytes()).hexdigest(), source.stat().st_mtime_ns
    chance = random.Random(6)
    journal = Journal(tmp_path / "data" / "journal")
    left = whole = 0
    seen: set[Path] = set()
    command = [sys.executable, "-m", "tests.unit.export.killed_child", str(source), str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for _ in range(kills):
            server.stdin.write(what + "\n")
            server.stdin.flush()
            victim = int(server.stdout.readline())
            time.sleep(chance.uniform(0.0, LONGEST_SECONDS[what]))
            os.kill(victim, signal.SIGKILL)
            assert server.stdout.readline() == "ended\n"
            assert hashlib.sha256(source.read_bytes()).hexdigest() == original
            entries = {Path(e.target): e for e in journal.entries()}
            unfinished = journal.unfinished()
            for path in set(folder.iterdir()) - seen:
                if path.name.startswith("."):
                    # A temporary file is never one that the journal does not name.
                    assert path in {Path(e.temporary) for e in unfinished}
                    continue
                assert stands(entries[path]), f"{path.name} bears its name and is not what was to be written"
                seen.add(path)
                whole += 1
            for entry in unfinished:
                left += 1
                settled = journal.settle(entry)
                assert settled.state == ("done" if Path(entry.target).exists() else "failed")
                assert not Path(entry.temporary).exists()
            assert journal.unfinished() == []
            for path in journal.folder.glob("*.json"):
                path.unlink()
        server.stdin.close()
    assert source.stat().st_mtime_ns == age
    # The kills met writers at work: some were in the middle, and some files had been finished before.
    assert left > kills // 10
    assert whole > 0
    print(f"{what}: {kills} kills, {left} outputs left unfinished, {whole} whole files")
