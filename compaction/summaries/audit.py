from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from compaction.conversation import Conversation, build_conversation
from compaction.transcript import BlockFlag, BlockType, Flag, RecordKind, transcript_from_bytes

_WORD = re.compile(r"[^\W_]{3,}")
PRESENT_SHARE = 0.6
"""Share of an item's distinct words that must stand in the summary for it to count as present (computed, a matter of
words and not of meaning; quoted text always counts)."""
_PATH_KEYS = ("file_path", "notebook_path", "path")
_DECISION = re.compile(
    r"\b(?:decided?|decision|instead of|rather than|we(?:'ll| will| should) use|chose|chosen|agreed|must not|never)\b",
    re.IGNORECASE,
)
_MAXIMUM_ITEM = 4_000


@dataclass(frozen=True, slots=True)
class AuditItem:
    """One thing of the summarised part, and whether it is in the summary.

    Attributes:
        kind: user message, file, error, decision.
        text: the message, the path, the error's beginning, the sentence.
        line: 1-based line of its record in the transcript.
        present: whether the summary holds it; `share` of its words does (0–1).
        needed_later: lines where the recorded session needed it again after the compaction (a file read again, a name
            used again).
    """

    kind: str
    text: str
    line: int
    present: bool
    share: float
    needed_later: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SummaryAudit:
    """A summary held against its sources; computed from words alone, no model is asked."""

    summary_characters: int
    items: tuple[AuditItem, ...]

    def of_kind(self, kind: str) -> list[AuditItem]:
        """The items of one kind, in file order."""
        return [item for item in self.items if item.kind == kind]

    @property
    def missed_and_needed(self) -> list[AuditItem]:
        """What the summary left out and the session needed again: the cost of this summary."""
        return [item for item in self.items if not item.present and item.needed_later]


def recorded_summary(conversation: Conversation, boundary: int) -> str:
    """The text of the summary that a recorded compaction left; "" when it is not in the file."""
    t = conversation.transcript
    epoch = conversation.epochs[int(conversation.epoch_of[boundary])]
    for record in range(epoch.first_record, epoch.end_record):
        if int(t.flags[record]) & Flag.COMPACT_SUMMARY:
            return _text(t.message(record).get("content"))
    return ""


def conversation_before(conversation: Conversation, boundary: int) -> Conversation:
    """The session as it stood right before a recorded compaction: what a fresh summary of it has to work from."""
    t = conversation.transcript
    return build_conversation(transcript_from_bytes(t.raw(0, int(t.offset[boundary])), t.name))


def audit_recorded(conversation: Conversation, boundary: int, summary: str = "") -> SummaryAudit:
    """A recorded compaction's summary (or a fresh one, `summary`) against the epoch it stands for.

    Args:
        boundary: the record that begins the epoch after the compaction.
    """
    number = int(conversation.epoch_of[boundary])
    before = conversation.epochs[number - 1] if number > 0 else None
    after = conversation.epochs[number]
    sources = range(before.first_record, before.end_record) if before is not None else range(0)
    later = range(after.first_record, len(conversation.transcript))
    return audit_summary(conversation, sources, later, summary or recorded_summary(conversation, boundary))


def audit_summary(conversation: Conversation, sources: range, later: range, summary: str) -> SummaryAudit:
    """A summary against the records it stands for, and against what was needed in the records after it."""
    finder = _Finder(summary)
    uses = _later_uses(conversation, later)
    items: list[AuditItem] = []
    seen_files: set[str] = set()
    t = conversation.transcript
    for record in sources:
        if conversation.thread[record] != 0:
            continue
        line = int(t.line[record])
        if t.kind[record] == RecordKind.USER:
            items += _of_user(conversation, record, line, finder)
        elif t.kind[record] == RecordKind.ASSISTANT:
            items += _of_assistant(conversation, record, line, finder, uses, seen_files)
    return SummaryAudit(len(summary), tuple(items))


def _of_user(c: Conversation, record: int, line: int, finder: _Finder) -> Iterable[AuditItem]:
    t = c.transcript
    flags = int(t.flags[record])
    if flags & Flag.TOOL_RESULT:
        for block in t.blocks_of(record):
            if int(t.block_flags[block]) & BlockFlag.ERROR:
                text = _text(t.block(block).get("content"))[:300]
                share = finder.share(text)
                yield AuditItem("error", text, line, share >= PRESENT_SHARE, share)
    elif not flags & (Flag.META | Flag.COMPACT_SUMMARY):
        text = _text(t.message(record).get("content"))[:_MAXIMUM_ITEM]
        if text.strip() and not text.lstrip().startswith("<"):
            share = finder.share(text)
            yield AuditItem("user message", text, line, share >= PRESENT_SHARE, share)


def _of_assistant(
    c: Conversation, record: int, line: int, finder: _Finder, uses: dict[str, list[int]], seen: set[str]
) -> Iterable[AuditItem]:
    t = c.transcript
    for block in t.blocks_of(record):
        kind = t.block_type[block]
        if kind == BlockType.TOOL_USE:
            path = _path_of(t.block(block).get("input"))
            if path and path not in seen:
                seen.add(path)
                present = finder.names(path)
                yield AuditItem("file", path, line, present, float(present), tuple(uses.get(path, ())))
        elif kind == BlockType.TEXT:
            text = str(t.block(block).get("text", ""))[:_MAXIMUM_ITEM]
            for sentence in re.split(r"(?<=[.!?])\s+|\n", text):
                if _DECISION.search(sentence) and len(sentence) < 400:
                    share = finder.share(sentence)
                    yield AuditItem("decision", sentence.strip(), line, share >= PRESENT_SHARE, share)


def _later_uses(c: Conversation, later: range) -> dict[str, list[int]]:
    """path → lines of the calls that touched it after the compaction."""
    t = c.transcript
    found: dict[str, list[int]] = {}
    for record in later:
        if t.kind[record] != RecordKind.ASSISTANT or c.thread[record] != 0:
            continue
        for block in t.blocks_of(record):
            if t.block_type[block] == BlockType.TOOL_USE:
                path = _path_of(t.block(block).get("input"))
                if path:
                    found.setdefault(path, []).append(int(t.line[record]))
    return found


def _path_of(given: Any) -> str:
    if isinstance(given, dict):
        for key in _PATH_KEYS:
            if isinstance(given.get(key), str):
                return str(given[key])
    return ""


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = (b.get("text") for b in content if isinstance(b, dict))
        return "\n".join(t for t in texts if isinstance(t, str))
    return ""


class _Finder:
    """Looks things up in one summary."""

    def __init__(self, summary: str) -> None:
        self.plain = " ".join(summary.split()).lower()
        self.words = set(_WORD.findall(self.plain))

    def share(self, text: str) -> float:
        """The share of the text's distinct words that the summary has; 1.0 when it is quoted."""
        flat = " ".join(text.split()).lower()
        if flat and flat in self.plain:
            return 1.0
        words = set(_WORD.findall(flat))
        return len(words & self.words) / len(words) if words else 0.0

    def names(self, path: str) -> bool:
        """Whether the summary names the file, by its path or its last part."""
        name = path.replace("\\", "/").rsplit("/", 1)[-1].lower()
        return path.lower() in self.plain or (len(name) > 2 and name in self.plain)
