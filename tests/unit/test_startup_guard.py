from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from inspector.startup_guard import bad_binding, missing_display, missing_libraries, picture_hint, problems
from tests.support import ROOT


def test_pyside_6_12_0_is_refused_before_python_3_12_and_welcome_after() -> None:
    """architecture.md: 6.12.0 on CPython 3.11 loses references to None and aborts."""
    assert "6.12.0" in bad_binding("6.12.0", (3, 11))
    assert bad_binding("6.12.0", (3, 12)) == ""
    assert bad_binding("6.11.3", (3, 11)) == ""


def test_pyside_6_10_1_is_refused_everywhere() -> None:
    """qt.md section 0: a data-changed signal crashes it."""
    assert "6.10.1" in bad_binding("6.10.1", (3, 11))
    assert "6.10.1" in bad_binding("6.10.1", (3, 13))


def test_no_binding_at_all_is_said_with_the_command_that_brings_one() -> None:
    assert "pip install" in bad_binding("", (3, 11))


def test_a_missing_library_is_named_with_its_debian_package_in_one_line() -> None:
    text = missing_libraries({"libc.so.6": "libc6", "libnowhere.so.9": "libnowhere9"})
    assert text == "Qt needs libnowhere.so.9: apt-get install libnowhere9"
    assert missing_libraries({"libc.so.6": "libc6"}) == ""


def test_a_missing_display_is_said_with_the_way_to_a_picture() -> None:
    """issue: `make run` without a display says so and how to get a picture."""
    text = missing_display({})
    assert "compactoscope screenshot FILE -o picture.png" in text
    assert "\n" not in text
    assert missing_display({"DISPLAY": ":0"}) == ""
    assert missing_display({"WAYLAND_DISPLAY": "wayland-0"}) == ""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="displays are named by variables on Linux only")
def test_the_offscreen_platform_needs_no_display() -> None:
    assert problems(screen=True, environment={"QT_QPA_PLATFORM": "offscreen"}) == []
    assert [text for text in problems(screen=True, environment={}) if "no display" in text]


def test_the_guard_itself_imports_no_qt_and_runs_as_a_program() -> None:
    code = (
        "import sys\nfrom inspector.startup_guard import main\nstatus = main(['--offscreen'])\n"
        "assert not [n for n in sys.modules if n.startswith(('PySide6', 'shiboken6'))]\nraise SystemExit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_command_that_a_missing_display_names_can_be_typed_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Path(sys.executable).with_name("compactoscope")
    if not script.exists():
        pytest.skip("the program is not installed beside this Python")
    monkeypatch.setenv("PATH", "")
    named = picture_hint().split(": ", 1)[1].split(" screenshot")[0]
    assert Path(named).samefile(script)
    monkeypatch.setenv("PATH", str(script.parent))
    assert picture_hint().split(": ", 1)[1].startswith("compactoscope screenshot")
