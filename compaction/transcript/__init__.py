"""Bytes to records: formats, the lazy index, damage, byte-exact access."""

from __future__ import annotations

from compaction.transcript.damage import Damage
from compaction.transcript.index import Boundary, key_of
from compaction.transcript.kinds import CLEARED_MARKER, BlockFlag, BlockType, Flag, RecordKind
from compaction.transcript.transcript import (
    AppendResult,
    RecordedUsage,
    Transcript,
    open_transcript,
    read_snapshots,
    transcript_from_bytes,
)

__all__ = [
    "CLEARED_MARKER",
    "AppendResult",
    "BlockFlag",
    "BlockType",
    "Boundary",
    "Damage",
    "Flag",
    "RecordKind",
    "RecordedUsage",
    "Transcript",
    "key_of",
    "open_transcript",
    "read_snapshots",
    "transcript_from_bytes",
]
