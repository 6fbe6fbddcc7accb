"""A second start hands its files to the running window (issue 7)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtNetwork import QLocalSocket
from pytestqt.qtbot import QtBot

from inspector.single_instance import NEW_WINDOW_VARIABLE, InstanceServer, hand_over, server_name
from tests.support import ROOT

_SECOND_START = (
    "import sys; from PySide6.QtCore import QCoreApplication; from inspector.single_instance import hand_over;"
    "app = QCoreApplication([]); print(hand_over(sys.argv[1:]))"
)


@pytest.fixture
def server(qapp: object, own_data_folder: Path) -> Iterator[InstanceServer]:
    made = InstanceServer()
    assert made.listen()
    yield made
    made.close()


def second_start(qtbot: QtBot, *paths: str, **environment: str) -> str:
    """Run a second program while this one serves events; what it printed."""
    with subprocess.Popen(
        [sys.executable, "-c", _SECOND_START, *paths], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    ) as process:  # fmt: skip
        qtbot.waitUntil(lambda: process.poll() is not None, timeout=20_000)
        assert process.stdout is not None
        return process.stdout.read().strip()


def test_files_reach_the_first_window(server: InstanceServer, qtbot: QtBot, tmp_path: Path) -> None:
    received: list[list[str]] = []
    server.files_received.connect(received.append)
    assert second_start(qtbot, str(tmp_path / "a.jsonl"), "relative.jsonl") == "True"
    assert received == [[str(tmp_path / "a.jsonl"), str(Path("relative.jsonl").absolute())]]


def test_the_desktops_activation_token_is_taken_over(
    server: InstanceServer, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_ACTIVATION_TOKEN", "old")
    assert second_start(qtbot, XDG_ACTIVATION_TOKEN="token-of-the-second-start") == "True"
    assert os.environ["XDG_ACTIVATION_TOKEN"] == "token-of-the-second-start"
    assert second_start(qtbot, XDG_ACTIVATION_TOKEN="x" * 300) == "True"
    assert os.environ["XDG_ACTIVATION_TOKEN"] == "token-of-the-second-start"


def test_no_window_means_an_own_one(qapp: object, own_data_folder: Path) -> None:
    assert not hand_over(["a.jsonl"])


def test_it_can_be_refused_and_standard_input_stays_here(server: InstanceServer, qtbot: QtBot) -> None:
    assert second_start(qtbot, "a.jsonl", **{NEW_WINDOW_VARIABLE: "1"}) == "False"
    assert second_start(qtbot, "-") == "False"


def test_the_socket_of_a_killed_program_is_taken_over(qapp: object, own_data_folder: Path, qtbot: QtBot) -> None:
    code = (
        "import os; from PySide6.QtCore import QCoreApplication; from inspector.single_instance import InstanceServer;"
        "app = QCoreApplication([]); s = InstanceServer(); assert s.listen(); os._exit(9)"
    )
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == 9
    assert not hand_over([])
    server = InstanceServer()
    assert server.listen()
    assert second_start(qtbot) == "True"
    server.close()


@pytest.mark.parametrize("message", [b"nonsense\n", b"[]\n", b'{"paths": 3}\n', b'{"paths": [1]}\n', b"\xff\xfe\n"])
def test_messages_of_others_are_dropped(
    server: InstanceServer, qtbot: QtBot, message: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    received: list[object] = []
    server.files_received.connect(received.append)
    socket = QLocalSocket()
    socket.connectToServer(server_name())
    assert socket.waitForConnected(1000)
    with qtbot.waitSignal(socket.disconnected, timeout=5000):
        socket.write(message)
    assert received == []


def test_each_configuration_has_its_own_window(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = server_name()
    monkeypatch.setenv("COMPACTOSCOPE_DATA", str(tmp_path))
    assert server_name() != first
