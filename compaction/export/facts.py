from __future__ import annotations

from pathlib import Path

from compaction import __version__
from compaction.accounting.current import context_summary
from compaction.conversation import Conversation
from compaction.transcript import RecordKind


def session_facts(conversation: Conversation, at: int | None) -> list[tuple[str, str]]:
    """What a document says about its session at the top: names and values for people; no folder names."""
    t = conversation.transcript
    context = context_summary(conversation)
    kinds = [c.kind for c in conversation.compactions]
    facts = [
        ("File", Path(t.name).name if t.path is not None else t.name),
        ("Client", ", ".join(v for v in t.version_names if v) or "unknown"),
        ("Models", ", ".join(m for m in t.model_names if m) or "unknown"),
        ("Records", f"{int((t.kind != RecordKind.DAMAGED).sum()):,}"),
        ("API rounds", f"{conversation.round_count:,}"),
        ("Compactions", ", ".join(f"{kinds.count(k)} {k}" for k in dict.fromkeys(kinds)) or "none"),
        ("Context", f"{context['tokens']:,} tokens ({context['method']}), state {context['state']}"),
        ("Damaged lines", f"{len(t.damage):,}"),
    ]
    if at is not None:
        facts.append(("Shown", f"as it stood before API round {at}"))
    return [*facts, ("Made by", f"Compactoscope {__version__}")]
