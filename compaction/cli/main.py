from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Protocol, cast

from compaction.cli.output import warn
from compaction.errors import Cancelled, CompactoscopeError, InputUnreadable, NothingWritten, UsageError


class Command(Protocol):
    """What a module of `compaction.cli` provides."""

    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


COMMANDS: dict[str, str] = {
    "inspect": "compaction.cli.inspect",
    "compact": "compaction.cli.compact",
    "replay": "compaction.cli.replay",
    "compare": "compaction.cli.compare",
    "export": "compaction.cli.export",
    "strategies": "compaction.cli.strategies",
    "memory": "compaction.cli.memory",
    "request": "compaction.cli.request",
    "doctor": "compaction.cli.doctor",
    "repair": "compaction.cli.repair",
    "cost": "compaction.cli.cost",
    "index": "compaction.cli.index",
    "sessions": "compaction.cli.sessions",
    "search": "compaction.cli.search",
    "follow": "compaction.cli.follow",
}
"""Every subcommand and the module that holds it; a module is imported only when its command runs."""


def main(arguments: Sequence[str]) -> int:
    """Run one subcommand; the exit code of cli.md: 0 done, 1 findings or nothing written, 2 usage, 3 input."""
    # Started with its output closed (`>&-`, a service): there is none to write to, which is no reason to fail.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (for the whole run)
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    parser = argparse.ArgumentParser(prog="compactoscope", description="Inspector for AI coding-agent sessions.")
    names = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    wanted = next((a for a in arguments if not a.startswith("-")), "")
    module = None
    for name, path in COMMANDS.items():
        if name == wanted or wanted not in COMMANDS:
            module = cast(Command, importlib.import_module(path))
            module.add_arguments(names.add_parser(name, help=module.HELP, description=module.HELP))
    try:
        args = parser.parse_args(arguments)
        chosen = cast(Command, importlib.import_module(COMMANDS[args.command]))
        code = chosen.run(args)
        sys.stdout.flush()  # here, so that a full disk or a closed pipe shows while it can still be told
        return code
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    except CompactoscopeError as error:
        warn(f"compactoscope: {error}")
        for name, value in error.facts():
            warn(f"  {name}: {value}")
        return _exit_code(error)
    except KeyboardInterrupt:
        warn("compactoscope: stopped")
        return 130
    except BrokenPipeError:
        # The reader of our output (head, less) went away: not an error; keep the interpreter's own flush quiet.
        _discard_output()
        return 0
    except OSError as error:
        # The commands tell of the files they read and write; what is left is the place this output goes to.
        _discard_output()
        place = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, (str, bytes)) else ""
        warn(f"compactoscope: {place}{error.strerror or error} (free some space, or check the permissions)")
        return 1


def _discard_output() -> None:
    """Let what is still buffered go nowhere, else the interpreter fails on it once more at its end."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except io.UnsupportedOperation:
        return  # called from within a program that takes the output itself


def _exit_code(error: CompactoscopeError) -> int:
    if isinstance(error, UsageError):
        return 2
    if isinstance(error, InputUnreadable):
        return 3
    if isinstance(error, (NothingWritten, Cancelled)):
        return 1
    return 1
