"""A summary in place of a part of the conversation: the request afterwards, and the records a client sends it from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from compaction.diagnosis.models import binds_thinking
from compaction.request.wire import Json, WireRequest
from compaction.strategies.finish import does_not_apply, make_plan, measure_after, trigger, with_notes
from compaction.strategies.joining import Joiner, has_early_attachment
from compaction.strategies.parts import Part, is_client_text
from compaction.strategies.plan import Item, Plan, StrategyInput, item_of
from compaction.strategies.prompts import SummaryKind, SummaryMessage
from compaction.strategies.records import BOUNDARY_SINCE, NO_RESPONSE, NewRecords
from compaction.strategies.restore import Restored
from compaction.strategies.rewrite import Rewrite, carries_reminders
from compaction.strategies.summariser import Summary
from compaction.strategies.thinking import THINKING_TYPES, thinking_note
from compaction.transcript.edits import Edit, InsertRecord
from compaction.transcript.kinds import RecordKind


@dataclass(frozen=True, slots=True)
class Replacement:
    """What a summary takes the place of.

    Attributes:
        kind: `full` and `up_to` summarise the parts before `border`, `from` those from it on.
        border: number of the first part that is kept (`from`: that is summarised); the part count for all.
        summary: the summary.
        message: how it is put to the model.
        restored: what comes back after the compaction (compaction.md 6).
        model_calls: calls that writing it takes when a model does.
    """

    kind: SummaryKind
    border: int
    summary: Summary
    message: SummaryMessage
    restored: tuple[Restored, ...] = ()
    model_calls: int = 1


def summarised_and_kept(given: StrategyInput, kind: SummaryKind, border: int) -> tuple[list[Part], list[Part]]:
    """The parts that a summary replaces, and those that stay."""
    parts = list(given.view.parts)
    return (parts[border:], parts[:border]) if kind == "from" else (parts[:border], parts[border:])


def has_answers(given: StrategyInput, parts: Sequence[Part]) -> bool:
    """Whether some part is a model's own answer: otherwise there is nothing to summarise."""
    return any(given.view.is_answer(part) for part in parts)


def compacted(given: StrategyInput, strategy: str, title: str, settings: Any, reason: str, what: Replacement) -> Plan:
    """The plan that puts a summary in place of a part of the conversation (compaction.md 6, order of the result)."""
    gone, kept = summarised_and_kept(given, what.kind, what.border)
    if not has_answers(given, gone):
        return does_not_apply(given, strategy, title, settings, "not enough messages to compact: no answer would go")
    stripped = _stripped_thinking(given, what, kept)
    text: Json = {"type": "text", "text": what.message.text(what.summary.text)}
    restored = [block.block for block in what.restored]
    dropped = {part.place for part in stripped}
    request, closes = _request(given, what.kind, [p for p in kept if p.place not in dropped], text, restored)
    # What a client does with the end of a conversation depends on more than its last message.
    exact = what.kind != "from" and (
        _ends_in_client_text(given, kept) or has_early_attachment(given.view, ((p.role, p.origin) for p in kept))
    )
    after_tokens, _ = measure_after(given.view, request, [text])
    records = _Records(given, what, gone, kept, stripped, text, closes, after_tokens)
    plan = make_plan(
        given,
        strategy,
        title,
        settings,
        reason,
        request,
        summaries=[text],
        exact=exact,
        make_edits=records.edits,
        removed=tuple(item_of(part, "summarised") for part in gone)
        + tuple(item_of(part, "thinking bound to the old prefix") for part in stripped),
        inserted=_inserted(given, text, what),
        model_calls=what.model_calls,
        duration_ms=90_000 if what.model_calls else 5,
        summary=what.summary.text,
        summary_usage=what.summary.usage,
    )
    if not plan.applies:
        return plan
    notes = [f"the summary was {what.summary.label}"]
    if stripped:
        notes.append(thinking_note(len(stripped), given.wire.model))
    return with_notes(plan, notes)


def _ends_in_client_text(given: StrategyInput, kept: Sequence[Part]) -> bool:
    """Whether the last message kept is the user's and holds a command's output or reminders."""
    last = next((part for part in reversed(kept) if part.origin is not None), None)
    if last is None or last.role != "user":
        return False
    parts = given.view.parts_of_messages(last.place[0], last.place[0] + 1)
    return carries_reminders(given.view, parts) or any(is_client_text(part.text) for part in parts)


