"""The filter language of the find bar: `tool:Bash error:yes tokens:>2000 type:user some text`.

Words without a field are searched in the records' text (all must be there, in any order, case is ignored); a term with
a leading `-` must not match; `"several words"` is one text. Every field has its own help, from which the help page and
the find bar's tip are made.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np

from compaction.errors import UsageError
from compaction.progress import Progress
from compaction.transcript import BlockFlag, BlockType, Flag, RecordKind
from inspector.models.outline_structure import Mask, OutlineStructure

SCAN_BYTES = 4 << 20
"""Bytes searched in one step: short enough that cancel and painting are not kept waiting."""


@dataclass(frozen=True, slots=True)
class Term:
    """One part of a filter: `field` is "" for plain text."""

    field: str
    value: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the language: `mask(structure, value)` gives one entry a record."""

    name: str
    help: str
    mask: Callable[[OutlineStructure, str], Mask]


def parse(text: str) -> list[Term]:
    """The terms of a filter.

    Raises:
        UsageError: an unknown field, a value that does not fit, or an open quote.
    """
    try:
        words = _split(text)
    except ValueError as error:
        raise UsageError("a quote is not closed", 'write "several words" with both quotes') from error
    terms = []
    for word in words:
        negated = word.startswith("-") and len(word) > 1
        body = word[1:] if negated else word
        name, colon, value = body.partition(":")
        if colon and name.lower() in FIELDS:
            if not value:
                raise UsageError(f"{name}: has no value", FIELDS[name.lower()].help)
            terms.append(Term(name.lower(), value, negated))
        elif colon and name.isalpha() and value and not value.startswith("//"):
            raise UsageError(f"there is no field {name}:", "fields: " + ", ".join(FIELDS))
        elif body:
            terms.append(Term("", body, negated))
    return terms


