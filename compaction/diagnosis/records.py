"""The rules on the records themselves: one registration line each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from compaction.diagnosis.case import Case
from compaction.diagnosis.model import Finding
from compaction.diagnosis.rules import chain, compactions, damage, recorded

Check = Callable[[Case], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class RecordRule:
    """One rule on records: the finding codes it may give, a title for people, and its function."""

    codes: tuple[str, ...]
    title: str
    check: Check

    @property
    def doc(self) -> str:
        """What the rule says: the docstring of its function."""
        return inspect.getdoc(self.check) or ""


RECORD_RULES: tuple[RecordRule, ...] = (
    RecordRule(damage.CODES, "Damaged line", damage.damaged_lines),
    RecordRule(("dangling_parent",), "Parent not in the file", chain.dangling_parents),
    RecordRule(("self_parent",), "Record is its own parent", chain.self_parents),
    RecordRule(("parent_cycle",), "Parents in a circle", chain.parent_cycles),
    RecordRule(("chain_enters_sidechain",), "Parent in a sidechain", chain.enters_sidechain),
    RecordRule(("root_inside_conversation",), "Reply or result without a parent", chain.root_inside),
    RecordRule(("sibling_results_off_chain",), "Parallel results beside the chain", chain.sibling_results),
    RecordRule(("chain_through_progress",), "Chain through progress records", chain.through_progress),
    RecordRule(("leaf_not_found",), "Marked end not in the file", chain.missing_leaf),
    RecordRule(("foreign_thinking",), "Thinking of another provider", recorded.foreign_thinking),
    RecordRule(("api_refusal_recorded",), "Refusal recorded in the session", recorded.recorded_refusals),
    RecordRule(("compaction_thrash", "refill_source"), "Compaction thrash", compactions.thrash),
    RecordRule(("auto_compact_below_window",), "Early automatic compaction", compactions.early_compaction),
    RecordRule(("recompaction_chain",), "Summary of summaries", compactions.recompaction),
    RecordRule(("preserved_messages_not_sent",), "Preserved messages not sent", compactions.unsent_preserved),
    RecordRule(("preserved_messages_missing",), "Preserved messages missing", compactions.missing_preserved),
)
"""Every rule on the records of a session file."""
