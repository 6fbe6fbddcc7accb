"""All ways to mend, by finding code, best first."""

from __future__ import annotations

from compaction.diagnosis.case import Case
from compaction.diagnosis.model import Finding, Repair
from compaction.diagnosis.repair.fixes import media, pairing, records, server_tools, text, thinking
from compaction.diagnosis.repair.fixes.kit import Fix

FIXES: dict[str, tuple[Fix, ...]] = {
    **pairing.FIXES,
    **text.FIXES,
    **thinking.FIXES,
    **server_tools.FIXES,
    **media.FIXES,
    **records.FIXES,
}
"""Finding code → its fixes in the order they are offered; a family is one module and one line here."""


def repairs_for(case: Case, finding: Finding) -> tuple[Repair, ...]:
    """The repairs to offer for a finding; the first that may be chosen without a person is the default of an error."""
    found: list[Repair] = []
    open_default = finding.severity == "error"
    for fix in FIXES.get(finding.code, ()):
        if not fix.applies(case, finding):
            continue
        default = open_default and fix.chosen
        open_default = open_default and not default
        found.append(Repair(fix.name, fix.title, default, fix.reason))
    return tuple(found)


def fix_named(finding: Finding, name: str) -> Fix | None:
    """The fix that a repair of this finding stands for, or None (advice changes no file)."""
    return next((fix for fix in FIXES.get(finding.code, ()) if fix.name == name), None)
