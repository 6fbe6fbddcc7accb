from __future__ import annotations

import base64
import struct
import zlib


def png(width: int, height: int, pixel: bytes | None = None, rows: list[bytes] | None = None) -> bytes:
    """A valid 8-bit RGB PNG: one colour (`pixel`, three bytes) or `rows` of width × 3 bytes each."""
    lines = rows if rows is not None else [(pixel or b"\x33\x66\x99") * width] * height
    body = b"".join(b"\0" + line for line in lines)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", _stored(body)) + _chunk(b"IEND", b"")


def image_block(data: bytes) -> dict[str, object]:
    """An image content block that holds `data` as base64."""
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(data).decode("ascii")}
    return {"type": "image", "source": source}


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _stored(data: bytes) -> bytes:
    """A zlib stream that compresses nothing: the same bytes whatever compressor this Python was built with."""
    parts = [data[start : start + 0xFFFF] for start in range(0, len(data), 0xFFFF)] or [b""]
    blocks = [
        struct.pack("<BHH", number == len(parts) - 1, len(part), len(part) ^ 0xFFFF) + part
        for number, part in enumerate(parts)
    ]
    return b"\x78\x01" + b"".join(blocks) + struct.pack(">I", zlib.adler32(data))
