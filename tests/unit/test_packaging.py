from __future__ import annotations

import configparser
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support import ROOT

_FROM_INSTALLED = """
import json, sys
sys.path.insert(0, sys.argv[1])
import compaction
from compaction.resources import resource
from inspector.__main__ import main
sample = resource("sample", "tide-tables.jsonl")
print(json.dumps({"package": compaction.__file__, "sample": str(sample)}))
raise SystemExit(main(["inspect", str(sample), "--json"]))
"""


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_wheel_holds_the_resources_and_runs_away_from_the_checkout(tmp_path: Path) -> None:
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    run(*pip, "wheel", str(ROOT), "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), cwd=tmp_path)
    (wheel,) = tmp_path.glob("compactoscope-*.whl")
    run(*pip, "install", "--no-deps", "--target", str(tmp_path / "site"), str(wheel), cwd=tmp_path)
    # -I: neither the current folder nor PYTHONPATH can stand in for the installed copy.
    printed = run(sys.executable, "-I", "-c", _FROM_INSTALLED, str(tmp_path / "site"), cwd=tmp_path)
    where, _, report = printed.partition("\n")
    assert all(str(tmp_path / "site") in path for path in json.loads(where).values())
    assert json.loads(report)["records"] == len((ROOT / "resources/sample/tide-tables.jsonl").read_bytes().splitlines())


def test_the_desktop_entry_starts_the_command_of_the_project_with_an_icon_that_exists() -> None:
    entry = configparser.ConfigParser(interpolation=None)
    entry.optionxform = str  # type: ignore[assignment]
    entry.read(ROOT / "packaging" / "compactoscope.desktop")
    desktop = entry["Desktop Entry"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert desktop["Exec"].split()[0] in project["scripts"]
    assert desktop["Icon"] == project["name"]
    assert (ROOT / "resources" / "icons" / "app.svg").is_file()


def test_pyside_versions_that_abort_cannot_be_installed() -> None:
    """architecture.md: 6.12.0 not on Python 3.11, 6.10.1 nowhere."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [line for line in project["dependencies"] if line.startswith("PySide6")]
    assert wanted
    assert all("!=6.10.1" in line for line in wanted)
    assert all("!=6.12.0" in line or "<6.12" in line for line in wanted if "python_version < '3.12'" in line)
