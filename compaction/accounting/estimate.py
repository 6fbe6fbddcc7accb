from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from compaction.accounting.images import image_tokens_of_block
from compaction.accounting.models import TokenizerFamily

CHARACTERS_PER_TOKEN_ROUGH = 4
"""The system's own rough estimate (compaction.md 2)."""
ROUGH_TOKENS_OF_MEDIA = 2_000
"""Tokens that the rough estimate gives each image or document of a list result (compaction.md 2)."""


def rough_tokens(text: str) -> int:
    """`ceil(characters / 4)`: the estimate that the system's own decisions use (compaction.md 2), never a split."""
    return -(-len(text) // CHARACTERS_PER_TOKEN_ROUGH)


def rough_tokens_of_result(content: Any) -> int:
    """The rough estimate of a tool_result's `content`: text by characters, media 2,000 each, empty 0."""
    if not content:
        return 0
    if isinstance(content, str):
        return rough_tokens(content)
    total = 0
    if isinstance(content, list):
        for item in content:
            kind = item.get("type") if isinstance(item, Mapping) else None
            if kind == "text":
                total += rough_tokens(_string(item.get("text")))
            elif kind in ("image", "document"):
                total += ROUGH_TOKENS_OF_MEDIA
    return total


def rough_tokens_of_block(block: Mapping[str, Any]) -> int:
    """The rough estimate of any content block, in tokens.

    compaction.md 2 states text and results; images and documents outside results count 2,000 as inside, thinking by
    its text, a tool_use by its name and the JSON of its input, anything else by its JSON.
    """
    kind = block.get("type")
    if kind == "text":
        return rough_tokens(_string(block.get("text")))
    if kind == "tool_result":
        return rough_tokens_of_result(block.get("content"))
    if kind in ("image", "document"):
        return ROUGH_TOKENS_OF_MEDIA
    if kind == "thinking":
        return rough_tokens(_string(block.get("thinking")))
    if kind == "tool_use":
        return rough_tokens(_string(block.get("name")) + compact_json(block.get("input", {})))
    return rough_tokens(compact_json(block))


def rough_tokens_of_message(content: str | Sequence[Mapping[str, Any]]) -> int:
    """The rough estimate of one message's content."""
    if isinstance(content, str):
        return rough_tokens(content)
    return sum(rough_tokens_of_block(block) for block in content)


def token_count_with_estimation(recorded: int | None, added: Iterable[Mapping[str, Any]]) -> int:
    """The system's own count (compaction.md 2): the newest real usage plus the rough estimate of what came after it.

    Args:
        recorded: input + cache read + cache creation + output of the newest real usage on the chain, or None.
        added: the content blocks after it (all blocks when there is no usage).
    """
    return (recorded or 0) + sum(rough_tokens_of_block(block) for block in added)


# The character-class model (transcript-format.md 11). Coefficients in the order of `character_features`.
_FEATURES = ("results", "words", "letters beyond 6", "camel humps", "digits", "blank runs", "newline runs",
             "punctuation", "non-ASCII")  # fmt: skip
_COEFFICIENTS: dict[TokenizerFamily, npt.NDArray[np.float64]] = {
    "old": np.array([35.0, 1.06, 0.28, 0.26, 0.56, 1.44, 0.95, 0.71, 0.31]),
    "new": np.array([10.0, 1.50, 0.45, 0.51, 0.59, 0.96, 1.35, 0.91, 0.05]),
}
_NON_ASCII_FLOOR = {"old": 0.31, "new": 0.31}
"""The fit's 0.05 for the new tokenizer rests on few samples ("do not trust it for CJK"): the old one's is used."""
_TOOL_USE_FIXED = {"old": 45.0, "new": 75.0}
"""Tokens of one tool_use beyond its JSON: name, ids and framing (section 11: 60 to 90 for the new tokenizer)."""
_MESSAGE_FIXED = 4.0
"""Tokens of framing of a text block."""

_CHARACTERS_PER_TOKEN: dict[TokenizerFamily, dict[str, float]] = {
    "old": {"Read": 3.3, "Bash": 2.9, "Grep": 2.9, "Edit": 2.9, "Glob": 2.8, "text": 4.1, "thinking": 4.1,
            "tool_use": 2.9, "attachment": 4.4, "": 3.27},
    "new": {"Read": 2.5, "Bash": 2.3, "Grep": 2.2, "Edit": 2.5, "Glob": 2.3, "PowerShell": 2.6, "Agent": 2.4,
            "text": 2.7, "thinking": 2.7, "tool_use": 2.4, "attachment": 3.4, "": 2.45},
}  # fmt: skip
"""Characters of one token by content class or tool (section 11); "" for any other."""

_LOWER, _UPPER, _DIGIT, _BLANK, _NEWLINE, _PUNCTUATION, _WIDE, _OTHER = 1, 2, 3, 4, 5, 6, 7, 0
_CLASSES = np.zeros(256, dtype=np.uint8)
_CLASSES[ord("a") : ord("z") + 1] = _LOWER
_CLASSES[ord("A") : ord("Z") + 1] = _UPPER
_CLASSES[ord("0") : ord("9") + 1] = _DIGIT
_CLASSES[[ord(" "), ord("\t")]] = _BLANK
_CLASSES[[ord("\n"), ord("\r")]] = _NEWLINE
for _byte in range(33, 127):
    if _CLASSES[_byte] == 0:
        _CLASSES[_byte] = _PUNCTUATION
# Continuation bytes of UTF-8 (0x80 to 0xBF) stay "other": only the first byte of a character counts.
_CLASSES[0xC0:] = _WIDE


def character_features(text: str) -> npt.NDArray[np.float64]:
    """Counts of the character-class model in one pass over the UTF-8 bytes; the first entry (results) is 0."""
    features = np.zeros(len(_FEATURES))
    if not text:
        return features
    data = np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)
    classes = _CLASSES[data]
    counts = np.bincount(classes, minlength=8)
    letter = (classes == _LOWER) | (classes == _UPPER)
    words, lengths = _runs(letter)
    features[1] = words
    features[2] = np.maximum(lengths - 6, 0).sum()
    features[3] = np.count_nonzero((classes[:-1] == _LOWER) & (classes[1:] == _UPPER))
    features[4] = counts[_DIGIT]
    features[5] = np.count_nonzero(_runs(classes == _BLANK)[1] >= 2)
    features[6] = _runs(classes == _NEWLINE)[0]
    features[7] = counts[_PUNCTUATION]
    features[8] = counts[_WIDE]
    return features


