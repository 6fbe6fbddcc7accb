"""Why a finding came about, as far as the file shows it, and what each client generation does with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compaction.diagnosis.case import Block, Case
from compaction.diagnosis.model import Finding, Violation
from compaction.request.profiles import generation_for, version_key
from compaction.transcript import BlockType, Flag, RecordKind, key_of

_SENT = "sent as it is: the API refuses the request"
_CLIENTS: dict[str, tuple[str, str, str]] = {
    "tool_use_without_result": ("drops the call, keeps its text",) * 2 + ("drops the call, keeps its text",),
    "result_without_tool_use": (_SENT, _SENT, "replaces it by “(no content)”, or leaves it out beside other text"),
    "result_not_adjacent": (_SENT, "puts results first in the merged message", "moves the result behind its call"),
    "result_not_first": (_SENT, "puts results first in the merged message", "puts results first"),
    "duplicate_tool_result": (_SENT, _SENT, "sends the first result only"),
    "duplicate_tool_use_id": (_SENT, _SENT, "sends the first call of an id only"),
    "empty_text_block": (_SENT, _SENT, "leaves blank text out"),
    "whitespace_text_block": (_SENT, _SENT, "leaves blank text out"),
    "empty_message": (_SENT, _SENT, "leaves the message out"),
    "server_use_without_result": (_SENT, _SENT, "leaves the server call out"),
    "server_result_without_use": (_SENT, _SENT, _SENT),
    "lone_surrogate": (_SENT, _SENT, "replaces it when the file is loaded (from 2.1.132 on)"),
}
"""Finding code → what 1.0.128, 2.0.76 and 2.1.332 do (clients.md, measured with the real clients)."""
_VERSIONS = ("1.0.128", "2.0.76", "2.1.332")


def clients_with(code: str) -> dict[str, str]:
    """What each measured generation does with a finding of this code; {} when it was not measured."""
    return dict(zip(_VERSIONS, _CLIENTS.get(code, ()), strict=False))


@dataclass(frozen=True, slots=True)
class Refusal:
    """With which clients the API refuses the request that a finding is about.

    Attributes:
        refused: the measured versions that send it as it is.
        own: what the chosen client does with it; `own_refused`: it sends it as it is.
    """

    refused: tuple[str, ...]
    own: str
    own_refused: bool


def refusal_with(finding: Finding, client: str) -> Refusal | None:
    """Whether a finding's API error is what `client` gets; None when it was not measured or the API says nothing."""
    if not finding.api_error or not finding.clients or not client:
        return None
    generation = generation_for(client)
    if generation.version not in finding.clients:
        return None
    own = finding.clients[generation.version]
    healed_from = generation.heals_surrogates_from
    if finding.code == "lone_surrogate" and healed_from and version_key(client) < version_key(healed_from):
        own = _SENT
    refused = tuple(version for version, does in finding.clients.items() if does == _SENT)
    return Refusal(refused, own, own == _SENT)


def explained(case: Case, violation: Violation) -> tuple[str, dict[str, Any]]:
    """One sentence on the cause ("" when the file does not show it), and facts about the missing half."""
    if case.is_document or not violation.ids:
        return "", {}
    if violation.rule == "R01":
        return _lost_result(case, violation)
    if violation.rule == "R02":
        return _lost_call(case, violation.ids[0])
    if violation.rule in ("R03", "R04"):
        return _what_stands_between(case, violation), {}
    return "", {}


def _lost_result(case: Case, violation: Violation) -> tuple[str, dict[str, Any]]:
    t = case.transcript
    beside = [
        int(t.block_record[b])
        for identity in violation.ids
        for b in case.blocks_with_key(key_of(identity))
        if t.block_type[b] == BlockType.TOOL_RESULT
    ]
    facts: dict[str, Any] = {"result_lines": [case.line(r) for r in beside]}
    if beside:
        return f"The result is on line {case.line(beside[0]):,}, beside the current conversation.", facts
    if any(case.answers.answer(identity) for identity in violation.ids):
        return "The answer is in the file of the sub-agent that the call started.", facts
    records = [r for place in violation.places if (r := case.record_of(place)) is not None]
    after = _next_spoken(case, max(records, default=-1))
    if after is None:
        return "No record of the file answers it.", facts
    text = t.preview(after, 300)
    line = case.line(after)
    if "[Request interrupted" in text:
        return f"The request was interrupted (line {line:,}) before the result was written.", facts
    if t.flags[after] & Flag.API_ERROR:
        return f"The client reported an error (line {line:,}) before the result was written.", facts
    if t.flags[after] & Flag.COMPACT_SUMMARY:
        return f"A compaction (line {line:,}) came between the call and its result.", facts
    before = records[-1]
    if t.session(after) != t.session(before) or t.version(after) != t.version(before):
        return f"The session ended after the call and was resumed on line {line:,}.", facts
    return f"No record of the file answers it; the conversation goes on at line {line:,}.", facts


def _next_spoken(case: Case, record: int) -> int | None:
    """The next user or assistant record on the chain that is no tool result."""
    position = case.chain_position.get(record)
    if position is None:
        return None
    t = case.transcript
    for later in case.chain[position + 1 :]:
        if case.speaks[later] and not t.flags[later] & Flag.TOOL_RESULT:
            return later
    return None


def _lost_call(case: Case, identity: str) -> tuple[str, dict[str, Any]]:
    t = case.transcript
    calls = [
        int(t.block_record[b]) for b in case.blocks_with_key(key_of(identity)) if t.block_type[b] == BlockType.TOOL_USE
    ]
    facts: dict[str, Any] = {
        "call_exists_before_boundary": any(r < case.window_start for r in calls),
        "call_lines": [case.line(r) for r in calls],
    }
    if not calls:
        return "The call is nowhere in the file: its record was removed or never written.", facts
    line = case.line(calls[-1])
    if facts["call_exists_before_boundary"]:
        boundary = case.line(case.window_start)
        return f"The compaction on line {boundary:,} cut the call (line {line:,}) off from its result.", facts
    places: list[Block] = case.places_with_id(identity)
    if any(p in case.place_of for p in places if p[0] in calls):
        return f"The call (line {line:,}) is answered by another result already.", facts
    return f"The call (line {line:,}) lies beside the current conversation.", facts


def _what_stands_between(case: Case, violation: Violation) -> str:
    """The first record between the call and its result that is neither."""
    records = sorted({r for place in violation.places if (r := case.record_of(place)) is not None})
    t = case.transcript
    for record in case.chain:
        if len(records) > 1 and records[0] < record < records[-1] and record not in records and case.speaks[record]:
            kind = "A summary" if t.flags[record] & Flag.COMPACT_SUMMARY else "A message"
            if t.kind[record] == RecordKind.USER:
                return f"{kind} (line {case.line(record):,}) was stored between the call and its result."
    return ""
