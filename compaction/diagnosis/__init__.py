"""What is wrong with a session and how to mend it: the API's rules, chain and damage rules, findings, repairs."""

from __future__ import annotations

from compaction.diagnosis.doctor import diagnose
from compaction.diagnosis.model import Finding, Repair, Report, Violation
from compaction.diagnosis.repair.changes import RecordChange
from compaction.diagnosis.repair.plan import RepairPlan, plan_repair
from compaction.diagnosis.requests import check_request

__all__ = [
    "Finding",
    "RecordChange",
    "Repair",
    "RepairPlan",
    "Report",
    "Violation",
    "check_request",
    "diagnose",
    "plan_repair",
]
