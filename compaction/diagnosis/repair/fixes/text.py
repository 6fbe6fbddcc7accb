"""Mending of text blocks, empty messages and roles (R11–R16)."""

from __future__ import annotations

from compaction.diagnosis.case import Case
from compaction.diagnosis.model import Finding
from compaction.diagnosis.repair.editor import Editor
from compaction.diagnosis.repair.fixes.kit import Fix, is_document
from compaction.diagnosis.view import text_of

EMPTY_REPLY = "(empty reply)"
EMPTY_MESSAGE = "(empty message)"


def remove_blank(editor: Editor, finding: Finding) -> None:
    """Blank text goes; a message without anything else goes with it (G11: removed, not padded).

    The first message stays with visible words in it: without it the conversation would begin with the assistant.
    """
    kept = _first_message(editor, set(finding.blocks))
    for place in finding.blocks:
        if place == kept:
            editor.set_block(*place, {"type": "text", "text": EMPTY_MESSAGE})
        else:
            editor.remove_block(*place)


def _first_message(editor: Editor, blank: set[tuple[int, int]]) -> tuple[int, int] | None:
    """The first block of the request's first message when all of that message is blank."""
    messages = editor.case.view.request.messages
    if len(messages) < 2 or messages[0].role != "user" or messages[1].role != "assistant":
        return None
    origins = [(o.record, o.block) for o in messages[0].origins if o is not None]
    return origins[0] if origins and set(origins) <= blank else None


def name_blank(editor: Editor, finding: Finding) -> None:
    """Visible words take the place of blank text."""
    for place in finding.blocks:
        editor.set_block(*place, {"type": "text", "text": EMPTY_REPLY})


def remove_records(editor: Editor, finding: Finding) -> None:
    """The message without content goes; its neighbours come together."""
    for record in finding.records:
        if record == 0 and editor.is_document and len(editor.t) > 1 and editor.t.message(1).get("role") == "assistant":
            fill_message(editor, finding)
        else:
            editor.remove_record(record)


def fill_message(editor: Editor, finding: Finding) -> None:
    """Visible words in the only message there is."""
    for record in finding.records:
        editor.insert_blocks(record, 0, [{"type": "text", "text": EMPTY_MESSAGE}])


def trim_end(editor: Editor, finding: Finding) -> None:
    """The white space at the end goes."""
    for place in finding.blocks:
        editor.set_inside(*place, ("text",), str(editor.block(*place).get("text")).rstrip())


def add_user_turn(editor: Editor, finding: Finding) -> None:
    """A user message behind the last one; the reply stays whole."""
    editor.insert_record(len(editor.t) - 1, {"role": "user", "content": "Continue."})


def to_top_level_system(editor: Editor, finding: Finding) -> None:
    """The text goes to the request's own `system`."""
    record = finding.records[0]
    words = text_of(editor.t.message(record).get("content"))
    before = editor.t.document.get("system")
    if isinstance(before, list):
        editor.set_document_member("system", [*before, {"type": "text", "text": words}])
    else:
        editor.set_document_member("system", "\n\n".join(filter(None, [before, words])))
    editor.remove_record(record)


def prepend_user_turn(editor: Editor, finding: Finding) -> None:
    """A user message ahead of the first one."""
    editor.insert_record(-1, {"role": "user", "content": "(The beginning of this conversation is not available.)"})


def has_other_content(case: Case, finding: Finding) -> bool:
    """Whether what remains is a conversation at all."""
    return len(case.transcript) > len(finding.records)


_BLANK = (
    Fix("remove_blank", "Remove the blank text", "it says nothing; a space would be refused as well", remove_blank),
    Fix("name_blank", "Write “(empty reply)” in its place", "keeps the turn visible", name_blank, chosen=False),
)

FIXES: dict[str, tuple[Fix, ...]] = {
    "empty_text_block": _BLANK,
    "whitespace_text_block": _BLANK,
    "empty_message": (
        Fix("remove_message", "Remove the empty message", "it holds nothing", remove_records, has_other_content),
        Fix("fill_message", "Write “(empty message)” into it", "nothing else would be left", fill_message),
    ),
    "final_text_ends_with_whitespace": (
        Fix("trim_end", "Remove the white space at the end", "no word changes", trim_end),
    ),
    "conversation_ends_with_assistant": (
        Fix("add_user_turn", "Add a user message “Continue.”", "the reply stays", add_user_turn, is_document),
    ),
    "first_message_is_system": (
        Fix(
            "to_system",
            "Move it to the request's system prompt",
            "the API wants it there",
            to_top_level_system,
            is_document,
        ),
    ),
    "first_message_not_user": (
        Fix(
            "prepend_user", "Begin with a user message", "the rule is unverified", prepend_user_turn, is_document, False
        ),
    ),
}
