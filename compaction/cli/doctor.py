from __future__ import annotations

import argparse
from typing import Any

from compaction.cli.output import print_json, print_line
from compaction.conversation import Session, open_session
from compaction.diagnosis import Finding, Report, diagnose

HELP = "what is wrong with a session, the API error that each fault causes, and how it can be mended"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `compactoscope doctor`."""
    parser.add_argument("file", help="a session transcript or a Messages-API request; - for standard input")
    parser.add_argument("--client", default="", metavar="VERSION", help="client profile (default: the newest recorded)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Print the findings; exit code 1 when one of them is an error (cli.md)."""
    session = open_session(args.file)
    report = diagnose(session, args.client)
    if args.json:
        print_json(document(session, report))
    else:
        _print(report)
    return 1 if report.errors() else 0


def document(session: Session, report: Report) -> dict[str, Any]:
    """Everything `doctor --json` says."""
    return {
        "file": session.transcript.name,
        "client": report.client,
        "findings": [finding.as_json() for finding in report.findings],
    }


def _print(report: Report) -> None:
    if not report.findings:
        print_line(f"nothing is wrong (client {report.client})")
        return
    counts = {name: sum(f.severity == name for f in report.findings) for name in ("error", "warning", "info")}
    print_line(
        ", ".join(f"{number} {name}" for name, number in counts.items() if number) + f" (client {report.client})"
    )
    for finding in report.findings:
        print_line()
        for line in finding_lines(finding):
            print_line(line)


def finding_lines(finding: Finding) -> list[str]:
    """A finding in words: what, where, the API's sentence, the cause, the clients, the repairs."""
    place = ", ".join(str(n) for n in finding.lines[:12]) + (" …" if len(finding.lines) > 12 else "")
    found = [f"{finding.severity}: {finding.key}" + (f"  [{finding.rule}]" if finding.rule else "")]
    found.append(f"  {finding.message}")
    if place or finding.wire:
        parts = [f"line {place}" if place else "", finding.path, finding.wire]
        found.append("  at   " + "  ".join(part for part in parts if part))
    if finding.api_error:
        found.append(f"  API  {finding.api_error}")
    if finding.why:
        found.append(f"  why  {finding.why}")
    found += [f"  {version} {does}" for version, does in finding.clients.items()]
    for repair in finding.repairs:
        mark = "*" if repair.default else "-"
        found.append(f"  {mark} {repair.name}: {repair.title} ({repair.reason})")
    return found
