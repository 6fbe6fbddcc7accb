"""What the API counts and compacts itself, over loopback (api.md §1.4, §1.6, §2.3; issue 8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compaction.request.wire import WireMessage, WireRequest
from compaction.summaries.api_client import ApiSettings, build_client
from compaction.summaries.dry_run import compact_on_server, continued_request, count_tokens
from compaction.summaries.failures import SummaryFailure
from compaction.summaries.models import list_models
from tests.unit.summaries.loopback import USAGE, Api, Handler, Reply, body, error, serving

BLOCK = {"type": "compaction", "content": "what happened", "encrypted_content": "b3BhcXVl", "signature": "sig"}
EDIT = {"type": "clear_tool_uses_20250919"}


def wire() -> WireRequest:
    use = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "out"}
    messages = [
        WireMessage("user", [{"type": "text", "text": "go"}], [None]),
        WireMessage("assistant", [use], [None]),
        WireMessage("user", [result], [None]),
    ]
    return WireRequest("2.1.332", None, messages, "claude-opus-5-5")


def compaction(block: dict[str, Any], stop_reason: str = "compaction") -> Reply:
    """A streamed on-demand compaction: one block, usage in an iteration, zeros on the top level."""

    def reply(handler: Handler) -> None:
        handler.begin_stream()
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": []}
        zero = {**USAGE, "input_tokens": 0, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
        handler.event("message_start", message={**message, "stop_reason": None, "stop_sequence": None, "usage": zero})
        handler.event("content_block_start", index=0, content_block=block)
        handler.event("content_block_stop", index=0)
        iteration = {
            "type": "compaction",
            "input_tokens": 180_000,
            "output_tokens": 3_500,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 0,
        }
        usage = {**zero, "output_tokens": 0, "iterations": [iteration]}
        handler.event("message_delta", delta={"stop_reason": stop_reason, "stop_sequence": None}, usage=usage)
        handler.event("message_stop")

    return reply


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
    with serving() as found:
        yield found


def client(api: Api) -> Any:
    return build_client(ApiSettings(base_url=api.url, timeout=5, retries=0))


def test_the_count_with_an_edit_tells_before_and_after(api: Api) -> None:
    api.replies = [body({"input_tokens": 70, "context_management": {"original_input_tokens": 100}})]
    with client(api) as opened:
        found = count_tokens(opened, wire(), [EDIT])
    assert (found.before, found.after) == (100, 70)
    sent = api.requests[0]
    assert sent["body"]["context_management"] == {"edits": [EDIT]}
    assert "context-management-2025-06-27" in sent["headers"]["anthropic-beta"]
    assert [t["name"] for t in sent["body"]["tools"]] == ["Bash"]


def test_without_an_edit_both_are_the_same(api: Api) -> None:
    api.replies = [body({"input_tokens": 70})]
    with client(api) as opened:
        found = count_tokens(opened, wire(), None)
    assert (found.before, found.after) == (70, 70)


def test_a_refused_count_is_explained(api: Api) -> None:
    api.replies = [error(400, "invalid_request_error", "messages.0: bad")]
    with client(api) as opened, pytest.raises(SummaryFailure, match=r"messages\.0"):
        count_tokens(opened, wire(), None)


def test_the_apis_block_is_kept_as_it_came_and_its_iteration_is_counted(api: Api) -> None:
    api.replies = [compaction(BLOCK)]
    with client(api) as opened:
        found = compact_on_server(opened, wire(), "keep the names")
    assert found.block == BLOCK
    assert found.summary == "what happened"
    assert (found.usage.input, found.usage.output) == (180_000, 3_500)
    sent = api.requests[0]
    assert sent["body"]["compaction"] == {"type": "summarize", "instructions": "keep the names"}
    assert sent["headers"]["anthropic-beta"] == "compact-2026-09-04"
    assert "context_management" not in sent["body"]
    assert continued_request(wire(), found)["messages"] == [{"role": "assistant", "content": [BLOCK]}]


@pytest.mark.parametrize(
    ("block", "stop_reason", "kind"),
    [
        ({"type": "compaction", "content": None}, "compaction", "empty"),
        (BLOCK, "end_turn", "malformed"),
        ({"type": "text", "text": "no block"}, "compaction", "malformed"),
    ],
)
def test_an_empty_or_missing_block_is_a_failure(api: Api, block: dict[str, Any], stop_reason: str, kind: str) -> None:
    api.replies = [compaction(block, stop_reason)]
    with client(api) as opened, pytest.raises(SummaryFailure) as caught:
        compact_on_server(opened, wire())
    assert caught.value.kind == kind


def test_models_come_from_the_models_api(api: Api) -> None:
    model = {
        "id": "claude-opus-5-5",
        "type": "model",
        "display_name": "Opus 5.5",
        "created_at": "2026-09-22T00:00:00Z",
        "max_input_tokens": 1_000_000,
        "max_tokens": 128_000,
    }
    api.replies = [body({"data": [model], "has_more": False, "first_id": "a", "last_id": "a"})]
    with client(api) as opened:
        found = list_models(opened)
    assert [(m.id, m.window, m.max_output) for m in found] == [("claude-opus-5-5", 1_000_000, 128_000)]
    api.replies = [error(401, "authentication_error", "no")]
    with client(api) as opened, pytest.raises(SummaryFailure, match="401"):
        list_models(opened)
