"""What every record rule is handed: the conversation, the client, and the request that the file stands for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from compaction.conversation import Conversation
from compaction.diagnosis.view import RequestView
from compaction.request.profiles import version_key
from compaction.transcript import Flag, RecordKind, Transcript

COLLECTS_SIBLINGS_FROM = (2, 1, 80)
"""The first client version that collects parallel results by tool id on resume (changelog 2.1.80)."""


@dataclass(frozen=True)
class Case:
    """One session under the doctor's eyes.

    Attributes:
        conversation: the main conversation.
        client: version of the client profile.
        view: the request as stored, without any client's mending.
    """

    conversation: Conversation
    client: str
    view: RequestView

    @property
    def transcript(self) -> Transcript:
        return self.conversation.transcript

    @property
    def collects_siblings(self) -> bool:
        """Whether the client finds results that lie beside the parent chain."""
        return version_key(self.client) >= COLLECTS_SIBLINGS_FROM

    @cached_property
    def chain(self) -> list[int]:
        """The records from the root to the leaf by parents."""
        return self.conversation.chain()

    @cached_property
    def window_start(self) -> int:
        """The first record of the current epoch: what lies before it is behind a compaction."""
        return self.conversation.epochs[-1].first_record if self.conversation.epochs else 0

    @cached_property
    def speaks(self) -> npt.NDArray[np.bool_]:
        """Main-thread user and assistant records."""
        kind = self.transcript.kind
        found: npt.NDArray[np.bool_] = (kind == RecordKind.USER) | (kind == RecordKind.ASSISTANT)
        return found & self.conversation.main

    def is_boundary(self, record: int) -> bool:
        """Whether the record is a compact boundary."""
        return bool(self.transcript.flags[record] & Flag.COMPACT_BOUNDARY)

    def line(self, record: int) -> int:
        """1-based line of a record."""
        return int(self.transcript.line[record])
