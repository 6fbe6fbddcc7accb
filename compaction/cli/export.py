from __future__ import annotations

import argparse

from compaction.cli.output import print_json, print_line, warn
from compaction.conversation import open_session
from compaction.errors import UsageError
from compaction.export.formats import FORMATS, ExportOptions

HELP = "write a session in another form: jsonl (byte-identical), messages, markdown, html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `compactoscope export`."""
    parser.add_argument("file", help="a session transcript or a Messages-API request; - for standard input")
    parser.add_argument("--format", required=True, metavar="FORMAT", help=", ".join(FORMATS))
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the new file")
    parser.add_argument("--client", default="", metavar="VERSION", help="client profile (default: the newest recorded)")
    parser.add_argument("--at", type=int, metavar="N", help="as it stood before API round N's response (1-based)")
    parser.add_argument("--overwrite", action="store_true", help="replace OUT when it exists (never FILE itself)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Write the export and say what was written."""
    chosen = FORMATS.get(args.format)
    if chosen is None:
        raise UsageError(f"no export format {args.format!r}", "formats: " + ", ".join(FORMATS))
    session = open_session(args.file)
    options = ExportOptions(client=args.client, at=args.at, overwrite=args.overwrite)
    written = chosen.write(session, args.output, options)
    for warning in written.warnings:
        warn(f"compactoscope: {warning}")
    if args.json:
        print_json(
            {
                "format": args.format,
                "written": str(written.path),
                "bytes": written.size,
                "sha256": written.sha256,
                "journal": written.entry.id,
            }
        )
    else:
        print_line(f"written {written.path} ({written.size:,} bytes, journal {written.entry.id})")
    return 0
