"""Faults of the parent chain (transcript-format.md §6, api-rules.md G8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compaction.conversation import DANGLING, ROOT
from compaction.diagnosis.bridging import Bridge, bridge_candidates
from compaction.diagnosis.case import Case
from compaction.diagnosis.model import Finding, Repair, Severity
from compaction.transcript import BlockType, Flag, RecordKind

BRIDGE = "bridge"
MAKE_ROOT = "make_root"
ENDLESS = ("self_parent", "parent_cycle")
"""Breaks that make a walk along the parents endless."""


def bridge_name(number: int) -> str:
    """The name of the repair that takes the candidate of rank `number` (0-based)."""
    return BRIDGE if number == 0 else f"{BRIDGE}_{number + 1}"


def _bridges(case: Case, candidates: list[Bridge]) -> tuple[Repair, ...]:
    t = case.transcript
    if not candidates:
        return (
            Repair(MAKE_ROOT, "Let the record begin the conversation", default=True, reason="nothing is before it"),
        )
    return tuple(
        Repair(
            bridge_name(number),
            f"Set parentUuid to {t.uuid(c.record)} (line {case.line(c.record):,}, {t.type_name(c.record)})",
            default=number == 0,
            reason=c.reason,
        )
        for number, c in enumerate(candidates)
    )


def _restored(case: Case, candidates: list[Bridge], reached: set[int]) -> list[int]:
    """The records of the current window that hanging on the first candidate brings back, root first."""
    path = case.conversation.chain(candidates[0].record) if candidates else []
    start = max((n for n, record in enumerate(path) if case.is_boundary(record)), default=0)
    return [r for r in path[start:] if r not in reached]


def _breaks(case: Case) -> dict[int, list[int]]:
    """The breaks of the current conversation, the latest first, each with what bridging it brings back.

    Behind one break there may be another, so each is bridged in thought and the walk goes on, up to the last
    compaction. Worked out once a case.
    """
    memo = case.view.memo
    if "breaks" not in memo:
        found: dict[int, list[int]] = {}
        reached = set(case.chain)
        top = case.chain[0] if case.chain else -1
        while top >= case.window_start and top not in found and case.conversation.parent[top] == DANGLING:
            found[top] = _restored(case, bridge_candidates(case.conversation, top), reached)
            reached.update(found[top])
            if not found[top]:
                break
            top = found[top][0]
        memo["breaks"] = found
    breaks: dict[int, list[int]] = memo["breaks"]
    return breaks


def _break(case: Case, code: str, record: int, what: str) -> Finding:
    """The finding of a record that lost the way to what came before it."""
    t = case.transcript
    breaks = _breaks(case)
    on_chain = record in breaks or (case.on_chain(record) and record >= case.window_start)
    candidates = bridge_candidates(case.conversation, record) if on_chain else []
    back = breaks[record] if record in breaks else _restored(case, candidates, set(case.chain))
    lost = [r for r in back if case.speaks[r] or case.is_boundary(r)]
    endless = code in ENDLESS and on_chain
    harmful = endless or any(case.speaks[r] for r in lost)
    severity: Severity = "error" if harmful else "info"
    reached = [r for r in case.chain if not case.is_boundary(r)]
    details = {
        "record": t.uuid(record),
        "parent": t.parent_uuid(record),
        "unreachable_before": [t.uuid(r) for r in lost],
        "reachable": len(reached),
        "main_records": int(case.conversation.main.sum()),
        "islands": [_island(case, island) for island in (lost, case.chain) if island],
        "candidates": [{"uuid": t.uuid(c.record), "line": case.line(c.record), "reason": c.reason} for c in candidates],
    }
    if lost and harmful:
        text = (
            f"{what} What came before is lost to the model: {len(lost)} records, "
            f"lines {case.line(lost[0])} to {case.line(lost[-1])}."
        )
    elif endless:
        text = f"{what} A client that follows it does not come to an end."
    else:
        text = f"{what} Nothing of the current conversation is lost by it."
    return Finding(
        code=code,
        rule="",
        severity=severity,
        message=text,
        lines=(case.line(record),),
        records=(record,),
        path="parentUuid",
        repairs=_bridges(case, candidates) if harmful else (),
        why="The parent was never written to this file, or its line is gone." if code == "dangling_parent" else "",
        clients=_break_clients() if harmful else {},
        details=details,
    )


def _island(case: Case, records: list[int]) -> dict[str, object]:
    t = case.transcript
    times = [int(t.timestamp_ms[r]) for r in records if t.timestamp_ms[r]]
    return {
        "first_line": case.line(records[0]),
        "last_line": case.line(records[-1]),
        "records": len(records),
        "from_ms": min(times, default=0),
        "to_ms": max(times, default=0),
    }


def _break_clients() -> dict[str, str]:
    lost = "everything before the gap is lost silently"
    return {"1.0.128": lost, "2.0.76": lost, "2.1.332": "recovers it by file order when the records are close in time"}


def dangling_parents(case: Case) -> Iterator[Finding]:
    """A record's parent is not in the file. An error when the current conversation is cut off by it."""
    t = case.transcript
    for record in case.conversation.dangling:
        if not case.conversation.main[record] or t.uuid_key[record] == t.parent_key[record]:
            continue
        parent = t.parent_uuid(record)
        yield _break(case, "dangling_parent", record, f"The parent {parent} is not in the file.")


