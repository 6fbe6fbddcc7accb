from __future__ import annotations

import argparse
import contextlib
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from compaction.cli.output import warn
from compaction.errors import UsageError
from compaction.progress import Progress

if TYPE_CHECKING:
    from compaction.catalogue.database import Catalogue
    from compaction.catalogue.entries import SessionFilter
    from compaction.catalogue.settings import LibrarySettings

_REPORT_SECONDS = 0.5


def add_database_option(parser: argparse.ArgumentParser) -> None:
    """`--database URL` and `--json`."""
    parser.add_argument(
        "--database", default="", metavar="URL", help="PostgreSQL catalogue (default: settings, else our own)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document")


def add_filter_options(parser: argparse.ArgumentParser) -> None:
    """The options that restrict sessions; the same for `sessions` and `search`."""
    parser.add_argument("--project", default="", help="part of the project's folder")
    parser.add_argument("--tool", default="", help="a tool's name")
    parser.add_argument("--model", default="", help="part of a model's name")
    parser.add_argument("--since", default="", metavar="DATE", help="active on or after YYYY-MM-DD (UTC)")
    parser.add_argument("--until", default="", metavar="DATE", help="active on or before YYYY-MM-DD (UTC)")
    parser.add_argument("--min-cost", type=float, metavar="USD")
    parser.add_argument("--max-cost", type=float, metavar="USD")
    parser.add_argument("--min-context", type=int, metavar="TOKENS")
    parser.add_argument("--max-context", type=int, metavar="TOKENS")
    parser.add_argument("--finding", default="", metavar="KIND", help="error, warning, info, any, or a finding's code")
    parser.add_argument("--compacted", action="store_true", help="only sessions with a compaction")
    parser.add_argument("--errors", action="store_true", help="only sessions with API or tool errors")
    parser.add_argument("--owner", default="", help="whose sessions, in a shared catalogue")


def session_filter(args: argparse.Namespace) -> SessionFilter:
    """The filter that the options describe.

    Raises:
        UsageError: a date cannot be read.
    """
    from compaction.catalogue.entries import SessionFilter

    until = _midnight(args.until)
    last_day = until is not None and until.date() == date.max
    return SessionFilter(
        project=_text(args.project),
        model=_text(args.model),
        tool=_text(args.tool),
        owner=_text(args.owner),
        since_ms=_milliseconds(_midnight(args.since)),
        until_ms=_milliseconds(until + timedelta(days=1) if until is not None and not last_day else None),
        minimum_cost=args.min_cost,
        maximum_cost=args.max_cost,
        minimum_context=_count(args.min_context),
        maximum_context=_count(args.max_context),
        finding=_text(args.finding),
        compaction=args.compacted,
        error=args.errors,
    )


def _text(argument: str) -> str:
    """An argument as a database takes it: bytes of it that were no UTF-8 occur in no text of the catalogue."""
    return argument.encode("utf-8", "replace").decode()


def _count(argument: int | None) -> int | None:
    """A number of tokens within what a database counts."""
    return None if argument is None else max(-(2**63), min(argument, 2**63 - 1))


def _midnight(text: str) -> datetime | None:
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is no date", "write YYYY-MM-DD") from error
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp() * 1000)


@contextlib.contextmanager
def opened(args: argparse.Namespace, settings: LibrarySettings, *, create: bool) -> Iterator[Catalogue]:
    """The catalogue that the options and settings name, closed at the end; what must be known is told at once."""
    from compaction.catalogue.database import open_catalogue

    catalogue = open_catalogue(args.database or settings.database_url, owner=settings.owner, create=create)
    if catalogue.notice:
        warn(f"compactoscope: {catalogue.notice}")
    try:
        yield catalogue
    finally:
        catalogue.close()


@contextlib.contextmanager
def report_progress() -> Iterator[Progress]:
    """A progress that is written to a terminal's standard error twice a second; silent elsewhere."""
    progress = Progress()
    stop = threading.Event()

    def report() -> None:
        while not stop.wait(_REPORT_SECONDS):
            share = f" {100 * progress.done // progress.total} %" if progress.total else ""
            sys.stderr.write(f"\r\x1b[K{progress.text}{share}")
            sys.stderr.flush()
        sys.stderr.write("\r\x1b[K")

    reporter = threading.Thread(target=report, daemon=True) if sys.stderr.isatty() else None
    if reporter is not None:
        reporter.start()
    try:
        yield progress
    finally:
        stop.set()
        if reporter is not None:
            reporter.join()
