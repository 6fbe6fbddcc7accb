from __future__ import annotations

import argparse
import time
from pathlib import Path

from compaction.cli.library_options import add_database_option, opened, report_progress
from compaction.cli.output import print_json, print_line, warn
from compaction.errors import UsageError

HELP = "find sessions and bring the library's catalogue up to date"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """FOLDER …, what to leave out, where the catalogue is."""
    parser.add_argument(
        "folders", nargs="*", metavar="FOLDER", help="default: the client's folders and those of the library's settings"
    )
    parser.add_argument("--no-text", action="store_true", help="leave the full text as it is (quicker)")
    parser.add_argument("--no-findings", action="store_true", help="do not diagnose changed sessions (quicker)")
    parser.add_argument(
        "--processes", type=int, default=None, metavar="N", help="worker processes (default: processors)"
    )
    add_database_option(parser)


def run(args: argparse.Namespace) -> int:
    """Index, then say what was done (cli.md: indexed, unchanged, removed, seconds)."""
    from compaction.catalogue.errors import CatalogueDamaged
    from compaction.catalogue.indexer import refresh
    from compaction.catalogue.settings import library_folders, load_library_settings

    if args.processes is not None and args.processes < 1:
        raise UsageError("--processes must be 1 or more")
    settings = load_library_settings()
    folders = [Path(f) for f in args.folders] or library_folders(settings)
    if not folders:
        raise UsageError("no folder of the client was found", "name the folders to index")
    started = time.monotonic()
    with opened(args, settings, create=True) as catalogue, report_progress() as progress:
        wishes = {"text": not args.no_text, "findings": not args.no_findings, "processes": args.processes}
        try:
            report = refresh(catalogue, folders, progress, **wishes)
        except CatalogueDamaged as error:
            catalogue.rebuild(error.cause)
            warn(f"compactoscope: {catalogue.notice}")
            report = refresh(catalogue, folders, progress, **wishes)
        where, notice = catalogue.place.name, catalogue.notice
    seconds = time.monotonic() - started
    for problem in report.problems:
        warn(f"compactoscope: {problem}")
    if args.json:
        print_json(
            {
                "indexed": report.indexed, "unchanged": report.unchanged, "removed": report.removed,
                "seconds": round(seconds, 3), "renamed": report.renamed, "examined": report.examined,
                "bytes_read": report.bytes_read, "problems": report.problems, "catalogue": where, "notice": notice,
            }
        )  # fmt: skip
    else:
        print_line(
            f"{report.indexed:,} indexed, {report.unchanged:,} unchanged, {report.removed:,} removed, "
            f"{report.renamed:,} renamed, {report.examined:,} diagnosed in {seconds:.1f} s  ({where})"
        )
    return 0
