"""Every command over inputs nobody should write: cli.md's exit codes, valid JSON, no escapes, originals unchanged."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compaction.cli.main import main
from compaction.export.formats import FORMATS
from compaction.strategies.registry import STRATEGIES
from tests.unit.hostile_samples import hostile_inputs

INPUTS = hostile_inputs()
ALWAYS = (("inspect", "--json"), ("doctor", "--json"), ("repair", "--json", "-o", "{out}"))
OTHERS = (
    ("inspect",), ("doctor",), ("request", "--json"), ("request", "--at", "2", "--json"), ("compare", "--json"),
    ("compare",), ("replay", "--json"), ("replay",), ("cost", "--json"), ("cost",), ("memory", "--json"), ("memory",),
    ("request",), ("repair", "--dry-run", "-o", "{out}"),
    *(("export", "--json", "--format", name, "-o", "{out}") for name in FORMATS),
    *(("compact", "--json", "--strategy", name, "-o", "{out}") for name in STRATEGIES),
)  # fmt: skip
SHARE = 7
"""Each input meets every seventh of the other commands, a different seventh each: all of them are in the slow test."""
KEYS = {
    "inspect": {
        "file",
        "bytes",
        "lines",
        "records",
        "damaged_lines",
        "unknown_types",
        "rounds",
        "compactions",
        "context",
    },
    "request": {"client", "at", "verified", "messages", "unaccounted", "violations"},
    "doctor": {"findings"},
    "repair": {"written", "findings_before", "findings_after", "changes", "unchanged_lines", "added_lines"},
    "compare": {"at", "context", "strategies"},
    "compact": {"strategy", "written", "telemetry", "journal"},
    "replay": {"client", "events", "matched", "missed", "extra"},
    "cost": {"files", "responses", "total_usd", "buckets", "models", "unpriced", "duplicates_removed"},
}
_MAY_STAND_THERE = {"session.jsonl", "out", "out.left-out.json", "compactoscope-data"}
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.mark.parametrize("name", INPUTS)
def test_every_input_is_survived_by_every_kind_of_command(
    name: str, tmp_path: Path, own_data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    number = list(INPUTS).index(name)
    chosen = [command for place, command in enumerate(OTHERS) if place % SHARE == number % SHARE]
    _survive(INPUTS[name], [*ALWAYS, *chosen], tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("name", INPUTS)
def test_every_input_is_survived_by_every_command(
    name: str, tmp_path: Path, own_data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _survive(INPUTS[name], [*ALWAYS, *OTHERS], tmp_path, capsys)


def _survive(data: bytes, commands: list[tuple[str, ...]], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = folder / "session.jsonl", folder / "out"
    file.write_bytes(data)
    os.utime(file, (1e9, 1e9))
    for command in commands:
        out.unlink(missing_ok=True)
        code = main([command[0], str(file), *(part.format(out=out) for part in command[1:])])
        printed = capsys.readouterr()
        assert code in ((0, 1, 2) if "--at" in command else (0, 1)), (command, printed.err)
        assert not _UNSAFE.search(printed.err), command
        if "--json" not in command:
            assert not _UNSAFE.search(printed.out), command
        elif printed.out:
            document = json.loads(printed.out, parse_constant=_refuse)
            assert KEYS.get(command[0], set()) <= set(document), command
        else:
            assert code != 0, command
            assert printed.err.startswith("compactoscope: "), command
        assert file.read_bytes() == data, command
        assert {p.name for p in folder.iterdir()} <= _MAY_STAND_THERE, command


def _refuse(constant: str) -> Any:
    raise AssertionError(f"{constant} is no JSON")


# --- names and places -----------------------------------------------------------------------------------------------


@pytest.fixture
def session(tmp_path: Path, own_data_folder: Path) -> Iterator[Path]:
    """An ordinary session, asserted unchanged afterwards."""
    file = tmp_path / "session.jsonl"
    data = INPUTS["CRLF"].replace(b"\r", b"")
    file.write_bytes(data)
    os.utime(file, (1e9, 1e9))
    yield file
    assert file.read_bytes() == data


@pytest.mark.parametrize("spelling", ["same", "relative", "dots", "symbolic link", "hard link", "linked folder"])
def test_the_original_is_refused_as_output_however_it_is_spelled(
    spelling: str, session: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = session.parent
    monkeypatch.chdir(folder)
    (folder / "soft").symlink_to(session)
    (folder / "hard").hardlink_to(session)
    (folder / "link").symlink_to(folder)
    target = {
        "same": session, "relative": Path("session.jsonl"), "dots": folder / ".." / folder.name / "session.jsonl",
        "symbolic link": folder / "soft", "hard link": folder / "hard", "linked folder": folder / "link" / session.name,
    }[spelling]  # fmt: skip
    assert main(["export", str(session), "--format", "jsonl", "-o", str(target), "--overwrite"]) == 2
    assert "the output is the original itself" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("kind", ["pipe", "link to the null device"])
def test_a_pipe_or_a_device_is_never_replaced_by_a_file(
    kind: str, session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never /dev/null itself here: a program that broke this rule would replace it for the whole machine."""
    target = session.parent / "target"
    if kind == "pipe":
        os.mkfifo(target)
    else:
        target.symlink_to(os.devnull)
    before = target.lstat()
    assert main(["export", str(session), "--format", "markdown", "-o", str(target), "--overwrite"]) == 2
    assert "a device or a pipe" in capsys.readouterr().err
    assert os.path.samestat(before, target.lstat())


