"""`request` against the real clients: what they send when they resume a session, and what they sent when recorded.

The lab (../shared/client-lab) runs each client against a loopback API, so its output is the truth. About two seconds a
file and client; the clients are installed with npm when they are not there yet.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from compaction.conversation import open_session
from compaction.request import Assembler, assemble
from tests.support import SHARED, case_folders, corpus_files, needs_shared

Json = dict[str, Any]

pytestmark = [pytest.mark.lab, pytest.mark.slow, needs_shared, pytest.mark.timeout(1200)]

LAB = SHARED / "client-lab" / "lab.py"
VERSIONS = ("2.1.332", "2.0.76", "1.0.128")
PROMPT = "continue please"
MODEL = "claude-sonnet-4-6"


def tool(name: str) -> ModuleType:
    """A module of the lab's folder."""
    spec = importlib.util.spec_from_file_location(name, LAB.with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def clients() -> None:
    """The three clients, installed; skips where they cannot run."""
    home = Path(os.environ.get("CLIENT_LAB_HOME", Path.home() / ".cache" / "client-lab"))
    missing = [v for v in VERSIONS if not (home / v / "node_modules" / "@anthropic-ai").is_dir()]
    if missing and shutil.which("npm") is None:
        pytest.skip("npm is not installed: the clients cannot be fetched")
    if missing:
        done = lab("install", *missing)
        if done.returncode:
            pytest.skip(f"the clients could not be installed: {done.stderr[-300:]}")
    inside = ["unshare", "-n", "true"] if os.geteuid() == 0 else ["unshare", "-rn", "true"]
    if shutil.which("unshare") is None or subprocess.run(inside, check=False, capture_output=True).returncode:
        pytest.skip("no network namespaces here: the lab does not run a client beside a real network")


def lab(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(LAB), *arguments], check=False, capture_output=True, text=True)


def sent(version: str, path: Path) -> list[Json] | None:
    """The conversation that the client sends when it resumes the file; None when it sends nothing."""
    done = lab("resume", version, str(path), "--model", MODEL)
    if done.returncode:
        return None
    found: list[Json] = json.loads(done.stdout)
    return found


def ours(version: str, path: Path) -> list[Json]:
    """Our request for the same, through the lab's own normalisation."""
    request = assemble(open_session(path).conversation, version, model=MODEL)
    messages = [{"role": message.role, "content": message.content} for message in request.messages]
    found: list[Json] = tool("lab").normalise(messages, PROMPT)
    return found


def without_injected(theirs: list[Json], mine: list[Json], is_summary_request: Callable[[Json], bool]) -> list[Json]:
    """`theirs` without what a resumed client injects at its end and no record holds.

    The summary instruction of a session above the auto-compact threshold, and reminders that the client puts behind
    the last tool result because the new prompt follows it at once.
    """
    out = [{**message, "content": list(message["content"])} for message in theirs]
    if out and out[-1]["role"] == "user" and is_summary_request({"messages": [out[-1]]}):
        out[-1]["content"].pop()
        if not out[-1]["content"]:
            out.pop()
    if out and mine and len(out) == len(mine):
        for place, block in enumerate(out[-1]["content"]):
            same = mine[-1]["content"][place] if place < len(mine[-1]["content"]) else {}
            words, known = block.get("content"), same.get("content")
            if isinstance(words, str) and isinstance(known, str) and words.startswith(f"{known}\n\n<system-reminder>"):
                out[-1]["content"][place] = {**block, "content": known}
    return out


def difference(theirs: list[Json], mine: list[Json]) -> str:
    """The first place where they differ, "" when they are the same."""
    for index, (one, other) in enumerate(zip(theirs, mine, strict=False)):
        if one["role"] != other["role"]:
            return f"message {index}: {one['role']} against our {other['role']}"
        for place, (block, same) in enumerate(zip(one["content"], other["content"], strict=False)):
            if block != same:
                return f"message {index} block {place}: {json.dumps(block)[:300]} against our {json.dumps(same)[:300]}"
        if len(one["content"]) != len(other["content"]):
            return f"message {index}: {len(one['content'])} blocks against our {len(other['content'])}"
    return "" if len(theirs) == len(mine) else f"{len(theirs)} messages against our {len(mine)}"


def compare(version: str, paths: list[Path]) -> tuple[int, list[str]]:
    """How many files the client resumes, and where our request differs."""
    is_summary_request = tool("mock_api").is_summary_request
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda path: sent(version, path), paths))
    resumed = 0
    differences = []
    for path, theirs in zip(paths, answers, strict=True):
        if theirs is None:
            continue
        resumed += 1
        mine = ours(version, path)
        found = difference(without_injected(theirs, mine, is_summary_request), mine)
        if found:
            differences.append(f"{path.parent.name}/{path.name}: {found}")
    return resumed, differences


def main_sessions() -> list[Path]:
    """The corpus files that hold a main session (a subagent's own file is never resumed)."""
    return [p for p in corpus_files() if not open_session(p).conversation.is_subagent_file]


@pytest.mark.usefixtures("clients")
@pytest.mark.parametrize("version", VERSIONS)
def test_the_next_request_is_what_the_real_client_sends_on_at_least_97_percent_of_the_corpus(version: str) -> None:
    resumed, differences = compare(version, main_sessions())
    assert resumed >= 60
    assert len(differences) <= 0.03 * resumed, "\n".join(differences)


@pytest.mark.usefixtures("clients")
@pytest.mark.parametrize("version", VERSIONS)
def test_the_broken_sessions_of_the_cases_are_sent_as_the_real_client_sends_them(version: str) -> None:
    paths = [folder / "input.jsonl" for folder in case_folders() if (folder / "input.jsonl").exists()]
    resumed, differences = compare(version, paths)
    assert resumed >= len(paths) - 2  # the older clients cannot send a lone surrogate
    # Above the threshold the summary request carries injected text inside messages that the session holds.
    assert [d for d in differences if not d.startswith("24-compaction-thrash/")] == []


@pytest.mark.usefixtures("clients")
@pytest.mark.parametrize("model", [MODEL, "claude-opus-5-5"])
def test_every_request_of_a_recorded_session_is_proven_by_its_hashes(model: str, tmp_path: Path) -> None:
    """Prompt, parallel calls, resume, compaction and resume; reminders in user or in system messages by model."""
    steps = ["-p", "STEPS=1 SIZE=200 TAG=two", "-p", "/compact focus on tests", "-p", "STEPS=1 SIZE=99 TAG=three"]
    first = "STEPS=3 SIZE=300 TAG=one PARALLEL=2"
    done = lab("record", "2.1.332", first, "--model", model, "-o", str(tmp_path), *steps)
    assert done.returncode == 0, done.stderr[-2000:]
    assembler = Assembler(open_session(next(tmp_path.glob("*.jsonl"))).conversation)
    rounds = range(1, assembler.conversation.round_count + 1)
    requests = [assembler.request(number) for number in rounds]
    assert len(requests) >= 6
    assert {request.verified for request in requests} == {"hash"}
    assert all(request.unaccounted == [] for request in requests)
    assert all(request.system and request.tools and request.model == model for request in requests)
    assert any(message.role == "system" for r in requests for message in r.messages) == (model != MODEL)
