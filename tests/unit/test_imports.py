"""The house's walls: no Qt in the engine, imports go downward, docstrings everywhere, nothing of one machine."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import ROOT

FLOORS = (
    "transcript",
    "conversation",
    "accounting",
    "request",
    "diagnosis",
    "strategies",
    "summaries",
    "export",
    "catalogue",
    "cli",
)
"""The packages of the engine, lowest first (architecture.md, "The house"); imports go from right to left only."""

QT = ("PySide6", "shiboken6", "pyqtgraph", "pytestqt")

_IMPORT_ALL = """
import importlib, json, pkgutil, sys
import compaction

for module in pkgutil.walk_packages(compaction.__path__, "compaction."):
    if ".migrations.versions" in module.name or module.name.endswith(".migrations.env"):
        continue
    importlib.import_module(module.name)
print(json.dumps(sorted(sys.modules)))
"""


def modules_after(code: str) -> list[str]:
    """The names in sys.modules of a fresh interpreter that ran `code` in the checkout."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout.splitlines()[-1]))


def sources(package: str) -> Iterator[Path]:
    """The Python files of a package of this checkout."""
    return (path for path in sorted((ROOT / package).rglob("*.py")) if "__pycache__" not in path.parts)


def imported_names(path: Path) -> Iterator[tuple[int, str]]:
    """Every module that a file imports, at any depth of its code, as (line, dotted name)."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield node.lineno, "." * node.level + (node.module or "")


def test_importing_the_whole_engine_imports_neither_qt_nor_the_window() -> None:
    found = [name for name in modules_after(_IMPORT_ALL) if name.split(".")[0] in (*QT, "inspector")]
    assert found == []


def test_the_command_line_imports_no_qt() -> None:
    """cli.md: every subcommand works without importing Qt, except `screenshot`."""
    code = (
        "import json, sys\nfrom inspector.__main__ import main\n"
        "try:\n    main(['inspect', '--help'])\nexcept SystemExit:\n    pass\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    assert [name for name in modules_after(code) if name.split(".")[0] in QT] == []


def test_the_command_line_starts_without_the_slow_libraries() -> None:
    """architecture.md: pyqtgraph, anthropic and sqlalchemy are imported only where they are used."""
    found = modules_after("import json, sys\nimport compaction.cli.main\nprint(json.dumps(sorted(sys.modules)))")
    assert [name for name in found if name in ("anthropic", "sqlalchemy", "alembic", "keyring", "numpy")] == []


@pytest.mark.parametrize("path", list(sources("compaction")), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_engine_imports_downward_only(path: Path) -> None:
    floor = path.relative_to(ROOT / "compaction").parts[0]
    allowed = FLOORS[: FLOORS.index(floor) + 1] if floor in FLOORS else ()
    for line, name in imported_names(path):
        parts = name.split(".")
        assert parts[0] not in (*QT, "inspector", "tests"), f"line {line} imports {name}"
        assert not name.startswith("."), f"line {line}: imports are absolute, so that a reader sees the floor"
        if parts[0] == "compaction" and len(parts) > 1 and parts[1] in FLOORS:
            assert parts[1] in allowed, f"line {line} of floor {floor!r} imports {name}, which lies above"


def public_definitions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef]:
    """The functions and classes of a module that others may use."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            yield node


@pytest.mark.parametrize("package", ["compaction", "inspector"])
def test_every_public_function_and_class_has_a_docstring(package: str) -> None:
    bare = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in sources(package)
        if "migrations" not in path.parts
        for node in public_definitions(ast.parse(path.read_text(encoding="utf-8")))
        if not ast.get_docstring(node)
    ]
    assert bare == []


@pytest.mark.parametrize("package", ["compaction", "inspector"])
def test_no_error_is_swallowed(package: str) -> None:
    """A handler for everything that does nothing hides what the person should know."""
    found = []
    for path in sources(package):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ExceptHandler):
                broad = node.type is None or (
                    isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException")
                )
                if broad and all(isinstance(statement, ast.Pass) for statement in node.body):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert found == []


def tracked_text_files() -> list[Path]:
    """The text files under version control; every file of the checkout where there is no git."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, timeout=60, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout: the files of the project cannot be told from others")
    names = [name for name in listed.stdout.decode().split("\0") if name]
    return [ROOT / name for name in names if not name.endswith((".png", ".svg", ".ttf", ".ico", ".qm"))]


def test_no_path_of_a_developers_machine_is_in_the_project() -> None:
    own_root = re.escape(str(ROOT.resolve()))
    pattern = re.compile(rf"(?<![\w.])(?:/root/|/home/[a-z]+/|/work/|/tmp/(?!\.X11)|{own_root})[\w.-]")
    found = []
    for path in tracked_text_files():
        if "tests" in path.relative_to(ROOT).parts or not path.is_file():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if match := pattern.search(line[:100_000]):
                found.append(f"{path.relative_to(ROOT)}:{number}: {match[0]}")
    assert found == []


def test_the_top_level_holds_only_what_the_architecture_names() -> None:
    allowed = {
        "pyproject.toml",
        "inspector",
        "compaction",
        "resources",
        "tests",
        "packaging",
        "Makefile",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "DEVELOPERS.md",
    }
    top = {path.relative_to(ROOT).parts[0] for path in tracked_text_files()}
    assert {name for name in top if not name.startswith(".")} <= allowed
