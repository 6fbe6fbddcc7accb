from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from compaction.catalogue.discovery import client_folders
from compaction.data_folder import config_folder, ensure
from compaction.errors import UsageError

FILE_NAME = "library.toml"
URL_VARIABLE = "COMPACTOSCOPE_DATABASE"
"""Environment variable that overrides `database_url`, so that a password need not stand in a file."""


@dataclass(frozen=True, slots=True)
class LibrarySettings:
    """What the library is made of; the window and the command line read the same file.

    Attributes:
        database_url: PostgreSQL URL of a shared catalogue, "" for SQLite in our own data folder.
        owner: the name a shared catalogue keeps our files under, "" for user@host.
        folders: folders to index besides the client's own.
    """

    database_url: str = ""
    owner: str = ""
    folders: tuple[str, ...] = ()


def load_library_settings(folder: Path | None = None, environment: Mapping[str, str] = os.environ) -> LibrarySettings:
    """Read `library.toml` of our own configuration folder; a missing file means the defaults.

    Raises:
        UsageError: the file is not what it should be; file and cause are named.
    """
    path = (folder or config_folder()) / FILE_NAME
    values: dict[str, object] = {}
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        values = {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"the library's settings cannot be read: {error}", "mend or remove it", str(path)) from error
    url, owner, folders = values.get("database_url", ""), values.get("owner", ""), values.get("folders", [])
    if not isinstance(url, str) or not isinstance(owner, str) or not isinstance(folders, list):
        raise UsageError(
            "database_url and owner must be texts, folders a list of texts", "mend or remove it", str(path)
        )
    return LibrarySettings(environment.get(URL_VARIABLE) or url, owner, tuple(str(f) for f in folders))


def save_library_settings(settings: LibrarySettings, folder: Path | None = None) -> None:
    """Write `library.toml`, private to the user: the URL may hold a password.

    Raises:
        UsageError: a folder's name holds bytes that are no text.
    """
    path = ensure(folder or config_folder()) / FILE_NAME
    text = (
        f"database_url = {_toml(settings.database_url)}\n"
        f"owner = {_toml(settings.owner)}\n"
        f"folders = [{', '.join(_toml(folder) for folder in settings.folders)}]\n"
    )
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError("a folder's name is not valid text, so it cannot be kept", "rename the folder") from error
    temporary = path.with_name(path.name + ".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    os.replace(temporary, path)


def _toml(text: str) -> str:
    """A TOML basic string: JSON's, but characters beyond the first plane as they are, and DEL escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def library_folders(
    settings: LibrarySettings, environment: Mapping[str, str] = os.environ, home: Path | None = None
) -> list[Path]:
    """The folders to index when none are named: the client's, then those the person added."""
    found = client_folders(environment, home or Path.home())
    return found + [Path(f).expanduser() for f in settings.folders]
