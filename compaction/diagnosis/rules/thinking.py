"""R18–R22: thinking blocks, their signatures and their order (api-rules.md A3, api.md 2.4)."""

from __future__ import annotations

from collections.abc import Iterator

from compaction.diagnosis.model import Violation
from compaction.diagnosis.view import Placed, RequestView, Turn, block_path

_THINKING = ("thinking", "redacted_thinking")


def _latest_assistant(view: RequestView) -> Turn | None:
    return next((turn for turn in reversed(view.turns) if turn.role == "assistant"), None)


def thinking_order(view: RequestView) -> Iterator[Violation]:
    """R18: the latest assistant message must have its blocks in written order.

    A request alone cannot prove the order. Two thinking blocks at the head and all calls behind them are the shape
    that regrouping an interleaved response leaves (th, call, th, call), so that is a warning.
    """
    turn = _latest_assistant(view)
    if turn is None or view.thinking_type() == "disabled":
        return
    kinds = [block.type for block in turn.blocks]
    head = next((n for n, kind in enumerate(kinds) if kind != "thinking"), len(kinds))
    rest = kinds[head:]
    if head >= 2 and len(rest) >= 2 and set(rest) == {"tool_use"}:
        second = turn.blocks[1]
        yield Violation(
            rule="R18",
            path=second.path,
            message="All thinking stands before all calls: an interleaved response may have been regrouped.",
            api_error=f"{second.path}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot "
            "be modified. These blocks must remain as they were in the original response.",
            code="thinking_order_suspect",
            severity="warning",
            places=tuple(block.place for block in turn.blocks[:head]),
        )


def empty_signed_thinking(view: RequestView) -> Iterator[Violation]:
    """R18 (disputed part): a signed block without text is what newer models return; it replays fine (G10)."""
    found = [b for b in view.blocks() if b.type == "thinking" and b.value.get("thinking") == "" and _signed(b)]
    if found:
        yield Violation(
            rule="R18",
            path=found[0].path,
            message=f"{len(found)} thinking block{'s have' if len(found) > 1 else ' has'} a signature and no text: "
            "newer models leave the text out; it is valid.",
            api_error="",
            code="thinking_text_empty_but_signed",
            severity="info",
            places=tuple(b.place for b in found),
        )


def _signed(block: Placed) -> bool:
    signature = block.value.get("signature")
    return isinstance(signature, str) and bool(signature)


def bad_signature(view: RequestView) -> Iterator[Violation]:
    """R19: every thinking block needs its own signature, every redacted one its data; any message can be named."""
    for block in view.blocks():
        if block.type == "redacted_thinking":
            if not isinstance(block.value.get("data"), str) or not block.value["data"]:
                yield _signature(block, f"{block.path}: Invalid `data` in `redacted_thinking` block", "has no data")
        elif block.type == "thinking":
            yield from _thinking_signature(block)


def _thinking_signature(block: Placed) -> Iterator[Violation]:
    if not block.value.get("thinking") and not _signed(block):
        return  # R20 names this one
    if "signature" not in block.value:
        yield _signature(block, f"{block.path}.thinking.signature: Field required", "has no signature")
    elif not isinstance(block.value["signature"], str):
        yield _signature(
            block,
            f"{block.path}.thinking.signature.str: Input should be a valid string",
            "has a signature that is no text",
        )
    elif not block.value["signature"]:
        yield _signature(block, f"{block.path}: Invalid `signature` in `thinking` block", "has an empty signature")


def _signature(block: Placed, api_error: str, what: str) -> Violation:
    return Violation(
        rule="R19",
        path=block.path,
        message=f"The {block.type} block {what}.",
        api_error=api_error,
        code="invalid_thinking_signature",
        places=(block.place,),
    )


def thinking_field(view: RequestView) -> Iterator[Violation]:
    """R20: the field `thinking` is required; empty text is allowed only with a signature."""
    for block in view.blocks():
        if block.type != "thinking":
            continue
        if "thinking" not in block.value:
            yield _field(block, "thinking.thinking: Field required", "lacks its text field")
        elif not block.value["thinking"] and not _signed(block):
            yield _field(block, "thinking: each thinking block must contain thinking", "is empty and unsigned")


def _field(block: Placed, text: str, what: str) -> Violation:
    return Violation(
        rule="R20",
        path=block.path,
        message=f"The thinking block {what}.",
        api_error=f"{block.path}.{text}",
        code="thinking_field_missing",
        places=(block.place,),
        details={"signed": _signed(block)},
    )


def open_loop_start(view: RequestView) -> Turn | None:
    """The first assistant turn of a tool loop that is still open at the end of the request, or None."""
    turns = view.turns
    if len(turns) < 2 or turns[-1].role != "user" or not turns[-1].only_results():
        return None
    start = None
    for turn in reversed(turns):
        if turn.role == "user" and not turn.only_results():
            break
        if turn.role == "assistant":
            start = turn
    return start


def open_loop_lacks_thinking(view: RequestView) -> Iterator[Violation]:
    """R21: with manual thinking, the assistant turn of an open tool loop must start with a thinking block."""
    start = open_loop_start(view)
    if view.thinking_type() != "enabled" or start is None or not start.blocks:
        return
    if any(block.type in _THINKING for block in start.blocks):
        return  # in the right place, or R22 names it
    first = start.blocks[0]
    yield Violation(
        rule="R21",
        path=first.path,
        message="The open tool loop does not start with thinking, but the request has manual thinking on.",
        api_error=f"{first.path}.type: Expected `thinking` or `redacted_thinking`, but found `{first.type}`. When "
        "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost "
        "set of `tool_use` and `tool_result` blocks).",
        code="open_loop_lacks_leading_thinking",
        places=(first.place,),
        details={"applies_when": "thinking.type=enabled", "turn_starts_at": block_path(start.first_message, -1)},
    )


def thinking_first(view: RequestView) -> Iterator[Violation]:
    """R22: with manual thinking an assistant message that holds thinking starts with it; off means none at the end."""
    for turn in view.turns:
        if turn.role != "assistant" or not turn.blocks or view.thinking_type() != "enabled":
            continue
        first = turn.blocks[0]
        if first.type not in _THINKING and any(b.type in _THINKING for b in turn.blocks):
            yield Violation(
                rule="R22",
                path=first.path,
                message="The assistant message holds thinking but does not start with it.",
                api_error=f"{first.path}: If an assistant message contains any thinking blocks, the first block must "
                f"be `thinking` or `redacted_thinking`. Found `{first.type}`.",
                code="thinking_not_first",
                places=tuple(b.place for b in turn.blocks if b.type in _THINKING),
            )
    last = view.turns[-1] if view.turns else None
    if view.thinking_type() == "disabled" and last is not None and last.role == "assistant":
        found = [b for b in last.blocks if b.type in _THINKING]
        if found:
            yield Violation(
                rule="R22",
                path=found[0].path,
                message="Thinking is off, but the final assistant message holds thinking.",
                api_error=f"{found[0].path}: When thinking is disabled, an `assistant` message in the final position "
                "cannot contain `thinking`.",
                code="thinking_while_disabled",
                places=tuple(b.place for b in found),
            )
