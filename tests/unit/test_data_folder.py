from __future__ import annotations

from pathlib import Path

import pytest

from compaction.data_folder import VARIABLE, FolderUnwritable, cache_folder, config_folder, data_folder, ensure


def test_the_variable_moves_all_three_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "own"))
    assert data_folder() == tmp_path / "own"
    assert {data_folder(), cache_folder(), config_folder()} == {
        tmp_path / "own",
        tmp_path / "own" / "cache",
        tmp_path / "own" / "config",
    }


def test_without_the_variable_the_folders_are_under_the_home_and_named_after_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in (data_folder(), cache_folder(), config_folder()):
        assert tmp_path in folder.parents
        assert "compactoscope" in folder.parts


def test_asking_where_a_folder_is_creates_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "own"))
    data_folder(), cache_folder(), config_folder()
    assert list(tmp_path.iterdir()) == []


def test_ensure_creates_a_private_folder_and_may_be_called_again(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    assert ensure(ensure(folder)) == folder
    assert folder.stat().st_mode & 0o077 == 0


def test_a_folder_that_cannot_be_made_is_a_typed_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(FolderUnwritable) as caught:
        ensure(tmp_path / "file" / "below")
    assert str(tmp_path / "file" / "below") in str(caught.value)
    assert VARIABLE in caught.value.hint
