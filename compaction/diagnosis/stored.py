"""The request that a file stands for, before any client mends it: what the doctor's rules judge.

A client that drops an orphaned call hides the fault and loses the call; so the rules look at the same walk and the same
merging without the mending, which the client profile's flags switch off.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from compaction.conversation import Conversation
from compaction.diagnosis.view import PLAIN_API
from compaction.request import assemble
from compaction.request.chain import chain_rows
from compaction.request.entries import entry_of, parts_of
from compaction.request.leaf import choose_leaf
from compaction.request.merging import Merger
from compaction.request.profiles import ResumeProfile, generation_for
from compaction.request.regroup import regrouped
from compaction.request.rows import LoadedRows, RowTable
from compaction.request.wire import WireMessage, WireRequest
from compaction.transcript import Transcript

_OUTSIDE_PARAMS = ("model", "system", "tools", "thinking", "messages")


@dataclass(frozen=True, slots=True)
class Stored:
    """The request as stored.

    `leaf` is the record that the conversation continues from (-1: none); `message_records` has, for each message, the
    record that it was built from last (-1: none).
    """

    request: WireRequest
    leaf: int
    message_records: tuple[int, ...]


def stored_request(conversation: Conversation, client: str) -> Stored:
    """The next request as the records hold it: chain, siblings, boundary and merging as clients have them, no mending.

    A Messages-API document is its own request, `cache_control` included.

    Raises:
        UsageError: `client` is no client version (documents take any).
    """
    if conversation.transcript.format_name == PLAIN_API:
        return _document_request(conversation.transcript)
    profile = without_mending(generation_for(client))
    rows = LoadedRows(RowTable(conversation, profile, with_recovered=True))
    if profile.relinks_preserved:
        rows.relink()
    leaf = choose_leaf(rows)
    t = conversation.transcript
    slots = _slots(rows, leaf, profile)
    entries = [entry_of(t, rows.content(slot)) for slot in slots]
    if profile.regroups_responses:
        entries = regrouped(entries)
    drafts = Merger(profile, {}, sends_api_errors=False).fold(entries)
    messages = [
        WireMessage(draft.role, [part.block for part in draft.parts], [part.origin for part in draft.parts])
        for draft in drafts
    ]
    models = [draft.model for draft in drafts if draft.role == "assistant" and draft.model != "<synthetic>"]
    request = WireRequest(client=client, at=None, messages=messages, model=models[-1] if models else "")
    return Stored(request, rows.content(leaf) if leaf >= 0 else -1, tuple(draft.last for draft in drafts))


def sent_request(conversation: Conversation, client: str, model: str) -> Stored:
    """The next request that a client version sends, mending and injections included, with the records it is made of."""
    request = assemble(conversation, client, model=model)
    records = tuple(
        next((origin.record for origin in reversed(message.origins) if origin is not None), -1)
        for message in request.messages
    )
    return Stored(request, stored_request(conversation, client).leaf, records)


def _slots(rows: LoadedRows, leaf: int, profile: ResumeProfile) -> list[int]:
    """The rows of the conversation; siblings are collected on this side of the last compaction only.

    A compaction can fall between two blocks of one response. Its blocks before the boundary are summarised; a client
    that collects them by `message.id` all the same hides the orphan on this side.
    """
    if leaf < 0:
        return []
    if not profile.recovers_siblings:
        return chain_rows(rows, leaf)
    rows.profile = replace(profile, recovers_siblings=False)
    walked = set(chain_rows(rows, leaf))
    rows.hide_before(max(rows.boundaries(), default=0), walked)
    rows.profile = profile
    return chain_rows(rows, leaf)


def without_mending(profile: ResumeProfile) -> ResumeProfile:
    """The generation with every flag off that repairs, drops, clears or injects; what it collects stays as it is."""
    return replace(
        profile,
        bridges_progress=True,
        heals_gaps=0,
        keeps_trailing_descendants=False,
        answers_interrupted_calls=None,
        drops_orphaned_thinking=False,
        drops_blank_assistants=False,
        drops_blank_text=False,
        results_first=False,
        text_joint="",
        tool_use_keys=None,
        tool_use_last=False,
        tool_names={},
        tool_inputs={},
        tool_references="kept",
        foreign_thinking="kept",
        repairs_pairing=False,
        attachments={},
        silent=["*"],
        microcompact=None,
        task_notice="",
        tool_loaded="",
    )


def _document_request(t: Transcript) -> Stored:
    document = t.document
    messages = []
    for record in range(len(t)):
        message = t.message(record)
        parts = parts_of(message.get("content"), record, int(t.line[record]))
        role = message.get("role")
        messages.append(
            WireMessage(role if isinstance(role, str) else "", [p.block for p in parts], [p.origin for p in parts])
        )
    request = WireRequest(
        client=PLAIN_API,
        at=None,
        messages=messages,
        model=document["model"] if isinstance(document.get("model"), str) else "",
        system=_blocks(document.get("system")),
        tools=_tools(document),
        thinking=document["thinking"] if isinstance(document.get("thinking"), dict) else None,
        params={key: value for key, value in document.items() if key not in _OUTSIDE_PARAMS},
    )
    return Stored(request, len(t) - 1, tuple(range(len(t))))


def _blocks(value: Any) -> list[dict[str, Any]] | None:
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return [block for block in value if isinstance(block, dict)] if isinstance(value, list) else None


def _tools(document: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The tools; [] when the document says null, None when it does not say (a conversation without its request)."""
    if "tools" not in document:
        return None
    tools = document["tools"]
    return [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
