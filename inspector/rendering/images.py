"""Decoding of a session's images: bounded, only Qt's own formats, never a file that a session names."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QSize, Qt
from PySide6.QtGui import QImage, QImageReader

from inspector.rendering.parts import Part, Picture

PICTURE_SIDE = 16_384
"""Most points on a side of an image that is decoded."""

PICTURE_SHOWN = 900
"""Widest an image is shown, in points."""

PICTURE_POINTS = 4_000_000
"""Most points an image keeps; larger ones are scaled down while they are read."""


@lru_cache(maxsize=8)
def decode_image(data: bytes) -> tuple[QImage | None, str]:
    """The image in the bytes, or None and the reason why there is none. May run in a worker; the last few are kept.

    The size is checked before anything is decoded.
    """
    buffer = QBuffer()
    buffer.setData(QByteArray(data))
    buffer.open(QIODevice.OpenModeFlag.ReadOnly)
    reader = QImageReader(buffer)
    reader.setDecideFormatFromContent(True)
    if bytes(reader.format().data()) in (b"svg", b"svgz", b"pdf"):
        return None, "The image is a vector file, which may refer to other files; it is not shown."
    size = reader.size()
    if not size.isValid():
        return None, f"The bytes are not an image that can be shown ({reader.errorString()})."
    if max(size.width(), size.height()) > PICTURE_SIDE:
        return None, f"The image has {size.width():,} × {size.height():,} points and is not decoded."
    reader.setScaledSize(_kept_size(size))
    image = reader.read()
    if image.isNull():
        return None, f"The image cannot be decoded ({reader.errorString()})."
    image.setText("size", f"{size.width():,} × {size.height():,}")
    return image, ""


def decode_pictures(parts: Iterable[Part]) -> None:
    """Decode the pictures among parts in a worker, so that showing them does not have to."""
    for part in parts:
        if isinstance(part, Picture) and part.data:
            decode_image(part.data)


def _kept_size(size: QSize) -> QSize:
    points = size.width() * size.height()
    if points <= PICTURE_POINTS:
        return size
    share = (PICTURE_POINTS / points) ** 0.5
    wanted = QSize(max(round(size.width() * share), 1), max(round(size.height() * share), 1))
    return size.scaled(wanted, Qt.AspectRatioMode.KeepAspectRatio)
