"""The comparison of strategies as one HTML page: facts, bars on one scale as SVG, every figure, what is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from compaction.export.charts import compared_contexts
from compaction.export.formats.html import page_head

_STYLE = (
    "body{max-width:none}div.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem}"
    "th,td{border:1px solid var(--line);padding:.25rem .5rem;text-align:right;vertical-align:top;white-space:pre-line}"
    "td.said{text-align:left;min-width:14rem}th{background:var(--soft);text-align:left}thead th{text-align:center}"
)


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """One strategy of the report.

    Attributes:
        title: for the table's head.
        tokens: context tokens by category key afterwards, None when nothing could be computed.
        help: what the strategy does and the source of its rules, "" for the untouched session.
    """

    title: str
    tokens: Mapping[str, int] | None
    help: str = ""


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One figure: its title, one text a column, and whether these are sentences."""

    title: str
    cells: Sequence[str]
    sentences: bool = False


def comparison_page(
    title: str,
    facts: Sequence[tuple[str, str]],
    columns: Sequence[ComparedColumn],
    rows: Sequence[ComparedRow],
    thresholds: Sequence[tuple[str, int]] = (),
) -> Iterator[str]:
    """The page in pieces; nothing in it runs or loads, every text is escaped.

    Args:
        facts: names and values at the top.
        thresholds: (name, tokens), drawn through all bars.
    """
    yield page_head(title, _STYLE)
    yield f"<h1>{escape(title)}</h1>\n<dl>"
    yield "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    yield "</dl>\n"
    yield compared_contexts([(column.title, column.tokens or {}) for column in columns], thresholds)
    heads = "".join(f"<th>{escape(column.title)}</th>" for column in columns)
    yield f'<div class="wide"><table><thead><tr><th></th>{heads}</tr></thead><tbody>\n'
    for row in rows:
        kind = ' class="said"' if row.sentences else ""
        cells = "".join(f"<td{kind}>{escape(cell)}</td>" for cell in row.cells)
        yield f"<tr><th>{escape(row.title.strip())}</th>{cells}</tr>\n"
    yield "</tbody></table></div>\n<h2>The strategies</h2>\n"
    told = {c.help: c.title for c in reversed(columns) if c.help}
    yield "".join(f"<p><b>{escape(title)}.</b> {escape(text)}</p>\n" for text, title in reversed(told.items()))
    yield "</body></html>\n"
