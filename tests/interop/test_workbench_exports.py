"""What the workbench makes resumes in the real client: strategies applied one on the other, a model's summary.

Issue 6, "Must hold": exported JSONL of chained strategies is accepted and sends what the "after" tree shows. Issue 8: a
summary made through the loopback API, applied and exported, resumes and is sent.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from compaction.conversation import Conversation, Session, open_session
from compaction.export.formats import FORMATS, ExportOptions
from compaction.export.journal import Journal
from compaction.strategies.apply import derived
from compaction.strategies.inputs import strategy_input
from compaction.strategies.plan import Plan, StrategyInput
from compaction.strategies.registry import STRATEGIES, preview
from compaction.strategies.settings import make_settings, specs_of
from compaction.summaries.api_client import ApiSettings
from compaction.summaries.model_summariser import AnthropicSummariser
from compaction.summaries.summary_request import RequestOptions
from inspector.documents.model_column import with_summariser
from tests.interop.test_strategy_exports import CLIENTS, MODEL, SETTINGS, _normalised, _pairs, _sent_by_client
from tests.support import SHARED, needs_shared
from tests.unit.summaries.loopback import serving, stream

pytestmark = [pytest.mark.lab, pytest.mark.slow, needs_shared]

SESSIONS = ("20-2.1.20", "35-2.0.42", "47-2.1.217")
WITH_SUMMARY = {"2.1.332": "20-2.1.20", "2.0.76": "35-2.0.42"}
CHAINS = (
    ("microcompact-time", "context-collapse"),
    ("context-collapse", "microcompact-time"),
    ("snip", "auto-compact"),
    ("microcompact-time", "partial-up-to"),
    ("partial-up-to", "microcompact-time"),
    ("partial-from", "auto-compact"),
    ("microcompact-time", "context-collapse", "auto-compact"),
)
WORDS = "A summary that only the loopback model could have written."


def given_on(conversation: Conversation, now: int, client: str) -> StrategyInput:
    return strategy_input(conversation, now_ms=now, client=client, model=MODEL)


def plan_of(name: str, given: StrategyInput) -> Plan:
    chosen = STRATEGIES[name]
    values: dict[str, Any] = dict(SETTINGS.get(name, {}))
    if any(spec.key == "enabled" for spec in specs_of(chosen.settings_type)):
        values["enabled"] = True
    return preview(chosen, given, make_settings(chosen.settings_type, values, name))


def exported(conversation: Conversation, target: Path, folder: Path) -> Path:
    """Written as the export dialog writes a derived session."""
    options = ExportOptions(journal=Journal(folder / "journal"))
    return FORMATS["jsonl"].write(Session(conversation), target, options).path


def installed(client: str) -> None:
    if not (Path(os.environ["CLIENT_LAB_HOME"]) / client).is_dir():
        pytest.skip(f"client {client} is not installed: lab.py install {client}")


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("session", SESSIONS)
@pytest.mark.parametrize("chain", CHAINS, ids="+".join)
def test_a_chain_of_strategies_is_sent_as_its_last_preview_showed(
    chain: tuple[str, ...], session: str, client: str, tmp_path: Path
) -> None:
    installed(client)
    path = SHARED / "corpus" / f"{session}.jsonl"
    conversation = open_session(path).conversation
    now = int(conversation.transcript.timestamp_ms.max()) + 2 * 3_600_000
    sent = None
    for number, name in enumerate(chain):
        given = given_on(conversation, now + number * 2 * 3_600_000, client)
        plan = plan_of(name, given)
        if not plan.applies:
            continue
        assert plan.tokens_after <= plan.tokens_before
        conversation = derived(given, plan)
        sent = plan.sent
        assert given_on(conversation, now, client).view.tokens == plan.tokens_after
    if sent is None:
        pytest.skip("none of them has anything to do here")
    written = exported(conversation, tmp_path / path.name, tmp_path)
    assert _normalised(_sent_by_client(client, written)) == _normalised(_pairs(sent.messages))


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", ["auto-compact", "partial-up-to", "partial-from"])
def test_a_models_summary_is_applied_exported_resumed_and_sent(
    name: str, client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(client)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
    path = SHARED / "corpus" / f"{WITH_SUMMARY[client]}.jsonl"
    conversation = open_session(path).conversation
    given = given_on(conversation, int(conversation.transcript.timestamp_ms.max()) + 2 * 3_600_000, client)
    with serving() as api:
        api.replies = [
            stream(f"<analysis>a</analysis>\n<summary>\n1. Primary Request and Intent:\n{WORDS}\n</summary>")
        ]
        summariser = AnthropicSummariser(RequestOptions(), ApiSettings(base_url=api.url, timeout=20, retries=0))
        plan = plan_of(name, with_summariser(given, summariser))
        assert plan.applies, plan.reason
        assert len(api.requests) == 1
    assert plan.summary_usage == (10, 300, 1000, 20)
    written = exported(derived(given, plan), tmp_path / path.name, tmp_path)
    messages = _sent_by_client(client, written)
    assert WORDS in str(messages)
    assert "<analysis>" not in str(messages)
    assert _normalised(messages) == _normalised(_pairs(plan.sent.messages))
