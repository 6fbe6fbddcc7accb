from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from PySide6.QtCore import QByteArray, QSettings

from compaction.data_folder import config_folder

Value = TypeVar("Value", str, int, float, bool)


@dataclass(frozen=True, slots=True)
class Setting(Generic[Value]):
    """A typed setting, declared once.

    Attributes:
        key: "group/name" in the settings file.
        default: value when absent or unreadable; its type is the setting's type.
        tip: what it does, one sentence.
        choices: allowed values, () = any.
    """

    key: str
    default: Value
    tip: str
    choices: tuple[Value, ...] = ()


THEME = Setting("window/theme", "system", "Colours of the window.", ("system", "light", "dark"))
SHOW_SIDECHAIN = Setting("tree/sidechain", True, "Show records of subagents that lie in the session's own file.")
SHOW_META = Setting("tree/meta", True, "Show records that the client injected and marked as meta.")
SHOW_BOOKKEEPING = Setting("tree/bookkeeping", False, "Show progress, snapshots, queue and session-state records.")
API_BASE_URL = Setting("api/base_url", "", "Where the Messages API is; empty: the SDK's own address.")
API_MODEL = Setting("api/model", "", "The model that is asked for summaries; empty: the session's own.")
API_TIMEOUT = Setting("api/timeout", 120.0, "Seconds of silence after which a call fails.")
API_KEEP_IMAGES = Setting("api/keep_images", False, "Send images and documents with a summary request.")
FOLLOW_LIVE = Setting("live/follow", True, "Take in what is written to an open session while it is open.")
FOLLOW_END = Setting("live/end", False, "Keep the end of a growing session in view.")
NOTIFY = Setting("live/notify", False, "Tell when a session that is not in front needs attention.")
NOTIFY_PERCENT = Setting("live/notify_percent", 80, "Share of the effective window from which the context is told, %.")
SINGLE_INSTANCE = Setting("window/single_instance", True, "A second start opens its files in the running window.")
RECENT_LIMIT = 12


class Settings:
    """Typed settings of the window in an INI file of our own; geometry blobs are kept as Qt gives them.

    `folder` is for tests; the default is `compaction.data_folder.config_folder()`.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._store = QSettings(str((folder or config_folder()) / "window.ini"), QSettings.Format.IniFormat)

    def get(self, setting: Setting[Value]) -> Value:
        """The stored value, converted (an INI file holds strings), or the default when it does not fit."""
        raw: Any = self._store.value(setting.key)
        if raw is None:
            return setting.default
        value = _convert(raw, setting.default)
        return setting.default if setting.choices and value not in setting.choices else value

    def set(self, setting: Setting[Value], value: Value) -> None:
        """Store a value; it is on disk after `sync` or at exit."""
        self._store.setValue(setting.key, str(value))

    def blob(self, name: str) -> QByteArray:
        """A geometry or state blob of Qt, empty when absent."""
        value = self._store.value(f"blob/{name}")
        return value if isinstance(value, QByteArray) else QByteArray()

    def set_blob(self, name: str, data: QByteArray) -> None:
        """Store a blob."""
        self._store.setValue(f"blob/{name}", data)

    def strings(self, name: str) -> list[str]:
        """A list of strings, [] when absent (an INI list of one comes back as a string)."""
        value: Any = self._store.value(f"list/{name}")
        if isinstance(value, str):
            return [value] if value else []
        return [str(item) for item in value] if isinstance(value, (list, tuple)) else []

    def set_strings(self, name: str, values: list[str]) -> None:
        """Store a list of strings."""
        self._store.setValue(f"list/{name}", values)

    @property
    def recent_files(self) -> list[str]:
        """Paths opened last, newest first."""
        return self.strings("recent")

    def add_recent(self, path: str) -> None:
        """Put a path first in the recent files."""
        others = [other for other in self.recent_files if other != path]
        self.set_strings("recent", [path, *others][:RECENT_LIMIT])

    def forget_recent(self) -> None:
        """Empty the list of recent files."""
        self.set_strings("recent", [])

    def sync(self) -> None:
        """Write to disk now."""
        self._store.sync()


def _convert(raw: Any, default: Value) -> Value:
    text = str(raw)
    try:
        if isinstance(default, bool):
            return {"true": True, "false": False}[text.lower()]
        if isinstance(default, int):
            return int(text)
        if isinstance(default, float):
            return float(text)
    except (ValueError, KeyError):
        return default
    return text
