"""Write the parts of the documentation that the program itself knows: `make docs`.

The table of commands in README.md and the page resources/docs/command-line.md come from the commands' own help.
"""

from __future__ import annotations

import argparse
import importlib
import re
from pathlib import Path

from compaction.cli.main import COMMANDS
from tests.support import ROOT

README = ROOT / "README.md"
COMMAND_LINE = ROOT / "resources" / "docs" / "command-line.md"

_SCREENSHOT = "a picture of one view as PNG, drawn without a display"


def command_parsers() -> dict[str, argparse.ArgumentParser]:
    """Every subcommand's parser, by name."""
    parsers = {}
    for name, path in COMMANDS.items():
        module = importlib.import_module(path)
        parsers[name] = argparse.ArgumentParser(prog=f"compactoscope {name}", description=module.HELP)
        module.add_arguments(parsers[name])
    return parsers


def readme_table() -> str:
    """The rows of README's table of commands."""
    rows = ["| command | what it does |", "| --- | --- |", "| `compactoscope [FILE ...]` | opens the window |"]
    for name, parser in command_parsers().items():
        words = " ".join([name, *(_value(a) for a in parser._actions if not a.option_strings)])
        rows.append(f"| `compactoscope {words}` | {_cell(parser.description or '')} |")
    rows.append(f"| `compactoscope screenshot FILE -o PNG` | {_SCREENSHOT} |")
    return "\n".join(rows)


def command_page() -> str:
    """The page about every command and option."""
    parts = [
        "# The command line\n\nMade from the program's own help by `make docs`.\n\n"
        "Exit codes: 0 done, 1 findings of severity `error` or nothing written, 2 bad usage, 3 input unreadable.\n"
    ]
    for name, parser in command_parsers().items():
        parts.append(f"## {name}\n\n{parser.description}\n\n| argument | what it is |\n| --- | --- |")
        for action in parser._actions:
            if action.dest == "help":
                continue
            spelled = ", ".join(f"`{text}`" for text in action.option_strings) or f"`{_value(action)}`"
            if action.option_strings and action.nargs != 0:
                spelled += f" `{_value(action)}`"
            parts.append(f"| {spelled} | {_cell(_help(action))} |")
        parts.append("")
    return "\n".join(parts)


def update(path: Path = README) -> None:
    """Rewrite README's table and the command-line page."""
    text = path.read_text(encoding="utf-8")
    inside = f"<!-- commands -->\n{readme_table()}\n<!-- /commands -->"
    text = re.sub(r"<!-- commands -->.*?<!-- /commands -->", lambda _: inside, text, flags=re.DOTALL)
    path.write_text(text, encoding="utf-8")
    COMMAND_LINE.write_text(command_page(), encoding="utf-8")


def _value(action: argparse.Action) -> str:
    if action.choices is not None:
        return "|".join(map(str, action.choices))
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.nargs in ("*", "+"):
        return f"{name} ..." if action.nargs == "+" else f"[{name} ...]"
    return f"[{name}]" if action.nargs == "?" else name


def _help(action: argparse.Action) -> str:
    text = action.help or ""
    return (text % vars(action)) if "%" in text else text


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    update()
