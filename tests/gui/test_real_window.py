"""The program on a real X server (Xvfb): start, keys, focus, clipboard, closing with its state saved."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import ROOT

pytestmark = [pytest.mark.xvfb, pytest.mark.skipif(shutil.which("Xvfb") is None, reason="Xvfb is not installed")]

DRIVER = """
import sys
from pathlib import Path
from PySide6.QtCore import QTimer, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
import inspector.__main__ as program
import inspector.views.main_window as module

made = []
original = module.MainWindow.__init__
def remember(self, context):
    original(self, context)
    made.append(self)
    QTimer.singleShot(0, drive)
module.MainWindow.__init__ = remember

def until(condition, seconds=20):
    for _ in range(seconds * 50):
        QApplication.processEvents()
        if condition():
            return
        QTest.qWait(20)
    raise AssertionError("waited in vain")

def drive():
    try:
        walk(made[0])
        print("WALKED", QGuiApplication.platformName())
    except BaseException as error:
        print("FAILED", repr(error))
    made[0].close()

def walk(window):
    until(lambda: window.isVisible() and window.windowHandle().isExposed())
    window.activateWindow()
    until(lambda: window.current_document is not None and window.current_document.conversation is not None)
    tree = window.show_view("tree")
    until(lambda: tree.model is not None)
    tree.table.setFocus()
    QTest.keyClick(tree.table, Qt.Key.Key_End)
    assert tree.table.currentIndex().row() == tree.model.rowCount() - 1
    QTest.keyClick(tree.table, Qt.Key.Key_Home)
    QTest.keyClick(tree.table, Qt.Key.Key_Left)
    assert not tree.model.is_expanded(0)
    QTest.keyClick(tree.table, Qt.Key.Key_Right)
    QTest.keyClicks(tree.table, "t")
    assert tree.find_bar.isVisible()
    QTest.keyClicks(tree.find_bar.edit, "ype:tool_use")
    until(lambda: "match" in tree.find_bar.count.text())
    QTest.keyClick(tree.find_bar.edit, Qt.Key.Key_Return)
    assert tree.document.selection.record >= 0
    tree.copy_json()
    until(lambda: "tool_use" in QGuiApplication.clipboard().text())
    picture = window.screen().grabWindow(window.winId()).toImage()
    places = [(x, y) for x in range(0, picture.width(), 9) for y in range(0, picture.height(), 9)]
    colours = {picture.pixelColor(x, y).name() for x, y in places}
    assert len(colours) > 10, colours

sys.exit(program.main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def display(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An X server of this module alone; it chooses a free display number itself."""
    read, write = os.pipe()
    log = (tmp_path_factory.mktemp("xvfb") / "log").open("wb")
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write), "-screen", "0", "1400x900x24", "-nolisten", "tcp"],
        pass_fds=(write,),
        stdout=log,
        stderr=log,
    )
    os.close(write)
    with os.fdopen(read) as numbers:
        number = numbers.readline().strip()
    if not number:
        server.kill()
        pytest.skip("Xvfb does not start here")
    yield f":{number}"
    server.terminate()
    server.wait(10)
    log.close()


def environment(display: str, folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "DISPLAY": display,
        "QT_QPA_PLATFORM": "xcb",
        "COMPACTOSCOPE_DATA": str(folder),
        "PYTHONPATH": str(ROOT),
    }


def test_a_session_can_be_walked_on_a_real_display(display: str, tmp_path: Path, sample_session: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(sample_session)],
        capture_output=True,
        text=True,
        env=environment(display, tmp_path),
        timeout=120,
        check=False,
    )
    assert "WALKED xcb" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0
    assert (tmp_path / "config" / "window.ini").stat().st_size > 100


SHOW = """
import sys
import inspector.__main__ as program
import inspector.views.main_window as module

original = module.MainWindow.showEvent

def shown(self, event):
    original(self, event)
    print("SHOWN", flush=True)

module.MainWindow.showEvent = shown
sys.exit(program.main([]))
"""


def test_the_window_opens_without_a_file_and_ends_on_a_signal(display: str, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SHOW],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(display, tmp_path),
        cwd=ROOT,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "SHOWN\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