def self_parents(case: Case) -> Iterator[Finding]:
    """A record names itself as its parent (client versions before 2.1.108)."""
    t = case.transcript
    for record in case.conversation.dangling:
        if t.uuid_key[record] == t.parent_key[record] and case.conversation.main[record]:
            yield _break(case, "self_parent", record, "The record is its own parent.")


def parent_cycles(case: Case) -> Iterator[Finding]:
    """The parents of the current conversation run in a circle (client versions before 2.1.30)."""
    if not case.chain:
        return
    top = case.chain[0]
    if case.conversation.parent[top] < 0:
        return
    cycle = _cycle(case, top)
    first = min(cycle)
    yield _break(case, "parent_cycle", first, f"The parents of {len(cycle)} records run in a circle.")


def _cycle(case: Case, start: int) -> list[int]:
    seen: list[int] = []
    record = start
    while record not in seen:
        seen.append(record)
        record = int(case.conversation.parent[record])
    return seen[seen.index(record) :]


def enters_sidechain(case: Case) -> Iterator[Finding]:
    """A record of the main conversation hangs on a sub-agent's record (client versions before 2.1.101)."""
    conversation = case.conversation
    for record in case.chain:
        parent = int(conversation.parent[record])
        if parent >= 0 and conversation.main[record] and conversation.thread[parent] > 0:
            yield _break(
                case,
                "chain_enters_sidechain",
                record,
                f"The parent (line {case.line(parent):,}) belongs to a sub-agent's sidechain.",
            )


def root_inside(case: Case) -> Iterator[Finding]:
    """A reply or a tool result without a parent, though a conversation stands before it: only prompts begin one."""
    if not case.chain:
        return
    top = case.chain[0]
    t = case.transcript
    result = bool(t.flags[top] & Flag.TOOL_RESULT)
    if case.conversation.parent[top] != ROOT or not (t.kind[top] == RecordKind.ASSISTANT or result):
        return
    if case.conversation.main[top] and case.speaks[:top].any():
        yield _break(
            case, "root_inside_conversation", top, "The record has no parent, though it cannot be a beginning."
        )


def _off_chain_of(case: Case, response: int) -> tuple[list[int], list[int]]:
    """Blocks of a response and results of its calls that lie beside the chain, by file position."""
    conversation, t = case.conversation, case.transcript
    records = [r for r in conversation.response_records(response) if conversation.main[r] and r >= case.window_start]
    results = [
        int(t.block_record[conversation.pair[block]])
        for record in records
        for block in t.blocks_of(record)
        if t.block_type[block] == BlockType.TOOL_USE
        and conversation.pair[block] >= 0
        and int(t.block_key[block]) not in case.answered_on_chain
    ]
    blocks = [r for r in records if not case.on_chain(r)]
    beside = [r for r in results if r >= case.window_start and not case.on_chain(r) and conversation.main[r]]
    return blocks, sorted(case.once(beside))


def _beside_message(count: int, collected: bool) -> str:
    which = "1 result of a parallel call lies" if count == 1 else f"{count} results of parallel calls lie"
    them = "it" if count == 1 else "them"
    end = f"the client collects {them} by id." if collected else f"this client does not collect {them}."
    return f"{which} beside the parent chain; {end}"


