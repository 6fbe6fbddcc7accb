"""library.toml: the same settings for the window and the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from compaction.catalogue.settings import (
    FILE_NAME,
    URL_VARIABLE,
    LibrarySettings,
    library_folders,
    load_library_settings,
    save_library_settings,
)
from compaction.errors import UsageError


def test_what_is_saved_is_loaded_and_private(tmp_path: Path) -> None:
    for settings in (
        LibrarySettings(),
        LibrarySettings('postgresql://a:"quo\\ted"@h/n', "ada@desk", ("/tmp/a b", "C:\\x", "/ü/🌊", "/tab\t\x7f")),
    ):
        save_library_settings(settings, tmp_path)
        assert load_library_settings(tmp_path, {}) == settings
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o077 == 0
    assert [p.name for p in tmp_path.iterdir()] == [FILE_NAME]


def test_a_name_that_is_no_text_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        save_library_settings(LibrarySettings(folders=("/bad\udcff",)), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_file_means_the_defaults(tmp_path: Path) -> None:
    assert load_library_settings(tmp_path, {}) == LibrarySettings()


def test_the_variable_overrides_the_url(tmp_path: Path) -> None:
    save_library_settings(LibrarySettings("postgresql://file/x"), tmp_path)
    assert (
        load_library_settings(tmp_path, {URL_VARIABLE: "postgresql://other/x"}).database_url == "postgresql://other/x"
    )


@pytest.mark.parametrize("text", ["no toml at all", "database_url = 3", "folders = 'x'", "owner = []"])
def test_a_file_that_is_wrong_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(UsageError) as caught:
        load_library_settings(tmp_path, {})
    assert caught.value.file == str(tmp_path / FILE_NAME)


def test_added_folders_come_after_the_clients(tmp_path: Path) -> None:
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    folders = library_folders(LibrarySettings(folders=("/extra",)), {}, tmp_path)
    assert folders == [tmp_path / ".claude" / "projects", Path("/extra")]
