"""The export formats: one module and one line here each."""

from __future__ import annotations

from compaction.export.formats.base import ExportFormat, ExportOptions
from compaction.export.formats.html import Html
from compaction.export.formats.jsonl import JsonLines
from compaction.export.formats.markdown import Markdown
from compaction.export.formats.messages import Messages

FORMATS: dict[str, ExportFormat] = {f.name: f for f in (JsonLines(), Messages(), Markdown(), Html())}
"""Every export format by name, in the order of menus."""

__all__ = ["FORMATS", "ExportFormat", "ExportOptions"]
