"""Summaries by a model through the real SDK over loopback HTTP (compaction.md §6 and §7; issue 8, Must hold)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from compaction.errors import Cancelled
from compaction.progress import Progress
from compaction.request.wire import WireMessage, WireRequest
from compaction.summaries.api_client import ApiSettings, build_client
from compaction.summaries.failures import SummaryFailure, gap_of, is_prompt_too_long
from compaction.summaries.run import Listener, ModelSummary, summarise_conversation
from compaction.summaries.summary_request import TRUNCATION_MARKER, RequestOptions, truncate_head_for_retry
from compaction.summaries.usage import CallUsage
from tests.unit.summaries.loopback import ANSWER, Api, error, serving, silence, stream

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


def message(role: str, *content: dict[str, Any]) -> WireMessage:
    return WireMessage(role, list(content), [None] * len(content))


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def conversation(rounds: int = 6) -> list[WireMessage]:
    found = [message("user", text("please build it"), IMAGE)]
    for i in range(rounds):
        use = {"type": "tool_use", "id": f"t{i}", "name": "Bash", "input": {"command": "ls"}}
        thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
        found.append(message("assistant", thinking, text(f"step {i}"), use))
        result = {"type": "tool_result", "tool_use_id": f"t{i}", "content": [text("x" * 400), IMAGE]}
        found.append(message("user", result))
    return found


def wire(*, known: bool = True) -> WireRequest:
    return WireRequest(
        client="2.1.332",
        at=None,
        messages=conversation(),
        model="claude-opus-5-5",
        system=[text("You are a coding agent.")] if known else None,
        tools=[{"name": "Bash", "input_schema": {"type": "object"}}] if known else None,
        thinking={"type": "adaptive"} if known else None,
        params={"max_tokens": 32_000} if known else {},
    )


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
    with serving() as found:
        yield found


def run(
    api: Api,
    given: WireRequest | None = None,
    *,
    timeout: float = 5.0,
    options: RequestOptions | None = None,
    **more: Any,
) -> ModelSummary:
    client = build_client(ApiSettings(base_url=api.url, timeout=timeout, retries=0))
    given = given or wire()
    with client:
        return summarise_conversation(client, given, given.messages, "PROMPT", options or RequestOptions(), **more)


def test_a_summary_is_streamed_formatted_and_measured(api: Api) -> None:
    api.replies = [stream()]
    pieces: list[str] = []
    found = run(api, listener=Listener(text=pieces.append))
    assert "".join(pieces) == ANSWER
    assert found.text == "Summary:\n1. Primary Request and Intent:\n- build it"
    assert found.usage == CallUsage(10, 300, 1000, 20, 20)
    assert [a.shares_cache for a in found.attempts] == [True]


def test_cache_sharing_sends_the_sessions_own_system_tools_thinking_and_prefix(api: Api) -> None:
    api.replies = [stream()]
    run(api, options=RequestOptions(one_hour_cache=True))
    sent = api.requests[0]["body"]
    given = wire()
    control = {"type": "ephemeral", "ttl": "1h"}
    assert sent["system"] == [{**text("You are a coding agent."), "cache_control": control}]
    assert sent["tools"] == given.tools
    assert sent["thinking"] == {"type": "adaptive"}
    assert sent["max_tokens"] == 32_000
    assert "tool_choice" not in sent
    assert sent["messages"][:-1] == [{"role": m.role, "content": m.content} for m in given.messages[:-1]]
    last = sent["messages"][-1]["content"]
    assert last[0]["cache_control"] == control
    assert last[1] == text("PROMPT")


def test_without_known_system_and_tools_a_plain_call_strips_images_and_thinking_and_denies_tools(api: Api) -> None:
    api.replies = [stream()]
    run(api, wire(known=False))
    sent = api.requests[0]["body"]
    assert sent["tool_choice"] == {"type": "none"}
    assert [t["name"] for t in sent["tools"]] == ["Bash"]
    assert sent["messages"][0]["content"][1] == text("[image]")
    assert sent["messages"][2]["content"][0]["content"][1] == text("[image]")
    kinds = {b["type"] for m in sent["messages"] for b in m["content"]}
    assert kinds == {"text", "tool_use", "tool_result"}


def test_a_failed_cache_sharing_call_falls_back_to_a_plain_one(api: Api) -> None:
    api.replies = [error(400, "invalid_request_error", "thinking: bound to a different conversation"), stream()]
    found = run(api)
    assert [(a.shares_cache, bool(a.failure)) for a in found.attempts] == [(True, True), (False, False)]


def test_a_too_long_prompt_with_the_gap_drops_the_rounds_that_cover_it(api: Api) -> None:
    api.replies = [error(400, "invalid_request_error", "prompt is too long: 201500 tokens > 200000 maximum"), stream()]
    found = run(api)
    # Group 0 is the prompt (4 + 2,000 for its image by the rough estimate), which covers 1,500 tokens alone.
    assert found.attempts[-1].dropped_groups == 1
    first = api.requests[1]["body"]["messages"][0]
    assert first == {"role": "user", "content": [text(TRUNCATION_MARKER)]}


def test_a_too_long_prompt_without_gap_drops_a_fifth_and_at_most_three_times(api: Api) -> None:
    api.replies = [error(413, "request_too_large", "Prompt is too long")] * 4
    with pytest.raises(SummaryFailure, match="too long") as caught:
        run(api)
    assert caught.value.kind == "prompt_too_long"
    assert len(api.requests) == 4
    assert len(api.requests[3]["body"]["messages"]) < len(api.requests[1]["body"]["messages"])


def test_an_answer_that_starts_with_the_too_long_error_is_one(api: Api) -> None:
    api.replies = [stream("Prompt is too long"), stream()]
    assert run(api).attempts[0].failure


def test_truncation_never_leaves_less_than_one_group_and_gives_up_below_two() -> None:
    messages = conversation(2)
    found = truncate_head_for_retry(messages, 10**9)
    assert found is not None
    assert [m.role for m in found.messages] == ["user", "assistant", "user"]
    assert truncate_head_for_retry([message("user", text("one"))], None) is None
    again = truncate_head_for_retry([*found.messages, message("assistant", text("more"))], None)
    assert again is not None
    assert TRUNCATION_MARKER not in str(again.messages[1:])


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error(401, "authentication_error", "invalid x-api-key"), "authentication"),
        (error(402, "billing_error", "credit balance is too low"), "payment"),
        (error(403, "permission_error", "no"), "permission"),
        (error(404, "not_found_error", "model: nope"), "not_found"),
        (error(413, "request_too_large", "Request exceeds the maximum size"), "too_large"),
        (error(429, "rate_limit_error", "slow down", {"retry-after": "17"}), "rate_limit"),
        (error(500, "api_error", "boom"), "server"),
        (error(529, "overloaded_error", "Overloaded"), "overloaded"),
        (stream("<summary>x", stop_reason="max_tokens"), "cut"),
        (stream("I cannot", stop_reason="refusal"), "refusal"),
        (stream("", stop_reason="end_turn"), "empty"),
        (stream("no tags here"), "malformed"),
        (stream("<summary>  </summary>"), "malformed"),
        (stream("let me look", tool="Read", stop_reason="tool_use"), "tool_call"),
        (stream(cut_after=2), "connection"),
        (stream(error_after="overloaded_error"), "overloaded"),
    ],
)
def test_every_failure_is_named_with_what_can_be_done(api: Api, reply: Any, kind: str) -> None:
    api.replies = [reply, reply]
    with pytest.raises(SummaryFailure) as caught:
        run(api, wire(known=False))
    assert caught.value.kind == kind
    assert caught.value.hint
    assert "sk-ant-test" not in str(caught.value)
    if kind == "rate_limit":
        assert caught.value.retry_after == 17.0


def test_a_silent_api_times_out(api: Api) -> None:
    api.replies = [silence(3)]
    with pytest.raises(SummaryFailure) as caught:
        run(api, wire(known=False), timeout=0.3)
    assert caught.value.kind == "timeout"


def test_nobody_there_is_a_connection_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
    with pytest.raises(SummaryFailure) as caught:
        run(Api(url="http://127.0.0.1:9"), wire(known=False))
    assert caught.value.kind == "connection"


def test_cancelling_takes_effect_while_the_answer_is_slow(api: Api) -> None:
    api.replies = [stream(pause=0.5)]
    progress = Progress()
    threading.Timer(0.4, progress.cancel).start()
    started = time.monotonic()
    with pytest.raises(Cancelled):
        run(api, progress=progress)
    assert time.monotonic() - started < 2.5


def test_a_keep_alive_status_comes_every_30_seconds(api: Api) -> None:
    api.replies = [stream(pause=0.1)]
    seen: list[str] = []
    ticks = iter(range(0, 10_000, 20))
    run(api, listener=Listener(status=seen.append, clock=lambda: float(next(ticks))))
    assert len(seen) > 2
    assert set(seen) == {"compacting"}


def test_iterations_are_summed_because_the_top_level_leaves_compaction_out(api: Api) -> None:
    iterations = [
        {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500},
        {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000},
    ]
    api.replies = [stream(usage={"iterations": iterations, "input_tokens": 23_000, "output_tokens": 1_000})]
    found = run(api)
    assert (found.usage.input, found.usage.output) == (203_000, 4_500)


def test_the_gap_is_parsed_from_the_error() -> None:
    assert gap_of("prompt is too long: 201,500 tokens > 200,000 maximum") == 1_500
    assert gap_of("prompt is too long") is None
    assert is_prompt_too_long("Prompt is too long: …")
    assert not is_prompt_too_long("all good")
