"""Tokens, context, windows and cost: exact where recorded, with method and error where not."""

from __future__ import annotations

from compaction.accounting.current import CurrentContext, context_summary, current_context

__all__ = ["CurrentContext", "context_summary", "current_context"]
