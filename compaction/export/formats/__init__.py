"""The export formats: one module and one line here each."""

from __future__ import annotations

from compaction.export.formats.base import ExportFormat, ExportOptions
from compaction.export.formats.jsonl import JsonLines

FORMATS: dict[str, ExportFormat] = {f.name: f for f in (JsonLines(),)}
"""Every export format by name, in the order of menus."""

__all__ = ["FORMATS", "ExportFormat", "ExportOptions"]
