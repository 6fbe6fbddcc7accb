"""Old tool results cleared: those a microcompaction names, and those a resuming client clears by its own rule."""

from __future__ import annotations

from collections.abc import Iterable

from compaction.request.entries import SYNTHETIC_MODEL, Entry, text
from compaction.request.profiles import Microcompact, ResumeProfile
from compaction.request.wire import Json
from compaction.transcript import CLEARED_MARKER

_CONTEXT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


def recorded_clearings(entries: Iterable[Entry]) -> tuple[set[str], set[str]]:
    """What the `microcompact_boundary` records on the chain say was cleared: tool_use ids of results, and uuids of
    attachments."""
    calls: set[str] = set()
    attachments: set[str] = set()
    for entry in entries:
        details = entry.payload.get("microcompactMetadata") if entry.role == "system" else None
        if isinstance(details, dict):
            calls.update(_strings(details.get("compactedToolIds")))
            attachments.update(_strings(details.get("clearedAttachmentUUIDs")))
    return calls, attachments


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def recorded_context(entries: Iterable[Entry]) -> int:
    """The context of the last response that recorded its usage, output included, in tokens; 0 = none did."""
    found = 0
    for entry in entries:
        message = entry.payload.get("message") if entry.role == "assistant" else None
        usage = message.get("usage") if isinstance(message, dict) else None
        if isinstance(usage, dict) and entry.model != SYNTHETIC_MODEL:
            counts = [usage.get(name) for name in _CONTEXT]
            found = sum(count for count in counts if isinstance(count, int))
    return found


def clearings_on_resume(entries: list[Entry], profile: ResumeProfile) -> set[str]:
    """tool_use ids whose results the client clears before its first request (resources/resume-profiles.json)."""
    rule = profile.microcompact
    if rule is None or recorded_context(entries) < rule.warning_tokens:
        return set()
    calls, sizes = _compactable(entries, rule)
    left = sum(sizes.values())
    total = left
    cleared: set[str] = set()
    for call in calls[: max(0, len(calls) - rule.keep)]:
        if left <= rule.keep_tokens:
            break
        cleared.add(call)
        left -= sizes.get(call, 0)
    return cleared if total - left >= rule.minimum_tokens else set()


def _compactable(entries: list[Entry], rule: Microcompact) -> tuple[list[str], dict[str, int]]:
    calls: dict[str, None] = {}
    sizes: dict[str, int] = {}
    for entry in entries:
        for part in entry.parts:
            block = part.block
            if block.get("type") == "tool_use" and block.get("name") in rule.tools:
                calls[text(block.get("id"))] = None
            elif block.get("type") == "tool_result" and block.get("tool_use_id") in calls:
                sizes[block["tool_use_id"]] = _rough_tokens(block.get("content"), rule.image_tokens)
    return list(calls), sizes


def _rough_tokens(content: object, image_tokens: int) -> int:
    """The client's own estimate of a result: UTF-16 units / 4, rounded half up; a flat figure for an image."""
    if isinstance(content, str):
        return int(_units(content) / 4 + 0.5)
    total = 0
    for item in content if isinstance(content, list) else []:
        if isinstance(item, dict) and item.get("type") == "text":
            total += int(_units(text(item.get("text"))) / 4 + 0.5)
        elif isinstance(item, dict) and item.get("type") == "image":
            total += image_tokens
    return total


def _units(words: str) -> int:
    return len(words) + sum(1 for c in words if ord(c) > 0xFFFF) if not words.isascii() else len(words)


def cleared_block(block: Json, rule: Microcompact | None) -> Json:
    """The tool_result with the marker in place of its content (unchanged where the rule spares it)."""
    content = block.get("content")
    if rule is not None and rule.keeps_persisted:
        spared = not content or (isinstance(content, str) and "<persisted-output>" in content)
        if spared:
            return block
    return {**block, "content": CLEARED_MARKER}
