"""Nothing leaves the machine: in a network namespace without any route no command tries to connect (issue 8)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compaction.resources import resource
from tests.support import ROOT

SAMPLE = str(resource("sample", "tide-tables.jsonl"))
_ATTEMPT = re.compile(r"(?:connect|sendto|sendmsg|sendmmsg)\([^)]*sa_family=AF_INET6?")


def _can_isolate() -> bool:
    if shutil.which("unshare") is None or shutil.which("strace") is None:
        return False
    return subprocess.run(["unshare", "-n", "true"], check=False, capture_output=True).returncode == 0


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not _can_isolate(), reason="needs strace and the right to make a network namespace"),
]


def isolated(tmp_path: Path, *arguments: str, timeout: float = 120) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run the program without any network; its result and what strace saw of the network."""
    trace = tmp_path / "trace.txt"
    calls = "trace=connect,sendto,sendmsg,sendmmsg"
    command = ["unshare", "-n", "strace", "-f", "-qq", "-e", calls, "-o", str(trace), sys.executable, "-m", "inspector"]
    environment = {
        **os.environ,
        "COMPACTOSCOPE_DATA": str(tmp_path / "own"),
        "QT_QPA_PLATFORM": "offscreen",
        "ANTHROPIC_API_KEY": "sk-ant-test",
    }
    done = subprocess.run(
        [*command, *arguments],
        cwd=ROOT,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    return done, trace.read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect", SAMPLE, "--json"),
        ("compare", SAMPLE, "--json"),
        ("compact", SAMPLE, "--strategy", "auto-compact", "-o", "{out}/a.jsonl"),
        ("compact", SAMPLE, "--strategy", "auto-compact", "-o", "{out}/b.jsonl", "--summariser", "anthropic"),
        ("replay", SAMPLE, "--json"),
        ("doctor", SAMPLE, "--json"),
        ("request", SAMPLE, "--json"),
        ("cost", SAMPLE, "--json"),
        ("memory", SAMPLE, "--update"),
        ("export", SAMPLE, "--format", "jsonl", "-o", "{out}/c.jsonl"),
        ("screenshot", SAMPLE, "-o", "{out}/d.png"),
    ],
    ids=lambda a: " ".join(x for x in a if not x.startswith(("/", "{"))),
)
def test_nothing_tries_to_connect(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done, trace = isolated(tmp_path, *(a.format(out=tmp_path) for a in arguments))
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    assert _ATTEMPT.findall(trace) == []


def test_a_run_that_needs_the_network_fails_clearly_within_its_time_limit(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    started = time.monotonic()
    done, trace = isolated(
        tmp_path,
        *("compact", SAMPLE, "--strategy", "auto-compact", "-o", str(out)),
        *("--summariser", "anthropic", "--yes", "--base-url", "http://203.0.113.7:9", "--timeout", "5"),
    )
    assert done.returncode == 1
    assert "could not be reached" in done.stderr
    assert "Traceback" not in done.stderr
    assert time.monotonic() - started < 60
    assert _ATTEMPT.search(trace), "the check would not see an attempt"
    assert not out.exists()
