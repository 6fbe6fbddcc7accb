from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Mapping
from typing import Any

from compaction.accounting.models import TokenizerFamily

_LIMITS: dict[TokenizerFamily, tuple[int, int]] = {"old": (1_568, 1_568), "new": (2_576, 4_784)}
"""Longest edge in pixels and most tokens of one image (api.md 2.7: 4.7 and later get the larger ones)."""
_TILE = 28
_PDF_PAGE_TEXT_TOKENS = 2_250
"""Middle of the 1,500 to 3,000 text tokens a PDF page takes beside its image (api.md 2.7)."""
_PDF_PAGE_PIXELS = (1_275, 1_650)
"""A letter page at 150 dots an inch: the size that a rendered page is taken to have."""
_HEADER_BYTES = 256 * 1024
"""How much of an image is decoded to find its size; a JPEG keeps it behind its metadata."""
_UNKNOWN_IMAGE_TOKENS = 1_560
"""A full-size image under the smaller limit: what an image of unknown size counts."""


def image_tokens(width: int, height: int, family: TokenizerFamily) -> int:
    """`ceil(w/28) × ceil(h/28)` tokens after scaling down to the longest edge and the most tokens (api.md 2.7)."""
    edge, most = _LIMITS[family]
    if width <= 0 or height <= 0:
        return 0
    scale = min(1.0, edge / max(width, height))
    tokens = _tiles(width * scale, height * scale)
    while tokens > most:
        scale *= math.sqrt(most / tokens) * 0.9999
        tokens = _tiles(width * scale, height * scale)
    return tokens


def _tiles(width: float, height: float) -> int:
    # A rounding error of the scale must not open another tile.
    return math.ceil(width / _TILE - 1e-9) * math.ceil(height / _TILE - 1e-9)


def image_tokens_of_block(block: Mapping[str, Any], family: TokenizerFamily) -> int:
    """Tokens of an image or document block; one whose size cannot be read (a URL, damage) counts as a full-size one."""
    source = block.get("source")
    data = source.get("data") if isinstance(source, Mapping) else None
    if block.get("type") == "document":
        return _document_tokens(source, family)
    if not isinstance(data, str):
        return _UNKNOWN_IMAGE_TOKENS
    size = image_size(_decode_start(data))
    return image_tokens(*size, family) if size else _UNKNOWN_IMAGE_TOKENS


def _document_tokens(source: Any, family: TokenizerFamily) -> int:
    if not isinstance(source, Mapping):
        return _UNKNOWN_IMAGE_TOKENS
    if source.get("type") == "text" and isinstance(source.get("data"), str):
        return math.ceil(len(source["data"]) / 3)
    pages = 1
    if isinstance(source.get("data"), str):
        raw = _decode_start(source["data"], len(source["data"]))
        pages = max(1, raw.count(b"/Type /Page") + raw.count(b"/Type/Page") - raw.count(b"/Pages"))
    return pages * (_PDF_PAGE_TEXT_TOKENS + image_tokens(*_PDF_PAGE_PIXELS, family))


def _decode_start(text: str, characters: int = _HEADER_BYTES) -> bytes:
    part = text[: characters // 4 * 4]
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4))
    except (binascii.Error, ValueError):
        return b""


def image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels of a PNG, GIF, WebP or JPEG from its first bytes; None when they do not tell."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) >= 24:
        width, height = struct.unpack(">II", data[16:24])
        return width, height
    if data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        width, height = struct.unpack("<HH", data[6:10])
        return width, height
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp_size(data)
    if data[:2] == b"\xff\xd8":
        return _jpeg_size(data)
    return None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X" and len(data) >= 30:
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L" and len(data) >= 25:
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and len(data) >= 30:
        width, height = struct.unpack("<HH", data[26:30])
        return width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 < len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None
