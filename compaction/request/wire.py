"""The Messages-API request as plain data: what one client generation sends, block by block, with its origins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]
"""One decoded JSON object. Blocks may be shared with the transcript's decode cache: never mutate one in place."""

Verified = Literal["hash", "profile"]
"""`hash`: every message was proven by its recorded SHA-256; `profile`: rebuilt by the rules of a client generation."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The place in the transcript that one wire block comes from.

    `record` is the record's index (0-based), `line` its line number (1-based), `block` the index inside
    `message.content` (0 for a string content; -1 when the record as a whole was rendered, as attachments are).
    """

    record: int
    line: int
    block: int


@dataclass(frozen=True, slots=True)
class WireMessage:
    """One message of the request.

    `role` is `user`, `assistant` or `system` (mid-conversation). `content` is always a list of blocks (a string
    content is one text block), without `cache_control`. `origins` has one entry per block; None means that the
    client put the block in and no record holds it.
    """

    role: str
    content: list[Json]
    origins: list[Origin | None]


@dataclass(frozen=True, slots=True)
class Dropped:
    """A block (or whole record: `block` -1) on the chain that the client does not send, and why, in one sentence."""

    record: int
    block: int
    reason: str


@dataclass(frozen=True, slots=True)
class WireRequest:
    """The request that a client generation sends.

    `client` is the profile's version; `at` the API-round number whose response the request led to (None = the next
    request). `system` and `tools` are None where the transcript does not record them. `params` holds the remaining
    request fields that are recorded (max_tokens, betas, context_management …). `unaccounted` names what the
    transcript cannot tell: objects with `kind`, `message` and, where known, `line`, `index` (wire message) or `hash`.
    `is_document`: the input is itself a Messages-API request, so it is whole and no prompt is still to come.
    """

    client: str
    at: int | None
    messages: list[WireMessage]
    model: str
    system: list[Json] | None = None
    tools: list[Json] | None = None
    thinking: Json | None = None
    params: Json = field(default_factory=dict)
    unaccounted: list[Json] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    verified: Verified = "profile"
    is_document: bool = False
