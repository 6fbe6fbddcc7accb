"""R33–R35: cache_control markers (api-rules.md A5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compaction.diagnosis.model import Place, Violation
from compaction.diagnosis.view import RequestView

MAXIMUM_MARKERS = 4


@dataclass(frozen=True, slots=True)
class Marker:
    """A block that carries `cache_control`; `place` is None for tools and system blocks."""

    path: str
    block: dict[str, Any]
    place: Place | None

    @property
    def ttl(self) -> str:
        control = self.block.get("cache_control")
        found = control.get("ttl") if isinstance(control, dict) else None
        return found if isinstance(found, str) else "5m"


def markers_of(view: RequestView) -> list[Marker]:
    """Every marker in the order the API processes them: tools, system, messages."""
    outside = [("tools", view.request.tools or []), ("system", view.request.system or [])]
    found = [
        Marker(f"{name}.{number}", block, None)
        for name, blocks in outside
        for number, block in enumerate(blocks)
        if isinstance(block.get("cache_control"), dict)
    ]
    found += [
        Marker(block.path, block.value, block.place)
        for block in view.blocks()
        if isinstance(block.value.get("cache_control"), dict)
    ]
    return found


def marker_count(view: RequestView) -> Iterator[Violation]:
    """R33: at most four blocks with cache_control; automatic caching at the top level counts as one."""
    found = markers_of(view)
    automatic = isinstance(view.request.params.get("cache_control"), dict)
    count = len(found) + automatic
    if count > MAXIMUM_MARKERS:
        yield Violation(
            rule="R33",
            path=found[0].path,
            message=f"{count} blocks carry cache_control; the API takes {MAXIMUM_MARKERS}.",
            api_error=f"A maximum of {MAXIMUM_MARKERS} blocks with cache_control may be provided. Found {count}.",
            code="too_many_cache_markers",
            places=tuple(m.place for m in found if m.place is not None),
            details={"wires": [m.path for m in found], "automatic": automatic},
        )


def marker_target(view: RequestView) -> Iterator[Violation]:
    """R34: an empty text block and a thinking block cannot carry cache_control."""
    for marker in markers_of(view):
        kind = marker.block.get("type")
        if kind == "text" and not marker.block.get("text"):
            text = f"{marker.path}.text: cache_control cannot be set for empty text blocks"
        elif kind in ("thinking", "redacted_thinking"):
            text = ""  # documented as impossible; no exact text was ever collected
        else:
            continue
        yield Violation(
            rule="R34",
            path=marker.path,
            message=f"A {kind} block that cannot carry cache_control does.",
            api_error=text,
            code="cache_marker_on_wrong_block",
            places=() if marker.place is None else (marker.place,),
        )


def marker_order(view: RequestView) -> Iterator[Violation]:
    """R35: lifetimes must not grow along tools, system, messages: no 1h after a 5m."""
    short = False
    for marker in markers_of(view):
        if marker.ttl == "1h" and short:
            yield Violation(
                rule="R35",
                path=f"{marker.path}.cache_control.ttl",
                message="A cache lifetime of 1h comes after one of 5m.",
                api_error=f"{marker.path}.cache_control.ttl: a ttl='1h' cache_control block must not come after a "
                "ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, "
                "`system`, `messages`.",
                code="cache_lifetime_order",
                places=() if marker.place is None else (marker.place,),
            )
        short = short or marker.ttl == "5m"