def characters_per_token(family: TokenizerFamily, content: str) -> float:
    """Characters that one token holds in a content class (a tool's name, "text", "tool_use" …), section 11."""
    table = _CHARACTERS_PER_TOKEN[family]
    if content.startswith("mcp__"):
        return 1.6 if family == "new" else 2.1
    return table.get(content, table[""])


def _runs(mask: npt.NDArray[np.bool_]) -> tuple[int, npt.NDArray[np.int64]]:
    """How many runs of True there are, and their lengths."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).view(np.int8)))
    lengths = edges[1::2] - edges[::2]
    return len(lengths), lengths


@lru_cache(maxsize=2)
def _coefficients(family: TokenizerFamily) -> npt.NDArray[np.float64]:
    values = _COEFFICIENTS[family].copy()
    values[-1] = _NON_ASCII_FLOOR[family]
    return values


def estimate_text_tokens(text: str, family: TokenizerFamily) -> float:
    """Tokens of a text by the character-class model of the tokenizer family (median error 6 %, section 11)."""
    return float(character_features(text) @ _coefficients(family))


def estimate_block_tokens(block: Mapping[str, Any], family: TokenizerFamily) -> float:
    """Tokens of one content block by the character-class model; images by the 28-pixel formula (api.md 2.7).

    A thinking block counts its visible text only: hidden thinking cannot be told from characters and is the residual
    of the response's recorded output (transcript-format.md 5).
    """
    kind = block.get("type")
    if kind == "text":
        text = _string(block.get("text"))
        return _MESSAGE_FIXED + estimate_text_tokens(text, family) if text else 0.0
    if kind == "thinking":
        return estimate_text_tokens(_string(block.get("thinking")), family)
    if kind == "redacted_thinking":
        return 0.0
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        text = _string(block.get("name")) + compact_json(block.get("input", {}))
        return _TOOL_USE_FIXED[family] + estimate_text_tokens(text, family)
    if kind in ("image", "document"):
        return float(image_tokens_of_block(block, family))
    if kind == "tool_result":
        return float(_coefficients(family)[0]) + _estimate_content(block.get("content"), family)
    return estimate_text_tokens(compact_json(block), family)


def _estimate_content(content: Any, family: TokenizerFamily) -> float:
    if isinstance(content, str):
        return estimate_text_tokens(content, family)
    if not isinstance(content, list):
        return 0.0
    total = 0.0
    for item in content:
        if isinstance(item, Mapping):
            total += estimate_block_tokens(item, family)
    return total


def media_tokens_of_result(content: Any, family: TokenizerFamily) -> float:
    """Tokens of the images and documents inside a tool_result's list content."""
    if not isinstance(content, list):
        return 0.0
    media = (i for i in content if isinstance(i, Mapping) and i.get("type") in ("image", "document"))
    return float(sum(image_tokens_of_block(item, family) for item in media))


def compact_json(value: Any) -> str:
    """JSON without spaces, non-ASCII as it is: what the wire carries, so what a count of characters should see."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
