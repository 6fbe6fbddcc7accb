"""Mending of images, documents, cache markers, sizes and characters (R29–R40)."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from compaction.diagnosis.model import Finding
from compaction.diagnosis.repair.editor import Editor, Json
from compaction.diagnosis.repair.fixes.kit import Fix, is_document
from compaction.diagnosis.rules.caching import MAXIMUM_MARKERS, markers_of
from compaction.diagnosis.rules.media import Media, media_limit, media_of
from compaction.diagnosis.rules.size import MAXIMUM_BODY_BYTES, body_bytes
from compaction.transcript.patching import Path, find_span

_LARGE_RESULT = 2_000
"""Characters of a result below which cutting it would not make a request smaller."""


def media_to_text(editor: Editor, finding: Finding) -> None:
    """The image becomes a text that says what stood there (G11: replaced, not emptied)."""
    inner = finding.details.get("inner", -1)
    for place in finding.blocks:
        _replace(editor, place, inner if isinstance(inner, int) else -1, finding.message)


def _replace(editor: Editor, place: tuple[int, int], inner: int, why: str) -> None:
    note = {"type": "text", "text": f"[Image removed: {why.rstrip('.')}]"}
    if inner < 0:
        editor.set_block(*place, note)
    else:
        editor.set_inside(*place, ("content", inner), note)


def _origin(editor: Editor, media: Media) -> tuple[int, int] | None:
    return editor.case.origin_of(media.owner.place)


def oldest_media_to_text(editor: Editor, finding: Finding) -> None:
    """The oldest images and documents become text until the rest is allowed."""
    found = media_of(editor.case.view)
    over = len(found) - media_limit(editor.case.view.request.model)
    _media_to_text(editor, found[:over], "too many images and documents in one request")


def _media_to_text(editor: Editor, found: list[Media], why: str) -> None:
    for media in found:
        place = _origin(editor, media)
        if place is not None:
            _replace(editor, place, media.inner, why)


def shrink_body(editor: Editor, finding: Finding) -> None:
    """Images and documents, the largest first, then the largest results become short texts until the body fits."""
    over = body_bytes(editor.case.view) - MAXIMUM_BODY_BYTES
    media = sorted(media_of(editor.case.view), key=lambda m: -len(str(m.source.get("data", ""))))
    taken = []
    for item in media:
        if over <= 0:
            break
        taken.append(item)
        over -= len(str(item.source.get("data", "")))
    _media_to_text(editor, taken, "the request was larger than the API takes")
    results = [
        b for b in editor.case.view.blocks() if b.type == "tool_result" and isinstance(b.value.get("content"), str)
    ]
    for block in sorted(results, key=lambda b: -len(b.value["content"])):
        size = len(block.value["content"])
        if over <= 0 or size < _LARGE_RESULT:
            break
        place = editor.case.origin_of(block.place)
        if place is not None:
            editor.set_inside(
                *place, ("content",), f"[Result of {size:,} characters removed: the request was too large]"
            )
            over -= size


# --- cache markers --------------------------------------------------------------------------------------------------


def _unmark(editor: Editor, path: str, place: tuple[int, int] | None, change: Any) -> None:
    """Change the `cache_control` of a marked block; of a tool or system block in the document's own members."""
    if place is not None:
        origin = editor.case.origin_of(place)
        if origin is not None:
            block = dict(editor.block(*origin))
            _set_marker(block, change)
            editor.set_block(*origin, block)
        return
    name, _, number = path.partition(".")
    value = copy.deepcopy(
        editor.draft.members[name].value if name in editor.draft.members else editor.t.document.get(name)
    )
    if isinstance(value, list) and number.isdigit() and int(number) < len(value):
        _set_marker(value[int(number)], change)
        editor.set_document_member(name, value)


def _set_marker(block: Json, change: Any) -> None:
    if change is None:
        block.pop("cache_control", None)
    else:
        block["cache_control"] = {**block["cache_control"], **change}


def keep_last_markers(editor: Editor, finding: Finding) -> None:
    """The last markers stay: they cover the longest prefix."""
    markers = markers_of(editor.case.view)
    allowed = MAXIMUM_MARKERS - bool(finding.details.get("automatic"))
    for marker in markers[: len(markers) - allowed]:
        _unmark(editor, marker.path, marker.place, None)


