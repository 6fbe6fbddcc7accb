from __future__ import annotations

import re
from pathlib import Path

import pytest

from compaction.cli.main import COMMANDS
from inspector.views.help_window import FILTERS_PAGE, KEYS_PAGE
from tests.docs import COMMAND_LINE, README, command_page, readme_table
from tests.support import ROOT


def markdown_files() -> list[Path]:
    folders = (ROOT, ROOT / "packaging", ROOT / "resources" / "docs")
    return sorted(path for folder in folders for path in folder.glob("*.md"))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_readme_and_has_a_section_on_the_page(name: str) -> None:
    """After adding a command: make docs."""
    assert f"`compactoscope {name}" in README.read_text(encoding="utf-8")
    assert f"\n## {name}\n" in COMMAND_LINE.read_text(encoding="utf-8")


def test_the_generated_parts_name_every_command() -> None:
    assert all(f"compactoscope {name}" in readme_table() for name in COMMANDS)
    assert all(f"## {name}\n" in command_page() for name in COMMANDS)


@pytest.mark.parametrize("path", markdown_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_pictures_of_the_docs_lead_to_files_that_exist(path: Path) -> None:
    made_by_the_help_window = {f"{KEYS_PAGE}.md", f"{FILTERS_PAGE}.md"}
    for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
        if "://" not in target and target not in made_by_the_help_window:
            assert (path.parent / target).exists(), f"{target} does not exist"
