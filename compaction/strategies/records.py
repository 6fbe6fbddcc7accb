"""New transcript records in the form of the session's own client version (transcript-format.md 3 and 7)."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np

from compaction.accounting.profiles import parse_version
from compaction.conversation import Conversation
from compaction.transcript.kinds import Flag, RecordKind
from compaction.transcript.patching import encode_value

BOUNDARY_SINCE = (2, 0, 76)
"""Versions before wrote a summary as a new root and no boundary record."""
POST_TOKENS_SINCE = (2, 1, 217)
"""Versions before wrote trigger and preTokens only."""
NO_RESPONSE = "No response requested."
"""What the client puts behind a conversation that ends with a user message when it resumes it."""

_ENVELOPE = ("agentId", "userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch", "slug")


class NewRecords:
    """Makes records that fit into one session: same envelope, new uuids, times after everything that is there.

    Uuids are derived from `seed` and the records before, so the same plan made twice has the same bytes.
    """

    def __init__(self, conversation: Conversation, seed: str) -> None:
        self.conversation = conversation
        self.transcript = conversation.transcript
        self._seed = f"{self._last_uuid}\x00{seed}"
        self._count = 0

    @property
    def plain(self) -> bool:
        """The transcript is a Messages-API document: records are bare messages without envelope."""
        return self.transcript.format_name == "messages-api"

    @cached_property
    def _template(self) -> dict[str, Any]:
        """The payload of the newest main-thread record that has a session's envelope."""
        t = self.transcript
        speaks = (t.kind == RecordKind.USER) | (t.kind == RecordKind.ASSISTANT)
        for record in np.flatnonzero(self.conversation.main & speaks)[::-1].tolist():
            payload = t.payload(record)
            if isinstance(payload.get("sessionId"), str):
                return payload
        return {}

    @cached_property
    def _last_uuid(self) -> str:
        chained = np.flatnonzero(self.transcript.uuid_key)
        return self.transcript.uuid(int(chained[-1])) if len(chained) else self.transcript.name

    @property
    def version(self) -> tuple[int, ...]:
        """The client version whose form the records take."""
        return parse_version(str(self._template.get("version") or ""))

    @cached_property
    def newest_ms(self) -> int:
        """The latest timestamp in the file, milliseconds; 0 when there is none."""
        stamps = self.transcript.timestamp_ms
        return int(stamps.max()) if len(stamps) else 0

    def new_uuid(self) -> str:
        """The next uuid, of version 4's form."""
        self._count += 1
        digest = hashlib.sha256(f"{self._seed}\x00{self._count}".encode("utf-8", "surrogatepass")).digest()
        return str(uuid.UUID(bytes=digest[:16], version=4))

    def _envelope(self, parent: str | None, timestamp_ms: int) -> dict[str, Any]:
        found = {key: self._template[key] for key in _ENVELOPE if key in self._template}
        aside = self._template.get("isSidechain") is True
        return {"parentUuid": parent, "isSidechain": aside, **found, "timestamp": iso_time(timestamp_ms)}

    def boundary(self, logical_parent: str, metadata: dict[str, Any], timestamp_ms: int) -> tuple[str, bytes]:
        """A `compact_boundary` record; returns its uuid and bytes."""
        name = self.new_uuid()
        envelope = self._envelope(None, timestamp_ms)
        record = {
            "parentUuid": None,
            **({"logicalParentUuid": logical_parent} if logical_parent else {}),
            **{k: v for k, v in envelope.items() if k not in ("parentUuid", "timestamp")},
            "type": "system",
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "isMeta": False,
            "timestamp": envelope["timestamp"],
            "uuid": name,
            "level": "info",
            "compactMetadata": metadata,
        }
        return name, encode_value(record)

    def user(
        self,
        parent: str | None,
        content: str | Sequence[dict[str, Any]],
        timestamp_ms: int,
        *,
        summary: bool = False,
        meta: bool = False,
        relinked: dict[str, Any] | None = None,
    ) -> tuple[str, bytes]:
        """A user record: a compaction's summary, or (`meta`) text that the client would add; its uuid and bytes.

        `relinked` names the messages that stay behind a summary: their recorded usage is from before it.
        """
        name = self.new_uuid()
        message = {"role": "user", "content": content if isinstance(content, str) else list(content)}
        if self.plain:
            return name, encode_value(message)
        record: dict[str, Any] = {**self._envelope(parent, timestamp_ms), "type": "user", "message": message}
        if summary:
            if self.version >= BOUNDARY_SINCE:
                record["isVisibleInTranscriptOnly"] = True
            record["isCompactSummary"] = True
        if relinked is not None:
            record["relinkedSegment"] = relinked
        if meta:
            record["isMeta"] = True
        record["uuid"] = name
        return name, encode_value(record)

    def no_response(self, parent: str, timestamp_ms: int) -> tuple[str, bytes]:
        """The synthetic answer that a client puts behind a user message on resume.

        Clients up to 2.0.76 lose a summary that is the last record of the file (measured in the lab); with this
        record behind it every generation sends the same.
        """
        name = self.new_uuid()
        zero = {"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        message = {
            "id": self.new_uuid(),
            "type": "message",
            "role": "assistant",
            "model": "<synthetic>",
            "content": [{"type": "text", "text": NO_RESPONSE}],
            "stop_reason": "stop_sequence",
            "stop_sequence": "",
            "usage": zero,
        }
        record = {**self._envelope(parent, timestamp_ms), "type": "assistant", "message": message, "uuid": name}
        record["isApiErrorMessage"] = False
        return name, encode_value(record)

    def last_prompt(self, leaf: str) -> bytes | None:
        """A `last-prompt` record that names the new leaf, None where the session has none that name one."""
        t = self.transcript
        if not t.leaf_key:
            return None
        session = str(self._template.get("sessionId") or "")
        return encode_value({"type": "last-prompt", "leafUuid": leaf, "sessionId": session})

    def metadata(self, trigger: str, before: int, after: int) -> dict[str, Any]:
        """`compactMetadata` as the session's version writes it (transcript-format.md 7), token counts whole."""
        if self.version < POST_TOKENS_SINCE:
            return {"trigger": trigger, "preTokens": before}
        dropped = before - after
        for epoch in self.conversation.epochs:
            if epoch.pre_tokens is not None and epoch.post_tokens is not None:
                dropped += epoch.pre_tokens - epoch.post_tokens
        return {
            "trigger": trigger,
            "preTokens": before,
            "durationMs": 0,
            "postTokens": after,
            "cumulativeDroppedTokens": dropped,
        }


_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_000
"""The first and the last second of a four-digit year."""


def is_summary(flags: int) -> bool:
    """Whether a record's flags say that it is a compaction's summary."""
    return bool(flags & Flag.COMPACT_SUMMARY)


def iso_time(milliseconds: int) -> str:
    """Milliseconds since the epoch as the client writes times; no year before 1 or after 9999 can be written."""
    moment = datetime.fromtimestamp(min(max(milliseconds, _FIRST_MS), _LAST_MS) / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
