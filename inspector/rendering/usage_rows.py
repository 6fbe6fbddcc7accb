"""The recorded usage of a record and its response, each figure with how it came about (transcript-format.md 5)."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.accounting.figure import Method
from compaction.conversation import Conversation
from compaction.transcript import RecordKind


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One figure: `value` is already text with its unit, `method` how it came about, `source` where it stands."""

    name: str
    value: str
    method: str
    source: str


def usage_rows(conversation: Conversation, record: int) -> list[UsageRow]:
    """The figures of the response a record belongs to; empty for records that no API call made."""
    transcript = conversation.transcript
    if transcript.kind[record] != RecordKind.ASSISTANT:
        return []
    response = int(conversation.response_of[record])
    records = conversation.response_records(response) if response >= 0 else [record]
    last = records[-1]
    usage = transcript.usage(last)
    if usage is None:
        return []
    source = f"line {int(transcript.line[last]):,}, usage (last record of the response)"
    recorded = Method.RECORDED.value
    rows = [
        UsageRow("input_tokens", _tokens(usage.input_tokens), recorded, source),
        UsageRow("cache_read_input_tokens", _tokens(usage.cache_read), recorded, source),
        UsageRow("cache_creation_input_tokens", _tokens(usage.cache_creation), recorded, source),
    ]
    if usage.cache_write_5m is not None:
        rows.append(UsageRow("of it written for 5 minutes", _tokens(usage.cache_write_5m), recorded, source))
    if usage.cache_write_1h is not None:
        rows.append(UsageRow("of it written for 1 hour", _tokens(usage.cache_write_1h), recorded, source))
    output_source = f"{source}; a placeholder is possible: stop_reason is null" if usage.stop_reason_null else source
    rows.append(UsageRow("output_tokens", _tokens(usage.output_tokens), recorded, output_source))
    if usage.thinking_tokens is not None:
        rows.append(UsageRow("of it thinking", _tokens(usage.thinking_tokens), recorded, source))
    context = int(conversation.response_context[response]) if response >= 0 else 0
    if context:
        rows.append(UsageRow("context", _tokens(context), Method.COMPUTED.value, "input + cache read + cache creation"))
    if usage.web_search_requests:
        rows.append(UsageRow("web searches", f"{usage.web_search_requests:,}", recorded, source))
    if usage.web_fetch_requests:
        rows.append(UsageRow("web fetches", f"{usage.web_fetch_requests:,}", recorded, source))
    if len(usage.iterations) > 1:
        rows.append(UsageRow("server-side iterations", f"{len(usage.iterations):,}", recorded, source))
    words = (
        ("model", transcript.model(last)),
        ("service tier", usage.service_tier),
        ("speed", usage.speed),
        ("inference geography", usage.geo),
    )
    rows += [UsageRow(name, text, recorded, source) for name, text in words if text]
    if len(records) > 1:
        note = f"usage is repeated on {len(records)} records of this response and counted once"
        rows.append(UsageRow("records of the response", f"{len(records):,}", Method.COMPUTED.value, note))
    return rows


def _tokens(count: int) -> str:
    return f"{count:,} tokens"