def remove_marker(editor: Editor, finding: Finding) -> None:
    """The marker goes from a block that cannot carry one."""
    for marker in markers_of(editor.case.view):
        if marker.path == finding.wire:
            _unmark(editor, marker.path, marker.place, None)


def shorten_lifetime(editor: Editor, finding: Finding) -> None:
    """The later, longer lifetime becomes as short as the one before it."""
    for marker in markers_of(editor.case.view):
        if finding.wire.startswith(f"{marker.path}.cache_control"):
            _unmark(editor, marker.path, marker.place, {"ttl": "5m"})


# --- characters -----------------------------------------------------------------------------------------------------

_ESCAPE = re.compile(rb"\\u[0-9a-fA-F]{4}|\\.", re.DOTALL)
_REPLACEMENT = rb"\ufffd"


def replace_characters(editor: Editor, finding: Finding) -> None:
    """Only the unpaired half, or the NUL, becomes U+FFFD; every other byte of the line stays."""
    field = finding.details.get("field")
    for record, block in finding.blocks:
        path: Path = (*editor.t.format.message_path, "content")
        content = editor.t.message(record).get("content")
        if not isinstance(content, str):
            path = (*path, block)
            # A string among the blocks is sent as a text block; in the file it has no fields.
            whole = isinstance(content, list) and block < len(content) and isinstance(content[block], str)
            path = path if whole or not isinstance(field, list) else (*path, *field)
        editor.change_bytes(record, partial(_mended, path=path))


def _mended(data: bytes, path: Path) -> bytes:
    start, stop = find_span(data, path)
    return data[:start] + b"".join(_pieces(data[start:stop])) + data[stop:]


def _pieces(value: bytes) -> Iterator[bytes]:
    """The string literal with lone surrogate escapes and NUL escapes replaced, pairs untouched."""
    escapes = list(_ESCAPE.finditer(value))
    at = 0
    skip = False
    for number, found in enumerate(escapes):
        if skip:
            skip = False
            continue
        code = int(found.group()[2:], 16) if found.group()[1:2] == b"u" else -1
        if 0xD800 <= code < 0xDC00 and _low_follows(escapes, number):
            skip = True
            continue
        if 0xD800 <= code < 0xE000 or code == 0:
            yield value[at : found.start()] + _REPLACEMENT
            at = found.end()
    # A NUL that stands in the line as it is, not as an escape.
    yield value[at:].replace(b"\0", _REPLACEMENT)


def _low_follows(escapes: list[re.Match[bytes]], number: int) -> bool:
    if number + 1 >= len(escapes) or escapes[number + 1].start() != escapes[number].end():
        return False
    following = escapes[number + 1].group()
    return following[1:2] == b"u" and 0xDC00 <= int(following[2:], 16) < 0xE000


_TO_TEXT = (
    Fix("media_to_text", "Put a text in the image's place", "an emptied image is refused as well", media_to_text),
)

FIXES: dict[str, tuple[Fix, ...]] = {
    "image_too_large": _TO_TEXT,
    "image_too_many_bytes": _TO_TEXT,
    "image_empty": _TO_TEXT,
    "image_media_type": _TO_TEXT,
    "image_unrecognised": (
        Fix("media_to_text", "Put a text in the image's place", "only the API can tell", media_to_text, chosen=False),
    ),
    "too_many_media": (
        Fix("oldest_to_text", "Put texts in the place of the oldest", "the newest matter most", oldest_media_to_text),
    ),
    "request_too_large": (
        Fix(
            "shrink", "Replace the largest images, then results, by short texts", "it cannot be sent whole", shrink_body
        ),
    ),
    "too_many_cache_markers": (
        Fix(
            "keep_last_markers",
            "Keep the last markers",
            "they cover the longest prefix",
            keep_last_markers,
            is_document,
        ),
    ),
    "cache_marker_on_wrong_block": (
        Fix("remove_marker", "Remove the marker", "the block cannot carry one", remove_marker, is_document),
    ),
    "cache_lifetime_order": (
        Fix("shorten_lifetime", "Shorten the later lifetime to 5m", "costs nothing now", shorten_lifetime, is_document),
    ),
    "lone_surrogate": (
        Fix(
            "replace_half", "Replace the half character by U+FFFD", "the other half is lost already", replace_characters
        ),
    ),
    "nul_character": (Fix("replace_nul", "Replace NUL by U+FFFD", "the place stays visible", replace_characters),),
}
