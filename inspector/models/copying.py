"""Selected rows as text or JSON for the clipboard; for a worker thread."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from compaction.conversation import Conversation
from compaction.progress import Progress
from compaction.transcript import RecordKind
from inspector.documents.document import Selection
from inspector.models.filter_language import texts_of


def text_of(selections: Sequence[Selection], progress: Progress) -> str:
    """The text of the selections, without markup: what a reader would read, records separated by an empty line."""
    parts = []
    for conversation, record, block in _records(selections, progress):
        t = conversation.transcript
        if block >= 0:
            texts = texts_of({"message": {"content": [t.block(block)]}})
        elif t.kind[record] == RecordKind.DAMAGED:
            texts = [t.record_bytes(record).decode("utf-8", "replace")]
        else:
            texts = texts_of(t.payload(record))
        parts.append("\n".join(texts))
    return _clean("\n\n".join(parts))


def json_of(selections: Sequence[Selection], progress: Progress) -> str:
    """The records exactly as they stand in the file, one a line; a block as indented JSON."""
    parts = []
    for conversation, record, block in _records(selections, progress):
        t = conversation.transcript
        if block >= 0:
            parts.append(json.dumps(t.block(block), ensure_ascii=False, indent=2))
        else:
            parts.append(t.record_bytes(record).decode("utf-8", "replace"))
    return _clean("\n".join(parts))


def _records(selections: Sequence[Selection], progress: Progress) -> Iterator[tuple[Conversation, int, int]]:
    """(conversation, record, block or −1) of the selections, each once, in their order."""
    seen: set[tuple[int, int]] = set()
    whole: set[tuple[int, int]] = set()
    for selection in selections:
        if selection.conversation is not None and selection.block < 0:
            whole |= {(id(selection.conversation), int(record)) for record in selection.records}
    for selection in selections:
        conversation = selection.conversation
        if conversation is None:
            continue
        if selection.block >= 0:
            if (id(conversation), selection.record) not in whole:
                yield conversation, selection.record, selection.block
            continue
        for record in selection.records:
            progress.check()
            key = (id(conversation), int(record))
            if key not in seen:
                seen.add(key)
                yield conversation, int(record), -1


def _clean(text: str) -> str:
    """Lone surrogates (cut emoji) cannot be put on a clipboard: shown as the replacement character."""
    return text.encode("utf-8", "replace").decode("utf-8")
