"""Entry point: subcommands run without Qt; the window and `screenshot` check the ground before Qt can abort on it."""

from __future__ import annotations

import ctypes
import difflib
import os
import sys
from collections.abc import Sequence

from compaction import __version__
from compaction.cli.main import COMMANDS
from compaction.cli.main import main as run_command
from inspector.startup_guard import picture_hint, problems

USAGE = """\
usage: compactoscope [FILE ...]            open the window, with the sessions given
       compactoscope screenshot FILE -o PNG [--view VIEW] [--theme light|dark] [--size WxH]
       compactoscope COMMAND ...           one of: {commands}
       compactoscope COMMAND --help        what a command takes

Inspector for AI coding-agent sessions: see, account, diagnose, mend and compact transcripts.

options:
  -h, --help     show this text
  --version      show the version
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code (cli.md: 2 bad usage)."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    first = arguments[0] if arguments else ""
    if first in COMMANDS:
        return run_command(arguments)
    if first in ("-h", "--help"):
        sys.stdout.write(USAGE.format(commands=", ".join(COMMANDS)))
        return 0
    if first == "--version":
        sys.stdout.write(f"compactoscope {__version__}\n")
        return 0
    if first == "screenshot":
        return _refused(problems(screen=False)) or _screenshot(arguments[1:])
    unknown = next((argument for argument in arguments if argument.startswith("-") and argument != "-"), "")
    if unknown:
        sys.stderr.write(f"compactoscope: unknown option {unknown} (compactoscope --help lists what there is)\n")
        return 2
    if _is_mistyped_command(first):
        known = ("screenshot", *COMMANDS)
        meant = difflib.get_close_matches(first, known, 1)
        hint = f"did you mean {meant[0]}?" if meant else "compactoscope --help lists what there is"
        sys.stderr.write(f"compactoscope: {first} is neither a command nor a file ({hint})\n")
        return 2
    return _refused(problems(screen=True) or _silent_display()) or _window(arguments)


def _is_mistyped_command(word: str) -> bool:
    """Whether a first argument can only have been meant as a command: letters alone, and no file of that name.

    Anything that looks like a path is opened, so that the window says what is wrong with it.
    """
    return word.isalpha() and not os.path.exists(word)


def _silent_display() -> list[str]:
    """The sentence for a DISPLAY that nothing answers on: Qt would abort the process instead of returning an error."""
    display = os.environ.get("DISPLAY", "")
    platform = os.environ.get("QT_QPA_PLATFORM", "")
    wayland = os.environ.get("WAYLAND_DISPLAY", "")
    if not sys.platform.startswith("linux") or not display or wayland or (platform and not platform.startswith("xcb")):
        return []
    try:
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError:
        return []
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    xcb.xcb_connection_has_error.argtypes = [ctypes.c_void_p]
    xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    connection = xcb.xcb_connect(None, None)
    failed = xcb.xcb_connection_has_error(connection)
    xcb.xcb_disconnect(connection)
    if not failed:
        return []
    return [f"the display {display} does not answer; {picture_hint()}"]


def _refused(reasons: Sequence[str]) -> int:
    for reason in reasons:
        sys.stderr.write(f"compactoscope: {reason}\n")
    return 1 if reasons else 0


def _window(paths: list[str]) -> int:
    from inspector.app import run

    return run(paths)


def _screenshot(arguments: list[str]) -> int:
    from inspector.screenshot import run

    return run(arguments)


if __name__ == "__main__":
    # A program that was frozen into a folder starts its workers by running itself.
    if getattr(sys, "frozen", False):
        import multiprocessing

        multiprocessing.freeze_support()
    sys.exit(main())
