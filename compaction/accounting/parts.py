from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from compaction.accounting.attachments import attachment_text
from compaction.accounting.categories import Category
from compaction.accounting.estimate import (
    characters_per_token,
    estimate_block_tokens,
    estimate_text_tokens,
    media_tokens_of_result,
)
from compaction.accounting.models import TokenizerFamily, tokenizer_family
from compaction.conversation import Conversation
from compaction.progress import Progress
from compaction.transcript import BlockFlag, BlockType, Flag, RecordKind

READ_IN_FULL = 64 << 20
"""Bytes of transcript up to which the character-class model reads every text; larger ones are estimated from the
characters counted by the index (about 15 ms a megabyte saved, median error 11 % instead of 6 %)."""

_REMINDER = "<system-reminder>"
_FULL_SIZE_IMAGE = 1_560


@dataclass(frozen=True, slots=True)
class Parts:
    """Estimated tokens of what the records hold, before any scaling to recorded growth.

    Attributes:
        record: numbers of records that hold something which is sent; ascending, one may occur more than once.
        category: `Category` of each; tokens: its estimate.
        hidden: whether a record holds thinking without text (its tokens are in no character).
        read_in_full: the character-class model saw the texts (else: characters by content class).
    """

    record: npt.NDArray[np.int64]
    category: npt.NDArray[np.int8]
    tokens: npt.NDArray[np.float64]
    hidden: npt.NDArray[np.bool_]
    read_in_full: bool


def estimate_parts(conversation: Conversation, progress: Progress | None = None) -> Parts:
    """Estimate every record of the main thread by category, with the tokenizer family of its model.

    Raises:
        Cancelled: `progress.cancel()` was called.
    """
    c = conversation
    t = c.transcript
    progress = progress or Progress()
    in_full = t.size <= READ_IN_FULL
    sent = c.main & ((t.flags & Flag.VISIBLE_IN_TRANSCRIPT_ONLY) == 0)
    sent |= c.main & ((t.flags & Flag.COMPACT_SUMMARY) != 0)
    blocks = np.flatnonzero(sent[t.block_record] & _speaks(c)[t.block_record]) if len(t.block_record) else _no_rows()
    new = _new_tokenizer(c)
    category = _categories(c, blocks)
    types, flags = t.block_type[blocks], t.block_flags[blocks]
    hidden = np.zeros(len(t), bool)
    silent = ((types == BlockType.THINKING) & ((flags & BlockFlag.EMPTY) != 0)) | (types == BlockType.REDACTED_THINKING)
    hidden[t.block_record[blocks[silent]]] = True
    media = _media(c, blocks, new)
    if in_full:
        tokens = _read_blocks(c, blocks, category, new, media, progress)
    else:
        tokens = _from_characters(c, blocks, new)
    records = t.block_record[blocks].astype(np.int64)
    attached, attached_tokens = _attachments(c, np.flatnonzero(sent & (t.kind == RecordKind.ATTACHMENT)), new, in_full)
    with_media = np.flatnonzero(media > 0)
    record = np.concatenate([records, records[with_media], attached])
    kinds = np.concatenate(
        [
            category,
            np.full(len(with_media), Category.IMAGES, np.int8),
            np.full(len(attached), Category.ATTACHMENTS, np.int8),
        ]
    )
    amounts = np.concatenate([tokens, media[with_media], attached_tokens])
    order = np.argsort(record, kind="stable")
    return Parts(record[order], kinds[order], amounts[order], hidden, in_full)


def _no_rows() -> npt.NDArray[np.int64]:
    return np.zeros(0, np.int64)


def _speaks(c: Conversation) -> npt.NDArray[np.bool_]:
    kind = c.transcript.kind
    speaks: npt.NDArray[np.bool_] = (kind == RecordKind.USER) | (kind == RecordKind.ASSISTANT)
    return speaks


def _new_tokenizer(c: Conversation) -> npt.NDArray[np.bool_]:
    """For each record whether the newer tokenizer counts it: by the model of the nearest assistant record."""
    t = c.transcript
    newer = np.array([bool(n) and tokenizer_family(n) == "new" for n in t.model_names])
    told = (t.model_number > 0) & ((t.flags & Flag.SYNTHETIC) == 0)
    place = np.flatnonzero(told)
    if not len(place):
        return np.ones(len(t), bool)
    # What a person writes is counted by the model that reads it: the next response, or the last one.
    following = np.minimum(np.searchsorted(place, np.arange(len(t))), len(place) - 1)
    return newer[t.model_number[place[following]]]


