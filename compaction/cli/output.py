from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any


def print_json(document: Any) -> None:
    """Write exactly one JSON document to standard output (cli.md).

    Lone surrogates (cut emoji in tool output) are written as `\\ud83d` escapes, so every input can be printed.
    """
    text = json.dumps(document, ensure_ascii=False, indent=2)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = json.dumps(document, ensure_ascii=True, indent=2)
    sys.stdout.write(text + "\n")


def print_table(rows: Iterable[Sequence[object]], headers: Sequence[str] = ()) -> None:
    """Write rows as columns padded to their widest cell; numbers are right-aligned."""
    table = [[_cell(value) for value in row] for row in rows]
    numeric = [[isinstance(value, (int, float)) for value in row] for row in rows] if isinstance(rows, list) else []
    if headers:
        table.insert(0, list(headers))
        numeric.insert(0, numeric[0] if numeric else [False] * len(headers))
    if not table:
        return
    widths = [max(len(row[column]) for row in table if column < len(row)) for column in range(max(map(len, table)))]
    for number, row in enumerate(table):
        cells = [
            cell.rjust(widths[column])
            if number < len(numeric) and column < len(numeric[number]) and numeric[number][column]
            else cell.ljust(widths[column])
            for column, cell in enumerate(row)
        ]
        print_line("  ".join(cells).rstrip())
        if headers and number == 0:
            print_line("  ".join("-" * width for width in widths))


def print_line(text: str = "") -> None:
    """Write one line to standard output; what the terminal cannot encode is escaped, control characters too."""
    safe = "".join(c if c.isprintable() or c == "\t" else f"\\x{ord(c):02x}" for c in text)
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(safe.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def warn(text: str) -> None:
    """Write one line to standard error: progress and warnings never mix with the result."""
    sys.stderr.write("".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text) + "\n")


def _cell(value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4f}"
    return str(value)