def _stripped_thinking(given: StrategyInput, what: Replacement, kept: Sequence[Part]) -> list[Part]:
    """Thinking of a kept tail whose signatures would not fit the new prefix (api.md 2.4 shape b)."""
    if what.kind == "from" or not binds_thinking(given.wire.model):
        return []
    return [part for part in kept if part.type in THINKING_TYPES]


def _inserted(given: StrategyInput, text: Json, what: Replacement) -> tuple[Item, ...]:
    tokens = given.view.tokens_of_new(text)
    summary = Item(-1, 0, "summary", f"summary, {what.summary.label}", tokens_after=tokens)
    return (summary, *(r.item(given.view.tokens_of_new(r.block)) for r in what.restored))


def _request(
    given: StrategyInput, kind: SummaryKind, kept: Sequence[Part], text: Json, restored: Sequence[Json]
) -> tuple[WireRequest, bool]:
    """The request afterwards, and whether a synthetic answer closes it (as a resuming client would by itself)."""
    joiner = Joiner(given.view)
    if kind != "from":
        joiner.add("user", [text], [None], joins=False, new=True)
    ends_anew = kind == "from" or bool(restored) or not any(part.origin is not None for part in kept)
    pieces = list(kept)
    while ends_anew and pieces and pieces[-1].origin is None and pieces[-1].role == "assistant":
        pieces.pop()  # the closing answer that the client put behind the old end
    message = -1
    for part in pieces:
        if part.place[0] == message:
            joiner.extend([part.value], [part.origin])
        else:
            first = message == -1
            joiner.add(part.role, [part.value], [part.origin], joins=first and kind != "from")
            message = part.place[0]
    if kind == "from":
        joiner.add("user", [text], [None], joins=True, new=True)
    joiner.add("user", restored, [None] * len(restored), joins=True, new=True)
    closes = ends_anew and given.conversation.transcript.format_name != "messages-api"
    if closes:
        joiner.add("assistant", [{"type": "text", "text": NO_RESPONSE}], [None], joins=False)
    return replace(given.wire, messages=joiner.finished(), verified="profile"), closes


