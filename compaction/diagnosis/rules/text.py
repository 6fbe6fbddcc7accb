"""R11–R17: text blocks, empty messages and roles (api-rules.md A2)."""

from __future__ import annotations

from collections.abc import Iterator

from compaction.diagnosis.model import Violation
from compaction.diagnosis.models import refuses_prefill
from compaction.diagnosis.view import Placed, RequestView, block_path


def _texts(view: RequestView) -> Iterator[tuple[Placed, str]]:
    for block in view.blocks():
        text = block.value.get("text")
        if block.type == "text" and isinstance(text, str):
            yield block, text


def _blank(blocks: list[Placed], code: str, rule: str, what: str, api_error: str) -> Iterator[Violation]:
    """One violation that lists every candidate: the API names no place."""
    if blocks:
        paths = [b.path for b in blocks]
        yield Violation(
            rule=rule,
            path=paths[0],
            message=f"{len(blocks)} text block{'s are' if len(blocks) > 1 else ' is'} {what}.",
            api_error=api_error,
            code=code,
            places=tuple(b.place for b in blocks),
            details={"wires": paths},
        )


def empty_text(view: RequestView) -> Iterator[Violation]:
    """R11: a text block must not be empty. The empty string as a tool result's content is allowed."""
    blocks = [block for block, text in _texts(view) if not text]
    yield from _blank(blocks, "empty_text_block", "R11", "empty", "messages: text content blocks must be non-empty")


def whitespace_text(view: RequestView) -> Iterator[Violation]:
    """R12: a text block must hold something other than white space; a space does not mend an empty one."""
    blocks = [block for block, text in _texts(view) if text and not text.strip()]
    yield from _blank(
        blocks,
        "whitespace_text_block",
        "R12",
        "nothing but white space",
        "messages: text content blocks must contain non-whitespace text",
    )


def empty_message(view: RequestView) -> Iterator[Violation]:
    """R13: only the final assistant message may be empty."""
    messages = view.request.messages
    for number, message in enumerate(messages):
        final = number == len(messages) - 1 and message.role == "assistant"
        if not message.content and not final and number >= view.first[0]:
            yield Violation(
                rule="R13",
                path=block_path(number, -1),
                message="The message has no content.",
                api_error=f"messages.{number}: all messages must have non-empty content except for the optional "
                "final assistant message",
                code="empty_message",
                places=((number, -1),),
            )


def _final_assistant_text(view: RequestView) -> Placed | None:
    """The text that an assistant message at the very end of the request ends with (a prefill), or None."""
    if view.awaits_prompt or not view.turns or view.turns[-1].role != "assistant" or not view.turns[-1].blocks:
        return None
    last = view.turns[-1].blocks[-1]
    return last if last.type == "text" else None


def trailing_whitespace(view: RequestView) -> Iterator[Violation]:
    """R14: a final assistant message (a prefill, where the model takes one) must not end with white space."""
    last = _final_assistant_text(view)
    if last is None or refuses_prefill(view.request.model):
        return
    text = last.value.get("text")
    if isinstance(text, str) and text.strip() and text != text.rstrip():
        yield Violation(
            rule="R14",
            path=last.path,
            message="The final assistant message ends with white space.",
            api_error="messages: final assistant content cannot end with trailing whitespace",
            code="final_text_ends_with_whitespace",
            places=(last.place,),
        )


def no_prefill(view: RequestView) -> Iterator[Violation]:
    """R15: newer models refuse a request that ends with an assistant message; an open server call may be resumed."""
    last = _final_assistant_text(view)
    if last is not None and refuses_prefill(view.request.model):
        yield Violation(
            rule="R15",
            path=block_path(last.message, -1),
            message="The request ends with an assistant message, and the model takes no prefill.",
            api_error="This model does not support assistant message prefill. The conversation must end with a "
            "user message.",
            code="conversation_ends_with_assistant",
            places=(last.place,),
        )


def first_role(view: RequestView) -> Iterator[Violation]:
    """R16: the first message should be the user's (unverified today, so a warning); `system` first is refused."""
    messages = view.request.messages
    if not messages:
        return
    if messages[0].role == "system":
        yield Violation(
            rule="R16",
            path="messages.0",
            message="The first message has the role system.",
            api_error="messages.0: use the top-level 'system' parameter for the initial system prompt",
            code="first_message_is_system",
            places=((0, -1),),
        )
    elif messages[0].role == "assistant":
        yield Violation(
            rule="R16",
            path="messages.0",
            message="The first message is the assistant's: what came before it is not sent.",
            api_error='messages: first message must use the "user" role',
            code="first_message_not_user",
            severity="warning",
            places=((0, -1),),
            details={"unverified": True},
        )


def alternation(view: RequestView) -> Iterator[Violation]:
    """R17: messages of one role in a row are combined today (not an error); other providers still refuse them."""
    messages = view.request.messages
    rows = [n for n in range(1, len(messages)) if messages[n].role == messages[n - 1].role != "system"]
    if rows:
        role = messages[rows[0]].role
        yield Violation(
            rule="R17",
            path=block_path(rows[0], -1),
            message=f"{len(rows)} messages follow one of the same role; the API combines them.",
            api_error='messages: roles must alternate between "user" and "assistant", but found multiple '
            f'"{role}" roles in a row',
            code="consecutive_same_role",
            severity="info",
            places=tuple((n, -1) for n in rows),
            details={"wires": [block_path(n, -1) for n in rows]},
        )
