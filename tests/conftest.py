"""Isolation of every test run, and the fixtures that more than one test file uses."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import hypothesis
import pytest

from tests.support import SHARED


def _isolate() -> None:
    """Point everything that a test could read or write outside its own folders into a temporary home.

    Runs when this file is imported, so before any module can look (Qt reads QT_QPA_PLATFORM once).
    """
    real = Path.home()
    # The lab's clients are 200 MB each and npm's cache saves the network: those two may be shared between runs.
    os.environ.setdefault("CLIENT_LAB_HOME", str(real / ".cache" / "client-lab"))
    os.environ.setdefault("npm_config_cache", str(real / ".npm"))
    home = Path(tempfile.mkdtemp(prefix="compactoscope-test-home-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    os.environ["HOME"] = str(home)
    os.environ["COMPACTOSCOPE_DATA"] = str(home / "compactoscope")
    for name, folder in (
        ("XDG_CONFIG_HOME", ".config"),
        ("XDG_DATA_HOME", ".local/share"),
        ("XDG_CACHE_HOME", ".cache"),
        ("XDG_STATE_HOME", ".local/state"),
        ("XDG_RUNTIME_DIR", ".run"),
    ):
        (home / folder).mkdir(mode=0o700, parents=True)
        os.environ[name] = str(home / folder)
    # Nothing in the tests may reach a real service, a real keyring or a real screen by accident.
    os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        os.environ.pop(name, None)
    for name in [n for n in os.environ if n.startswith(("CLAUDE_", "CLAUDECODE")) or n == "DISABLE_COMPACT"]:
        del os.environ[name]


_isolate()

hypothesis.settings.register_profile(
    "default", derandomize=True, database=None, deadline=None, max_examples=50, print_blob=False
)
hypothesis.settings.register_profile(
    "slow",
    database=None,
    deadline=None,
    max_examples=1000,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The quick tests first: a broken build shows early even when CI runs everything in one session."""
    outside = ("slow", "lab", "xvfb", "postgres")
    items.sort(key=lambda item: any(item.get_closest_marker(name) for name in outside))


@pytest.fixture(scope="session")
def shared_folder() -> Path:
    """The folder of specs, cases, corpus and client lab beside the checkout; skips where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("../shared is not beside this checkout")
    return SHARED


@pytest.fixture
def own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder (journal, catalogue, settings) for this test alone; it does not exist yet."""
    folder = tmp_path / "compactoscope-data"
    monkeypatch.setenv("COMPACTOSCOPE_DATA", str(folder))
    return folder


@pytest.fixture
def sample_session() -> Path:
    """The main file of the bundled sample session; its subagents and tool-results lie beside it."""
    from compaction.resources import resource

    return resource("sample", "tide-tables.jsonl")


@pytest.fixture(scope="session")
def session_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One generated session of each client generation: version → path of the main file (see tests/generator)."""
    from tests.generator import Session

    folder = tmp_path_factory.mktemp("sessions")
    files: dict[str, Path] = {}
    for version in ("1.0.31", "1.0.128", "2.0.76", "2.1.12", "2.1.217", "2.1.332"):
        files[version] = Session(seed=7, version=version, rounds=40).write(folder / f"{version}.jsonl")
    return files
