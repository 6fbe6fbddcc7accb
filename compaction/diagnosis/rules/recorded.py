"""What the records themselves say about refusals: the client's error messages, and thinking of other providers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from compaction.accounting.models import is_synthetic
from compaction.diagnosis.case import Case
from compaction.diagnosis.model import Finding
from compaction.diagnosis.models import is_claude
from compaction.transcript import Flag

_REFUSALS: tuple[tuple[str, str, str], ...] = (
    (
        r"tool use concurrency issues",
        "R01",
        "a call without its result, or a duplicate (the client's own words for it)",
    ),
    (r"`?tool_use`? ids were found without", "R01", "a call without its result right behind it"),
    (r"unexpected `?tool_use_id`? found in `?tool_result`?", "R02", "a result without its call right before it"),
    (r"multiple `?tool_result`? blocks with id", "R05", "two results for one call"),
    (r"`?tool_use`? ids must be unique", "R06", "two calls with one id"),
    (r"text content blocks must be non-empty", "R11", "an empty text block"),
    (r"must contain non-whitespace text", "R12", "a text block of white space"),
    (r"must have non-empty content", "R13", "an empty message"),
    (r"does not support assistant message prefill", "R15", "a request that ends with an assistant message"),
    (r"blocks in the latest assistant message cannot be modified", "R18", "thinking that was changed or reordered"),
    (r"Invalid `?signature`? in `?thinking`?", "R19", "a thinking signature that does not hold"),
    (r"Expected `?thinking`? or `?redacted_thinking`?", "R21", "an open tool loop without thinking"),
    (r"unexpected `?tool_use_id`? found in", "R23", "a server result without its call"),
    (r"was found without a corresponding", "R24", "a server call without its result"),
    (r"Tool reference '", "R26", "a reference to a tool that is gone"),
    (r"image dimensions exceed|exceeds the dimension limit", "R29", "an image with too many pixels"),
    (r"image exceeds 5 MB", "R30", "an image with too many bytes"),
    (r"Could not process image|image cannot be empty", "R31", "an image that cannot be used"),
    (r"too many images and documents", "R32", "too many images"),
    (r"prompt is too long|Conversation too long", "R36", "a conversation that does not fit the window"),
    (r"exceed context limit", "R37", "input and output that do not fit the window together"),
    (r"request_too_large|Request too large", "R38", "a request body above 32 MB"),
    (r"no low surrogate in string", "R39", "half of a character"),
    (r"not valid JSON: unexpected end", "R40", "a NUL character"),
)
"""The API's sentences and the clients' own words for them → the rule, and what it is about (api-rules.md A, fact 4)."""


def recorded_refusals(case: Case) -> Iterator[Finding]:
    """The client recorded that the API refused this conversation, and the text says for which rule."""
    t = case.transcript
    marked = np.flatnonzero(((t.flags & Flag.API_ERROR) != 0) & case.conversation.main)
    for record in (int(r) for r in marked if r >= case.window_start):
        text = t.preview(record, 2_000)
        for pattern, rule, about in _REFUSALS:
            if re.search(pattern, text, re.IGNORECASE):
                yield Finding(
                    code="api_refusal_recorded",
                    rule=rule,
                    severity="info",
                    message=f"The API refused a request of this session: {about}.",
                    api_error=text,
                    lines=(case.line(record),),
                    records=(record,),
                )
                break


def foreign_thinking(case: Case) -> Iterator[Finding]:
    """Thinking of another provider's model in a conversation that goes on with Claude: its signature means nothing."""
    if not is_claude(case.view.request.model):
        return
    by_model: dict[str, list[tuple[int, int]]] = {}
    for block in case.view.blocks():
        origin = case.origin_of(block.place) if block.type in ("thinking", "redacted_thinking") else None
        model = case.transcript.model(origin[0]) if origin is not None else ""
        if origin is not None and model and not is_claude(model) and not is_synthetic(model):
            by_model.setdefault(model, []).append(origin)
    for model, blocks in by_model.items():
        place = case.place_of[blocks[0]]
        path, here = f"messages.{place[0]}.content.{place[1]}", case.view.request.model
        records = tuple(dict.fromkeys(record for record, _ in blocks))
        yield Finding(
            code="foreign_thinking",
            rule="R19",
            severity="error",
            message=f"{len(blocks)} thinking blocks were made by {model}, which {here} cannot check.",
            api_error=f"{path}: Invalid `signature` in `thinking` block",
            wire=path,
            lines=tuple(case.line(r) for r in records),
            records=records,
            blocks=tuple(blocks),
            why=f"The session was begun with {model} and goes on with {here}.",
            clients={
                "1.0.128": "sent as it is: the API refuses the request",
                "2.0.76": "sent as it is: the API refuses the request",
                "2.1.332": "leaves out the thinking of other models",
            },
            details={"model": model},
        )
