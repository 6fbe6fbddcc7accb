from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

import numpy as np

from compaction.accounting.current import context_summary
from compaction.cli.output import print_json, print_line, print_table
from compaction.conversation import Conversation, Session, open_session
from compaction.transcript import BlockType, Flag, RecordKind

HELP = "what is in a session: records, rounds, tool pairs, chain, compactions, damage, context"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `compactoscope inspect`."""
    parser.add_argument("file", help="a session transcript or a Messages-API request; - for standard input")
    parser.add_argument("--client", default="", metavar="VERSION", help="client profile (default: the newest recorded)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Print what the file holds; exit code 0 however odd the content is."""
    document = inspection(open_session(args.file), args.client)
    if args.json:
        print_json(document)
    else:
        _print(document)
    return 0


def inspection(session: Session, client: str = "") -> dict[str, Any]:
    """Everything `inspect --json` says, with the keys of cli.md; `client` "" is the newest version in the file."""
    c = session.conversation
    t = c.transcript
    return {
        "file": t.name,
        "format": t.format_name,
        "bytes": t.size,
        "lines": t.line_count,
        "records": int((t.kind != RecordKind.DAMAGED).sum()),
        "damaged_lines": [
            {"line": d.line, "kind": d.kind, "recovered": d.recovered, "lost_bytes": d.lost_bytes} for d in t.damage
        ],
        **_types(c),
        "client_versions": _used(t.version_number, t.version_names),
        "session_ids": _used(t.session_number, t.session_names),
        "models": _used(t.model_number, t.model_names),
        "responses": c.response_count,
        "rounds": c.round_count,
        **_pairs(c),
        "roots": len(c.roots),
        "root_records": [_place(c, r) for r in c.roots],
        "dangling_parents": [t.parent_uuid(r) for r in c.dangling],
        "dangling_records": [{**_place(c, r), "parent_uuid": t.parent_uuid(r)} for r in c.dangling],
        "branches": len(c.branches),
        "branch_records": [
            {**_place(c, fork.parent), "children": [_place(c, r) for r in fork.children]} for fork in c.branches
        ],
        "sidechain_records": int(((t.flags & Flag.SIDECHAIN) != 0).sum()),
        "subagents": _subagents(session),
        "compactions": [
            {
                "line": x.line,
                "round": x.round,
                "kind": x.kind,
                "pre_tokens": x.pre_tokens,
                "post_tokens": x.post_tokens,
                "context_before": x.context_before,
                "context_after": x.context_after,
                "preserved": x.preserved,
            }
            for x in c.compactions
        ],
        "context": context_summary(c, client),
    }


def _types(c: Conversation) -> dict[str, Any]:
    t = c.transcript
    counts: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    numbers, totals = np.unique(t.type_number[t.kind != RecordKind.DAMAGED], return_counts=True)
    for number, total in zip(numbers, totals, strict=True):
        counts[t.type_names[int(number)].split("/", 1)[0]] += int(total)
    numbers, totals = np.unique(t.type_number[t.kind == RecordKind.UNKNOWN], return_counts=True)
    for number, total in zip(numbers, totals, strict=True):
        unknown[t.type_names[int(number)]] += int(total)
    return {"record_types": dict(counts.most_common()), "unknown_types": dict(unknown.most_common())}


def _used(numbers: Any, names: list[str]) -> list[str]:
    """The distinct names in the order of their first appearance."""
    unique, first = np.unique(numbers, return_index=True)
    return [names[int(n)] for n in unique[np.argsort(first)] if names[int(n)]]


def _pairs(c: Conversation) -> dict[str, Any]:
    t = c.transcript
    return {
        "tool_uses": int((t.block_type == BlockType.TOOL_USE).sum()),
        "tool_results": int((t.block_type == BlockType.TOOL_RESULT).sum()),
        "tool_uses_without_result": _ids(c, c.uses_without_result, "id"),
        "tool_results_without_use": _ids(c, c.results_without_use, "tool_use_id"),
        "duplicate_tool_results": _ids(c, c.duplicate_results, "tool_use_id"),
    }


def _ids(c: Conversation, blocks: list[int], name: str) -> list[str]:
    """The distinct ids of some blocks, in file order."""
    return list(dict.fromkeys(str(c.transcript.block(b).get(name, "")) for b in sorted(blocks)))


def _place(c: Conversation, record: int) -> dict[str, Any]:
    t = c.transcript
    return {"line": int(t.line[record]), "uuid": t.uuid(record), "type": t.type_name(record)}


def _subagents(session: Session) -> list[dict[str, Any]]:
    c = session.conversation
    found: list[dict[str, Any]] = [
        {
            "agent_id": file.agent_id,
            "tool_use_id": file.tool_use_id or None,
            "file": str(file.path),
            "records": len(file.open().transcript),
            "kind": file.kind,
        }
        for file in session.subagents
    ]
    for number, root in enumerate(c.thread_roots[1:], 1):
        use = c.inline_starter(number)
        found.append(
            {
                "agent_id": c.transcript.agent_id(root) or None,
                "tool_use_id": str(c.transcript.block(use).get("id", "")) if use >= 0 else None,
                "file": c.transcript.name,
                "records": int((c.thread == number).sum()),
                "kind": "inline",
            }
        )
    return found


def _print(document: dict[str, Any]) -> None:
    print_line(document["file"])
    print_table(
        [
            ("format", document["format"]),
            ("bytes", document["bytes"]),
            ("lines", document["lines"]),
            ("records", document["records"]),
            ("client versions", ", ".join(document["client_versions"]) or "unknown"),
            ("models", ", ".join(document["models"]) or "unknown"),
            ("responses", document["responses"]),
            ("API rounds", document["rounds"]),
            ("tool_use / tool_result", f"{document['tool_uses']:,} / {document['tool_results']:,}"),
            ("tool_use without result", ", ".join(document["tool_uses_without_result"]) or "none"),
            ("tool_result without use", ", ".join(document["tool_results_without_use"]) or "none"),
            ("roots", document["roots"]),
            ("dangling parents", len(document["dangling_parents"])),
            ("branches", document["branches"]),
            ("sidechain records", document["sidechain_records"]),
            ("subagents", len(document["subagents"])),
        ]
    )
    print_line()
    context = document["context"]
    print_table([(key.replace("_", " "), value) for key, value in context.items()], ("context", ""))
    print_line()
    print_table(list(document["record_types"].items()), ("record type", "records"))
    for title, key in (("Compactions", "compactions"), ("Damaged lines", "damaged_lines")):
        rows = document[key]
        if rows:
            print_line()
            print_line(title)
            print_table([tuple(row.values()) for row in rows], tuple(k.replace("_", " ") for k in rows[0]))
