"""Records to structure: responses, API rounds, pairs, chain, epochs, sidechains."""

from __future__ import annotations

from compaction.conversation.conversation import Conversation, KnownContext, build_conversation
from compaction.conversation.epochs import SILENT_DROP_TOKENS, Compaction, Epoch, Fork
from compaction.conversation.links import DANGLING, ROOT
from compaction.conversation.rounds import ApiRound, group_by_api_round
from compaction.conversation.session import Session, SubagentFile, open_session, open_session_snapshots
from compaction.conversation.usage import context_of_iterations, context_of_usage

__all__ = [
    "DANGLING",
    "ROOT",
    "SILENT_DROP_TOKENS",
    "ApiRound",
    "Compaction",
    "Conversation",
    "Epoch",
    "Fork",
    "KnownContext",
    "Session",
    "SubagentFile",
    "build_conversation",
    "context_of_iterations",
    "context_of_usage",
    "group_by_api_round",
    "open_session",
    "open_session_snapshots",
]
