"""`compactoscope` as a program: dispatch without Qt, pictures without a display, refusals in one line (cli.md)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtGui import QImage

import inspector.__main__ as program
from inspector.theme import DARK, LIGHT
from inspector.views.registry import VIEWS
from tests.support import ROOT


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "inspector", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.mark.parametrize(("theme", "base"), [("light", LIGHT.base), ("dark", DARK.base)])
def test_a_picture_has_the_size_and_colours_asked_for(
    sample_session: Path, tmp_path: Path, theme: str, base: str
) -> None:
    target = tmp_path / "picture.png"
    done = run("screenshot", str(sample_session), "-o", str(target), "--theme", theme, "--size", "1000x700")
    assert (done.returncode, done.stderr) == (0, "")
    picture = QImage(str(target))
    assert (picture.width(), picture.height()) == (1000, 700)
    colours = [picture.pixelColor(x, y).name() for x in range(0, 1000, 7) for y in range(0, 700, 7)]
    assert colours.count(base) > len(colours) * 0.15
    assert sorted(path.name for path in tmp_path.iterdir()) == ["picture.png"]


def test_a_picture_at_twice_the_scale_has_twice_the_pixels(sample_session: Path, tmp_path: Path) -> None:
    target = tmp_path / "picture.png"
    done = run(
        "screenshot", str(sample_session), "-o", str(target), "--size", "1000x700", "--scale", "2", "--line", "40"
    )
    assert done.returncode == 0, done.stderr
    picture = QImage(str(target))
    assert (picture.width(), picture.height()) == (2000, 1400)


@pytest.mark.slow
@pytest.mark.parametrize("view", [spec.id for spec in VIEWS])
def test_every_view_can_be_pictured(sample_session: Path, tmp_path: Path, view: str) -> None:
    target = tmp_path / f"{view}.png"
    done = run("screenshot", str(sample_session), "-o", str(target), "--view", view)
    assert (done.returncode, done.stderr) == (0, "")
    assert QImage(str(target)).width() == 1280


def test_refusals_have_the_exit_codes_of_the_command_line(sample_session: Path, tmp_path: Path) -> None:
    target = str(tmp_path / "picture.png")
    missing = run("screenshot", str(tmp_path / "absent.jsonl"), "-o", target)
    assert missing.returncode == 3
    assert missing.stderr.count("\n") == 1
    assert "absent.jsonl" in missing.stderr
    assert run("screenshot", str(sample_session), "-o", target, "--view", "nonsense").returncode == 2
    assert run("screenshot", str(sample_session), "-o", target, "--size", "huge").returncode == 2
    nowhere = run("screenshot", str(sample_session), "-o", str(tmp_path / "no" / "folder.png"))
    assert nowhere.returncode == 1
    assert "cannot be written" in nowhere.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_a_display_the_window_says_so_and_how_to_get_a_picture() -> None:
    done = run(QT_QPA_PLATFORM="")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "no display" in done.stderr
    assert "compactoscope screenshot" in done.stderr


def test_a_mistyped_command_is_bad_usage_and_no_missing_display() -> None:
    """cli.md: 2 bad usage."""
    done = run("docter", QT_QPA_PLATFORM="")
    assert done.returncode == 2
    assert done.stderr == "compactoscope: docter is neither a command nor a file (did you mean doctor?)\n"
    assert "--help" in run("frobnicate", QT_QPA_PLATFORM="").stderr
    assert "no display" in run("typed.jsonl", QT_QPA_PLATFORM="").stderr


def test_a_display_that_does_not_answer_is_named_instead_of_aborting() -> None:
    done = run(QT_QPA_PLATFORM="", DISPLAY=":987")
    assert done.returncode == 1
    assert ":987 does not answer" in done.stderr or "Qt needs" in done.stderr


def test_subcommands_run_without_importing_qt(sample_session: Path) -> None:
    code = (
        "import sys; from inspector.__main__ import main; "
        f"code = main(['inspect', {str(sample_session)!r}, '--json']); "
        "assert not [m for m in sys.modules if m.startswith('PySide6')], 'Qt was imported'; sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_help_version_and_unknown_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--help"]) == 0
    assert "screenshot" in capsys.readouterr().out
    assert program.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("compactoscope ")
    assert program.main(["--nonsense"]) == 2
    assert "--nonsense" in capsys.readouterr().err


def test_starting_the_window_imports_nothing_heavy() -> None:
    heavy = ("anthropic", "pyqtgraph", "sqlalchemy", "pygments", "alembic")
    code = (
        "import sys; import inspector.app, inspector.views.main_window, inspector.views.outline_view; "
        f"found = [name for name in {heavy!r} if name in sys.modules]; assert not found, found"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
