"""What the model really got: the Messages-API request rebuilt from a transcript, per client generation."""

from __future__ import annotations

from compaction.request.assemble import Assembler, assemble, default_client
from compaction.request.profiles import ResumeProfile, generation_for, generations
from compaction.request.wire import Dropped, Origin, WireMessage, WireRequest

__all__ = [
    "Assembler",
    "Dropped",
    "Origin",
    "ResumeProfile",
    "WireMessage",
    "WireRequest",
    "assemble",
    "default_client",
    "generation_for",
    "generations",
]