class _Records:
    """The edits of one compaction."""

    def __init__(
        self,
        given: StrategyInput,
        what: Replacement,
        gone: Sequence[Part],
        kept: Sequence[Part],
        stripped: Sequence[Part],
        text: Json,
        closes: bool,
        tokens_after: int,
    ) -> None:
        self.given, self.what = given, what
        self.gone, self.kept, self.stripped = gone, kept, stripped
        self.text, self.closes, self.tokens_after = text, closes, tokens_after
        self.conversation = given.conversation
        self.transcript = given.conversation.transcript
        self.new = NewRecords(given.conversation, f"{what.kind} {what.border} {len(text['text'])}")

    def edits(self) -> tuple[Edit, ...]:
        """Boundary and summary before what is kept, what is restored at the end, nothing else changed."""
        if self.new.plain:
            return self._plain_edits()
        rewrite = Rewrite(self.given.view, self.new)
        rewrite.remove(self.stripped)
        last = len(self.transcript) - 1
        if self.what.kind == "from":
            head, edits = self._from_summary(last)
        elif not any(part.origin is not None for part in self.kept):
            head, edits = self._summary(last, self._logical_parent(), max(self.new.newest_ms + 1, self._now))
        else:
            first = min(self._kept_records())
            stamps = [s for r in self._kept_records() if (s := int(self.transcript.timestamp_ms[r]))]
            # Older clients take the newest record for the leaf: the summary must be older than all that follows it.
            stamp = max(0, min(stamps, default=1) - 1)
            head, edits = self._summary(first - 1, self._parent_uuid(first), stamp)
            # An attachment is sent ahead of the prompt it stands behind, so it can be summarised with what is before.
            rewrite.remove(part for part in self.gone if part.origin is not None and part.origin.record >= first)
            for record in self._tail_heads(first):
                rewrite.reparent(record, head)
            head = self.transcript.uuid(self._leaf())
        return (*edits, *rewrite.edits(), *self._ending(last, head))

    @property
    def _now(self) -> int:
        return self.given.now_ms

    def _leaf(self) -> int:
        return max((p.origin.record for p in self.kept if p.origin is not None), default=self.conversation.leaf)

    def _logical_parent(self) -> str:
        leaf = self.conversation.leaf
        return self.transcript.uuid(leaf) if leaf >= 0 else ""

    def _parent_uuid(self, record: int) -> str:
        return self.transcript.parent_uuid(record)

    def _summary(self, after: int, logical_parent: str, stamp: int) -> tuple[str, list[Edit]]:
        """Boundary (where the version writes one) and summary behind record `after`; the summary's uuid."""
        edits: list[Edit] = []
        parent: str | None = None
        if self.new.version >= BOUNDARY_SINCE:
            details = self.new.metadata(trigger(self.given), self.given.view.tokens, self.tokens_after)
            parent, line = self.new.boundary(logical_parent, details, stamp)
            edits.append(InsertRecord(after, line))
        relinked = None
        if after + 1 < len(self.transcript):
            tail = self.transcript.uuid(self._leaf())
            relinked = {
                "headUuid": self.transcript.uuid(after + 1),
                "tailUuid": tail,
                "contextTokens": self.tokens_after,
            }
        name, line = self.new.user(parent, str(self.text["text"]), stamp, summary=True, relinked=relinked)
        return name, [*edits, InsertRecord(after, line)]

    def _from_summary(self, last: int) -> tuple[str, list[Edit]]:
        """The summary as a new branch that leaves the conversation where the summarised part began."""
        first = self._first_piece(next(part.origin.record for part in self.gone if part.origin is not None))
        parent = self.transcript.parent_uuid(first)
        if int(self.conversation.parent[first]) < 0:
            parent = self.transcript.uuid(self._leaf()) if self.kept else ""
        stamp = max(self.new.newest_ms + 1, self._now)
        name, line = self.new.user(parent or None, str(self.text["text"]), stamp, summary=True)
        return name, [InsertRecord(last, line)]

    def _kept_records(self) -> set[int]:
        """The records of the kept blocks, with pieces of their responses that the request did not send."""
        found: set[int] = set()
        for part in self.kept:
            if part.origin is None:
                continue
            found.add(part.origin.record)
            response = int(self.conversation.response_of[part.origin.record])
            if response >= 0:
                found.update(self.conversation.response_records(response))
        return found

    def _first_piece(self, record: int) -> int:
        """The first record on the chain of the response that `record` belongs to (itself when it is of none).

        A piece that the request did not send (another model's thinking) would bring the response back.
        """
        response = int(self.conversation.response_of[record])
        above = record
        for _ in range(len(self.transcript)):
            above = int(self.conversation.parent[above])
            if response < 0 or above < 0:
                return record
            if int(self.conversation.response_of[above]) == response:
                record = above
            elif self.transcript.kind[above] in (RecordKind.USER, RecordKind.ASSISTANT):
                return record
        return record

    def _tail_heads(self, first: int) -> list[int]:
        """The kept records whose parents are summarised: they hang on the summary from now on."""
        parent = self.conversation.parent
        heads: list[int] = []
        seen: set[int] = set()
        for record in sorted(self._kept_records()):
            while record >= 0 and record not in seen:
                seen.add(record)
                above = int(parent[record])
                if above < first:
                    heads.append(record)
                    break
                record = above
        return heads

    def _ending(self, last: int, head: str) -> list[Edit]:
        """What comes behind everything: restored context, the closing answer, the new leaf."""
        edits: list[Edit] = []
        stamp = max(self.new.newest_ms + 2, self._now + 1)
        if self.what.restored:
            blocks = [r.block for r in self.what.restored]
            head, line = self.new.user(head, blocks, stamp, meta=True)
            edits.append(InsertRecord(last, line))
        if self.closes:
            head, line = self.new.no_response(head, stamp + 1)
            edits.append(InsertRecord(last, line))
            named = self.new.last_prompt(head)
            edits += [InsertRecord(last, named)] if named is not None else []
        return edits

    def _plain_edits(self) -> tuple[Edit, ...]:
        """The same in a Messages-API document: messages out, the summary and what is restored in."""
        rewrite = Rewrite(self.given.view, self.new)
        rewrite.remove([*self.gone, *self.stripped])
        _, summary = self.new.user(None, str(self.text["text"]), 0)
        first = self.gone[0].origin.record if self.gone[0].origin is not None else 0
        edits: list[Edit] = [InsertRecord(first - 1, summary)]
        if self.what.restored:
            _, line = self.new.user(None, [r.block for r in self.what.restored], 0)
            edits.append(InsertRecord(len(self.transcript) - 1, line))
        return (*edits, *rewrite.edits())
