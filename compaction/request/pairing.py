"""The repair of orphaned calls and results that newer clients make in the request itself (clients.md)."""

from __future__ import annotations

from compaction.request.entries import THINKING_TYPES, Part, text, text_block
from compaction.request.merging import Draft
from compaction.request.wire import Dropped

_SERVER_CALLS = ("server_tool_use", "mcp_tool_use")


def repaired(messages: list[Draft], texts: dict[str, str], dropped: list[Dropped]) -> list[Draft]:
    """The messages with every call answered once, right behind it, and no result without its call.

    `texts`: the profile's placeholders (`orphan_texts`).
    """
    return _Repair(messages, texts, dropped).run()


class _Repair:
    def __init__(self, messages: list[Draft], texts: dict[str, str], dropped: list[Dropped]) -> None:
        self.messages = messages
        self.texts = texts
        self.dropped = dropped
        self.out: list[Draft] = []
        self.used: set[str] = set()

    def run(self) -> list[Draft]:
        position = 0
        while position < len(self.messages):
            message = self.messages[position]
            if message.role == "assistant":
                position += self._assistant(message, position)
            else:
                self._user(message)
                position += 1
        return self.out

    def _user(self, message: Draft) -> None:
        """Results that follow no response lose their place."""
        follows = bool(self.out) and self.out[-1].role == "assistant"
        parts = message.parts if follows else [p for p in message.parts if p.block.get("type") != "tool_result"]
        if len(parts) != len(message.parts):
            self._lose(message.parts, parts, "tool_result without its call")
            if not parts and not self.out:
                parts = [Part(text_block(self.texts["leading_result"]), None)]
            if not parts:
                return
            message = Draft("user", parts, last=message.last)
        self.out.append(message)

    def _assistant(self, message: Draft, position: int) -> int:
        """Append the response and its results; returns how many messages were consumed."""
        parts, calls = self._calls(message.parts)
        if len(parts) != len(message.parts):
            self._lose(
                message.parts, parts, "call with an id that was used before, or a server call without its result"
            )
        if not parts:
            parts = [Part(text_block(self.texts["interrupted_use"]), None)]
        self.out.append(Draft("assistant", parts, message.response, message.model, message.last))
        following = self.messages[position + 1] if position + 1 < len(self.messages) else None
        if following is not None and following.role != "user":
            following = None
        return 1 + self._results(calls, following)

    def _calls(self, parts: list[Part]) -> tuple[list[Part], list[str]]:
        served = {
            text(p.block.get("tool_use_id"))
            for p in parts
            if "tool_use_id" in p.block and p.block.get("type") != "tool_result"
        }
        kept: list[Part] = []
        calls: list[str] = []
        for index, part in enumerate(parts):
            kind, call = part.block.get("type"), text(part.block.get("id"))
            lost = kind == "tool_result" or (kind in _SERVER_CALLS and call not in served)
            if kind == "tool_use":
                lost = call in self.used
                if not lost:
                    self.used.add(call)
                    calls.append(call)
            if not lost:
                kept.append(part)
            elif 0 < index < len(parts) - 1 and _is_thinking(parts[index - 1]) and _is_thinking(parts[index + 1]):
                kept.append(Part(text_block(self.texts["removed_use"]), None))
        return kept, calls

    def _results(self, calls: list[str], following: Draft | None) -> int:
        """The user message behind a response; returns 1 when `following` was used for it."""
        given = [p.block for p in following.parts if p.block.get("type") == "tool_result"] if following else []
        answered = [text(block.get("tool_use_id")) for block in given]
        known = set(answered)
        missing = [call for call in calls if call not in known]
        orphans = known - set(calls)
        if not missing and not orphans and len(known) == len(answered):
            return 0
        parts = [self._placeholder(call) for call in missing]
        if following is None:
            if parts:
                self.out.append(Draft("user", parts))
            return 0
        kept = self._once(following.parts, orphans)
        self._lose(following.parts, kept, "tool_result without its call, or a second result of one call")
        parts += kept
        if not parts:
            parts = [Part(text_block(self.texts["lone_results"]), None)]
        self.out.append(Draft("user", parts, last=following.last))
        return 1

    def _placeholder(self, call: str) -> Part:
        words = self.texts["missing_result"]
        return Part({"type": "tool_result", "tool_use_id": call, "content": words, "is_error": True}, None)

    def _once(self, parts: list[Part], orphans: set[str]) -> list[Part]:
        seen: set[str] = set()
        kept = []
        for part in parts:
            if part.block.get("type") == "tool_result":
                call = text(part.block.get("tool_use_id"))
                if call in orphans or call in seen:
                    continue
                seen.add(call)
            kept.append(part)
        return kept

    def _lose(self, before: list[Part], after: list[Part], reason: str) -> None:
        staying = {id(part) for part in after}
        self.dropped += [
            Dropped(p.origin.record, p.origin.block, reason) for p in before if id(p) not in staying and p.origin
        ]


def _is_thinking(part: Part) -> bool:
    return part.block.get("type") in THINKING_TYPES
