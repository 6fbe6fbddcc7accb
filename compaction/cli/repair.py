from __future__ import annotations

import argparse
import base64
import json
import os
import time
import uuid
from pathlib import Path
from typing import Any

from compaction.cli.output import print_json, print_line, warn
from compaction.conversation import open_session
from compaction.diagnosis import RepairPlan, plan_repair
from compaction.errors import UsageError
from compaction.export.liveness import Liveness, liveness
from compaction.export.transcripts import write_edits
from compaction.export.writer import Written, write_new_file

HELP = "write a mended copy of a session; the original is never changed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `compactoscope repair`."""
    parser.add_argument("file", help="a session transcript or a Messages-API request; - for standard input")
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="OUT",
        help="the new file; a folder: a new session id is made up for the name (clients take the id from the name)",
    )
    parser.add_argument("--same-id", action="store_true", help="with a folder as OUT: keep the original's file name")
    parser.add_argument("--overwrite", action="store_true", help="replace OUT when it exists (never FILE itself)")
    parser.add_argument(
        "--accept",
        action="append",
        default=[],
        metavar="FINDING=REPAIR",
        help="the repair of one finding (its key or its code, see `doctor`); REPAIR none leaves it as it is",
    )
    parser.add_argument("--client", default="", metavar="VERSION", help="client profile (default: the newest recorded)")
    parser.add_argument("--dry-run", action="store_true", help="show the changes and write nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Plan, write, report; exit code 1 when there was nothing to mend or nothing could be written (cli.md)."""
    plan = plan_repair(open_session(args.file), args.client, choices(args.accept))
    written = None
    if plan.changes_anything and not args.dry_run:
        written = _write(args, plan)
        for warning in written.warnings:
            warn(f"compactoscope: {warning}")
    if args.json:
        print_json(document(plan, written))
    else:
        _print(plan, written)
    if not plan.changes_anything:
        warn("compactoscope: there is nothing to mend, so nothing was written")
    return 0 if written is not None or (args.dry_run and plan.changes_anything) else 1


def choices(accepted: list[str]) -> dict[str, str]:
    """`FINDING=REPAIR` options as a mapping; the finding itself may hold "=".

    Raises:
        UsageError: one has no "=".
    """
    found: dict[str, str] = {}
    for entry in accepted:
        finding, separator, repair = entry.rpartition("=")
        if not separator or not finding or not repair:
            raise UsageError(f"--accept {entry!r} is not FINDING=REPAIR", "see the keys and names that doctor prints")
        found[finding] = repair
    return found


def target_of(output: str, source: str, same_id: bool) -> Path:
    """Where the new session goes: OUT itself, or in a folder under a new session id (or the original's name)."""
    # os.path's functions: an unknown ~user or a name too long is no error here but the writer's to tell.
    path = Path(os.path.expanduser(output))
    if not os.path.isdir(path):
        return path
    original = Path(source)
    if same_id and source != "-":
        return path / original.name
    return path / f"{uuid.uuid4()}{original.suffix or '.jsonl'}"


def _write(args: argparse.Namespace, plan: RepairPlan) -> Written:
    target = target_of(args.output, args.file, args.same_id)
    _warn_if_live(args.file, plan)
    written = write_edits(
        target,
        plan.original,
        plan.edits,
        operation="repair",
        source=args.file,
        lineage={"client": plan.client, "repairs": made(plan), "risks": list(plan.risks)},
        keep_damage=plan.keep_damage,
        overwrite=args.overwrite,
    )
    report = left_out(plan)
    if report:
        write_new_file(
            target.with_name(f"{target.name}.left-out.json"),
            [json.dumps(report, indent=1).encode() + b"\n"],
            operation="repair report",
            lineage={"belongs_to": str(target)},
            overwrite=args.overwrite,
        )
    return written


def _warn_if_live(source: str, plan: RepairPlan) -> None:
    """Say so when a client is writing the session: the new file holds what was read, and no more (G1)."""
    state = liveness(Path(source), time.time(), known_size=plan.original.size) if source != "-" else Liveness(False)
    if state.live:
        warn(f"compactoscope: the session may be in use ({state.reason}); the new file holds what was read of it")


def made(plan: RepairPlan) -> list[dict[str, str]]:
    """The repairs that were made, for the journal."""
    return [{"finding": chosen.finding.key, "repair": chosen.repair} for chosen in plan.made]


def left_out(plan: RepairPlan) -> list[dict[str, Any]]:
    """Every stretch of bytes that is in no record of the new file (G12), for the side report."""
    return [
        {"line": c.line, "kind": c.finding, "bytes": len(c.before), "base64": base64.b64encode(c.before).decode()}
        for c in plan.changes
        if c.action == "leave_out" and c.before is not None
    ]


def document(plan: RepairPlan, written: Written | None) -> dict[str, Any]:
    """Everything `repair --json` says, with the keys of cli.md."""
    return {
        "written": str(written.path) if written is not None else None,
        "findings_before": len(plan.findings_before),
        "findings_after": len(plan.findings_after),
        "changes": [
            {"finding": c.finding, "action": c.action, "line": c.line, "uuid": c.uuid, "reason": c.reason}
            for c in plan.changes
        ],
        **plan.counts(),
        "errors_before": sum(f.severity == "error" for f in plan.findings_before),
        "errors_after": sum(f.severity == "error" for f in plan.findings_after),
        "remaining": [finding.as_json() for finding in plan.findings_after],
        "repairs": made(plan),
        "risks": list(plan.risks),
        "client": plan.client,
        "journal": written.entry.id if written is not None else None,
        "sha256": written.sha256 if written is not None else None,
    }


def _print(plan: RepairPlan, written: Written | None) -> None:
    for change in plan.changes:
        print_line(f"{change.action} line {change.line} {change.uuid}: {change.reason}")
        for mark, data in (("-", change.before), ("+", change.after)):
            if data is not None:
                print_line(f"  {mark} {_short(data)}")
    counts = plan.counts()
    print_line(
        f"{counts['unchanged_lines']:,} records unchanged, {counts['changed_lines']:,} changed, "
        f"{counts['added_lines']:,} added, {counts['removed_lines']:,} removed"
    )
    print_line(f"findings: {len(plan.findings_before)} before, {len(plan.findings_after)} after")
    for risk in plan.risks:
        print_line(f"note: {risk}")
    if written is not None:
        print_line(f"written {written.path} ({written.size:,} bytes, journal {written.entry.id})")


def _short(data: bytes, limit: int = 300) -> str:
    if not data.strip(b"\0"):
        return f"{len(data):,} NUL bytes"
    text = data.decode("utf-8", "replace")
    return text if len(text) <= limit else f"{text[:limit]} … ({len(data):,} bytes)"