def sibling_results(case: Case) -> Iterator[Finding]:
    """Parallel results beside the parent chain: the normal layout, which clients before 2.1.80 do not collect."""
    conversation, t = case.conversation, case.transcript
    severity: Severity = "info" if case.collects_siblings else "error"
    responses = dict.fromkeys(
        int(conversation.response_of[r])
        for r in case.chain
        if conversation.response_of[r] >= 0 and r >= case.window_start
    )
    for response in responses:
        blocks, results = _off_chain_of(case, response)
        if not results or not _lies_beside(case, response, results):
            continue
        first = conversation.response_records(response)[0]
        yield Finding(
            code="sibling_results_off_chain",
            rule="",
            severity=severity,
            message=_beside_message(len(results), case.collects_siblings),
            lines=tuple(case.line(r) for r in results),
            records=tuple(results),
            ids=tuple(_answered(case, results)),
            repairs=(
                Repair(
                    "rechain",
                    "Put the results into the chain, one behind the other",
                    default=not case.collects_siblings,
                    reason="older clients follow parents only; nothing is added or removed",
                ),
            ),
            why="Each result was written below its own call, and the next record below one of them.",
            clients={
                "1.0.128": "drops the calls whose results lie beside the chain",
                "2.0.76": "drops the calls whose results lie beside the chain",
                "2.1.332": "collects them by id",
            },
            details={
                "uuids": [t.uuid(r) for r in results],
                "message_id": t.message_id(first),
                "blocks_off_chain": [t.uuid(r) for r in blocks],
            },
        )


def _lies_beside(case: Case, response: int, results: list[int]) -> bool:
    """Whether the response goes on in the chain (else the results are a branch the person left)."""
    first = case.conversation.response_records(response)[0]
    # From the end, where the answer nearly always is: the whole chain is walked only when nothing follows.
    for record in reversed(case.chain):
        if record > first and case.speaks[record] and case.conversation.response_of[record] != response:
            if record not in results:
                return True
        elif record <= first:
            return False
    return False


def _answered(case: Case, results: Iterable[int]) -> Iterator[str]:
    t = case.transcript
    for record in results:
        for block in t.blocks_of(record):
            if t.block_type[block] == BlockType.TOOL_RESULT:
                yield str(t.block(block).get("tool_use_id", ""))


def through_progress(case: Case) -> Iterator[Finding]:
    """The chain runs through progress records: links for newer clients, the end of the walk for those before 2.1.10."""
    if case.profile.bridges_progress:
        return
    conversation, t = case.conversation, case.transcript
    found = [
        record
        for record in case.chain
        if t.kind[record] != RecordKind.PROGRESS
        and record > case.window_start
        and conversation.parent[record] >= 0
        and t.kind[conversation.parent[record]] == RecordKind.PROGRESS
        and _before_progress(case, record) >= 0
    ]
    if found:
        yield Finding(
            code="chain_through_progress",
            rule="",
            severity="error",
            message=f"{len(found)} records of the conversation hang on progress records, which this client does not "
            "follow: everything before the last of them is lost.",
            lines=tuple(case.line(r) for r in found),
            records=tuple(found),
            path="parentUuid",
            why="The file was written by 2.1.12 to 2.1.81, which put progress records into the chain.",
            clients={
                "1.0.128": "everything before is lost silently",
                "2.0.76": "everything before is lost silently",
                "2.1.332": "follows the progress record's own parent",
            },
        )


def _before_progress(case: Case, record: int) -> int:
    """The nearest ancestor that is no progress record; below 0 when there is none (a progress root loses nothing)."""
    parent, kind = case.conversation.parent, case.transcript.kind
    above = int(parent[record])
    for _ in range(len(kind)):
        if above < 0 or kind[above] != RecordKind.PROGRESS:
            break
        above = int(parent[above])
    return above


def missing_leaf(case: Case) -> Iterator[Finding]:
    """The file's own mark of where the conversation stands (`last-prompt.leafUuid`) names no record of it."""
    t = case.transcript
    if t.leaf_key and not (t.uuid_key == t.leaf_key).any() and case.conversation.leaf >= 0:
        record = int(t.leaf_record)
        yield Finding(
            code="leaf_not_found",
            rule="",
            severity="info",
            message="The marked end of the conversation is not in the file; the last message is taken.",
            lines=(case.line(record),),
            records=(record,),
            path="leafUuid",
        )