def _categories(c: Conversation, blocks: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
    t = c.transcript
    record = t.block_record[blocks]
    types = t.block_type[blocks]
    assistant = t.kind[record] == RecordKind.ASSISTANT
    category = np.where(assistant, Category.ASSISTANT_TEXT, Category.USER_TEXT).astype(np.int8)
    injected = ~assistant & ((t.flags[record] & Flag.META) != 0)
    category[injected] = Category.ATTACHMENTS
    category[(t.flags[record] & Flag.COMPACT_SUMMARY) != 0] = Category.SUMMARY
    for kinds, value in (
        ((BlockType.THINKING, BlockType.REDACTED_THINKING), Category.THINKING),
        ((BlockType.TOOL_USE, BlockType.SERVER_TOOL_USE), Category.TOOL_USE),
        ((BlockType.TOOL_RESULT, BlockType.SERVER_TOOL_RESULT), Category.TOOL_RESULT),
        ((BlockType.IMAGE, BlockType.DOCUMENT), Category.IMAGES),
    ):
        category[np.isin(types, kinds)] = value
    return category


def _media(c: Conversation, blocks: npt.NDArray[np.int64], new: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Tokens of the images inside tool results; the few results that have some are read whatever the size."""
    t = c.transcript
    media = np.zeros(len(blocks))
    holds = (t.block_type[blocks] == BlockType.TOOL_RESULT) & ((t.block_flags[blocks] & BlockFlag.HAS_IMAGE) != 0)
    for place in np.flatnonzero(holds):
        block = int(blocks[place])
        media[place] = media_tokens_of_result(t.block(block).get("content"), _family(new, int(t.block_record[block])))
    return media


def _family(new: npt.NDArray[np.bool_], record: int) -> TokenizerFamily:
    return "new" if new[record] else "old"


def _read_blocks(
    c: Conversation, blocks: npt.NDArray[np.int64], category: npt.NDArray[np.int8], new: npt.NDArray[np.bool_],
    media: npt.NDArray[np.float64], progress: Progress,
) -> npt.NDArray[np.float64]:  # fmt: skip
    """Estimates by the character-class model; marks texts that are the client's reminders as attachments."""
    t = c.transcript
    tokens = np.zeros(len(blocks))
    progress.total, progress.unit, progress.text = len(blocks), "blocks", "Estimating tokens"
    for place, number in enumerate(blocks.tolist()):
        if place % 256 == 0:
            progress.check()
            progress.done = place
        block = t.block(number)
        family = _family(new, int(t.block_record[number]))
        tokens[place] = max(0.0, estimate_block_tokens(block, family) - media[place])
        if category[place] == Category.USER_TEXT and str(block.get("text", "")).startswith(_REMINDER):
            category[place] = Category.ATTACHMENTS
    return tokens


def _from_characters(
    c: Conversation, blocks: npt.NDArray[np.int64], new: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """Estimates from the index alone: characters divided by what one token of that content class holds."""
    t = c.transcript
    tool = t.block_tool_number[blocks]
    types = t.block_type[blocks]
    answers = types == BlockType.TOOL_RESULT
    calls = c.pair[blocks]
    tool = np.where(answers & (calls >= 0), t.block_tool_number[np.maximum(calls, 0)], tool)
    tokens = np.zeros(len(blocks))
    for newer in (False, True):
        family: TokenizerFamily = "new" if newer else "old"
        mine = new[t.block_record[blocks]] == newer
        for kind in BlockType:
            chosen = mine & (types == kind)
            if kind is BlockType.TOOL_RESULT:
                for number in np.unique(tool[chosen]).tolist():
                    rows = chosen & (tool == number)
                    tokens[rows] = t.block_chars[blocks[rows]] / characters_per_token(family, t.tool_names[number])
                tokens[chosen] += estimate_block_tokens({"type": "tool_result"}, family)
            elif kind in (BlockType.IMAGE, BlockType.DOCUMENT):
                tokens[chosen] = _FULL_SIZE_IMAGE
            else:
                tokens[chosen] = t.block_chars[blocks[chosen]] / characters_per_token(family, kind.name.lower())
                if kind is BlockType.TOOL_USE:
                    tokens[chosen] += estimate_block_tokens({"type": "tool_use"}, family)
    return tokens


def _attachments(
    c: Conversation, records: npt.NDArray[np.int64], new: npt.NDArray[np.bool_], in_full: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    t = c.transcript
    tokens = np.zeros(len(records))
    for place, record in enumerate(records.tolist()):
        family = _family(new, record)
        if in_full:
            tokens[place] = estimate_text_tokens(attachment_text(t.payload(record)), family)
        else:
            tokens[place] = int(t.length[record]) / characters_per_token(family, "attachment")
    kept = np.flatnonzero(tokens > 0)
    return records[kept], tokens[kept]
