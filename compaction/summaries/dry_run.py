from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compaction.progress import Progress
from compaction.request.wire import WireRequest
from compaction.strategies.server_edits import BETA_HEADERS
from compaction.summaries.failures import answer_failure
from compaction.summaries.run import Listener, run_cancellable
from compaction.summaries.usage import CallUsage, usage_of

if TYPE_CHECKING:
    import anthropic

Json = dict[str, Any]
ON_DEMAND_COMPACT_BETA = "compact-2026-09-04"
"""Beta header of on-demand compaction (api.md §1.5)."""
_MINIMUM_COMPACTION_OUTPUT = 8_000
"""max_tokens caps an on-demand compaction's summary: "allow several thousand" (api.md §2.3)."""


@dataclass(frozen=True, slots=True)
class CountedTokens:
    """What the API counted, tokens. It is the API's own estimate (api.md §1.4).

    Attributes:
        before: without the edits; None when the API did not say.
        after: with them.
    """

    before: int | None
    after: int


def count_request(wire: WireRequest, edits: list[Json] | None) -> Json:
    """The body of a `count_tokens` call, to be shown before it is sent."""
    body = _base(wire)
    if edits:
        body["context_management"] = {"edits": copy.deepcopy(edits)}
        body["betas"] = sorted({BETA_HEADERS[e["type"]] for e in edits if e.get("type") in BETA_HEADERS})
    return body


def _base(wire: WireRequest) -> Json:
    body: Json = {
        "model": wire.model,
        "messages": [{"role": m.role, "content": copy.deepcopy(m.content)} for m in wire.messages],
    }
    if wire.system:
        body["system"] = copy.deepcopy(wire.system)
    if wire.tools:
        body["tools"] = copy.deepcopy(wire.tools)
    elif names := sorted(_names(body["messages"])):
        # History that uses tools needs them defined (R09); their schemas are not in the transcript.
        body["tools"] = [{"name": name, "input_schema": {"type": "object"}} for name in names]
    if wire.thinking is not None:
        body["thinking"] = copy.deepcopy(wire.thinking)
    return body


def _names(messages: list[Json]) -> set[str]:
    return {str(b.get("name")) for m in messages for b in m["content"] if b.get("type") == "tool_use"}


def count_tokens(
    client: anthropic.Anthropic, wire: WireRequest, edits: list[Json] | None, progress: Progress | None = None
) -> CountedTokens:
    """Ask the API what a context edit saves (`count_tokens` with `context_management`, api.md §1.4).

    Raises:
        SummaryFailure, Cancelled
    """
    body = count_request(wire, edits)
    found = run_cancellable(
        lambda _events: client.beta.messages.count_tokens(**body), progress or Progress(), Listener()
    )
    management = found.context_management
    original = getattr(management, "original_input_tokens", None)
    return CountedTokens(
        original if original is not None else None if edits else found.input_tokens, found.input_tokens
    )


@dataclass(frozen=True, slots=True)
class ServerCompaction:
    """A compaction block that the API made; opaque: it goes first in `messages`, unchanged (api.md §2.3).

    Attributes:
        block: exactly as received.
        summary: its readable text, "" when the API gives none.
        usage: as recorded, iterations summed.
    """

    block: Json
    summary: str
    usage: CallUsage


def compaction_request(wire: WireRequest, instructions: str = "") -> Json:
    """The body of an on-demand compaction, to be shown before it is sent (api.md §2.3)."""
    body = _base(wire)
    body["max_tokens"] = max(int(wire.params.get("max_tokens") or 0), _MINIMUM_COMPACTION_OUTPUT)
    body["compaction"] = {"type": "summarize", **({"instructions": instructions} if instructions.strip() else {})}
    body["betas"] = [ON_DEMAND_COMPACT_BETA]
    return body


def compact_on_server(
    client: anthropic.Anthropic,
    wire: WireRequest,
    instructions: str = "",
    progress: Progress | None = None,
    listener: Listener | None = None,
) -> ServerCompaction:
    """Let the API compact the conversation (api.md §2.3); its block is kept as it is.

    Raises:
        SummaryFailure: it failed, or the block came back empty (a no-op, api.md §1.6).
        Cancelled
    """
    body = compaction_request(wire, instructions)

    def stream(events: Any) -> Any:
        with client.beta.messages.stream(**body) as opened:
            events.opened(opened)
            return opened.get_final_message()

    message = run_cancellable(stream, progress or Progress(), listener or Listener())
    blocks = [b for b in message.content if b.type == "compaction"]
    if not blocks or message.stop_reason != "compaction":
        raise answer_failure(
            "malformed", f"the API returned no compaction block (stop_reason {message.stop_reason})", "try again"
        )
    block = blocks[0].to_dict(mode="json", exclude_unset=True)
    if block.get("content") is None and block.get("encrypted_content") is None:
        raise answer_failure("empty", "the API's compaction block is empty: it compacted nothing", "try again")
    return ServerCompaction(block, str(block.get("content") or ""), usage_of(message.usage))


def continued_request(wire: WireRequest, found: ServerCompaction) -> Json:
    """A request document that goes on after a server compaction: the block first, in place of everything it
    summarises, exactly as received, with the session's system and tools where they are known (api.md §2.3)."""
    body = _base(wire)
    body["messages"] = [{"role": "assistant", "content": [copy.deepcopy(found.block)]}]
    if isinstance(wire.params.get("max_tokens"), int):
        body["max_tokens"] = wire.params["max_tokens"]
    return body
