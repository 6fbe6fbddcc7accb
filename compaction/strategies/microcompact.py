"""What both MicroCompact paths share: which results can be cleared, and what clearing does (compaction.md 4)."""

from __future__ import annotations

from collections.abc import Sequence

from compaction.request.wire import Json
from compaction.strategies.context import ContextView
from compaction.strategies.parts import ToolPair
from compaction.transcript.kinds import CLEARED_MARKER

COMPACTABLE_TOOLS = (
    "Read",
    "Bash",
    "BashOutput",
    "PowerShell",
    "Grep",
    "Glob",
    "WebSearch",
    "WebFetch",
    "Edit",
    "MultiEdit",
    "Write",
    "NotebookEdit",
)
"""File read, shell tools, grep, glob, web search, web fetch, file edit, file write (compaction.md 4)."""


def compactable_results(view: ContextView, tools: Sequence[str]) -> list[ToolPair]:
    """The results of compactable tools in the request, oldest first; cleared ones too (they count as recent)."""
    return [pair for pair in view.pairs if pair.tool in tools]


def cleared_block(block: Json, recorded: Json, marker: str = CLEARED_MARKER) -> Json:
    """The tool result as it is sent once its record's content is the marker; all else, the pairing too, stays.

    Args:
        block: the result in the request; a reminder that the client appended to the recorded content stays behind it.
        recorded: the block as the record holds it.
    """
    content, original = block.get("content"), recorded.get("content")
    added = ""
    if isinstance(content, str) and isinstance(original, str) and content.startswith(original.strip()):
        added = content[len(original.strip()) :].strip()
    elif isinstance(content, list) and isinstance(original, list):
        added = "\n\n".join(str(item.get("text", "")).strip() for item in content[len(original) :])
    return {**block, "content": f"{marker}\n\n{added}" if added else marker}
