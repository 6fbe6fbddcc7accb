"""What can be known to be wrong before Qt is imported: a bad PySide6, a missing system library, no display.

Standard library only: it runs in the Makefile before anything else is sure to work, and in `inspector.__main__`.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_BASE_LIBRARIES = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libglib-2.0.so.0": "libglib2.0-0",
}
"""What Qt's own libraries link to on Linux, drawing to a screen or not, and the Debian package that brings each."""

_X11_LIBRARIES = {
    "libX11-xcb.so.1": "libx11-xcb1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
}
"""What Qt's X11 plugin links to as well. Without one Qt only says that it could not load the plugin "xcb"."""

_WAYLAND_LIBRARIES = {
    "libwayland-client.so.0": "libwayland-client0",
    "libwayland-cursor.so.0": "libwayland-cursor0",
    "libwayland-egl.so.1": "libwayland-egl1",
}

_SCREENLESS_PLATFORMS = ("offscreen", "minimal", "minimalegl", "vnc")


def problems(*, screen: bool, environment: Mapping[str, str] = os.environ) -> list[str]:
    """What keeps the window from starting, one sentence each with the remedy; empty when nothing does.

    Args:
        screen: whether a real window is wanted (False for an offscreen picture or the tests).
        environment: the process environment (DISPLAY, WAYLAND_DISPLAY, QT_QPA_PLATFORM).
    """
    found = [bad_binding(_pyside_version(), sys.version_info[:2])]
    if sys.platform.startswith("linux"):
        screen = screen and environment.get("QT_QPA_PLATFORM", "").partition(":")[0] not in _SCREENLESS_PLATFORMS
        found.append(missing_libraries(_wanted_libraries(screen, environment)))
        if screen:
            found.append(missing_display(environment))
    return [text for text in found if text]


def bad_binding(version: str, python: tuple[int, ...]) -> str:
    """The sentence for a PySide6 that cannot be used with this Python, or "" (architecture.md, qt.md section 0).

    6.12.0 loses one reference to None in each call that returns nothing; before Python 3.12, where None became
    immortal, the process dies of it after some thousand calls. 6.10.1 crashes when a model says that data changed.
    """
    if not version:
        return "PySide6 is not installed: pip install 'PySide6-Essentials>=6.8.3,!=6.10.1,!=6.12.0'"
    if version == "6.12.0" and python < (3, 12):
        return f"PySide6 {version} aborts on Python {python[0]}.{python[1]}: pip install 'PySide6-Essentials<6.12'"
    if version == "6.10.1":
        return f"PySide6 {version} crashes when rows change: pip install 'PySide6-Essentials!=6.10.1'"
    return ""


def missing_libraries(wanted: Mapping[str, str]) -> str:
    """The sentence for the shared libraries of `wanted` (name → Debian package) that cannot be loaded, or ""."""
    absent = [name for name in wanted if not _loads(name)]
    if not absent:
        return ""
    packages = " ".join(sorted({wanted[name] for name in absent}))
    return f"Qt needs {', '.join(absent)}: apt-get install {packages}"


def missing_display(environment: Mapping[str, str]) -> str:
    """The sentence for a missing screen, with the way to a picture without one, or ""."""
    if environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"):
        return ""
    return f"there is no display (DISPLAY and WAYLAND_DISPLAY are empty); {picture_hint()}"


def picture_hint() -> str:
    """How to get a picture without a display: a command that can be typed as it is.

    `make run` installs into a virtual environment that is not on the PATH: the program is named by its path there.
    """
    script = Path(sys.executable).with_name("compactoscope")
    program = os.path.relpath(script) if script.exists() and not shutil.which("compactoscope") else "compactoscope"
    return f"for a picture without one: {program} screenshot FILE -o picture.png"


def main(arguments: Sequence[str]) -> int:
    """Print the problems to standard error; exit code 1 when there are any. `--offscreen` asks for no screen."""
    found = problems(screen="--offscreen" not in arguments)
    for text in found:
        sys.stderr.write(f"compactoscope: {text}\n")
    return 1 if found else 0


def _wanted_libraries(screen: bool, environment: Mapping[str, str]) -> dict[str, str]:
    if not screen:
        return _BASE_LIBRARIES
    if environment.get("DISPLAY"):
        return _BASE_LIBRARIES | _X11_LIBRARIES
    if environment.get("WAYLAND_DISPLAY"):
        return _BASE_LIBRARIES | _WAYLAND_LIBRARIES
    return _BASE_LIBRARIES


def _loads(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def _pyside_version() -> str:
    try:
        return importlib.metadata.version("PySide6-Essentials")
    except importlib.metadata.PackageNotFoundError:
        return ""


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
