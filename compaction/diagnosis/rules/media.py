"""R29–R32: images and documents (api-rules.md A5)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compaction.accounting.images import image_size
from compaction.accounting.profiles import long_window, model_limits
from compaction.diagnosis.model import Severity, Violation
from compaction.diagnosis.view import Placed, RequestView

MAXIMUM_BYTES = 5_242_880
MAXIMUM_EDGE = 8_000
MANY_IMAGES = 20
MAXIMUM_EDGE_OF_MANY = 2_000
MAXIMUM_MEDIA = 100
MAXIMUM_MEDIA_LONG_WINDOW = 600
MEDIA_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_HEADER_CHARACTERS = 64 * 1024
_LEAST_RECOGNISABLE = 16
"""Characters of base64 that hold the longest magic number; shorter data cannot be judged."""


@dataclass(frozen=True, slots=True)
class Media:
    """An image or document block, at the top level of a message or inside a tool result.

    `path` is the API's path of the block, `inner` its position inside the result (-1: it is the block itself).
    """

    owner: Placed
    inner: int
    value: dict[str, Any]

    @property
    def kind(self) -> str:
        return str(self.value.get("type"))

    @property
    def path(self) -> str:
        return self.owner.path if self.inner < 0 else f"{self.owner.path}.content.{self.inner}"

    @property
    def source(self) -> dict[str, Any]:
        found = self.value.get("source")
        return found if isinstance(found, dict) else {}


def media_of(view: RequestView) -> list[Media]:
    """Every image and document of a request, in order; worked out once a view."""
    if "media" not in view.memo:
        view.memo["media"] = _media_of(view)
    found: list[Media] = view.memo["media"]
    return found


def _media_of(view: RequestView) -> list[Media]:
    found: list[Media] = []
    for block in view.blocks():
        if block.type in ("image", "document"):
            found.append(Media(block, -1, block.value))
        content = block.value.get("content")
        if block.type == "tool_result" and isinstance(content, list):
            found += [
                Media(block, number, item)
                for number, item in enumerate(content)
                if isinstance(item, dict) and item.get("type") in ("image", "document")
            ]
    return found


def _base64_images(view: RequestView) -> Iterator[tuple[Media, Any]]:
    for media in media_of(view):
        if media.kind == "image" and media.source.get("type") == "base64":
            yield media, media.source.get("data")


def _violation(
    media: Media, rule: str, code: str, message: str, api_error: str, severity: Severity = "error"
) -> Violation:
    return Violation(
        rule=rule,
        path=media.path,
        message=message,
        api_error=api_error,
        code=code,
        severity=severity,
        places=(media.owner.place,),
        details={"inner": media.inner},
    )


def _header(data: str) -> bytes:
    part = data[:_HEADER_CHARACTERS]
    try:
        return base64.b64decode(part[: len(part) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


def image_dimensions(view: RequestView) -> Iterator[Violation]:
    """R29: no edge above 8,000 pixels, and above 2,000 when the request holds more than 20 images."""
    images = list(_base64_images(view))
    many = len([m for m in media_of(view) if m.kind == "image"]) > MANY_IMAGES
    limit = MAXIMUM_EDGE_OF_MANY if many else MAXIMUM_EDGE
    for media, data in images:
        size = image_size(_header(data)) if isinstance(data, str) else None
        if size is not None and max(size) > limit:
            suffix = f"for many-image requests: {limit} pixels" if many else f": {limit} pixels"
            yield _violation(
                media,
                "R29",
                "image_too_large",
                f"The image has {size[0]} × {size[1]} pixels; this request may hold {limit} a side.",
                f"{media.path}.image.source.base64.data: At least one of the image dimensions exceed max allowed size "
                f"{suffix}".replace("size :", "size:"),
            )


def image_bytes(view: RequestView) -> Iterator[Violation]:
    """R30: 5 MB of base64 an image."""
    for media, data in _base64_images(view):
        if isinstance(data, str) and len(data) > MAXIMUM_BYTES:
            yield _violation(
                media,
                "R30",
                "image_too_many_bytes",
                f"The image has {len(data):,} bytes; the API takes {MAXIMUM_BYTES:,}.",
                f"{media.path}.image.source.base64: image exceeds 5 MB maximum: {len(data)} bytes > "
                f"{MAXIMUM_BYTES} bytes",
            )


def image_usable(view: RequestView) -> Iterator[Violation]:
    """R31: an image must hold data of its media type. Data that matches no known format is a warning: it may be a
    stand-in that a tool put there, and only the API's decoder can tell."""
    for media, data in _base64_images(view):
        kind = media.source.get("media_type")
        if not isinstance(data, str) or not data:
            yield _violation(
                media,
                "R31",
                "image_empty",
                "The image has no data.",
                f"{media.path}.image.source.base64: image cannot be empty",
            )
        elif kind not in MEDIA_TYPES:
            yield _violation(
                media,
                "R31",
                "image_media_type",
                f"The API takes no image of type {kind}.",
                f"{media.path}.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' "
                "or 'image/webp'",
            )
        elif len(data) >= _LEAST_RECOGNISABLE and not _is_image(_header(data)):
            yield _violation(
                media,
                "R31",
                "image_unrecognised",
                "The data is in none of the four image formats.",
                "Could not process image",
                "warning",
            )


def _is_image(head: bytes) -> bool:
    return head.startswith((b"\x89PNG", b"\xff\xd8", b"GIF8")) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP")


def media_limit(model: str) -> int:
    """How many images and documents a request to `model` may hold: 600 with a 1M window, 100 otherwise (R32)."""
    return MAXIMUM_MEDIA_LONG_WINDOW if model_limits(model).window >= long_window() else MAXIMUM_MEDIA


def media_count(view: RequestView) -> Iterator[Violation]:
    """R32: at most 100 images and documents, 600 with a 1M window."""
    found = media_of(view)
    limit = media_limit(view.request.model)
    if len(found) > limit:
        images = sum(media.kind == "image" for media in found)
        yield Violation(
            rule="R32",
            path="",
            message=f"The request holds {len(found)} images and documents; {limit} are allowed.",
            api_error=f"too many images and documents: {images} + {len(found) - images} > {limit}",
            code="too_many_media",
            places=tuple(dict.fromkeys(media.owner.place for media in found)),
            details={"count": len(found), "limit": limit},
        )
