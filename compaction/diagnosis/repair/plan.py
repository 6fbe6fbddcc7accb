"""The repair: rounds of changes until no error is left, every record's change with its reason, proven by the rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from compaction.conversation import Conversation, Session, build_conversation
from compaction.diagnosis.case import Case, open_case, open_sent_case
from compaction.diagnosis.doctor import finding_of, findings_of
from compaction.diagnosis.model import Finding, Repair
from compaction.diagnosis.repair.binding import bound_thinking
from compaction.diagnosis.repair.changes import RecordChange, record_changes
from compaction.diagnosis.repair.draft import Draft
from compaction.diagnosis.repair.editor import Editor, PostponedError
from compaction.diagnosis.repair.fixes.records import FIXES as RECORD_FIXES
from compaction.diagnosis.repair.registry import fix_named, repairs_for
from compaction.diagnosis.requests import check_request
from compaction.diagnosis.subagents import SubagentAnswers
from compaction.errors import UsageError
from compaction.progress import Progress
from compaction.request import default_client, generations
from compaction.transcript import Transcript
from compaction.transcript.edits import Edit, apply_edits

__all__ = ["NO_REPAIR", "Chosen", "RecordChange", "RepairPlan", "plan_repair"]

MAXIMUM_ROUNDS = 24
"""Rounds of changes before a repair that never becomes stable is given up. Real files need two or three: the second
sees what the first uncovered (api-rules.md, general fact 5)."""

_SIBLINGS = "sibling_results_off_chain"
_PAIRING = ("R01", "R02", "R03", "R04", "R05", "R08", "R11", "R12", "R13")
"""Rules that a client which mends nothing breaks with a session that its successor can send."""
_STRUCTURE = ("R01", "R02", "R03", "R04")
_MOST_TRIES = 6
Attempt = tuple[str, tuple[str, ...], str, str]
"""Finding code, tool ids, place, repair."""
NO_REPAIR = "none"
"""The choice that leaves a finding as it is."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A repair that was made: the finding and the way that was taken."""

    finding: Finding
    repair: str


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """A repair before it is written: the changes, their proof, and what remains.

    Attributes:
        original: the transcript it starts from; never changed.
        client: the client version that the findings are for.
        edits, keep_damage: what `apply_edits` takes.
        changes: one entry for each record that changes, by file position.
        made: the repairs that were made, in order.
        findings_before, findings_after: judged on the original and on the result.
        risks: what the repair cannot promise (G13), one sentence each.
        rounds: rounds of changes until it was stable.
    """

    original: Transcript
    client: str
    edits: tuple[Edit, ...]
    keep_damage: bool
    changes: tuple[RecordChange, ...]
    made: tuple[Chosen, ...]
    findings_before: tuple[Finding, ...]
    findings_after: tuple[Finding, ...]
    risks: tuple[str, ...]
    rounds: int
    result: Transcript = field(repr=False)

    @property
    def changes_anything(self) -> bool:
        """Whether a file would be written at all."""
        return bool(self.edits) or not self.keep_damage

    def chunks(self) -> Iterator[bytes]:
        """The whole new file; untouched records come out byte-identical."""
        return apply_edits(self.original, self.edits, keep_damage=self.keep_damage)

    def counts(self) -> dict[str, int]:
        """Records unchanged, changed, added, removed, for the command line."""
        by_action = {name: sum(c.action == name for c in self.changes) for name in ("replace", "insert", "remove")}
        return {
            "unchanged_lines": len(self.original)
            - by_action["replace"]
            - by_action["remove"]
            - sum(c.action == "leave_out" for c in self.changes),
            "changed_lines": by_action["replace"],
            "added_lines": by_action["insert"],
            "removed_lines": by_action["remove"] + sum(c.action == "leave_out" for c in self.changes),
        }


