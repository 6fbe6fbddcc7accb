from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from tests.generator.version import Version

CHARACTERS_PER_TOKEN = 3.6
BLOCK_OVERHEAD = 6
IMAGE_TOKENS = 1_600


def tokens_of_text(text: str) -> int:
    """What the invented tokenizer makes of a text."""
    return int(len(text) / CHARACTERS_PER_TOKEN) + 1


@dataclass(slots=True)
class Ledger:
    """The context as the API would count it, so that recorded usage grows by exactly what was added.

    Attributes:
        system: tokens of system prompt and tools.
        context: tokens that the next request holds.
        cached: how many of them the prompt cache holds.
        pending_characters: characters added since the last response (the client estimates these as chars / 4).
        results: tokens of every tool_result still in full, by tool_use id, oldest first.
        recent: the newest records and their tokens, for preserved messages.
    """

    system: int = 18_000
    context: int = 18_000
    cached: int = 0
    last_context: int = 0
    last_output: int = 0
    pending_characters: int = 0
    dropped: int = 0
    results: dict[str, int] = field(default_factory=dict)
    recent: deque[tuple[str, int]] = field(default_factory=lambda: deque(maxlen=64))

    def add(self, uuid: str, tokens: int, characters: int) -> None:
        """Something was added to the conversation."""
        self.context += tokens
        self.pending_characters += characters
        self.recent.append((uuid, tokens))

    def respond(self, output: int) -> tuple[int, int, int]:
        """A response came: (uncached input, cache read, cache creation); their sum is the context that was sent."""
        uncached = 3
        read = self.cached
        creation = max(0, self.context - read - uncached)
        uncached = self.context - read - creation
        self.last_context, self.last_output = self.context, output
        self.cached = self.context
        self.context += output
        self.pending_characters = 0
        return uncached, read, creation

    def forget_cache(self) -> None:
        """The cache ran out (an hour's pause, another model): the next request writes it anew."""
        self.cached = 0

    @property
    def estimate_now(self) -> int:
        """What the client calls preTokens: last context + its output + a quarter of the characters since."""
        return self.last_context + self.last_output + round(self.pending_characters / 4)

    def clear_results(self, ids: list[str], placeholder_tokens: int = 9) -> int:
        """Old tool results were cleared; returns the tokens that went."""
        freed = sum(max(0, self.results.pop(key, 0) - placeholder_tokens) for key in ids)
        self.context -= freed
        self.cached = min(self.cached, self.system)
        return freed

    def compact(self, kept_tokens: int) -> None:
        """A compaction left the system prompt and `kept_tokens`."""
        self.context = self.system + kept_tokens
        self.cached = self.system
        self.pending_characters = 0
        self.last_context = self.last_output = 0
        self.results.clear()
        self.recent.clear()


def usage_object(
    version: Version, counts: tuple[int, int, int], output: int, *, hour_share: float = 1.0, thinking_tokens: int = 0
) -> dict[str, Any]:
    """`message.usage` with the fields this version writes (transcript-format.md section 5).

    Args:
        counts: uncached input, cache read and cache creation tokens.
        hour_share: the share of the cache creation that is kept for one hour; the rest is kept for five minutes.
    """
    uncached, read, creation = counts
    usage: dict[str, Any] = {
        "input_tokens": uncached,
        "cache_creation_input_tokens": creation,
        "cache_read_input_tokens": read,
        "output_tokens": output,
    }
    hour = round(creation * hour_share)
    split = {"ephemeral_1h_input_tokens": hour, "ephemeral_5m_input_tokens": creation - hour}
    if version.since("2.1.229"):
        usage["output_tokens_details"] = {"thinking_tokens": thinking_tokens}
    if version.since("2.1.100"):
        usage["server_tool_use"] = {"web_search_requests": 0, "web_fetch_requests": 0}
    usage["service_tier"] = "standard"
    if version.since("1.0.80"):
        usage["cache_creation"] = split
    if version.since("2.1.17"):
        usage["inference_geo"] = "not_available"
    if version.since("2.1.38"):
        usage["iterations"] = [
            {
                "input_tokens": uncached,
                "output_tokens": output,
                "cache_read_input_tokens": read,
                "cache_creation_input_tokens": creation,
                "cache_creation": split,
                "type": "message",
            }
        ]
    if version.since("2.1.41"):
        usage["speed"] = "standard"
    return usage
