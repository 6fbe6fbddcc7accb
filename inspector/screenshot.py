"""`compactoscope screenshot`: the window drawn offscreen into a PNG (cli.md)."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from compaction.errors import CompactoscopeError, InputUnreadable, NothingWritten, UsageError

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from inspector.context import AppContext

SETTLE_SECONDS = 0.6
"""How long nothing may run before the picture is taken: views start their work from short timers."""
LIMIT_SECONDS = 300.0
SMALLEST, LARGEST = 320, 8192


def run(arguments: Sequence[str]) -> int:
    """Make the picture; exit codes of cli.md: 0 done, 1 nothing written, 2 usage, 3 input unreadable."""
    try:
        options = _parse(arguments)
        _render(options)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    except CompactoscopeError as error:
        sys.stderr.write(f"compactoscope: {error}\n")
        return 2 if isinstance(error, UsageError) else 3 if isinstance(error, InputUnreadable) else 1
    return 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    from inspector.views.registry import VIEWS

    parser = argparse.ArgumentParser(
        prog="compactoscope screenshot", description="Draw the window with a session into a PNG, without a display."
    )
    parser.add_argument("file", metavar="FILE", help="the session, or - for standard input")
    parser.add_argument("-o", "--output", metavar="PNG", required=True, type=Path)
    parser.add_argument("--view", default="tree", choices=[spec.id for spec in VIEWS], help="view in front")
    parser.add_argument("--theme", default="light", choices=("light", "dark"))
    parser.add_argument("--size", default="1280x800", type=_size, metavar="WxH", help="in logical pixels")
    parser.add_argument("--scale", default=1.0, type=float, metavar="N", help="device pixels for each logical pixel")
    parser.add_argument("--line", type=int, metavar="N", help="select the record on this line")
    options = parser.parse_args(list(arguments))
    if not 0.5 <= options.scale <= 4:
        parser.error("--scale must be between 0.5 and 4")
    return options


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)x(\d+)", text.lower())
    if found is None or not all(SMALLEST <= int(side) <= LARGEST for side in found.groups()):
        raise argparse.ArgumentTypeError(f"{text} is not a size such as 1280x800 ({SMALLEST} to {LARGEST} a side)")
    return int(found.group(1)), int(found.group(2))


def _render(options: argparse.Namespace) -> None:
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    os.environ["QT_SCALE_FACTOR"] = str(options.scale)
    from PySide6.QtCore import qInstallMessageHandler
    from PySide6.QtGui import QFontDatabase

    from inspector.app import application, make_context
    from inspector.settings import Settings
    from inspector.views.main_window import MainWindow

    # The offscreen platform says that it cannot pass on size hints; nobody needs to hear it.
    qInstallMessageHandler(lambda _kind, _where, _text: None)
    application()
    if not QFontDatabase.families():
        raise NothingWritten("no font was found to draw text with", "apt-get install fonts-dejavu-core")
    with tempfile.TemporaryDirectory(prefix="compactoscope-") as folder:
        context = make_context(Settings(Path(folder)), options.theme)
        window = MainWindow(context)
        try:
            window.resize(*options.size)
            window.restore_layout()
            window.resize(*options.size)
            window.show()
            document = window.open_path(options.file)
            _settle(context)
            if document.error is not None:
                raise document.error
            window.show_view(options.view)
            if options.line is not None and document.conversation is not None:
                lines = document.conversation.transcript.line
                document.select_record(max(0, int(lines.searchsorted(options.line, side="right")) - 1))
            _settle(context)
            _save(window, options.output)
        finally:
            window.close()


def _settle(context: AppContext) -> None:
    """Process events until no work has run for a moment."""
    from PySide6.QtWidgets import QApplication

    limit = time.monotonic() + LIMIT_SECONDS
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < SETTLE_SECONDS and time.monotonic() < limit:
        QApplication.processEvents()
        if context.runner.jobs:
            quiet_since = time.monotonic()
        time.sleep(0.005)


def _save(window: QWidget, target: Path) -> None:
    """Write under a name of its own first, so that a half-written picture never bears the wanted name."""
    partial = target.with_name(f".{target.name}.part")
    if not window.grab().save(str(partial), "PNG"):
        partial.unlink(missing_ok=True)
        raise NothingWritten("the picture cannot be written", "check that the folder exists", str(target))
    partial.replace(target)
