"""The pictures of the documentation, made from the product: `make screenshots`.

`python -m tests.screenshots` draws every view with the sample, light and dark, into resources/docs/screenshots.
`python -m tests.screenshots --all FOLDER [FILE ...]` draws every view in every size, theme and scale, to be looked at.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
from pathlib import Path

from inspector.views.registry import VIEWS
from tests.support import ROOT

SAMPLE = ROOT / "resources" / "sample" / "tide-tables.jsonl"
DOCS = ROOT / "resources" / "docs" / "screenshots"
THEMES = ("light", "dark")
SIZES = ("1280x800", "1920x1080")
SCALES = (1, 2)
LINE_OF_A_DIFF = 280
"""A record of the sample to select, so that the detail pane shows an edit."""


def picture(session: Path, target: Path, view: str, theme: str, size: str, scale: int) -> None:
    """Draw one view in a process of its own, as a person would on the command line."""
    select = ["--line", str(LINE_OF_A_DIFF)] if session == SAMPLE else []
    command = [sys.executable, "-m", "inspector", "screenshot", str(session), "-o", str(target)]
    options = ["--view", view, "--theme", theme, "--size", size, "--scale", str(scale), *select]
    subprocess.run([*command, *options], cwd=ROOT, check=True)
    print(target, flush=True)


def main() -> None:
    """Draw the pictures; see the module's text."""
    parser = argparse.ArgumentParser(prog="python -m tests.screenshots", description=__doc__)
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="every size, theme and scale, into this folder")
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE", help="other sessions than the sample")
    args = parser.parse_args()
    views = [spec.id for spec in VIEWS]
    if args.all is None:
        DOCS.mkdir(parents=True, exist_ok=True)
        for view, theme in itertools.product(views, THEMES):
            picture(SAMPLE, DOCS / f"{view}-{theme}.png", view, theme, SIZES[0], 1)
        return
    args.all.mkdir(parents=True, exist_ok=True)
    for session in args.files or [SAMPLE]:
        for view, theme, size, scale in itertools.product(views, THEMES, SIZES, SCALES):
            name = f"{session.stem}-{view}-{theme}-{size}@{scale}x.png"
            picture(session.absolute(), args.all / name, view, theme, size, scale)


if __name__ == "__main__":
    main()
