from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

from compaction.accounting.categories import CATEGORY_KEYS, Category
from compaction.accounting.context import context_series
from compaction.accounting.current import current_context
from compaction.conversation import Conversation, Session
from compaction.export.charts import stacked_context
from compaction.export.document import DocumentBlock, DocumentEntry, document_entries
from compaction.export.facts import session_facts
from compaction.export.formats.base import ExportOptions, write_text
from compaction.export.writer import Written
from compaction.progress import Progress
from compaction.strategies.session_at import first_record_after

_MEDIA_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = """
:root{color-scheme:light dark;--line:#ccc;--soft:#f5f5f5;--text:#222;--dim:#666;--bad:#b00020}
@media (prefers-color-scheme:dark){:root{--line:#444;--soft:#232323;--text:#ddd;--dim:#999;--bad:#ff8a80}
body{background:#181818}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--text);max-width:64rem;margin:2rem auto;padding:0 1rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem}dt{color:var(--dim)}dd{margin:0}
article{border-left:4px solid var(--line);padding:.2rem 0 .2rem 1rem;margin:1rem 0}
article.user{border-color:#4477aa}article.assistant{border-color:#66ccee}article.summary{border-color:#aa3377}
h2{font-size:1.05rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line)}h3{font-size:1rem;margin:.2rem 0}
h3 small{font-weight:normal;color:var(--dim)}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--soft);padding:.6rem;margin:.4rem 0;border-radius:4px}
pre.text{background:none;padding:0;font:inherit}summary{cursor:pointer;color:var(--dim)}
.failed>summary{color:var(--bad)}hr{border:0;border-top:2px dashed var(--line);margin:2rem 0 .5rem}
img{max-width:100%}svg{width:100%;font:11px system-ui,sans-serif;fill:currentColor}
svg .grid{stroke:var(--line);stroke-width:.5}svg .mark{stroke:#aa3377;stroke-dasharray:4 3;stroke-width:1.5}
svg .limit{stroke:var(--bad);stroke-dasharray:6 3}
"""


class Html:
    """The conversation as one page that loads nothing and runs nothing: styles inside, charts as SVG, text escaped."""

    name = "html"
    title = "HTML page, self-contained"
    suffix = ".html"

    def write(
        self, session: Session, target: str | Path, options: ExportOptions, progress: Progress | None = None
    ) -> Written:
        """Write the page."""
        return write_text(self.name, html_page(session, options.at), session, target, options, progress)


def html_page(session: Session, at: int | None = None) -> Iterator[str]:
    """The page in pieces."""
    conversation = session.conversation
    facts = session_facts(conversation, at)
    title = escape(facts[0][1])
    yield page_head(facts[0][1]) + f"<h1>{title}</h1>\n<dl>"
    yield "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    yield "</dl>\n" + context_chart(conversation) + "\n"
    end = first_record_after(conversation, at) if at is not None else None
    number = -1
    for entry in document_entries(conversation, end):
        if entry.round != number:
            number = entry.round
            yield f"<h2>Round {number}</h2>\n" if number else "<h2>Before the next response</h2>\n"
        yield _entry(entry)
    yield "</body></html>\n"


def page_head(title: str, style: str = "") -> str:
    """The beginning of a page up to and with `<body>`: nothing is loaded, nothing runs.

    Args:
        title: plain text.
        style: further rules of our own.
    """
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">'
        f"<title>{escape(title)}</title><style>{_STYLE}{style}</style></head><body>"
    )


def context_chart(conversation: Conversation) -> str:
    """The context over API rounds as SVG, "" when nothing is recorded."""
    if not conversation.round_count:
        return ""
    series = context_series(conversation)
    layers = {key: series.parts[:, Category[key.upper()]].tolist() for key in CATEGORY_KEYS}
    thresholds = current_context(conversation).thresholds
    limit = thresholds.auto_compact_threshold if thresholds.auto_compact_on else None
    largest = int(series.parts.sum(axis=1).max()) if len(series.parts) else 0
    near = limit if limit is not None and largest * 3 > limit else None
    marks = [(c.round, c.kind) for c in conversation.compactions if c.round > 0]
    return stacked_context(layers, marks, near)


def _entry(entry: DocumentEntry) -> str:
    place = f"line {entry.line}" + (f", {escape(entry.time)}" if entry.time else "")
    if entry.role == "boundary":
        return f"<hr><p><strong>{escape(entry.title)}</strong> <small>{place}</small></p>\n"
    blocks = "".join(_block(block) for block in entry.blocks)
    return f'<article class="{entry.role}"><h3>{escape(entry.title)} <small>{place}</small></h3>{blocks}</article>\n'


def _block(block: DocumentBlock) -> str:
    if block.kind == "text":
        return f'<pre class="text">{escape(block.text)}</pre>'
    if block.kind == "image":
        return _image(block)
    mark = ' class="failed"' if block.failed else ""
    failed = " (failed)" if block.failed else ""
    size = f"{len(block.text):,} characters" if block.text else "empty"
    opened = " open" if block.kind == "call" else ""
    return (
        f"<details{mark}{opened}><summary>{escape(block.title)}{failed} · {size}</summary>"
        f"<pre>{escape(block.text)}</pre></details>"
    )


def _image(block: DocumentBlock) -> str:
    """An image inside the page; anything that is not plain base64 of a known type is named, not shown."""
    if block.title not in _MEDIA_TYPES or not _BASE64.fullmatch(block.text):
        return f"<p>Image ({escape(block.title)}), not shown</p>"
    source = f"data:{block.title};base64,{block.text}"
    return f'<details><summary>Image ({block.title})</summary><img alt="" src="{source}"></details>'