def _split(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    lexer.quotes = '"'
    lexer.escape = ""
    return list(lexer)


def matches(structure: OutlineStructure, terms: list[Term], progress: Progress | None = None) -> Mask:
    """Per record, whether all terms match. Fields first (arrays), text last and only where it still matters.

    Raises:
        UsageError: a value does not fit its field.
        Cancelled: `progress.cancel()` was called.
    """
    progress = progress or Progress()
    mask = np.ones(structure.count, bool)
    for term in terms:
        if term.field:
            found = FIELDS[term.field].mask(structure, term.value)
            mask &= ~found if term.negated else found
    for term in terms:
        if not term.field:
            found = contains(structure, term.value, mask, progress)
            mask &= ~found if term.negated else found
    return mask


def contains(structure: OutlineStructure, text: str, among: Mask, progress: Progress) -> Mask:
    """Which of the records `among` have `text` in what is shown of them, ignoring case.

    The file's bytes are searched first (C speed, in steps); only records that could match are decoded.
    """
    t = structure.conversation.transcript
    found = np.zeros(structure.count, bool)
    if not structure.count or not text:
        return found
    pattern = _byte_pattern(text) if t.format_name == "claude-code" else None
    candidates = among if pattern is None else _candidates(structure, pattern, len(text), progress) & among
    wanted = text.casefold()
    numbers = np.flatnonzero(candidates)
    talks = np.isin(t.kind, np.array([int(RecordKind.USER), int(RecordKind.ASSISTANT)], np.uint8))
    damaged = t.kind == int(RecordKind.DAMAGED)
    progress.unit, progress.total, progress.done = "records", len(numbers), 0
    for done, record in enumerate(map(int, numbers)):
        if done % 64 == 0:
            progress.check()
            progress.done = done
        if damaged[record]:
            body = t.record_bytes(record).decode("utf-8", "replace")
        elif pattern is not None and talks[record] and not _in_message(t.record_bytes(record), pattern):
            continue
        else:
            body = "\n".join(texts_of(t.payload(record)))
        found[record] = wanted in body.casefold()
    return found


class _Envelope(msgspec.Struct):
    message: msgspec.Raw = msgspec.Raw(b"")


_ENVELOPE = msgspec.json.Decoder(_Envelope)


def _in_message(data: bytes, pattern: re.Pattern[bytes]) -> bool:
    """Whether the bytes of `message` hold the pattern: sorts out records that only name it in their folder."""
    start = data.find(b'"message":')
    if start >= 0 and pattern.search(data, start) is None:
        return False
    try:
        message = bytes(_ENVELOPE.decode(data).message)
    except msgspec.MsgspecError:
        return True  # not for the strict decoder: the full one decides
    return not message or pattern.search(message) is not None


def texts_of(payload: object) -> list[str]:
    """The strings of a record that a reader would call its text: message content, attachment, summary; no ids."""
    found: list[str] = []
    if isinstance(payload, dict):
        message = payload.get("message")
        chosen = message.get("content") if isinstance(message, dict) else None
        if chosen is None:
            skipped = {
                "uuid",
                "parentUuid",
                "sessionId",
                "cwd",
                "version",
                "gitBranch",
                "timestamp",
                "requestId",
                "slug",
            }
            chosen = {key: value for key, value in payload.items() if key not in skipped}
        _collect(chosen, found)
    return found


def _collect(value: object, into: list[str]) -> None:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            into.append(item)
        elif isinstance(item, list):
            stack.extend(reversed(item))
        elif isinstance(item, dict):
            hidden = ("signature", "id", "tool_use_id", "data")
            stack.extend(v for k, v in reversed(list(item.items())) if k not in hidden)


def _candidates(structure: OutlineStructure, pattern: re.Pattern[bytes], length: int, progress: Progress) -> Mask:
    """Records whose bytes hold the pattern; `length` is the text's, in characters."""
    t = structure.conversation.transcript
    found = np.zeros(structure.count, bool)
    size = int(t.offset[-1]) + int(t.length[-1])
    progress.unit, progress.total, progress.done = "bytes", size, 0
    overlap = length
    for start in range(0, size, SCAN_BYTES):
        progress.check()
        progress.done = start
        data = t.raw(start, min(size, start + SCAN_BYTES + overlap))
        places = np.fromiter((m.start() for m in pattern.finditer(data)), np.int64) + start
        if len(places):
            found[np.unique(np.searchsorted(t.offset, places, side="right") - 1)] = True
    return found


def _byte_pattern(text: str) -> re.Pattern[bytes] | None:
    """A pattern of the longest stretch of the text without characters that some JSON writer escapes, or None."""
    longest = max(re.findall(r"[ !#$%()*,\-.0-9:;?@A-Z\[\]^_`a-z{|}~]+", text), key=len, default="")
    if len(longest) < 2:
        return None
    return re.compile(re.escape(longest.encode("ascii")), re.IGNORECASE)


# ---- fields --------------------------------------------------------------------------------------------------------


def _number_test(value: str) -> Callable[[np.ndarray], Mask]:
    """`>2000`, `<10`, `>=5`, `10-20` or `7`; k and m multiply."""
    match = re.fullmatch(r"(>=|<=|>|<|=)?\s*([\d.,_]+[km]?)(?:-([\d.,_]+[km]?))?", value.lower())
    if match is None:
        raise UsageError(f"{value} is not a number", "write >2000, <500, 10-20 or 7")
    sign, low = match.group(1) or "=", _number(match.group(2))
    if match.group(3):
        high = _number(match.group(3))
        return lambda column: (column >= low) & (column <= high)
    tests: dict[str, Callable[[np.ndarray], Mask]] = {
        ">": lambda column: column > low,
        "<": lambda column: column < low,
        ">=": lambda column: column >= low,
        "<=": lambda column: column <= low,
        "=": lambda column: column == low,
    }
    return tests[sign]


def _number(text: str) -> float:
    scale = {"k": 1_000, "m": 1_000_000}.get(text[-1], 1)
    try:
        return float(text.rstrip("km").replace(",", "").replace("_", "")) * scale
    except ValueError as error:
        raise UsageError(f"{text} is not a number", "write >2000, <500, 10-20 or 7") from error


def _yes(value: str) -> bool:
    if value.lower() in ("yes", "y", "true", "1", "on"):
        return True
    if value.lower() in ("no", "n", "false", "0", "off"):
        return False
    raise UsageError(f"{value} is neither yes nor no", "write yes or no")


def _of_blocks(structure: OutlineStructure, blocks: Mask) -> Mask:
    t = structure.conversation.transcript
    mask = np.zeros(structure.count, bool)
    mask[t.block_record[blocks]] = True
    return mask


def _names(names: list[str], value: str) -> np.ndarray:
    wanted = value.casefold()
    return np.array([number for number, name in enumerate(names) if wanted in name.casefold() and name], np.int64)


def _tool(structure: OutlineStructure, value: str) -> Mask:
    c = structure.conversation
    t = c.transcript
    uses = np.isin(t.block_tool_number, _names(t.tool_names, value)) & (t.block_tool_number > 0)
    results = np.zeros(len(uses), bool)
    paired = (c.pair >= 0) & (t.block_tool_number == 0)
    results[paired] = uses[c.pair[paired]]
    return _of_blocks(structure, uses | results)


def _type(structure: OutlineStructure, value: str) -> Mask:
    t = structure.conversation.transcript
    wanted = value.lower()
    try:
        block = BlockType[wanted.upper()]
    except KeyError:
        found: Mask = np.isin(t.type_number, _names(t.type_names, value))
        return found
    return _of_blocks(structure, t.block_type == block)


def _error(structure: OutlineStructure, value: str) -> Mask:
    t = structure.conversation.transcript
    mask = _of_blocks(structure, (t.block_flags & BlockFlag.ERROR) != 0)
    mask |= (t.flags & (Flag.API_ERROR | Flag.API_SYSTEM_ERROR)) != 0
    return mask if _yes(value) else ~mask


def _flag(flag: Flag) -> Callable[[OutlineStructure, str], Mask]:
    def mask(structure: OutlineStructure, value: str) -> Mask:
        found: Mask = (structure.conversation.transcript.flags & flag) != 0
        return found if _yes(value) else ~found

    return mask


def _orphan(structure: OutlineStructure, value: str) -> Mask:
    c = structure.conversation
    blocks = np.zeros(len(c.pair), bool)
    blocks[np.array([*c.uses_without_result, *c.results_without_use], np.int64)] = True
    mask = _of_blocks(structure, blocks)
    return mask if _yes(value) else ~mask


def _cleared(structure: OutlineStructure, value: str) -> Mask:
    mask = _of_blocks(structure, (structure.conversation.transcript.block_flags & BlockFlag.CLEARED) != 0)
    return mask if _yes(value) else ~mask


def _yes_or_no(column: Callable[[OutlineStructure], Mask]) -> Callable[[OutlineStructure, str], Mask]:
    return lambda structure, value: column(structure) if _yes(value) else ~column(structure)


def _by_number(column: Callable[[OutlineStructure], np.ndarray]) -> Callable[[OutlineStructure, str], Mask]:
    return lambda structure, value: _number_test(value)(column(structure))


def _record_chars(structure: OutlineStructure) -> np.ndarray:
    t = structure.conversation.transcript
    return np.bincount(t.block_record, weights=t.block_chars, minlength=structure.count)


def _by_name(numbers: str, names: str) -> Callable[[OutlineStructure, str], Mask]:
    def mask(structure: OutlineStructure, value: str) -> Mask:
        t = structure.conversation.transcript
        found: Mask = np.isin(getattr(t, numbers), _names(getattr(t, names), value))
        return found

    return mask


def _id(structure: OutlineStructure, value: str) -> Mask:
    from compaction.transcript import key_of

    t = structure.conversation.transcript
    key = np.uint64(key_of(value))
    mask: Mask = (t.uuid_key == key) | (t.message_key == key) | (t.request_key == key)
    return mask | _of_blocks(structure, t.block_key == key)


FIELDS: dict[str, Field] = {
    field.name: field
    for field in (
        Field("type", "type:user – record or block type: user, assistant, attachment, tool_use, thinking …", _type),
        Field("tool", "tool:Bash – calls of a tool and their results", _tool),
        Field("error", "error:yes – failed tools and API errors", _error),
        Field("orphan", "orphan:yes – a tool_use without tool_result, or the reverse", _orphan),
        Field("cleared", "cleared:yes – tool_results that a compaction cleared", _cleared),
        Field("damaged", "damaged:yes – records on a damaged line", _yes_or_no(lambda s: s.damaged_lines)),
        Field("branch", "branch:yes – where the conversation forks", _yes_or_no(lambda s: s.fork_heads)),
        Field("sidechain", "sidechain:yes – records of subagents in this file", _flag(Flag.SIDECHAIN)),
        Field("meta", "meta:yes – records the client injected", _flag(Flag.META)),
        Field("summary", "summary:yes – compaction summaries", _flag(Flag.COMPACT_SUMMARY)),
        Field("chain", "chain:yes – records on the chain to the leaf", _yes_or_no(lambda s: s.conversation.on_chain)),
        Field("tokens", "tokens:>2000 – estimated tokens of a record's content", _by_number(lambda s: s.record_tokens)),
        Field("chars", "chars:>10k – characters of a record's content", _by_number(_record_chars)),
        Field(
            "bytes",
            "bytes:>1m – length of a record in the file",
            _by_number(lambda s: s.conversation.transcript.length),
        ),
        Field("round", "round:12 or round:10-20 – API rounds", _by_number(lambda s: s.conversation.round_of)),
        Field("epoch", "epoch:2 – epochs, counted from 1", _by_number(lambda s: s.conversation.epoch_of + 1)),
        Field("line", "line:100-200 – lines of the file", _by_number(lambda s: s.conversation.transcript.line)),
        Field("model", "model:opus – part of a model's name", _by_name("model_number", "model_names")),
        Field("version", "version:2.1 – part of a client version", _by_name("version_number", "version_names")),
        Field("agent", "agent:a1b2 – part of a subagent's id", _by_name("agent_number", "agent_names")),
        Field("id", "id:… – a whole uuid, message id, request id or tool_use id", _id),
    )
}
