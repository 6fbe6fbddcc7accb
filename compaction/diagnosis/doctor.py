"""The doctor: every rule on the request as stored and on the records, as findings with places, causes and repairs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from compaction.conversation import Conversation, Session
from compaction.diagnosis.case import Case, open_case
from compaction.diagnosis.explain import clients_with, explained
from compaction.diagnosis.model import Finding, Report, Violation
from compaction.diagnosis.records import RECORD_RULES
from compaction.diagnosis.repair.registry import repairs_for
from compaction.diagnosis.requests import REQUEST_RULES
from compaction.diagnosis.subagents import SubagentAnswers
from compaction.progress import Progress
from compaction.request import default_client

_NOT_FOR_SESSIONS = ("R17", "R36", "R37")
"""Rules that say nothing about a session: its client merges neighbours as its everyday work, and its tokens are
recorded, which the context view shows, while a document has only an estimate."""
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}|\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_RANK = {"error": 0, "warning": 1, "info": 2}


def diagnose(session: Session | Conversation, client: str = "", progress: Progress | None = None) -> Report:
    """Everything that is wrong with a session, for one client version (default: the newest recorded in the file).

    Raises:
        UsageError: `client` is no version.
        Cancelled: through `progress`.
    """
    conversation = session.conversation if isinstance(session, Session) else session
    client = client or default_client(conversation)
    answers = SubagentAnswers(session if isinstance(session, Session) else Session(session))
    return Report(client, findings_of(open_case(conversation, client, answers), progress))


def findings_of(case: Case, progress: Progress | None = None) -> tuple[Finding, ...]:
    """The findings of an opened case: errors first, then by line, then by place in the request."""
    found = list(_of_records(case, progress))
    beside = {i for f in found if f.code == "sibling_results_off_chain" for i in f.ids}
    found += _of_request(case, progress, beside)
    ordered = sorted(found, key=lambda f: (_RANK[f.severity], f.lines[:1] or (0,), f.code))
    return tuple(f if f.repairs else replace(f, repairs=repairs_for(case, f)) for f in ordered)


def _of_records(case: Case, progress: Progress | None) -> Iterator[Finding]:
    if case.is_document:
        return
    for rule in RECORD_RULES:
        if progress is not None:
            progress.check()
            progress.text = rule.title
        yield from rule.check(case)


def _of_request(case: Case, progress: Progress | None, beside: set[str]) -> Iterator[Finding]:
    """The findings of the request; `beside`: calls whose result lies beside the chain, which is a finding already."""
    for rule in REQUEST_RULES:
        if rule.rule in _NOT_FOR_SESSIONS and not case.is_document:
            continue
        if progress is not None:
            progress.check()
            progress.text = rule.title
        for violation in rule.check(case.view):
            told = rule.rule == "R01" and set(violation.ids) <= beside
            if not told and _matters(case, violation):
                yield finding_of(case, violation)


def _matters(case: Case, violation: Violation) -> bool:
    """Whether a violation of the stored request is one for this client."""
    if violation.code == "lone_surrogate" and not _has_surrogate_escape(case, violation):
        return False  # bytes that are no UTF-8 look the same when they are decoded; the damage rule names them
    if case.is_document:
        return True
    if violation.rule == "R04":
        # Newer clients put results first when they merge user records; older ones do not send preserved messages.
        records = [r for place in violation.places if (r := case.record_of(place)) is not None]
        return not case.profile.results_first and min(records, default=0) >= case.window_start
    return True


def _has_surrogate_escape(case: Case, violation: Violation) -> bool:
    records = {r for place in violation.places if (r := case.record_of(place)) is not None}
    return any(_SURROGATE_ESCAPE.search(case.transcript.record_bytes(r)) for r in records)


def finding_of(case: Case, violation: Violation) -> Finding:
    """A violation of the request as a finding on the records."""
    blocks = tuple(b for place in violation.places if (b := case.origin_of(place)) is not None)
    records = sorted({r for place in violation.places if (r := case.record_of(place)) is not None})
    if violation.rule in ("R01", "R03", "R04"):
        records = _records_of_calls(case, violation) or records
    why, facts = explained(case, violation)
    return Finding(
        code=violation.code,
        rule=violation.rule,
        severity=violation.severity,
        message=violation.message,
        api_error=violation.api_error,
        wire=violation.path,
        lines=tuple(dict.fromkeys(case.line(r) for r in records)),
        ids=violation.ids,
        records=tuple(records),
        blocks=blocks,
        path=_record_path(case, violation, blocks),
        why=why,
        clients={} if case.is_document else clients_with(violation.code),
        details={**violation.details, **facts},
    )


def _records_of_calls(case: Case, violation: Violation) -> list[int]:
    """The records of the calls among a violation's places: the lines that the API's sentence is about."""
    messages = case.view.request.messages
    calls = [p for p in violation.places if p[1] >= 0 and messages[p[0]].content[p[1]].get("type") == "tool_use"]
    return sorted({r for place in calls if (r := case.record_of(place)) is not None})


def _record_path(case: Case, violation: Violation, blocks: tuple[tuple[int, int], ...]) -> str:
    """The field inside the record when the violation is about one block, else ""."""
    if len(blocks) != 1:
        return ""
    record, block = blocks[0]
    parts = [*case.transcript.format.message_path, "content"]
    path = ".".join(parts)
    field = violation.details.get("field")
    inner = list(field) if isinstance(field, list) else []
    if isinstance(case.transcript.message(record).get("content"), str):
        return path
    return f"{path}[{block}]" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in inner)