@pytest.mark.parametrize(
    "command", [["export", "--format", "html"], ["repair"], ["compact", "--strategy", "auto-compact"]]
)
@pytest.mark.parametrize("name", ["x" * 300, "loop", "absent/x", "session.jsonl/x", "~nobody-of-that-name/x", "nul\0"])
def test_an_output_that_cannot_be_written_is_one_line(
    command: list[str], name: str, session: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(session.parent)
    Path("loop").symlink_to("loop")
    assert main([*command, str(session), "-o", name]) in (1, 2)
    error = capsys.readouterr().err.splitlines()
    assert error[-1].startswith("compactoscope: ")
    assert {p.name for p in session.parent.iterdir()} <= {"session.jsonl", "loop", "compactoscope-data"}


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_an_output_that_links_nowhere_is_not_written(
    overwrite: list[str], session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = session.parent / "target"
    target.symlink_to(session.parent / "nowhere")
    assert main(["export", str(session), "--format", "markdown", "-o", str(target), *overwrite]) == 1
    assert "leads nowhere" in capsys.readouterr().err
    assert not (session.parent / "nowhere").exists()


@pytest.mark.parametrize("command", ["inspect", "doctor", "request", "compare", "replay", "cost", "memory", "follow"])
@pytest.mark.parametrize("name", ["absent", "x" * 300, "a\nb \x1b[31m", "loop", "folder/absent", "file/below", "nul\0"])
def test_an_input_that_cannot_be_read_is_one_line_and_code_3(
    command: str, name: str, tmp_path: Path, own_data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_bytes(b"")
    assert main([command, str(tmp_path / name)]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("compactoscope: ")
    assert printed.err.count("\n") == 1
    assert not _UNSAFE.search(printed.err)


@pytest.mark.skipif(not Path("/dev/zero").is_char_device(), reason="no such device here")
def test_a_device_without_end_is_refused_and_the_null_device_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "/dev/zero"]) == 3
    assert "is a device" in capsys.readouterr().err
    assert main(["inspect", os.devnull, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 0


@pytest.mark.parametrize("name", ["-o.jsonl", "a\nb.jsonl", " .jsonl", "%s{0}.jsonl", "ä\udcff.jsonl", "<b>.jsonl"])
def test_file_names_are_only_names(
    name: str, session: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(session.parent)
    Path(name).write_bytes(session.read_bytes())
    for format_name in FORMATS:
        assert main(["export", "--format", format_name, f"--output=out {format_name} {name}", "--", name]) == 0
        assert Path(f"out {format_name} {name}").is_file()
    assert main(["inspect", "--json", "--", name]) == 0
    document = capsys.readouterr().out
    assert json.loads(document[document.index("{\n") :])["file"] == name


def test_a_session_id_with_a_path_in_it_makes_no_file_elsewhere(
    tmp_path: Path, own_data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    file = inner / "session.jsonl"
    file.write_bytes(INPUTS["names with escapes"].replace(b"../..", b"../../../../x"))
    assert main(["index", str(inner)]) == 0
    assert main(["sessions", "--json"]) == 0
    assert main(["search", "tide"]) == 0
    assert main(["memory", str(file), "--update"]) in (0, 1)
    assert main(["repair", str(file), "-o", str(inner), "--json"]) in (0, 1)
    capsys.readouterr()
    outside = {p for p in tmp_path.rglob("*") if p.is_file() and not p.is_relative_to(own_data_folder)}
    assert all(p.parent == inner for p in outside)


def test_markup_in_a_session_is_text_in_every_export(
    tmp_path: Path, own_data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "session.jsonl", tmp_path / "out.html"
    file.write_bytes(INPUTS["every text escapes"])
    assert main(["export", str(file), "--format", "html", "-o", str(out)]) == 0
    page = out.read_text("utf-8")
    assert "<b onclick" not in page
    assert "<img src='http" not in page
    assert "onclick=x" in page


def test_a_library_of_hostile_files_is_indexed_listed_and_searched(
    tmp_path: Path, own_data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "loop.jsonl").symlink_to("loop.jsonl")
    (folder / "loop").symlink_to("loop")
    (folder / "again").symlink_to(".")
    (folder / "folder.jsonl").mkdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "pipe.jsonl")
        os.mkfifo(folder / "agent-pipe.jsonl")
    (folder / "no UTF-8 \udcff.jsonl").write_bytes(INPUTS["CRLF"])
    chosen = ("lone surrogates", "surrogate ids", "odd message.model", "odd message.id", "odd version", "odd sessionId",
              "odd cwd", "odd usage.input_tokens", "odd message.content[].name", "odd timestamp", "names with escapes",
              "noise", "request: odd blocks", "CRLF")  # fmt: skip
    for name in chosen:
        (folder / f"{list(INPUTS).index(name)}.jsonl").write_bytes(INPUTS[name])
    assert main(["index", str(folder), "--json", "--processes", "1"]) == 0
    printed = capsys.readouterr()
    report = json.loads(printed.out)
    assert report["indexed"] == len(chosen)
    pipes = 2 if hasattr(os, "mkfifo") else 0
    assert len(report["problems"]) == 4 + pipes  # both links to themselves, the name, the folder
    assert not _UNSAFE.search(printed.err)
    assert main(["index", str(folder), "--json", "--processes", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["unchanged"] == len(chosen)
    for command in (
        ["sessions"], ["sessions", "--project", "\udcff"], ["sessions", "--until", "9999-12-31"],
        ["sessions", "--min-context", "9" * 40], ["sessions", "--since", "0001-01-01"],
        ["search", "tide"], ["search", "\udcff x"], ["search", "'); DROP"], ["cost", str(folder)],
    ):  # fmt: skip
        assert main(command) == 0, command
        assert not _UNSAFE.search(capsys.readouterr().out), command
        assert main([*command, "--json"]) == 0, command
        json.loads(capsys.readouterr().out, parse_constant=_refuse)
