"""R36–R38: tokens and bytes of the whole request (api-rules.md A5)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from compaction.accounting.estimate import rough_tokens, rough_tokens_of_block
from compaction.accounting.profiles import model_limits
from compaction.diagnosis.model import Violation
from compaction.diagnosis.models import window_error_is_a_stop_reason
from compaction.diagnosis.view import RequestView

MAXIMUM_BODY_BYTES = 32 * 1024 * 1024


def estimated_tokens(view: RequestView) -> int:
    """Input tokens of the request by the rough estimate (characters / 4; method: estimated)."""
    outside = rough_tokens(_json(view.request.tools or [])) + rough_tokens(_json(view.request.system or []))
    return outside + sum(rough_tokens_of_block(block.value) for block in view.blocks())


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else ""


def prompt_too_long(view: RequestView) -> Iterator[Violation]:
    """R36: the input must fit the window. The tokens are an estimate, so this is a warning."""
    limit, count = model_limits(view.request.model).window, estimated_tokens(view)
    if count > limit:
        yield Violation(
            rule="R36",
            path="",
            message=f"The request has about {count:,} tokens (estimated); the window is {limit:,}.",
            api_error=f"prompt is too long: {count} tokens > {limit} maximum",
            code="prompt_too_long",
            severity="warning",
            details={"tokens": count, "limit": limit, "method": "estimated"},
        )


def input_and_output_too_long(view: RequestView) -> Iterator[Violation]:
    """R37: input and max_tokens together must fit the window; from the 4.5 models on it is a stop reason instead."""
    most = view.request.params.get("max_tokens")
    limit, count = model_limits(view.request.model).window, estimated_tokens(view)
    if not isinstance(most, int) or count > limit or count + most <= limit:
        return
    stops = window_error_is_a_stop_reason(view.request.model)
    yield Violation(
        rule="R37",
        path="max_tokens",
        message=f"About {count:,} input tokens (estimated) and max_tokens {most:,} exceed the window of {limit:,}."
        + (" This model answers and stops with model_context_window_exceeded." if stops else ""),
        api_error=""
        if stops
        else f"input length and `max_tokens` exceed context limit: {count} + {most} > {limit}, decrease input length "
        "or `max_tokens` and try again",
        code="input_and_max_tokens_too_long",
        severity="info" if stops else "warning",
        details={"tokens": count, "max_tokens": most, "limit": limit, "method": "estimated"},
    )


def body_bytes(view: RequestView) -> int:
    """Bytes of the messages, tools and system as JSON: what counts for the 32 MB body, but for a few field names."""
    return sum(_width(m.content) for m in view.request.messages) + sum(
        _width(part) for part in (view.request.tools, view.request.system) if part
    )


def _width(value: Any) -> int:
    """Bytes of a value as compact JSON, without building it; not recursive, as a tool's input may be nested deeply."""
    size = 0
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            size += 2 + (len(item) if item.isascii() else len(item.encode("utf-8", "surrogatepass")))
        elif isinstance(item, dict):
            size += 2 + sum(len(key) + 4 for key in item)
            waiting += item.values()
        elif isinstance(item, list):
            size += 2 + len(item)
            waiting += item
        else:
            size += len(str(item))
    return size


def body_too_large(view: RequestView) -> Iterator[Violation]:
    """R38: 32 MB a request body; images in base64 are the usual cause."""
    size = body_bytes(view)
    if size > MAXIMUM_BODY_BYTES:
        yield Violation(
            rule="R38",
            path="",
            message=f"The request has {size:,} bytes; the API takes {MAXIMUM_BODY_BYTES:,}.",
            api_error="request_too_large",
            code="request_too_large",
            details={"bytes": size, "limit": MAXIMUM_BODY_BYTES},
        )
