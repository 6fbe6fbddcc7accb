"""Exports of every strategy resume in the real client, and it sends what the preview showed (issue 5)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compaction.conversation import open_session
from compaction.export.journal import Journal
from compaction.export.transcripts import write_plan
from compaction.request.wire import WireMessage
from compaction.strategies.inputs import strategy_input
from compaction.strategies.registry import STRATEGIES, preview
from compaction.strategies.settings import make_settings, specs_of
from tests.support import SHARED, needs_shared

pytestmark = [pytest.mark.lab, pytest.mark.slow, needs_shared]

SESSIONS = ("20-2.1.20", "30-2.1.220", "35-2.0.42", "47-2.1.217", "66-1.0.89")
CLIENTS = ("2.1.332", "2.0.76")
MODEL = "claude-sonnet-4-6"
PROMPT = "continue please"
MEMORY = "# Session\nThe parser was mended; the tests stay as they are."
SETTINGS: dict[str, dict[str, Any]] = {
    "api-clear-tool-uses": {"trigger_value": 1_000, "clear_at_least": 0},
    "microcompact-cached": {"trigger_results": 4},
    "partial-from": {"keep_rounds": 4},
    "partial-up-to": {"keep_rounds": 4},
}


def _normalised(messages: list[tuple[str, list[dict[str, Any]]]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Without reminders, system turns and the prompt, as the lab prints it."""
    out = []
    for role, content in messages:
        kept = [
            {k: v for k, v in block.items() if k != "cache_control"}
            for block in content
            if not (
                block.get("type") == "text"
                and (block["text"].lstrip().startswith("<system-reminder>") or block["text"].strip() == PROMPT)
            )
        ]
        if kept and role in ("user", "assistant"):
            out.append((role, kept))
    return out


def _sent_by_client(client: str, transcript: Path) -> list[tuple[str, list[dict[str, Any]]]]:
    command = [sys.executable, str(SHARED / "client-lab" / "lab.py"), "resume", client, str(transcript)]
    # A client takes what stands on its standard input for part of the prompt.
    done = subprocess.run(
        [*command, "--model", MODEL], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-500:]
    return [(message["role"], message["content"]) for message in json.loads(done.stdout)]


def _pairs(messages: list[WireMessage]) -> list[tuple[str, list[dict[str, Any]]]]:
    return [(message.role, message.content) for message in messages]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("session", SESSIONS)
@pytest.mark.parametrize("name", list(STRATEGIES))
def test_the_client_sends_what_the_preview_showed(name: str, session: str, client: str, tmp_path: Path) -> None:
    if not (Path(os.environ["CLIENT_LAB_HOME"]) / client).is_dir():
        pytest.skip(f"client {client} is not installed: lab.py install {client}")
    path = SHARED / "corpus" / f"{session}.jsonl"
    conversation = open_session(path).conversation
    now = int(conversation.transcript.timestamp_ms.max()) + 2 * 3_600_000
    given = strategy_input(conversation, now_ms=now, client=client, model=MODEL, session_memory=MEMORY)
    chosen = STRATEGIES[name]
    values = dict(SETTINGS.get(name, {}))
    if any(spec.key == "enabled" for spec in specs_of(chosen.settings_type)):
        values["enabled"] = True
    plan = preview(chosen, given, make_settings(chosen.settings_type, values, name))
    if not plan.applies:
        pytest.skip(f"{name} has nothing to do on {session}: {plan.reason}")
    journal = Journal(tmp_path / "journal")
    written = write_plan(tmp_path / path.name, conversation.transcript, plan, source=path, journal=journal)
    assert _normalised(_sent_by_client(client, written.path)) == _normalised(_pairs(plan.sent.messages))
