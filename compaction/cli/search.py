from __future__ import annotations

import argparse
from typing import Any

from compaction.cli.library_options import add_database_option, add_filter_options, opened, session_filter
from compaction.cli.output import print_json, print_line

HELP = "look for words in all sessions of the library"
_KINDS = ("prompt", "answer", "thinking", "tool_use", "tool_result", "summary")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """QUERY, the filter, how many, where the catalogue is."""
    parser.add_argument(
        "query", nargs="+", metavar="QUERY", help='words (all must occur), "a phrase", begin*, -without, this OR that'
    )
    add_filter_options(parser)
    parser.add_argument("--kind", action="append", choices=_KINDS, default=[], help="only there; may be repeated")
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="hits in all (default 50)")
    add_database_option(parser)


def run(args: argparse.Namespace) -> int:
    """Search (cli.md: hits), grouped by session, each hit with its file and line."""
    from compaction.catalogue.search import hits_in, search
    from compaction.catalogue.settings import load_library_settings

    with opened(args, load_library_settings(), create=False) as catalogue:
        found = search(catalogue, " ".join(args.query), session_filter(args), kinds=args.kind, limit=args.limit)
    if args.json:
        hits: list[dict[str, Any]] = [
            {
                "session_id": session.session_id, "file": hit.path, "line": hit.line, "snippet": hit.snippet,
                "kind": hit.kind, "tool": hit.tool, "title": session.title, "project": session.project,
                "matches": [list(match) for match in hit.matches],
            }
            for session in found
            for hit in session.hits
        ]  # fmt: skip
        print_json({"hits": hits})
        return 0
    for session in found:
        print_line(f"{session.title or '(no title)'}  {session.session_id}  {session.project}")
        for hit in session.hits:
            what = f"{hit.kind} {hit.tool}".rstrip()
            print_line(f"  {hit.path}:{hit.line}  {what}")
            print_line(f"      {hit.snippet}")
    print_line(hits_in(found))
    return 0
