from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from compaction.accounting.estimate import rough_tokens_of_message
from compaction.conversation import group_by_api_round
from compaction.request.wire import WireMessage, WireRequest

Json = dict[str, Any]

TRUNCATION_MARKER = "[Earlier conversation truncated for compaction retry]"
"""Stands first when the rest of a shortened conversation would begin with an assistant message (compaction.md §6)."""
MAXIMUM_RETRIES = 3
"""`MAX_PTL_RETRIES` (compaction.md §6)."""
_FALLBACK_SHARE = 0.2
"""Share of the groups dropped when the error does not state the gap (compaction.md §6)."""
_PLAIN_SYSTEM = "You summarise conversations between a user and a coding assistant."
_MAXIMUM_OUTPUT = 20_000
"""`MAX_OUTPUT_TOKENS_FOR_SUMMARY` (compaction.md §1)."""


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """A summary request as the SDK takes it.

    Attributes:
        body: keyword arguments of `messages.stream`, without `betas`.
        shares_cache: its system, tools, model and message prefix are the session's own, so it can read the warm
            prompt cache.
    """

    body: Json
    shares_cache: bool


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """What the person can choose for one run.

    Attributes:
        model: "" = the session's own.
        keep_images: send images and documents (keeps the cache prefix) instead of `[image]` / `[document]`.
        share_cache: read the session's prompt cache where its system and tools are known.
        one_hour_cache: the session wrote its cache for 1 h (the breakpoints must say the same).
        max_tokens: of the plain call, tokens; a cache-sharing call sends the session's own.
    """

    model: str = ""
    keep_images: bool = False
    share_cache: bool = True
    one_hour_cache: bool = False
    max_tokens: int = _MAXIMUM_OUTPUT


def can_share_cache(wire: WireRequest, options: RequestOptions) -> bool:
    """Whether a request with byte-identical cache-key parameters can be built (compaction.md §6, cache sharing)."""
    same_model = not options.model or options.model == wire.model
    return options.share_cache and same_model and wire.system is not None and wire.tools is not None


def build_request(
    wire: WireRequest, messages: Sequence[WireMessage], prompt: str, options: RequestOptions, *, share: bool
) -> SummaryRequest:
    """The request that asks for a summary of `messages` (compaction.md §6 steps 3–4).

    A sharing request repeats the session's system, tools, thinking and message prefix, with breakpoints where the
    session had them; a plain one has its own short system prompt and tools only because history names them (R09).
    """
    sent = [_message(m, keep_images=share or options.keep_images) for m in messages]
    body: Json = {"model": options.model or wire.model, "max_tokens": options.max_tokens}
    if share:
        body["max_tokens"] = int(wire.params.get("max_tokens") or options.max_tokens)
        body["system"] = copy.deepcopy(wire.system)
        body["tools"] = copy.deepcopy(wire.tools)
        if wire.thinking is not None:
            body["thinking"] = copy.deepcopy(wire.thinking)
        if isinstance(wire.params.get("output_config"), dict):
            body["output_config"] = copy.deepcopy(wire.params["output_config"])
        _mark(body["system"], sent, "1h" if options.one_hour_cache else None)
    else:
        sent = [_without_thinking(m) for m in sent]
        sent = [m for m in sent if m["content"]]
        body["system"] = [{"type": "text", "text": _PLAIN_SYSTEM}]
        names = sorted(_tool_names(sent))
        if names:
            body["tools"] = copy.deepcopy(wire.tools) or [_bare_tool(name) for name in names]
            body["tool_choice"] = {"type": "none"}
    _append_prompt(sent, prompt)
    if sent[0]["role"] == "assistant":
        sent.insert(0, {"role": "user", "content": [{"type": "text", "text": TRUNCATION_MARKER}]})
    body["messages"] = sent
    return SummaryRequest(body, share)


def _append_prompt(sent: list[Json], prompt: str) -> None:
    """The prompt is a user message of its own, or joins the last one (roles of neighbours should differ)."""
    block = {"type": "text", "text": prompt}
    if sent and sent[-1]["role"] == "user":
        sent[-1]["content"].append(block)
    else:
        sent.append({"role": "user", "content": [block]})


def _message(message: WireMessage, *, keep_images: bool) -> Json:
    content = [copy.deepcopy(b) if keep_images else _without_media(b) for b in message.content]
    return {"role": message.role, "content": content}


def _without_media(block: Json) -> Json:
    """Images and documents as `[image]` / `[document]`, also inside tool_result lists (compaction.md §6 step 3)."""
    if block.get("type") in ("image", "document"):
        return {"type": "text", "text": f"[{block['type']}]"}
    if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
        inner = [_without_media(b) if isinstance(b, dict) else b for b in block["content"]]
        return {**copy.deepcopy({k: v for k, v in block.items() if k != "content"}), "content": inner}
    return copy.deepcopy(block)


def _without_thinking(message: Json) -> Json:
    """A plain call changes the prefix that thinking is bound to, so thinking goes whole (api.md §2.4, shape b)."""
    kept = [b for b in message["content"] if b.get("type") not in ("thinking", "redacted_thinking")]
    return {"role": message["role"], "content": kept}


def _tool_names(messages: Sequence[Json]) -> set[str]:
    return {
        str(b.get("name"))
        for m in messages
        for b in m["content"]
        if isinstance(b, dict) and b.get("type") == "tool_use"
    }


def _bare_tool(name: str) -> Json:
    return {"name": name, "description": "Not available now.", "input_schema": {"type": "object"}}


def _mark(system: list[Json], messages: list[Json], ttl: str | None) -> None:
    """Breakpoints at the end of the system prompt and of the history: what was written there before is read."""
    control: Json = {"type": "ephemeral", **({"ttl": ttl} if ttl else {})}
    if system:
        system[-1]["cache_control"] = control
    for message in reversed(messages):
        for block in reversed(message["content"]):
            if block.get("type") not in ("thinking", "redacted_thinking"):
                block["cache_control"] = control
                return


@dataclass(slots=True)
class Truncation:
    """Messages after `truncate_head_for_retry`, and how many groups went."""

    messages: list[WireMessage] = field(default_factory=list)
    dropped_groups: int = 0


def truncate_head_for_retry(messages: Sequence[WireMessage], gap_tokens: int | None) -> Truncation | None:
    """Drop the oldest API rounds so that a prompt that was too long fits (compaction.md §6, step 4).

    Args:
        messages: the messages of the failed request, without the prompt.
        gap_tokens: tokens to save when the error states them; else a fifth of the groups goes, at least one.

    Returns:
        The rest, never less than one group; None when there are fewer than two groups.
    """
    rest = [m for m in messages if not _is_marker(m)]
    ids = [f"assistant {i}" if m.role == "assistant" else None for i, m in enumerate(rest)]
    groups = group_by_api_round(ids)
    if len(groups) < 2:
        return None
    if gap_tokens is None:
        drop = max(1, math.floor(len(groups) * _FALLBACK_SHARE))
    else:
        drop = saved = 0
        while drop < len(groups) and saved < gap_tokens:
            saved += sum(rough_tokens_of_message(rest[i].content) for i in groups[drop])
            drop += 1
    drop = min(drop, len(groups) - 1)
    kept = rest[groups[drop][0] :]
    if kept[0].role == "assistant":
        marker = WireMessage("user", [{"type": "text", "text": TRUNCATION_MARKER}], [None])
        kept = [marker, *kept]
    return Truncation(kept, drop)


def _is_marker(message: WireMessage) -> bool:
    return len(message.content) == 1 and message.content[0].get("text") == TRUNCATION_MARKER