def plan_repair(
    session: Session | Conversation,
    client: str = "",
    choices: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> RepairPlan:
    """Mend a session as far as its file allows: nothing is written, the plan holds the proof.

    Args:
        client: the client version to judge for; default the newest recorded in the file.
        choices: finding (its code, or its key for one of several) → name of a repair, or "none". Findings of severity
            error get their default repair where nothing is chosen; others only what is chosen.

    Raises:
        UsageError: a choice names no finding of this session, or no repair of its finding.
        Cancelled: through `progress`.
    """
    conversation = session.conversation if isinstance(session, Session) else session
    client = client or default_client(conversation)
    whole = session if isinstance(session, Session) else Session(session)
    return _Planner(whole, client, dict(choices or {}), progress or Progress()).run()


class _Planner:
    def __init__(self, session: Session, client: str, choices: dict[str, str], progress: Progress) -> None:
        self.client = client
        self.answers = SubagentAnswers(session)
        self.choices = choices
        self.progress = progress
        self.draft = Draft(session.transcript)
        self.first = open_case(session.conversation, client, self.answers)
        self.before = findings_of(self.first, progress)
        self.made: list[Chosen] = []
        self.tried: Counter[Attempt] = Counter()
        self.rounds = 0
        self._check_choices()

    def run(self) -> RepairPlan:
        # Lines and links first: they bring back what the signatures of later thinking were made over. What the second
        # part changes is a change of the prefix.
        whole, findings = self._until_stable(self.first, self.before, records_only=True)
        case, findings = self._until_stable(whole, findings)
        if self.draft.changed and not case.is_document:
            case, findings = self._for_other_clients(case, findings)
        if bound_thinking(whole, case):
            case, findings = self._without_bound_thinking(whole, case)
        return self._plan(case, findings)

    def _for_other_clients(self, case: Case, findings: tuple[Finding, ...]) -> tuple[Case, tuple[Finding, ...]]:
        """Mend what another client generation would send and the API refuse: a new file should serve all of them.

        Only what is refused: what a client loses by its own way of reading, it loses of the original as well.
        """
        for _ in range(MAXIMUM_ROUNDS):
            if not any(self._mend_for(case, generation.version) for generation in generations()):
                return case, findings
            self.rounds += 1
            case = open_case(build_conversation(self.draft.transcript()), self.client, self.answers)
            case, findings = self._until_stable(case, findings_of(case, self.progress))
        return case, findings

    def _mend_for(self, case: Case, version: str) -> bool:
        """One round of changes for what a generation sends; whether there were any."""
        self.progress.check()
        sent = open_sent_case(case.conversation, version, case.view.request.model)
        editor = Editor(sent, self.draft)
        for violation in check_request(sent.view.request):
            if violation.severity == "error" and violation.rule in _PAIRING:
                finding = finding_of(sent, violation)
                finding = replace(finding, message=f"Client {version}: {finding.message}")
                self._mend(editor, replace(finding, repairs=repairs_for(sent, finding)))
        if editor.touched:
            editor.flush()
        return editor.touched

    def _until_stable(
        self, case: Case, findings: tuple[Finding, ...], *, records_only: bool = False
    ) -> tuple[Case, tuple[Finding, ...]]:
        while self.rounds < MAXIMUM_ROUNDS:
            self.progress.check()
            editor = Editor(case, self.draft)
            for finding in sorted(findings, key=_order):
                if finding.code in RECORD_FIXES or not records_only:
                    self._mend(editor, finding)
            if not editor.touched:
                break
            editor.flush()
            self.rounds += 1
            case = open_case(build_conversation(self.draft.transcript()), self.client, self.answers)
            findings = findings_of(case, self.progress)
        return case, findings

    def _without_bound_thinking(self, whole: Case, case: Case) -> tuple[Case, tuple[Finding, ...]]:
        """Drop, turn by turn, the thinking that is bound to a prefix that the repair has changed (api.md 2.4)."""
        if self.choices.get("thinking_bound_to_prefix") == NO_REPAIR:
            return case, findings_of(case, self.progress)
        editor = Editor(case, self.draft)
        for finding in bound_thinking(whole, case):
            self._apply(editor, finding, finding.repairs[0])
        editor.flush()
        self.rounds += 1
        case = open_case(build_conversation(self.draft.transcript()), self.client, self.answers)
        return self._until_stable(case, findings_of(case, self.progress))

    def _mend(self, editor: Editor, finding: Finding) -> None:
        repair = self._choice(finding)
        # Siblings are put into a chain that is whole: not in a round that still mends links or lines.
        waits = finding.code == _SIBLINGS and editor.touched and not editor.only_for(_SIBLINGS)
        if repair is not None and repair.changes_file and not waits and not _collides(editor, finding):
            self._apply(editor, finding, repair)

    def _apply(self, editor: Editor, finding: Finding, repair: Repair) -> None:
        fix = fix_named(finding, repair.name)
        if fix is None:
            return
        editor.begin(finding.code, f"{finding.message} {repair.title}.")
        try:
            fix.apply(editor, finding)
        except PostponedError:
            return
        self.tried[_attempt(finding, repair.name)] += 1
        self.tried[_attempt(finding, repair.name, anywhere=True)] += 1
        self.made.append(Chosen(finding, repair.name))

    def _choice(self, finding: Finding) -> Repair | None:
        """The repair to make: the person's, else the default; one that did not help gives way to the next (G4)."""
        named = self.choices.get(finding.key, self.choices.get(finding.code))
        if named == NO_REPAIR:
            return None
        if named is not None:
            chosen = next((r for r in finding.repairs if r.name == named), None)
            if chosen is not None and self._may_try(finding, chosen):
                return chosen
        if finding.severity != "error" and not any(r.default for r in finding.repairs):
            return None
        started = False
        for repair in finding.repairs:
            started = started or repair.default
            if started and repair.changes_file and self._may_try(finding, repair):
                return repair
        return None

    def _may_try(self, finding: Finding, repair: Repair) -> bool:
        """Once at a place for what adds or moves blocks; else three times, as another repair may have moved the place.

        A bound on all places together keeps a repair that does not help from being made again and again.
        """
        most = 1 if finding.rule in _STRUCTURE else 3
        here, anywhere = _attempt(finding, repair.name), _attempt(finding, repair.name, anywhere=True)
        return self.tried[here] < most and (not finding.ids or self.tried[anywhere] < _MOST_TRIES)

    def _check_choices(self) -> None:
        known = {f.key: f for f in self.before} | {f.code: f for f in self.before}
        for name, repair in self.choices.items():
            finding = known.get(name)
            if finding is None:
                if name == "thinking_bound_to_prefix":
                    continue
                raise UsageError(f"there is no finding {name}", f"findings: {', '.join(sorted(known)) or 'none'}")
            names = [r.name for r in finding.repairs]
            if repair != NO_REPAIR and repair not in names:
                raise UsageError(f"{name} has no repair {repair}", f"repairs: {', '.join([*names, NO_REPAIR])}")

    def _plan(self, case: Case, findings: tuple[Finding, ...]) -> RepairPlan:
        return RepairPlan(
            original=self.draft.original,
            client=self.client,
            edits=tuple(self.draft.edits()),
            keep_damage=self.draft.keep_damage,
            changes=tuple(record_changes(self.draft)),
            made=tuple(self.made),
            findings_before=self.before,
            findings_after=findings,
            risks=tuple(_risks(self.made, case, findings)),
            rounds=self.rounds,
            result=case.transcript,
        )


def _order(finding: Finding) -> int:
    """Links and lines first, siblings last."""
    return 2 if finding.code == _SIBLINGS else 0 if finding.code in RECORD_FIXES else 1


def _attempt(finding: Finding, repair: str, *, anywhere: bool = False) -> Attempt:
    return (finding.code, finding.ids, "" if anywhere else finding.wire or str(finding.lines), repair)


def _collides(editor: Editor, finding: Finding) -> bool:
    """Whether another repair of this round takes a block of this finding away: the next round sees what is left."""
    return bool(finding.blocks) and all(editor.is_gone(*block) for block in finding.blocks)


def _risks(made: list[Chosen], case: Case, after: tuple[Finding, ...]) -> Iterator[str]:
    """What the repair cannot promise (G13)."""
    names = {chosen.repair for chosen in made}
    if "insert_result" in names:
        yield "What the calls with an inserted result really did is not known; the inserted text says so."
        if case.view.turns and case.view.turns[-1].only_results():
            yield "The conversation ends with tool results now: a user prompt must follow."
    if names & {"remove_call", "remove_result", "remove_use", "keep_last", "rewind_turn"}:
        yield "What was removed is no longer in the new file; the original still holds it."
    if any(name.startswith("bridge") for name in names):
        yield "A bridged record follows the best candidate; what the lost record between them held is not restored."
    if "drop_turn_thinking" in names:
        yield "Thinking was removed from whole turns; send an open tool loop with thinking off."
    if any(chosen.finding.details.get("unverified") for chosen in made):
        yield "One of the rules is not verified against the API (R16, R25)."
    if any(f.severity == "error" for f in after):
        yield "Errors remain that no edit of the transcript can mend."
