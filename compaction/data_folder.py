from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from compaction.errors import CompactoscopeError

VARIABLE = "COMPACTOSCOPE_DATA"
"""The environment variable that moves all three folders to one place (portable use, tests)."""

_NAME = "compactoscope"


class FolderUnwritable(CompactoscopeError):
    """One of our own folders could not be made or written, for example in a read-only home."""


def data_folder() -> Path:
    """Where the journal and the catalogue live: `$COMPACTOSCOPE_DATA`, else the system's user data folder.

    Nothing is created: a reading command must leave no trace. Call `ensure` before writing.
    """
    return _moved("data") or platformdirs.user_data_path(_NAME, appauthor=False)


def cache_folder() -> Path:
    """Where things that can be made again live: `$COMPACTOSCOPE_DATA/cache`, else the user cache folder."""
    return _moved("cache") or platformdirs.user_cache_path(_NAME, appauthor=False)


def config_folder() -> Path:
    """Where settings and window state live: `$COMPACTOSCOPE_DATA/config`, else the user configuration folder."""
    return _moved("config") or platformdirs.user_config_path(_NAME, appauthor=False)


def ensure(folder: Path) -> Path:
    """Create one of the folders above, private to the user, and return it.

    Raises:
        FolderUnwritable: it cannot be created, or it is there and cannot be written.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise FolderUnwritable(
            f"the folder cannot be created: {error.strerror or error}",
            hint=f"set {VARIABLE} to a folder that can be written",
            file=str(folder),
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FolderUnwritable(
            "the folder cannot be written",
            hint=f"allow writing, or set {VARIABLE} to a folder that can be written",
            file=str(folder),
        )
    return folder


def _moved(kind: str) -> Path | None:
    base = os.environ.get(VARIABLE, "")
    if not base:
        return None
    folder = Path(base).expanduser().absolute()
    return folder if kind == "data" else folder / kind
