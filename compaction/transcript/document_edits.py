"""Edits of what stands beside the messages in a Messages-API document (thinking, tools, max_tokens …)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from compaction.transcript.patching import has_value, remove_value, set_member


@dataclass(frozen=True, slots=True)
class SetMember:
    """The document's own member `name` becomes `value`; None removes it. A session file has no such members."""

    name: str
    value: Any


def with_members(pieces: Iterable[bytes], members: Iterable[SetMember]) -> Iterator[bytes]:
    """The document's bytes with its members changed; every byte outside them stays."""
    document = b"".join(pieces)
    for member in members:
        if member.value is not None:
            document = set_member(document, (member.name,), member.value)
        elif has_value(document, (member.name,)):
            document = remove_value(document, (member.name,))
    yield document
