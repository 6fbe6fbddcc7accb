from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compaction.catalogue.fingerprint import signed
from compaction.catalogue.masking import mask_secrets
from compaction.transcript.kinds import BlockType, Flag, RecordKind
from compaction.transcript.transcript import Transcript

PIECE_CHARACTERS = 16_000
"""Longer texts are stored in pieces cut at white space, so that a snippet or a deletion never handles megabytes."""

PROMPT, ANSWER, THINKING, TOOL_USE, TOOL_RESULT, SUMMARY = KINDS = (
    "prompt",
    "answer",
    "thinking",
    "tool_use",
    "tool_result",
    "summary",
)
"""What a passage is; the filter of a search takes the same words."""

_SKIPPED_MEMBERS = frozenset({"signature", "data", "type", "cache_control", "encrypted_content", "encrypted_index"})
_MAXIMUM_DEPTH = 40
# PostgreSQL stores no NUL, and neither database a lone surrogate.
_UNSTORABLE = {0: "\ufffd", **dict.fromkeys(range(0xD800, 0xE000), "\ufffd")}


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of searchable text of one record: 1-based `line`, `kind` of `KINDS`, the tool's name where known.

    `use_key` is the signed key of the tool_use id of a call or a result, 0 otherwise; `text` has its secrets masked.
    """

    line: int
    kind: str
    tool: str
    use_key: int
    timestamp_ms: int
    text: str


def passages_of(transcript: Transcript, lines_before: int = 0) -> Iterator[Passage]:
    """What can be searched of a transcript: prompts, answers, thinking, tool calls, tool results, summaries.

    Left out: what the client injects (isMeta), images, signatures, and `toolUseResult`, the copy for the client's own
    display that is never sent (transcript-format.md §2).

    Args:
        transcript: a whole one or a slice.
        lines_before: line feeds in the file before the slice.
    """
    tool_of: dict[int, str] = {}
    places = zip(
        transcript.kind.tolist(),
        (transcript.line + lines_before).tolist(),
        transcript.timestamp_ms.tolist(),
        strict=True,
    )
    for record, (kind, line, time) in enumerate(places):
        if kind in (_USER, _ASSISTANT):
            for part, tool, key, text in _of_message(transcript, record, kind, tool_of):
                for piece in pieces(text):
                    yield Passage(line, part, storable(tool), key, time, piece)
        elif kind == _ATTACHMENT and transcript.type_name(record) == "attachment/queued_command":
            attachment = transcript.payload(record).get("attachment")
            prompt = attachment.get("prompt") if isinstance(attachment, dict) else None
            for piece in pieces(flat_text(prompt)):
                yield Passage(line, PROMPT, "", 0, time, piece)


# Plain numbers: looking a member up in an enumeration takes longer than the rest of the loop.
_USER, _ASSISTANT, _ATTACHMENT = int(RecordKind.USER), int(RecordKind.ASSISTANT), int(RecordKind.ATTACHMENT)
_META, _COMPACT_SUMMARY = int(Flag.META), int(Flag.COMPACT_SUMMARY)
_TEXT, _THINKING = int(BlockType.TEXT), int(BlockType.THINKING)
_CALLS = (int(BlockType.TOOL_USE), int(BlockType.SERVER_TOOL_USE))
_RESULTS = (int(BlockType.TOOL_RESULT), int(BlockType.SERVER_TOOL_RESULT))


def _of_message(
    transcript: Transcript, record: int, role: int, tool_of: dict[int, str]
) -> Iterator[tuple[str, str, int, str]]:
    flags = int(transcript.flags[record])
    typed = SUMMARY if flags & _COMPACT_SUMMARY else ANSWER if role == _ASSISTANT else PROMPT
    content = transcript.message(record).get("content")
    rows = transcript.blocks_of(record)
    blocks = [content] if isinstance(content, str) else content if isinstance(content, list) else []
    for row, block in zip(rows, blocks, strict=False):
        kind = int(transcript.block_type[row])
        if kind == _TEXT:
            if not flags & _META:
                yield typed, "", 0, block if isinstance(block, str) else _member(block, "text")
        elif kind == _THINKING:
            yield THINKING, "", 0, _member(block, "thinking")
        elif kind in _CALLS:
            key = signed(int(transcript.block_key[row]))
            tool = tool_of[key] = transcript.block_tool(row)
            yield TOOL_USE, tool, key, f"{tool}\n{flat_text(block.get('input'))}"
        elif kind in _RESULTS:
            key = signed(int(transcript.block_key[row]))
            yield TOOL_RESULT, tool_of.get(key, ""), key, flat_text(block.get("content"))


def _member(block: Any, name: str) -> str:
    value = block.get(name) if isinstance(block, dict) else None
    return value if isinstance(value, str) else ""


def flat_text(value: Any) -> str:
    """Every string inside a JSON value, one a line with the name of its member; base64 data and signatures left out.

    >>> flat_text({"command": "ls", "options": {"timeout": 5}})
    'command: ls\\ntimeout: 5'
    """
    lines: list[str] = []
    waiting: list[tuple[str, Any, int]] = [("", value, 0)]
    while waiting:
        name, item, depth = waiting.pop()
        if isinstance(item, str):
            lines.append(f"{name}: {item}" if name and name not in ("text", "content") else item)
        elif isinstance(item, dict) and depth < _MAXIMUM_DEPTH:
            if item.get("type") in ("image", "document", "base64"):
                continue
            members = [(k, v, depth + 1) for k, v in item.items() if k not in _SKIPPED_MEMBERS]
            waiting.extend(reversed(members))
        elif isinstance(item, list) and depth < _MAXIMUM_DEPTH:
            waiting.extend((name, inner, depth + 1) for inner in reversed(item))
        elif item is not None and name and not isinstance(item, (dict, list)):
            lines.append(f"{name}: {item}")
    return "\n".join(lines)


def storable(text: str) -> str:
    """The text without what a database refuses: NUL and lone surrogates become U+FFFD."""
    if text.isascii() and "\0" not in text:
        return text
    return text.translate(_UNSTORABLE)


def pieces(text: str) -> Iterator[str]:
    """The text, masked and storable, in pieces of at most `PIECE_CHARACTERS`; nothing for blank text.

    Masking comes before cutting, so no secret is cut into two halves that nothing recognises.
    """
    text = mask_secrets(storable(text)).strip()
    start = 0
    while start < len(text):
        end = min(start + PIECE_CHARACTERS, len(text))
        if end < len(text):
            blank = max(
                text.rfind("\n", start + PIECE_CHARACTERS // 2, end),
                text.rfind(" ", start + PIECE_CHARACTERS // 2, end),
            )
            end = blank if blank > start else end
        yield text[start:end]
        start = end
